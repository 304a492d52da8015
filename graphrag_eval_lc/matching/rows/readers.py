"""Which form an output has: one chain of readers, from SPARQL JSON to sentences, the marks of a cut, and RDF graphs."""

import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn, TypeVar, get_args

from graphrag_eval_lc.config.sections import OutputFormat
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.files.rdf_graphs import is_graph, read_quads
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, parsed_json, printable, value_at
from graphrag_eval_lc.matching.rows import text_forms
from graphrag_eval_lc.matching.rows.json_forms import (
    RESULT_KEYS,
    SINGLE_FORMS,
    ReadText,
    results_in,
    results_of_rows,
    single_value,
)
from graphrag_eval_lc.matching.rows.python_repr import looks_like_repr, python_value
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn, parse_sparql_results
from graphrag_eval_lc.texts import shortened

Value = TypeVar("Value")

_DEEPEST: Final = 4
_LONGEST_TAIL: Final = 20_000  # so far from the end a server's notice is looked for


def read_sparql_results(output: Any, *, format: OutputFormat | None = None, path: str | None = None) -> SparqlResults:
    r"""Read the results of a query in any form that tools return them in.

    Args:
        output: SPARQL 1.1 JSON, as a string or parsed; an array of row objects, of arrays or of single values; one
            object; a single value; names of columns next to rows, or an object of columns; any of them under a key,
            in content blocks, encoded twice or one a line; W3C XML, CSV or TSV; a Markdown table or one that a console
            draws; Python's repr; any of them in a code fence, and most before or after a sentence.
        format: The form, if it is known; see ``OutputConfig``.
        path: The keys on the way to the results in a JSON output, such as ``result.rows``; None: the whole output.

    Returns:
        The results, whose ``form`` says what was read. Cells of CSV, Markdown and row objects have no types; an empty
        cell is unbound.

    Raises:
        CutOutput: The results end before their end.
        UnreadableOutput: There are none, or several things that may be meant; nothing else is raised.
        ValueError: There is no such format.

    Example:
        >>> results = read_sparql_results("| name | n |\n|---|---|\n| Oslo | 5 |")
        >>> results.variables, results.row_count, results.form
        (('name', 'n'), 1, 'a Markdown table')
    """
    if format is not None and format not in get_args(OutputFormat):
        raise ValueError(f"there is no format {format!r:.40}; there are {', '.join(get_args(OutputFormat))}")
    if path is not None:
        output = value_at(output, path)
    return _first_readable(output, [_read if format is None else partial(_read_as, format)])


def _first_readable(output: Any, readers: Iterable[Callable[[Any], Value]]) -> Value:
    """Return what the first reader that can read an output returns; if none can, raise what the first one found."""
    first: UnreadableOutput | None = None
    for read in readers:
        try:
            return read(output)
        except CutOutput:
            raise
        except UnreadableOutput as problem:
            first = first or problem
        except RecursionError:
            first = first or UnreadableOutput("a value that is nested too deeply")
    raise first or UnreadableOutput(f"a text without results: {_quoted(' '.join(str(output)[:200].split()))}")


_Entry = tuple[Callable[[str], object], Callable[..., SparqlResults], bool]
"""Whether a text looks like a form, its reader, and whether it is the last one that is tried."""


def _read(output: Any, depth: int = 0, chain: Sequence[_Entry] | None = None) -> SparqlResults:
    """Read an output with the readers of a chain, by default with those of all forms."""
    read_text = partial(_read, depth=depth + 1, chain=chain)
    if not isinstance(output, str):
        return results_in(output, read_text)
    if depth > _DEEPEST:
        raise UnreadableOutput("results inside of results")

    def readers(text: str) -> Iterator[Callable[[str], SparqlResults]]:
        for looks_like, read, is_last in _CHAIN if chain is None else chain:
            if looks_like(text):
                yield partial(read, read_text=read_text)
                if is_last:
                    return

    try:
        results = _first_readable(output, readers(output))
    except CutOutput:
        raise
    except UnreadableOutput:
        _refuse_notice(output, readers)
        raise
    has_end = text_forms.has_end(results)
    if not has_end and (len(results.columns) == 1 or "Markdown" in results.form or results.is_graph):
        _refuse_notice(output, readers)  # it may be the last row, or follow
    return results


