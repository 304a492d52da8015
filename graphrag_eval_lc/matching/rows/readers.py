"""Which form an output has: one chain of readers, from SPARQL JSON to sentences, the marks of a cut, and RDF graphs."""

import json
import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn, TypeVar, get_args

from graphrag_eval_lc.config.sections import OutputFormat
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.files.rdf_graphs import read_quads
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.matching.outputs import (
    CutOutput,
    UnreadableOutput,
    cut_json,
    is_prose,
    parsed_json,
    printable,
    refuse_cut_in_words,
    value_at,
)
from graphrag_eval_lc.matching.rows import text_forms
from graphrag_eval_lc.matching.rows.json_forms import (
    RESULT_KEYS,
    SINGLE_FORMS,
    ReadText,
    results_in,
    results_of_rows,
    single_value,
    sparql_object,
)
from graphrag_eval_lc.matching.rows.python_repr import looks_like_repr, python_value
from graphrag_eval_lc.matching.rows.results import (
    SPARQL_JSON,
    SparqlResults,
    TermColumn,
    parse_sparql_results,
)
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
    try:
        return _read(output, 0) if format is None else _read_as(format, output)
    except RecursionError:
        raise UnreadableOutput("a value that is nested too deeply") from None


def first_readable(output: Any, readers: Iterable[Callable[[Any], Value]]) -> Value:
    """Return what the first reader that can read an output returns; if none can, the first one says why.

    Raises:
        UnreadableOutput: None of them can; `CutOutput` as soon as one of them finds that the output is cut.
    """
    first: UnreadableOutput | None = None
    for read in readers:
        try:
            return read(output)
        except CutOutput:
            raise
        except UnreadableOutput as problem:
            first = first or problem
    raise first or UnreadableOutput(f"a text without results: {_quoted(' '.join(str(output)[:200].split()))}")


def _read(output: Any, depth: int) -> SparqlResults:
    if not isinstance(output, str):
        return results_in(output, lambda text: _read(text, depth + 1))
    if depth > _DEEPEST:
        raise UnreadableOutput("results inside of results")
    try:
        results = first_readable(output, _readers_of(output, depth))
    except CutOutput:
        raise
    except UnreadableOutput:
        _refuse_broken_off(output, depth)
        if _ERROR.match(output) is not None:
            _refuse_error(output)
        raise
    is_open = any(form in results.form for form in text_forms.OPEN_FORMS)
    if is_open and (len(results.columns) == 1 or "Markdown" in results.form):  # a notice may be the last row, or follow
        _refuse_broken_off(output, depth)
    return results


def _readers_of(text: str, depth: int) -> Iterator[Callable[[str], SparqlResults]]:
    """Yield the readers of the forms that a text looks like."""
    for looks_like, read, is_last in _CHAIN:
        if looks_like(text):
            yield partial(read, read_text=lambda inner: _read(inner, depth + 1))
            if is_last:
                return


def _quoted(text: str) -> str:
    return repr(printable(shortened(text.strip()[:200], 60)))


_ERROR: Final = re.compile(
    r"""\s{0,20}(?:
    (?P<driver>(?:error:\ ?)?\((?:\w{1,40}\.){1,6}\w{0,60}(?:Error|Exception|Warning|Violation|Undefined\w{1,30})\))
    |(?:Database\ |SQL\ |Query\ )?error(?:\ \d{1,5}\ \([0-9A-Z]{5}\))?(?:\ at\ line\ \d+)?:\ ?)""",
    re.IGNORECASE | re.VERBOSE,
)


def _is_driver_error(text: str) -> bool:
    """Return whether a text is an error of a database's driver, whatever it shows of the query and its values."""
    found = _ERROR.match(text)
    return found is not None and (found["driver"] is not None or "\n[SQL: " in text)


def _refuse_error(text: str) -> NoReturn:
    first = re.sub(r"(?i)\Aerror: ?", "", text.strip()).split("\n")[0]
    raise UnreadableOutput(f"an error: {printable(shortened(first[:400], 100))}")


def _begins_as_json(text: str) -> bool:
    return text[:200].lstrip("\ufeff \t\r\n")[:1] in ("{", "[", '"')


def _read_json(text: str, read_text: ReadText) -> SparqlResults:
    results = results_in(parsed_json(text), read_text)
    has_mark = text.startswith("\ufeff") and results.form == SPARQL_JSON
    return replace(results, form=f"{SPARQL_JSON} after a byte order mark") if has_mark else results


