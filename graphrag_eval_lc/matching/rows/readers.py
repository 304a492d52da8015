"""Reads an output of unknown form: tries the possible readers in order, and looks for signs that it is cut."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar, get_args

from graphrag_eval_lc.config.sections import OutputFormat
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.files.rdf_graphs import BrokenOffError, read_quads
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.matching.outputs import (
    CutOutput,
    UnreadableOutput,
    error_in_words,
    parsed_json,
    printable,
    refuse_cut_in_words,
    value_at,
)
from graphrag_eval_lc.matching.rows import text_forms
from graphrag_eval_lc.matching.rows.json_forms import (
    RESULT_KEYS,
    SINGLE_FORMS,
    results_in,
    results_of_rows,
    single_value,
)
from graphrag_eval_lc.matching.rows.python_repr import looks_like_repr, python_value
from graphrag_eval_lc.matching.rows.results import ReadText, SparqlResults, Term, column_of, parse_sparql_results
from graphrag_eval_lc.texts import shortened

Value = TypeVar("Value")

_DEEPEST: Final = 4
_NEXT_TO_TEXT: Final = " next to a sentence"
_LONGEST_TAIL: Final = 20_000  # characters at the end in which a server's notice is searched


def read_sparql_results(output: Any, *, format: OutputFormat | None = None, path: str | None = None) -> SparqlResults:
    """Read the results of a query in any form that tools return; ``form`` of the returned results names it.

    ``format`` is the form if you know it, as in ``OutputConfig``. ``path`` has the keys that lead to the results in a
    JSON output, such as ``result.rows``. Raises UnreadableOutput without results or if it is unclear which are
    meant, CutOutput if they end too early, and ValueError for an unknown format.
    """
    if format is not None and format not in get_args(OutputFormat):
        raise ValueError(f"unknown format {format!r:.40}; the formats are {', '.join(get_args(OutputFormat))}")
    if path is not None:
        output = value_at(output, path)
    return _first_readable(output, [_read if format is None else partial(_read_as, format)])


def _first_readable(output: Any, readers: Iterable[Callable[[Any], Value]]) -> Value:
    """Return the result of the first reader that can read an output; if none can, raise the error of the first one."""
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
    error = error_in_words(str(output)[:_LONGEST_TAIL])
    text = (
        f"a text that reports an error: {error}"
        if error
        else f"a text without results: {_quoted(' '.join(str(output)[:200].split()))}"
    )
    raise first or UnreadableOutput(text)


Readers = Callable[[str, ReadText], Iterable[ReadText]]
"""Receives a text and the function that reads texts inside it; returns the readers to try, in order."""


def _read(output: Any, depth: int = 0, readers: Readers | None = None) -> SparqlResults:
    """Read an output with ``readers``, by default those of all forms."""
    read_text = partial(_read, depth=depth + 1, readers=readers)
    if not isinstance(output, str):
        return results_in(output, read_text)
    if depth > _DEEPEST:
        raise UnreadableOutput("results inside of results")

    def read_alone(text: str) -> SparqlResults:
        return _first_readable(text, (readers or _readers_of_forms)(text, read_text))

    try:
        results = read_alone(output)
    except CutOutput:
        raise
    except UnreadableOutput:
        _refuse_notice(output, read_alone)
        raise
    may_hold_notice = len(results.columns) == 1 or "Markdown" in results.form or results.is_graph
    has_trace = results.form.endswith(_NEXT_TO_TEXT) and _TRACE_OR_HTML.search(output[-_LONGEST_TAIL:])
    if has_trace or (may_hold_notice and not results.has_end):
        _refuse_notice(output, read_alone)
    return results


def _readers_of_forms(text: str, read_text: ReadText) -> Iterator[ReadText]:
    if _ERROR.match(text):
        first = re.sub(r"(?i)\Aerror: ?", "", text.strip()).split("\n")[0]
        raise UnreadableOutput(f"an error: {printable(shortened(first[:400], 100))}")
    if _JSON.match(text):
        yield lambda text: results_in(parsed_json(text), read_text)
    if (value := _SINGLE.fullmatch(text.strip())) and not (value["quote"] and text[-1] == "\n"):  # a line of CSV
        yield lambda text: _single(value)
        return
    lines = text[:100_000].lstrip("\ufeff \t\r\n").split("\n", 2)[:2]
    if len(lines) > 1 and all(line.lstrip()[:1] in ("{", "[", "(") for line in lines):
        yield _read_lines
    if text_forms.looks_like_xml(text):
        yield text_forms.read_xml
        if text.rstrip()[-1:] == ">":  # otherwise a sentence may follow
            return
    if looks_like_repr(text):
        yield partial(_read_repr, read_text=read_text)
    has_fence = _FENCE.search(text) is not None
    if not has_fence and text_forms.looks_like_table(text):
        yield text_forms.read_table
    if not has_fence and text_forms.looks_like_tsv(text):
        yield text_forms.read_tsv
    if not has_fence and text_forms.looks_like_csv(text):
        yield text_forms.read_csv
    if has_fence or _PIECE.search(text):
        yield partial(_read_inside, read_text=read_text)


def _quoted(text: str) -> str:
    return repr(printable(shortened(text.strip()[:200], 60)))


_ERROR: Final = re.compile(
    r"""\s{0,20}(?:(?:error:\ ?)?\((?:\w{1,40}\.){1,6}\w{0,60}(?:Error|Exception|Warning|Violation|Undefined\w{1,30})\)
    |(?:Database\ |SQL\ |Query\ )?error(?:\ \d{1,5}\ \([0-9A-Z]{5}\))?(?:\ at\ line\ \d+)?:\ ?)""",
    re.IGNORECASE | re.VERBOSE,
)


# Excludes Python's tuples, objects, names and texts in single quotation marks; NaN and Infinity count as JSON.
_JSON: Final = re.compile(
    r"""[\ufeff \t\r\n]{0,200}(?:"|\{(?!\s{0,100}')|\[(?!\s{0,100}(?:[<('A-HJ-MO-Z]|\{\s{0,100}')))"""
)
_SINGLE: Final = re.compile(
    r"""(?P<answer>(?:Ask\ =>\ |Answer:\ ?|<QueryBoolean\ )(?:yes|no|true|false)>?)
    |<?(?P<iri>(?:https?://|urn:)[^\s<>"']+)>?
    |(?P<quote>["']?)(?:(?P<value>true|false|-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,4})?)
        |(?P<word>(?<=["'])[^\s"']+))(?P=quote)""",
    re.IGNORECASE | re.VERBOSE,
)


