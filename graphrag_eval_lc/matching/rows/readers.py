"""Which form an output has: one chain of readers, from SPARQL JSON to sentences, and the marks of a cut."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, Final, get_args

from graphrag_eval_lc.config.sections import OutputFormat
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_json, parsed_json, printable, value_at
from graphrag_eval_lc.matching.rows import text_forms
from graphrag_eval_lc.matching.rows.json_forms import (
    SINGLE_FORMS,
    XSD,
    results_in,
    results_of_rows,
    single_value,
    sparql_object,
)
from graphrag_eval_lc.matching.rows.python_repr import looks_like_repr, python_value
from graphrag_eval_lc.matching.rows.results import (
    SPARQL_JSON,
    Shape,
    SparqlResults,
    TermColumn,
    parse_sparql_results,
)
from graphrag_eval_lc.texts import shortened

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


def _read(output: Any, depth: int) -> SparqlResults:
    if not isinstance(output, str):
        return results_in(output, lambda text: _read(text, depth + 1))
    if depth > _DEEPEST:
        raise UnreadableOutput("results inside of results")
    try:
        results = _read_text(output, depth)
    except CutOutput:
        raise
    except UnreadableOutput:
        refuse_broken_off(output, depth)
        raise
    is_open = any(form in results.form for form in text_forms.OPEN_FORMS)
    if is_open and (len(results.columns) == 1 or "Markdown" in results.form):  # a notice may be the last row, or follow
        refuse_broken_off(output, depth)
    return results


def _read_text(text: str, depth: int) -> SparqlResults:
    """Read a text by the first form that it has; if no form can be read, the first one says why."""
    first: UnreadableOutput | None = None
    for looks_like, read, hands_on in _CHAIN:
        if looks_like(text):
            try:
                return read(text, depth)
            except UnreadableOutput as problem:
                if not hands_on or isinstance(problem, CutOutput):
                    raise
                first = first or problem
    if _ERROR.match(text) is not None:
        _refuse_error(text, depth)
    raise first or UnreadableOutput(f"a text without results: {_quoted(' '.join(text[:200].split()))}")


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


def _refuse_error(text: str, _: int) -> SparqlResults:
    first = re.sub(r"(?i)\Aerror: ?", "", text.strip()).split("\n")[0]
    raise UnreadableOutput(f"an error: {printable(shortened(first[:400], 100))}")


def _begins_as_json(text: str) -> bool:
    return text[:200].lstrip("\ufeff \t\r\n")[:1] in ("{", "[", '"')


def _read_json(text: str, depth: int) -> SparqlResults:
    try:
        value = parsed_json(text)
    except CutOutput:
        raise
    except UnreadableOutput:
        _refuse_broken_json(text)
        raise
    results = results_in(value, lambda inner: _read(inner, depth + 1))
    has_mark = text.startswith("\ufeff") and results.form == SPARQL_JSON
    return replace(results, form=f"{SPARQL_JSON} after a byte order mark") if has_mark else results


_VALUE: Final = re.compile(r"true|false|-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,4})?", re.IGNORECASE)
_IRI: Final = re.compile(r"<?((?:https?://|urn:)[^\s<>\"']+)>?")
_ANSWER: Final = re.compile(r"(?:Ask => |Answer: ?)(yes|no|true|false)|<QueryBoolean (true|false)>", re.IGNORECASE)
_WORD: Final = re.compile(r"""(["'])([^\s"']+)\1""")


def _is_single(text: str) -> bool:
    text = text.strip()
    return any(form.fullmatch(text) is not None for form in (_VALUE, _IRI, _ANSWER, _WORD))


def _read_single(text: str, _: int) -> SparqlResults:
    """Read a lone value: a truth value, a number, an IRI, a word in quotation marks, or how a tool prints an ASK."""
    text = text.strip()
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


def _read_lines(text: str, _: int) -> SparqlResults:
    """Read one row a line, as JSON or as Python shows it."""
    rows: list[Any] = []
    lines = [line for line in text.removeprefix("\ufeff").split("\n") if line.strip()]
    for at, line in enumerate(lines, start=1):
        for parse in (parsed_json, python_value):
            try:
                rows.append(parse(line))
                break
            except CutOutput:
                if at == len(lines):
                    raise CutOutput(f"the lines break off in row {at}") from None
            except UnreadableOutput:
                pass
        else:
            raise UnreadableOutput("lines that are not all rows")
    keys = {
        str(key).lower() for row in rows if isinstance(row, Mapping) for key, cell in row.items() if _has_parts(cell)
    }
    if keys & {"bindings", "columns", "data", "fields", "head", "items", "records", "result", "results", "rows"}:
        raise UnreadableOutput("results on several lines, of which one may be meant")
    return replace(results_of_rows(rows), form="JSON lines" if _begins_as_json(text) else "rows one a line")


def _has_parts(cell: Any) -> bool:
    return isinstance(cell, Mapping | list)


def _read_repr(text: str, depth: int) -> SparqlResults:
    try:
        value = python_value(text)
    except CutOutput:
        if re.match(r"[^'\"(<A-Z]*['(<A-Z]", text) is None:  # rather JSON, which is known not to break off
            raise UnreadableOutput("neither JSON nor a Python value") from None
        raise
    results = results_in(value, lambda inner: _read(inner, depth + 1))
    return replace(results, form=f"{results.form} as Python shows it")


def _read_sentence(text: str, depth: int) -> SparqlResults:
    def read(piece: str) -> SparqlResults:
        results = _read(piece, depth + 1)
        if results.form.startswith(SINGLE_FORMS):
            raise UnreadableOutput("a sentence with values in it")
        return results

    return text_forms.read_sentence(text, read)


def _plain(read: Callable[[str], SparqlResults]) -> Callable[[str, int], SparqlResults]:
    return lambda text, _: read(text)


_Reader = tuple[Callable[[str], bool], Callable[[str, int], SparqlResults], bool]

# Whether a text looks like a form, its reader, and whether a later one may read what it refuses.
_CHAIN: Final[tuple[_Reader, ...]] = (
    (_is_driver_error, _refuse_error, False),
    (_begins_as_json, _read_json, True),
    (_is_single, _read_single, False),
    (_may_be_lines, _read_lines, True),
    (lambda text: text.rstrip()[-1:] == ">" and text_forms.looks_like_xml(text), _plain(text_forms.read_xml), False),
    (text_forms.looks_like_xml, _plain(text_forms.read_xml), True),  # a sentence may follow
    (looks_like_repr, _read_repr, True),
    (text_forms.looks_like_fence, lambda text, at: text_forms.read_fence(text, lambda t: _read(t, at + 1)), False),
    (text_forms.looks_like_table, _plain(text_forms.read_table), True),
    (text_forms.looks_like_tsv, _plain(text_forms.read_tsv), True),
    (text_forms.looks_like_csv, _plain(text_forms.read_csv), True),
    (text_forms.looks_like_sentence, _read_sentence, True),
)

# What a server or a proxy writes after the results if a query breaks off: the first line of it.
_NOTICE: Final = re.compile(
    r"""^[ \t]*(?:\#+[ ]*query[ ].*|!+>+\#.*|query[ ](?:cancell?ed|aborted|killed|timed[ ]out|timeout)\b.*
    |(?:\[)?(?:[a-z_$][\w$]*\.)*\w*(?:error|exception)\]?(?:[ ]\d+)?(?::?[ ].*:.*|:[ ].*|$)
    |SPARQL-QUERY:.*|\*{3}[ ]?error.*|connection[ ](?:lost|reset|closed|aborted).*|virtuoso[ ]\w{5}[ ]error.*
    |upstream[ ].*|curl:[ ].*|HTTP[/ ][\d. ]*\d{3}\b.*|\d{3}[ ](?:bad[ ])?gateway.*|gateway[ ]time.*
    |traceback[ ]\(.*|<(?:!doctype[ ]html|html|head|body|h1)\b.*)$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_TROUBLE: Final = re.compile(
    r"error|exception|time-?out|timed out|cancel|abort|killed|terminat|gateway|connection|refused|unavailable|trace",
    re.IGNORECASE,
)


def _refuse_broken_json(text: str) -> None:
    """Raise CutOutput for JSON that a server broke off, also inside a text, and after which it wrote what happened."""
    try:
        json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as problem:
        rest = text[problem.pos :].lstrip()
        is_text = (rest[:1].isalpha() or rest[:1] in ("<", "#", "*", "!", "-")) and _TROUBLE.search(rest, 0, 500)
        if problem.msg == "Extra data" or not (is_text or re.fullmatch(r"(?:\.\.\.|…)[\s\]}]*", rest)):
            return
        if (where := cut_json(text[: problem.pos])) is not None:
            raise CutOutput(f"{where}, and {_quoted(rest.splitlines()[0])} follows") from None
    except (ValueError, RecursionError):
        return


def refuse_broken_off(text: str, depth: int = 0) -> None:
    """Raise CutOutput for rows after which a server wrote that the query broke off."""
    notice = _NOTICE.search(text, max(text.find("\n") + 1, len(text) - _LONGEST_TAIL))
    if notice is None or not text[: notice.start()].strip():
        return
    try:
        _read_text(text[: notice.start()], depth + 1)
    except CutOutput:
        pass
    except UnreadableOutput:
        return
    raise CutOutput(f"after the results is {_quoted(notice[0])}")


_OF_TEXTS: Final[Mapping[str, Callable[[str], SparqlResults]]] = {
    "xml": text_forms.read_xml,
    "csv": text_forms.read_csv,
    "tsv": text_forms.read_tsv,
    "markdown": text_forms.read_table,
    "python": lambda text: replace(_read_repr(text, 0), form="Python's repr"),
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

_NAMES: Final = ("subject", "predicate", "object", "graph")
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ELSEWHERE: Final = re.compile(r'"@(?:context|import)"\s*:\s*\[?\s*"|<!ENTITY')  # which nothing is loaded from
_FENCE: Final = re.compile(r"```[\w/+.-]{0,40}[ \t]*\n(.*?)\n?```", re.DOTALL)
_BASE: Final = "urn:base:"
# The forms as pyoxigraph and rdflib call them; Turtle and N-Triples are TriG too.
_FORMS: Final = {
    "JSON-LD": "JSON_LD json-ld",
    "RDF/XML": "RDF_XML xml",
    "TriG": "TRIG trig",
    "N-Quads": "N_QUADS nquads",
}


def read_graph(output: Any) -> SparqlResults:
    """Read an RDF graph in any form that its beginning allows.

    Returns:
        Results with the columns subject, predicate and object; with graph, if there are named graphs.

    Raises:
        UnreadableOutput: It is not a graph, or neither pyoxigraph nor rdflib is installed.
    """
    text = json_text(output) if isinstance(output, Mapping | list) else output
    if not isinstance(text, str) or not text.strip():
        raise UnreadableOutput(f"{'nothing' if not output else 'a value'} instead of an RDF graph")
    fence = _FENCE.fullmatch(text.strip())
    text = text if fence is None else fence[1]
    begins = text.lstrip("\ufeff \t\r\n")[:1]
    problem = UnreadableOutput("not an RDF graph")
    if begins in ("{", "[", "<") and _ELSEWHERE.search(text) is not None:
        raise UnreadableOutput("an RDF graph with a context or an entity that is defined elsewhere")
    for form in {"{": ("JSON-LD", "TriG"), "[": ("JSON-LD", "TriG"), "<": ("RDF/XML", "TriG", "N-Quads")}.get(
        begins, ("TriG",)
    ):
        try:
            rows = sorted(set(_quads(text, form)), key=repr)
        except UnreadableOutput as found:
            problem = found
            continue
        if not rows and form == "JSON-LD" and text.strip() not in ("[]", "{}"):
            continue  # JSON without a triple
        columns = {
            name: TermColumn([row[at][0] for row in rows], [row[at][1] for row in rows])
            for at, name in enumerate(_NAMES[: 4 if any(row[3][0] for row in rows) else 3])
        }
        return SparqlResults(columns, len(rows), form="Turtle" if form == "TriG" else form, is_graph=True)
    raise problem


@cache
def _library() -> Any:
    for name in ("pyoxigraph", "rdflib"):
        with suppress(ImportError):
            return import_module(name)
    missing = MissingExtraError("An RDF graph", "graph", "pyoxigraph")
    raise UnreadableOutput(f"not read: {missing}")


def _quads(text: str, form: str) -> Iterator[tuple[tuple[str, Shape], ...]]:
    library = _library()
    if form == "RDF/XML" and _RDF not in text:
        raise UnreadableOutput("not an RDF graph")
    oxigraph_name, rdflib_name = _FORMS[form].split()
    try:
        if library.__name__ == "pyoxigraph":
            for quad in library.parse(text, format=getattr(library.RdfFormat, oxigraph_name), base_iri=_BASE):
                yield tuple(map(_term, (quad.subject, quad.predicate, quad.object, quad.graph_name)))
            return
        dataset = library.Dataset()
        dataset.parse(data=text, format=rdflib_name, publicID=_BASE)
        for *triple, graph in dataset.quads():
            is_default = graph is None or str(graph) in (_BASE, "urn:x-rdflib:default")
            yield tuple(map(_term, (*triple, None if is_default else graph)))
    except UnreadableOutput:
        raise
    except Exception as problem:  # each library has its own errors
        why = printable(shortened(" ".join(str(problem).split())[:200], 100))
        raise UnreadableOutput(f"not an RDF graph ({why})") from None


def _term(term: Any) -> tuple[str, Shape]:
    """Return the text and the shape of a term of either library; rdflib's are texts."""
    kind = type(term).__name__
    if kind in ("DefaultGraph", "NoneType"):
        return "", ("", None, None)
    if kind == "Triple":
        raise UnreadableOutput("a graph with triples as terms, which are not compared")
    text = str(term) if isinstance(term, str) else term.value
    if kind != "Literal":
        return text, ("bnode" if kind in ("BlankNode", "BNode") else "uri", None, None)
    datatype = str(getattr(term.datatype, "value", term.datatype or ""))
    is_plain = term.language or datatype in ("", f"{XSD}string")
    return text, ("literal", None if is_plain else datatype, term.language)