_VALUE: Final = re.compile(r"true|false|-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,4})?", re.IGNORECASE)
_IRI: Final = re.compile(r"<?((?:https?://|urn:)[^\s<>\"']+)>?")
_ANSWER: Final = re.compile(r"(?:Ask => |Answer: ?)(yes|no|true|false)|<QueryBoolean (true|false)>", re.IGNORECASE)
_WORD: Final = re.compile(r"""(["'])([^\s"']+)\1""")
_TRUTHS: Final = re.compile(r"(?:true|false)(?:\s+(?:true|false))+", re.IGNORECASE)


def _is_single(text: str) -> bool:
    bare = text.strip()
    is_word = _WORD.fullmatch(bare) is not None and text[-1] != "\n"  # else a line of CSV with one name
    return is_word or any(form.fullmatch(bare) is not None for form in (_VALUE, _IRI, _ANSWER, _TRUTHS))


def _read_single(text: str) -> SparqlResults:
    """Read a lone value: a truth value, a number, an IRI, a word in quotation marks, or how a tool prints an ASK."""
    text = text.strip()
    if _TRUTHS.fullmatch(text) is not None:
        raise UnreadableOutput("several truth values")
    if (answer := _ANSWER.fullmatch(text)) is not None:
        return SparqlResults({}, 0, (answer[1] or answer[2]).lower() in ("yes", "true"), form="the answer of an ASK")
    if (iri := _IRI.fullmatch(text)) is not None:
        return single_value({"type": "uri", "value": iri[1]})
    word = _WORD.fullmatch(text)
    if word is not None and _VALUE.fullmatch(word[2]) is None:
        return single_value(word[2])
    return single_value(parse_json((text if word is None else word[2]).lower()))


def _may_be_lines(text: str) -> bool:
    lines = text[:100_000].lstrip("\ufeff \t\r\n").split("\n", 2)
    return len(lines) > 1 and all(line.lstrip()[:1] in ("{", "[", "(") for line in lines[:2])


def _read_lines(text: str) -> SparqlResults:
    """Read one row a line, as JSON or as Python shows it."""
    rows: list[Any] = []
    lines = [line for line in text.removeprefix("\ufeff").split("\n") if line.strip()]
    for at, line in enumerate(lines, start=1):
        try:
            rows.append(first_readable(line, (parsed_json, python_value)))
        except UnreadableOutput as problem:
            if isinstance(problem, CutOutput) and at == len(lines):
                raise CutOutput(f"the lines break off in row {at}") from None
            raise UnreadableOutput("lines that are not all rows") from None
    objects = [row for row in rows if isinstance(row, Mapping)]
    keys = {str(key).lower() for row in objects for key, cell in row.items() if isinstance(cell, Mapping | list)}
    if keys & (RESULT_KEYS | {"columns", "fields", "head", "items"}):
        raise UnreadableOutput("results on several lines, of which one may be meant")
    return replace(results_of_rows(rows), form="JSON lines" if _begins_as_json(text) else "rows one a line")


def _begins_as_bytes(text: str) -> bool:
    return text[:2] in ("b'", 'b"')


def _text_of_bytes(text: str) -> str:
    """Return the text in bytes as Python shows them, which HTTP clients and SPARQLWrapper return."""
    try:
        return str(literal_eval(text.strip()).decode())
    except (ValueError, SyntaxError, AttributeError, RecursionError, MemoryError):
        raise UnreadableOutput("bytes that are not a text") from None


def _read_repr(text: str, read_text: ReadText) -> SparqlResults:
    try:
        value = python_value(text)
    except CutOutput:
        if re.match(r"[^'\"(<A-Z]*['(<A-Z]", text) is None:  # rather JSON, which is known not to break off
            raise UnreadableOutput("neither JSON nor a Python value") from None
        raise
    results = results_in(value, read_text)
    return replace(results, form=f"{results.form} as Python shows it")


def _may_be_sentence(text: str) -> bool:
    is_call = re.match(r"\s*[\[(]?[A-Za-z_][\w.]*\([\[{(]", text) is not None  # an object of Python: deque([1, 2])
    return not is_call and text_forms.looks_like_sentence(text)