def _single(found: re.Match[str]) -> SparqlResults:
    """Return a single value: a truth value, a number, an IRI, a quoted word, or a tool's text for an ASK result."""
    if found["answer"]:
        is_true = re.search("yes|true", found["answer"], re.IGNORECASE) is not None
        return SparqlResults({}, 0, is_true, form="the answer of an ASK")
    if found["iri"]:
        return single_value(Term(found["iri"], ("uri", None, None)))
    return single_value(found["word"] or parse_json(found["value"].lower()))


def _read_lines(text: str) -> SparqlResults:
    """Read one row per line, as JSON or as a Python repr."""
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
    form = "JSON lines" if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") else "rows one a line"
    return replace(results_of_rows(rows), form=form, has_end=False)


_BYTES: Final = re.compile("b['\"]")


def _read_repr(text: str, read_text: ReadText) -> SparqlResults:
    try:
        value = python_value(text)
    except CutOutput:
        if re.match(r"[^'\"(<A-Z]*['(<A-Z]", text) is None:  # more like JSON, which is known not to break off
            raise UnreadableOutput("not JSON or a Python value") from None
        raise
    results = results_in(value, read_text)
    return replace(results, form=f"{results.form} as Python shows it")


_FENCE: Final = re.compile(
    r"(?:^|\n)[ \t]{0,10}(```+)[ \t]{0,5}([\w+\-/.]{0,40})[^\n`]{0,80}(?=\n)((?:\n.*?)??)(\n[ \t]{0,10}\1|\Z)",
    re.DOTALL,
)
_QUERIES: Final = frozenset({"bash", "console", "cypher", "rq", "sh", "sparql", "sql"})
# An object, or an array of objects or texts, that is not the argument of a call, as in deque([1, 2]); or XML.
_PIECE: Final = re.compile(
    r"""(?<!\w\()[\[{]\s{0,100}+["'\[{(<]|(?<!\w)\(\s{0,100}+[\[{(]|<(?:\w{1,30}:)?sparql[\s>]"""
)
_TOKEN: Final = re.compile(
    r"""(?s)("(?:[^"\\]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')|([\[({]|<(?:\w{1,30}:)?sparql\b)|[\])}]|</(?:\w{1,30}:)?sparql\b[^>]*>"""
)