def _quoted(text: str) -> str:
    return repr(printable(shortened(text.strip()[:200], 60)))


_ERROR: Final = re.compile(
    r"""\s{0,20}(?:(?:error:\ ?)?\((?:\w{1,40}\.){1,6}\w{0,60}(?:Error|Exception|Warning|Violation|Undefined\w{1,30})\)
    |(?:Database\ |SQL\ |Query\ )?error(?:\ \d{1,5}\ \([0-9A-Z]{5}\))?(?:\ at\ line\ \d+)?:\ ?)""",
    re.IGNORECASE | re.VERBOSE,
)


def _refuse_error(text: str, read_text: ReadText) -> NoReturn:
    first = re.sub(r"(?i)\Aerror: ?", "", text.strip()).split("\n")[0]
    raise UnreadableOutput(f"an error: {printable(shortened(first[:400], 100))}")


_JSON: Final = re.compile(r'[\ufeff \t\r\n]{0,200}[{\["]')


def _read_json(text: str, read_text: ReadText) -> SparqlResults:
    return results_in(parsed_json(text), read_text)


_SINGLE: Final = re.compile(
    r"""(?P<answer>(?:Ask\ =>\ |Answer:\ ?|<QueryBoolean\ )(?:yes|no|true|false)>?)
    |(?P<truths>(?:true|false)(?:\s+(?:true|false))+)
    |<?(?P<iri>(?:https?://|urn:)[^\s<>"']+)>?
    |(?P<quote>["']?)(?:(?P<value>true|false|-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,4})?)
        |(?P<word>(?<=["'])[^\s"']+))(?P=quote)""",
    re.IGNORECASE | re.VERBOSE,
)


def _single(text: str) -> re.Match[str] | None:
    found = _SINGLE.fullmatch(text.strip())
    is_name = found is not None and found["quote"] and text[-1] == "\n"  # a line of CSV
    return None if is_name else found


def _read_single(text: str) -> SparqlResults:
    """Read a lone value: a truth value, a number, an IRI, a word in quotation marks, or how a tool prints an ASK."""
    found = _SINGLE.fullmatch(text.strip())
    if found is None or found["truths"]:
        raise UnreadableOutput("several truth values")
    if found["answer"]:
        is_true = re.search("yes|true", found["answer"], re.IGNORECASE) is not None
        return SparqlResults({}, 0, is_true, form="the answer of an ASK")
    if found["iri"]:
        return single_value({"type": "uri", "value": found["iri"]})
    return single_value(found["word"] or parse_json(found["value"].lower()))


def _may_be_lines(text: str) -> bool:
    lines = text[:100_000].lstrip("\ufeff \t\r\n").split("\n", 2)
    return len(lines) > 1 and all(line.lstrip()[:1] in ("{", "[", "(") for line in lines[:2])


def _read_lines(text: str) -> SparqlResults:
    """Read one row a line, as JSON or as Python shows it."""
    rows: list[Any] = []
    lines = [line for line in text.removeprefix("\ufeff").split("\n") if line.strip()]
    for at, line in enumerate(lines, start=1):
        try:
            rows.append(_first_readable(line, (parsed_json, python_value)))
        except UnreadableOutput as problem:
            is_cut = isinstance(problem, CutOutput) and at == len(lines)
            raise (CutOutput if is_cut else UnreadableOutput)(f"lines that break off in row {at}") from None
    cells = [item for row in rows if isinstance(row, Mapping) for item in row.items()]
    keys = {str(key).lower() for key, cell in cells if isinstance(cell, Mapping | list)}
    if keys & (RESULT_KEYS | {"columns", "fields", "head", "items"}):
        raise UnreadableOutput("results on several lines, of which one may be meant")
    return replace(results_of_rows(rows), form="JSON lines" if _JSON.match(text) else "rows one a line")


_BYTES: Final = re.compile("b['\"]")


def _read_bytes(text: str, read_text: ReadText) -> SparqlResults:
    """Read the text in bytes as Python shows them, which HTTP clients and SPARQLWrapper return."""
    try:
        inner = literal_eval(text.strip()).decode()
    except (ValueError, SyntaxError, AttributeError, RecursionError, MemoryError):
        raise UnreadableOutput("bytes that are not a text") from None
    return read_text(inner)