def _read_sentence(text: str, read_text: ReadText) -> SparqlResults:
    around = text

    def read(piece: str) -> SparqlResults:
        nonlocal around
        results = read_text(piece)
        if results.form.startswith(SINGLE_FORMS):
            raise UnreadableOutput("a sentence with values in it")
        around = around.replace(piece, " ")
        return results

    results = text_forms.read_sentence(text, read)
    if around != text:
        refuse_cut_in_words(around)
    return results


def _read_fence(text: str, read_text: ReadText) -> SparqlResults:
    results = text_forms.read_fence(text, read_text)
    refuse_cut_in_words(_FENCE.sub(" ", text))
    return results


def _alone(read: Callable[[str], SparqlResults]) -> Callable[..., SparqlResults]:
    return lambda text, read_text: read(text)


# Whether a text looks like a form, its reader, and whether it is the last one that is tried.
_CHAIN: Final[tuple[tuple[Callable[[str], bool], Callable[..., SparqlResults], bool], ...]] = (
    (_is_driver_error, _alone(_refuse_error), True),
    (_begins_as_json, _read_json, False),
    (_is_single, _alone(_read_single), True),
    (_may_be_lines, _alone(_read_lines), False),
    (lambda text: text.rstrip()[-1:] == ">" and text_forms.looks_like_xml(text), _alone(text_forms.read_xml), True),
    (text_forms.looks_like_xml, _alone(text_forms.read_xml), False),  # a sentence may follow
    (_begins_as_bytes, lambda text, read_text: read_text(_text_of_bytes(text)), False),
    (looks_like_repr, _read_repr, False),
    (text_forms.looks_like_fence, _read_fence, True),
    (text_forms.looks_like_table, _alone(text_forms.read_table), False),
    (text_forms.looks_like_tsv, _alone(text_forms.read_tsv), False),
    (text_forms.looks_like_csv, _alone(text_forms.read_csv), False),
    (_may_be_sentence, _read_sentence, False),
)