def _read_inside(text: str, read_text: ReadText) -> SparqlResults:
    """Read the only results in a text: in code fences without queries or, if there are no fences, between words.

    If a part or a note next to the parts says that results are cut, the whole output is.
    """
    fences = list(_FENCE.finditer(text))
    of_results = [fence for fence in fences if fence[2].lower() not in _QUERIES]
    pieces = (fence[3][1:] + fence[4][:1] for fence in of_results) if fences else _pieces(text_forms.prepared(text))
    rest, where = _FENCE.sub(" ", text), " in a code fence" if fences else _NEXT_TO_TEXT
    found: list[SparqlResults] = []
    problem = UnreadableOutput("a text without results")
    for piece in islice(pieces, 20):
        rest = rest.replace(piece, " ")
        try:
            results = read_text(piece)
        except CutOutput:
            raise
        except UnreadableOutput as refused:
            problem = refused
            continue
        if not fences and results.form.startswith(SINGLE_FORMS):
            problem = UnreadableOutput("a sentence with values in it")
        else:
            found.append(replace(results, form=f"{results.form}{where}"))
    if len(found) != 1:
        raise UnreadableOutput(f"a text with {len(found)} things that may be the results") if found else problem
    refuse_cut_in_words(rest)
    if of_results and not of_results[-1][4] and not found[0].has_end:
        raise CutOutput("the code fence has no end")
    return found[0]


def _pieces(text: str) -> Iterator[str]:
    """Yield the bracketed or XML parts of a text; a part that is never closed extends to the end."""
    at = 0
    while piece := _PIECE.search(text, at):
        depth, at = 0, len(text)
        for token in _TOKEN.finditer(text, piece.start()):
            depth += 0 if token[1] else 1 if token[2] else -1
            if not depth:
                at = token.end()
                break
        yield text[piece.start() : at]