def _read_repr(text: str, read_text: ReadText) -> SparqlResults:
    try:
        value = python_value(text)
    except CutOutput:
        if re.match(r"[^'\"(<A-Z]*['(<A-Z]", text) is None:  # rather JSON, which is known not to break off
            raise UnreadableOutput("neither JSON nor a Python value") from None
        raise
    results = results_in(value, read_text)
    return replace(results, form=f"{results.form} as Python shows it")


def _read_sentence(text: str, read_text: ReadText) -> SparqlResults:
    def read(piece: str) -> SparqlResults:
        results = read_text(piece)
        if results.form.startswith(SINGLE_FORMS):
            raise UnreadableOutput("a sentence with values in it")
        return results

    return text_forms.read_sentence(text, read)


def _alone(read: Callable[[str], SparqlResults]) -> Callable[..., SparqlResults]:
    return lambda text, read_text: read(text)


_CHAIN: Final[Sequence[_Entry]] = (
    (_ERROR.match, _refuse_error, True),
    (_JSON.match, _read_json, False),
    (_single, _alone(_read_single), True),
    (_may_be_lines, _alone(_read_lines), False),
    (lambda text: text.rstrip()[-1:] == ">" and text_forms.looks_like_xml(text), _alone(text_forms.read_xml), True),
    (text_forms.looks_like_xml, _alone(text_forms.read_xml), False),  # a sentence may follow
    (_BYTES.match, _read_bytes, False),
    (looks_like_repr, _read_repr, False),
    (text_forms.looks_like_fence, text_forms.read_fence, True),
    (text_forms.looks_like_table, _alone(text_forms.read_table), False),
    (text_forms.looks_like_tsv, _alone(text_forms.read_tsv), False),
    (text_forms.looks_like_csv, _alone(text_forms.read_csv), False),
    (text_forms.looks_like_sentence, _read_sentence, False),
)

