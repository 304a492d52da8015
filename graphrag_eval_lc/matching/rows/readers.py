"""Reading SPARQL results in the forms that tools return them in: one chain of readers, each of which says what it took.

SPARQL 1.1 JSON goes first and costs nothing more. Then ``CHAIN`` is gone through in its order: the first reader that
recognises a text and does not hand it on decides, whether it returns results or says what is wrong with them. Where
several things in an output may be the results, none is taken.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, get_args

from graphrag_eval_lc.config.sections import OutputFormat
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_json, parsed_json, value_at
from graphrag_eval_lc.matching.rows.embedded import has_fence, has_value, read_fence, read_sentence
from graphrag_eval_lc.matching.rows.graph_repr import graph_repr_value, is_graph_repr
from graphrag_eval_lc.matching.rows.json_forms import NothingFound, results_in, results_of_rows
from graphrag_eval_lc.matching.rows.json_lines import json_lines, may_be_json_lines
from graphrag_eval_lc.matching.rows.python_form import is_python, python_value
from graphrag_eval_lc.matching.rows.results import SPARQL_JSON, SparqlResults, parse_sparql_results
from graphrag_eval_lc.matching.rows.ruled_tables import may_be_ruled, read_ruled
from graphrag_eval_lc.matching.rows.sql_texts import (
    is_driver_error,
    is_error,
    no_rows_of,
    refuse_error_text,
    with_cut_cells,
)
from graphrag_eval_lc.matching.rows.text_tables import (
    guessed_csv,
    guessed_tsv,
    has_markdown_rule,
    read_csv,
    read_markdown,
    read_tsv,
)
from graphrag_eval_lc.matching.rows.xml_form import is_xml, read_xml

_DEEPEST: Final = 4
_LONGEST_START: Final = 200


@dataclass(frozen=True, slots=True)
class Reader:
    """A form of results in texts.

    Attributes:
        name: What it is.
        recognises: Whether a text may have this form, told quickly.
        read: Reads the text, given how deep it stands in others; None hands it on to the readers after it.
    """

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[str, int], SparqlResults | None]


def read_sparql_results(output: Any, *, format: OutputFormat | None = None, path: str | None = None) -> SparqlResults:
    r"""Read the results of a SELECT or ASK query in any form that tools return them in.

    Args:
        output: SPARQL 1.1 JSON, as a string or parsed; with a byte order mark, without a head, encoded twice, under a
            key, in content blocks; an array of row objects, or of arrays, whose columns are called "column 1" and so
            on; the names of columns beside rows; an object of columns; JSON lines; W3C XML, CSV or TSV; a Markdown
            table, or one as MySQL, psql, SQLite or DuckDB draw it; Python's repr of rows; any of them in a code fence,
            and most before or after a sentence.
        format: The form, where it is not to be found out; see ``OutputConfig``.
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
    if format is not None:
        return _read_as(format, output)
    try:
        return parse_sparql_results(output)
    except UnreadableOutput as problem:
        return _read_otherwise(output, problem)


def step_results(step: StepView) -> SparqlResults:
    """Return the results that a step gave, read as ``steps.outputs`` declares, else in whatever form they have.

    Raises:
        CutOutput: They end before their end.
        UnreadableOutput: There are none.
    """
    format = None if step.declared is None else step.declared.format
    cut = step.cut_by_capture
    no_rows = no_rows_of(step)
    if no_rows is not None:
        return no_rows
    try:
        results = step.parsed(read_sparql_results if format is None else _reader_of(format))
    except CutOutput:
        raise
    except UnreadableOutput as problem:
        if cut is None:
            raise
        raise CutOutput(f"{cut}, and what is left is {problem}") from None
    if cut is not None and _may_go_on(results):
        raise CutOutput(cut)
    return with_cut_cells(step, results)


def _may_go_on(results: SparqlResults) -> bool:
    """Return whether nothing marks the end of what was read, as in a table of lines."""
    return any(name in results.form for name in ("CSV", "TSV", "Markdown", "JSON lines"))


@lru_cache(maxsize=len(get_args(OutputFormat)))
def _reader_of(format: OutputFormat) -> Callable[[Any], SparqlResults]:
    def read(output: Any) -> SparqlResults:
        return read_sparql_results(output, format=format)

    return read


def _read_otherwise(output: Any, refused: UnreadableOutput) -> SparqlResults:
    """Read an output that is no SPARQL 1.1 JSON; where no reader says what is wrong with it, that is said."""
    try:
        if isinstance(output, str):
            results = _through_the_chain(output, 0)
        else:
            results = _in_value(output, 0) if isinstance(output, Mapping | list | tuple) else None
    except NothingFound:
        results = None
    if results is None:
        raise refused
    return results


def _in_value(value: Any, depth: int) -> SparqlResults:
    try:
        return results_in(value, lambda text: _read_text(text, depth + 1))
    except RecursionError:
        raise UnreadableOutput("a value that is nested too deeply") from None


def _read_text(text: str, depth: int) -> SparqlResults:
    """Read a text inside another output."""
    results = _through_the_chain(text, depth) if depth <= _DEEPEST else None
    if results is None:
        raise UnreadableOutput("a text without results")
    return results


def _through_the_chain(text: str, depth: int) -> SparqlResults | None:
    for reader in CHAIN:
        if reader.recognises(text):
            results = reader.read(text, depth)
            if results is not None:
                return results
    return None