# What a server or a proxy writes after the results if a query breaks off: the first line of it.
_NOTICE: Final = re.compile(
    r"""(?:^|(?<=[}\]]))[ \t,]*(?:!+>+\#.*|(?:\#+[ ]*)?query[ ](?:cancell?ed|aborted|killed|timed[ ]out|timeout)\b.*
    |(?:\[)?(?:[a-z_$][\w$]*\.)*\w*(?:error|exception)\]?(?:[ ]\d+)?(?::?[ ].*:.*|:[ ].*|$)
    |SPARQL-QUERY:.*|\*{3}[ ]?error.*|connection[ ](?:lost|reset|closed|aborted).*|virtuoso[ ]\w{5}[ ]error.*
    |upstream[ ].*|curl:[ ].*|HTTP[/ ][\d. ]*\d{3}\b.*|\d{3}[ ](?:bad[ ])?gateway.*|gateway[ ]time.*
    |traceback[ ]\(.*|(?:\.\.\.|…)[\]}]*|<(?:!doctype[ ]html|html|head|body|h1)\b.*)$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_TROUBLE: Final = re.compile(
    r"error|exception|time-?out|timed out|cancel|abort|killed|terminat|gateway|connection|refused|unavailable|trace",
    re.IGNORECASE,
)


def _refuse_broken_off(text: str, depth: int = 0) -> None:
    """Raise CutOutput for rows after which a server wrote that the query broke off."""
    notice = _NOTICE.search(text, max(1, len(text) - _LONGEST_TAIL))
    if notice is None or not text[: notice.start()].strip():
        return
    before = text[: notice.start()]
    try:
        first_readable(before, _readers_of(before, depth + 1))
    except CutOutput:
        pass
    except UnreadableOutput:
        return
    raise CutOutput(f"after the results is {_quoted(notice[0])}")


def read_declared_cells(text: str, read_cells: ReadText) -> SparqlResults:
    """Read a text that is declared to be CSV or TSV, also of one column, unless it begins as another form."""

    def read(text: str) -> SparqlResults:
        results = read_cells(text)
        if len(results.variables) == 1:
            _refuse_broken_off(text)
            if is_prose(results.variables[0]):
                raise UnreadableOutput(f"not {results.form}: its first line is a sentence")
        return results

    begins = text.lstrip("\ufeff \t\r\n")[:1]
    is_other = begins in ("{", "[", "<", "`", "|")
    return first_readable(text, (read_sparql_results, read) if is_other else (read, read_sparql_results))


_OF_TEXTS: Final[Mapping[str, ReadText]] = {
    "xml": text_forms.read_xml,
    "csv": text_forms.read_csv,
    "tsv": text_forms.read_tsv,
    "markdown": text_forms.read_table,
    "python": lambda text: replace(_read_repr(text, lambda inner: _read(inner, 1)), form="Python's repr"),
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
            return (sparql_object(value) if isinstance(value, Mapping) else None) or parse_sparql_results(value)
        if format == "python" and isinstance(output, list | tuple | Mapping):
            return _read(output, 0)
        if not isinstance(output, str):
            raise UnreadableOutput(f"{'nothing' if output is None else f'a {type(output).__name__}'} instead of a text")
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

_FENCE: Final = re.compile(r"```[\w/+.-]{0,40}[ \t]*\n(.*?)\n?```", re.DOTALL)
_GRAPH_COLUMNS: Final = ("subject", "predicate", "object", "graph")


def read_graph(output: Any) -> SparqlResults:
    """Read an RDF graph in any syntax, or as rows of its triples.

    Returns:
        Results with the columns subject, predicate and object; with graph, if there are named graphs.

    Raises:
        CutOutput: It breaks off before its end.
        UnreadableOutput: It is not a graph, or neither pyoxigraph nor rdflib is installed.
    """
    return first_readable(output, (_read_graph_text, _read_triples))


def _read_graph_text(output: Any) -> SparqlResults:
    text = _graph_text(output)
    notice = _NOTICE.search(text, text.find("\n") + 1)
    if notice is not None and _TROUBLE.search(notice[0]) and _is_graph(text[: notice.start()]):
        raise CutOutput(f"after the graph is {_quoted(notice[0])}")
    try:
        return _graph(text)
    except UnreadableOutput:
        whole = text[: text.rstrip().rfind(".\n") + 1]
        if whole and not text.rstrip().endswith((".", "}")) and _is_graph(whole):
            raise CutOutput("the graph breaks off in its last statement") from None
        raise


def _graph_text(value: Any) -> str:
    """Return the text of a graph, which may be in content blocks, under a key, JSON, bytes or in a code fence."""
    if isinstance(value, str) and value.strip():
        text = value.strip("\ufeff \t\r\n")
        fences = _FENCE.findall(text)
        if len(fences) == 1:
            return str(fences[0])
        if text[:1] in ('"', "{", "[") or _begins_as_bytes(text):
            with suppress(UnreadableOutput):
                return _graph_text(_text_of_bytes(text) if _begins_as_bytes(text) else parsed_json(text))
        return text
    if not isinstance(value, Mapping | list):
        raise UnreadableOutput(f"{'a value' if value else 'nothing'} instead of an RDF graph")
    parts = [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, Mapping)]
    texts = [cell for part in parts for key, cell in part.items() if key in RESULT_KEYS and isinstance(cell, str)]
    is_wrapper = len(texts) == len(parts) > 0 and not any(str(key).startswith("@") for part in parts for key in part)
    return _graph_text("".join(texts)) if is_wrapper else json_text(value)


def _is_graph(text: str) -> bool:
    try:
        return _graph(text).is_graph
    except UnreadableOutput:
        return False


def _graph(text: str) -> SparqlResults:
    try:
        syntax, quads = read_quads(text)
    except MissingExtraError as problem:
        raise UnreadableOutput(f"not read: {problem}") from None
    except ValueError as problem:
        raise UnreadableOutput(printable(str(problem))) from None
    names = _GRAPH_COLUMNS if any(quad[3][0] for quad in quads) else _GRAPH_COLUMNS[:3]
    columns = {
        name: TermColumn([quad[at][0] for quad in quads], [quad[at][1] for quad in quads])
        for at, name in enumerate(names)
    }
    return SparqlResults(columns, len(quads), form=syntax, is_graph=True)


def _read_triples(output: Any) -> SparqlResults:
    """Read a graph that is returned as rows: pyoxigraph's list of triples, or Virtuoso's S, P and O."""
    results = read_sparql_results(output)
    names = tuple(name.lower() for name in results.columns)
    if names not in (_GRAPH_COLUMNS[:3], ("s", "p", "o")) or results.faults:
        raise UnreadableOutput("rows instead of an RDF graph")
    columns = dict(zip(_GRAPH_COLUMNS[:3], results.columns.values(), strict=True))
    return replace(results, columns=columns, is_graph=True)