# The first line of the notice that a server or proxy writes after the results if a query breaks off.
_NOTICE: Final = re.compile(
    r"""(?:^|(?<=[}\]]))[ \t,]*(?:(?:\#+[ ]*)?query[ ](?:cancell?ed|aborted|killed|failed|timed[ ]out|timeout)\b.*
    |(?:\[)?(?:[a-z_$][\w$]*\.)*\w*(?:error|exception)\]?(?:[ ]\d+)?(?::?[ ].*:.*|:[ ].*|$)
    |!+>+\#.*|SPARQL-QUERY:.*|\*{3}[ ]?error.*|connection[ ](?:lost|reset|closed|aborted).*|virtuoso[ ]\w{5}[ ]error.*
    |upstream[ ].*|curl:[ ].*|HTTP[/ ][\d. ]*\d{3}\b.*|\d{3}[ ](?:bad[ ])?gateway.*|gateway[ ]time.*
    |traceback[ ]\(.*|(?:\.\.\.|…)[\]}]*|<(?:!doctype[ ]html|html|head|body|h1)\b.*)$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_TRACE_OR_HTML: Final = re.compile(r"^(?:\s+at [\w.$<>]+\(|traceback \()|<(?:!doctype html|html|body)\b", re.I | re.M)


def _refuse_notice(text: str, read: ReadText) -> None:
    """Raise CutOutput if a server's notice after the results says that the query broke off."""
    notice = _NOTICE.search(text, max(1, len(text) - _LONGEST_TAIL))
    if notice is None or not (before := text[: notice.start()]).strip():
        return
    try:
        read(before)
    except CutOutput:
        pass
    except UnreadableOutput:
        return
    raise CutOutput(f"after the results is {_quoted(notice[0])}")


def read_declared_cells(text: str, read_cells: ReadText) -> SparqlResults:
    """Read a text declared as CSV or TSV, even with one column, unless it begins like another form."""
    read = partial(_read, readers=lambda text, read_text: [read_cells])
    is_other = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[", "<", "`", "|")
    return _first_readable(text, (read_sparql_results, read) if is_other else (read, read_sparql_results))


_OF_JSON: Final[Mapping[str, Callable[[Any], SparqlResults]]] = {
    "json": lambda value: single_value(value) if isinstance(value, bool | int | float) else parse_sparql_results(value),
    "rows": results_of_rows,
}
_OF_TEXTS: Final[Mapping[str, ReadText]] = {
    "xml": text_forms.read_xml,
    "csv": text_forms.read_csv,
    "tsv": text_forms.read_tsv,
    "markdown": text_forms.read_table,
    "python": lambda text: replace(_read_repr(text, partial(_read, depth=1)), form="Python's repr"),
}


def _read_as(format: OutputFormat, output: Any) -> SparqlResults:
    """Read an output in the declared format only."""
    try:
        if format in _OF_JSON:
            return _OF_JSON[format](parsed_json(output) if isinstance(output, str) else output)
        if format == "python" and isinstance(output, list | tuple | Mapping):
            return _read(output)
        if not isinstance(output, str):
            raise UnreadableOutput(f"a {type(output).__name__} instead of a text")
        return _OF_TEXTS[format](output)
    except CutOutput:
        raise
    except UnreadableOutput as problem:
        raise UnreadableOutput(f"not what steps.outputs declares (format: {format}): {problem}") from None


_GRAPH_COLUMNS: Final = ("subject", "predicate", "object", "graph")


def read_graph(output: Any) -> SparqlResults:
    """Read an RDF graph in any syntax, or as rows of triples; the columns are subject, predicate, object, graph."""
    text = output if isinstance(output, str) else json_text(output)
    results = _first_readable(text, (partial(_read, readers=_readers_of_graphs), _read))
    if results.is_graph:
        return results
    names = tuple(name.lower() for name in results.columns)
    if names not in (_GRAPH_COLUMNS[:3], ("s", "p", "o")) or results.faults:  # as Virtuoso has them
        raise UnreadableOutput("rows instead of an RDF graph")
    columns = dict(zip(_GRAPH_COLUMNS[:3], results.columns.values(), strict=True))
    return replace(results, columns=columns, is_graph=True)


_JSON_LD: Final = re.compile(r'"@\w+"\s*:|\A[\s\[\]{}]*\Z')


def _readers_of_graphs(text: str, read_text: ReadText) -> Iterator[ReadText]:
    if _JSON.match(text) and not _JSON_LD.search(text):  # the graph may be a text in it
        yield lambda text: results_in(parsed_json(text), read_text)
    if _BYTES.match(text):
        yield partial(_read_repr, read_text=read_text)
    elif _FENCE.search(text):
        yield partial(_read_inside, read_text=read_text)
    else:
        yield _read_graph_text


def _read_graph_text(text: str) -> SparqlResults:
    try:
        syntax, quads = read_quads(text.strip("\ufeff \t\r\n"))
    except MissingExtraError as problem:
        raise UnreadableOutput(f"not read: {problem}") from None
    except BrokenOffError as problem:
        raise CutOutput(str(problem)) from None
    except ValueError as problem:
        raise UnreadableOutput(printable(str(problem))) from None
    names = _GRAPH_COLUMNS if any(quad[3][0] for quad in quads) else _GRAPH_COLUMNS[:3]
    columns = {name: column_of(Term(*quad[at]) for quad in quads) for at, name in enumerate(names)}
    return SparqlResults(columns, len(quads), form=syntax, is_graph=True, has_end=syntax != "Turtle")