# What a server or a proxy writes after the results if a query breaks off: the first line of it.
_NOTICE: Final = re.compile(
    r"""(?:^|(?<=[}\]]))[ \t,]*(?:(?:\#+[ ]*)?query[ ](?:cancell?ed|aborted|killed|failed|timed[ ]out|timeout)\b.*
    |(?:\[)?(?:[a-z_$][\w$]*\.)*\w*(?:error|exception)\]?(?:[ ]\d+)?(?::?[ ].*:.*|:[ ].*|$)
    |!+>+\#.*|SPARQL-QUERY:.*|\*{3}[ ]?error.*|connection[ ](?:lost|reset|closed|aborted).*|virtuoso[ ]\w{5}[ ]error.*
    |upstream[ ].*|curl:[ ].*|HTTP[/ ][\d. ]*\d{3}\b.*|\d{3}[ ](?:bad[ ])?gateway.*|gateway[ ]time.*
    |traceback[ ]\(.*|(?:\.\.\.|…)[\]}]*|<(?:!doctype[ ]html|html|head|body|h1)\b.*)$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def _refuse_notice(text: str, readers: Callable[[str], Iterable[Callable[[str], SparqlResults]]]) -> None:
    """Raise CutOutput for results after which a server wrote that the query broke off."""
    notice = _NOTICE.search(text, max(1, len(text) - _LONGEST_TAIL))
    if notice is None or not (before := text[: notice.start()]).strip():
        return
    try:
        _first_readable(before, readers(before))
    except CutOutput:
        pass
    except UnreadableOutput:
        return
    raise CutOutput(f"after the results is {_quoted(notice[0])}")


def read_declared_cells(text: str, read_cells: Callable[[str], SparqlResults]) -> SparqlResults:
    """Read a text that is declared to be CSV or TSV, also of one column, unless it begins as another form."""
    read = partial(_read, chain=((str, _alone(read_cells), True),))
    is_other = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[", "<", "`", "|")
    return _first_readable(text, (read_sparql_results, read) if is_other else (read, read_sparql_results))


_OF_TEXTS: Final[Mapping[str, ReadText]] = {
    "xml": text_forms.read_xml,
    "csv": text_forms.read_csv,
    "tsv": text_forms.read_tsv,
    "markdown": text_forms.read_table,
    "python": lambda text: replace(_read_repr(text, partial(_read, depth=1)), form="Python's repr"),
}


def _read_as(format: OutputFormat, output: Any) -> SparqlResults:
    """Read an output as what it is declared to be, and as nothing else."""
    try:
        if format in ("json", "rows"):
            value = parsed_json(output) if isinstance(output, str) else output
            if format == "rows":
                return results_of_rows(value)
            if isinstance(value, bool | int | float):
                return single_value(value)
            return parse_sparql_results(value)
        if format == "python" and isinstance(output, list | tuple | Mapping):
            return _read(output)
        if not isinstance(output, str):
            raise UnreadableOutput(f"a {type(output).__name__} instead of a text")
        return _OF_TEXTS[format](output)
    except CutOutput:
        raise
    except UnreadableOutput as problem:
        raise UnreadableOutput(f"not what steps.outputs declares (format: {format}): {problem}") from None


GRAPHS: Final[Mapping[str, str]] = {
    "text/turtle": "Turtle",
    "application/x-turtle": "Turtle",
    "application/n-triples": "N-Triples",
    "application/ld+json": "JSON-LD",
    "application/rdf+xml": "RDF/XML",
    "application/trig": "TriG",
    "application/n-quads": "N-Quads",
}
"""What graphs are called by their media type."""

_GRAPH_COLUMNS: Final = ("subject", "predicate", "object", "graph")


def read_graph(output: Any) -> SparqlResults:
    """Read an RDF graph in any syntax, or as rows of its triples.

    Returns:
        Results with the columns subject, predicate and object; with graph, if there are named graphs.

    Raises:
        CutOutput: It breaks off before its end.
        UnreadableOutput: It is not a graph, or neither pyoxigraph nor rdflib is installed.
    """

    def read(output: Any) -> SparqlResults:
        return _read(output if isinstance(output, str) else json_text(output), chain=_GRAPH_CHAIN)

    results = _first_readable(output, (read, _read))
    if results.is_graph:
        return results
    names = tuple(name.lower() for name in results.columns)
    if names not in (_GRAPH_COLUMNS[:3], ("s", "p", "o")) or results.faults:  # as Virtuoso has them
        raise UnreadableOutput("rows instead of an RDF graph")
    columns = dict(zip(_GRAPH_COLUMNS[:3], results.columns.values(), strict=True))
    return replace(results, columns=columns, is_graph=True)


def _read_json_ld(text: str, read_text: ReadText) -> SparqlResults:
    """Read a graph in JSON-LD, or the text of a graph in other JSON."""
    value = parsed_json(text)
    parts = value if isinstance(value, list) else [value]
    if not any(parts) or any(str(key)[:1] == "@" for part in parts if isinstance(part, Mapping) for key in part):
        return _read_graph_text(text)
    return results_in(value, read_text)


def _read_graph_text(text: str) -> SparqlResults:
    text = text.strip("\ufeff \t\r\n")
    try:
        syntax, quads = read_quads(text)
    except MissingExtraError as problem:
        raise UnreadableOutput(f"not read: {problem}") from None
    except ValueError as problem:
        whole, end, last = text.rpartition(".\n")
        if last[-1:] not in (".", "}", "") and is_graph(whole + end):
            raise CutOutput("the graph breaks off in its last statement") from None
        raise UnreadableOutput(printable(str(problem))) from None
    names = _GRAPH_COLUMNS if any(quad[3][0] for quad in quads) else _GRAPH_COLUMNS[:3]
    columns = {
        name: TermColumn([quad[at][0] for quad in quads], [quad[at][1] for quad in quads])
        for at, name in enumerate(names)
    }
    return SparqlResults(columns, len(quads), form=syntax, is_graph=True)


_GRAPH_CHAIN: Final[Sequence[_Entry]] = (
    (_JSON.match, _read_json_ld, False),
    (_BYTES.match, _read_bytes, True),
    (text_forms.looks_like_fence, text_forms.read_fence, True),
    (str, _alone(_read_graph_text), True),
)