def _begins_as_json(text: str) -> bool:
    return text[:_LONGEST_START].lstrip("\ufeff \t\r\n")[:1] in {"{", "[", '"'}


def _read_json(text: str, depth: int) -> SparqlResults | None:
    """Read JSON; what is no JSON to its end, or breaks off in a way that Python's repr may too, is handed on."""
    try:
        value = parsed_json(text)
    except CutOutput:
        raise
    except UnreadableOutput:
        return None
    results = _in_value(value, depth)
    has_mark = text.startswith("\ufeff") and results.form == SPARQL_JSON
    return replace(results, form=f"{SPARQL_JSON} after a byte order mark") if has_mark else results


def _read_json_lines(text: str, depth: int) -> SparqlResults | None:
    rows = json_lines(text)
    return None if rows is None else replace(_in_value(rows, depth), form="JSON lines")


def _read_python(text: str, depth: int) -> SparqlResults | None:
    try:
        value = python_value(text)
    except CutOutput:
        raise
    except UnreadableOutput:
        return None
    results = _in_value(value, depth)
    return replace(results, form=f"{results.form} as Python shows it")


def _read_graph_repr(text: str, depth: int) -> SparqlResults | None:
    try:
        value = graph_repr_value(text)
    except CutOutput:
        raise
    except UnreadableOutput:
        return None
    results = _in_value(value, depth)
    return replace(results, form=f"{results.form} as Python shows it")


def _read_fence(text: str, depth: int) -> SparqlResults:
    return read_fence(text, lambda inner: _read_text(inner, depth + 1), _BY_LANGUAGE)


def _read_sentence(text: str, depth: int) -> SparqlResults:
    return read_sentence(text, lambda value: _in_value(value, depth), read_xml)


def _read_xml(text: str, depth: int) -> SparqlResults:
    """Read XML; if text follows it, as a sentence that has XML in it."""
    try:
        return read_xml(text)
    except CutOutput:
        raise
    except UnreadableOutput as problem:
        if text.rstrip().endswith(">"):
            raise
        try:
            return _read_sentence(text, depth)
        except CutOutput:
            raise
        except UnreadableOutput:
            raise problem from None


def _may_be_tsv(text: str) -> bool:
    return "\t" in text or text.lstrip("\ufeff \r\n").startswith("?")


CHAIN: Final = (
    Reader("an error of a database", is_driver_error, lambda text, _: refuse_error_text(text)),
    Reader("JSON", _begins_as_json, _read_json),
    Reader("JSON lines", may_be_json_lines, _read_json_lines),
    Reader("W3C XML", is_xml, _read_xml),
    Reader("Python's repr", is_python, _read_python),
    Reader("Python's repr of a graph's objects", is_graph_repr, _read_graph_repr),
    Reader("a code fence", has_fence, _read_fence),
    Reader("a table with rules", may_be_ruled, lambda text, _: read_ruled(text)),
    Reader("a Markdown table", has_markdown_rule, lambda text, _: read_markdown(text)),
    Reader("W3C TSV", _may_be_tsv, lambda text, _: guessed_tsv(text)),
    Reader("W3C CSV", lambda text: "\n" in text, lambda text, _: guessed_csv(text)),
    Reader("a sentence", has_value, _read_sentence),
    Reader("an error", is_error, lambda text, _: refuse_error_text(text)),
)
"""The readers in their order. JSON, JSON lines, Python's repr, TSV and CSV hand on what they do not take.

Python's repr is read by ``python_form`` where it is whole plain values; what has objects of Neo4j's driver, sets or
points in it is handed on to ``graph_repr``. A text that breaks off is undecided in both.
"""


def _sparql_json(text: Any) -> SparqlResults:
    try:
        return parse_sparql_results(text.removeprefix("\ufeff") if isinstance(text, str) else text)
    except UnreadableOutput:
        where = cut_json(text) if isinstance(text, str) else None
        if where is not None:
            raise CutOutput(where) from None
        raise


def _rows(output: Any) -> SparqlResults:
    return results_of_rows(parsed_json(output) if isinstance(output, str) else output)


def _python(text: str) -> SparqlResults:
    return replace(_in_value(python_value(text), 0), form="Python's repr")


_OF_TEXTS: Final[Mapping[str, Callable[[str], SparqlResults]]] = {
    "xml": read_xml,
    "csv": read_csv,
    "tsv": read_tsv,
    "markdown": read_markdown,
    "python": _python,
}
_BY_LANGUAGE: Final[Mapping[str, Callable[[str], SparqlResults]]] = {
    "csv": read_csv,
    "tsv": read_tsv,
    "xml": read_xml,
}


def _read_as(format: OutputFormat, output: Any) -> SparqlResults:
    """Read an output as what it is declared to be, and as nothing else."""
    try:
        if format == "json":
            return _sparql_json(output)
        if format == "rows":
            return _rows(output)
        if format == "python" and isinstance(output, list | tuple | Mapping):
            return _in_value(output, 0)
        if not isinstance(output, str):
            raise UnreadableOutput(f"{'nothing' if output is None else f'a {type(output).__name__}'} instead of a text")
        return _OF_TEXTS[format](output)
    except CutOutput:
        raise
    except UnreadableOutput as problem:
        raise UnreadableOutput(f"not what steps.outputs declares (format: {format}): {problem}") from None
