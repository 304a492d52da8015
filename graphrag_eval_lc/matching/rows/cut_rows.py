"""The rows that stand before the cut of an output that ends before its end."""

from collections.abc import Mapping
from typing import Any, Final

from graphrag_eval_lc.config.sections import OutputFormat
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.outputs import UnreadableOutput, json_before_cut, text_before_cut, value_at
from graphrag_eval_lc.matching.rows.readers import read_sparql_results
from graphrag_eval_lc.matching.rows.results import SparqlResults

_MOST_LINES: Final = 3
"""So many lines at the end of a table may be broken, or tell of the cut."""


def rows_before_cut(
    output: Any, *, format: OutputFormat | None = None, path: str | None = None
) -> SparqlResults | None:
    r"""Return the rows of JSON, CSV, TSV or Markdown before the cut; None where there are none, or in other forms.

    Args:
        output: An output whose reading raised ``CutOutput``, or one of lines that was cut between two of them.
        format: Its form, where it is declared.
        path: The keys on the way to the results, where they are declared.

    Example:
        >>> results = rows_before_cut('[{"name": "Oslo"}, {"name": "Ber')
        >>> results.columns["name"].texts
        ['Oslo']
        >>> rows_before_cut("| name |\n|---|\n| Oslo |\n| Ber").columns["name"].texts
        ['Oslo']
    """
    if isinstance(output, list) and len(output) == 1 and isinstance(output[0], Mapping):
        output = output[0].get("text")  # a content block
    if not isinstance(output, str):
        return None
    results = _json_rows(output, format, path)
    return results if results is not None or path is not None else _lines_before_cut(output, format)


def rows_before_cut_of(step: StepView) -> SparqlResults | None:
    """Return the rows before the cut of a step's output, read as ``steps.outputs`` declares."""
    declared = step.declared
    if declared is None:
        return rows_before_cut(step.get("output"))
    output = step.get("artifact" if declared.artifact else "output")
    return rows_before_cut(output, format=declared.format, path=declared.path)


def _json_rows(text: str, format: OutputFormat | None, path: str | None) -> SparqlResults | None:
    try:
        value = json_before_cut(text)
    except (ValueError, RecursionError):
        return None
    try:
        results = read_sparql_results(value if path is None else value_at(value, path), format=format)
    except UnreadableOutput:
        return None
    return results if results.row_count else None


def _lines_before_cut(text: str, format: OutputFormat | None) -> SparqlResults | None:
    text = text_before_cut(text)
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines.pop()
    for _ in range(_MOST_LINES):
        try:
            results = read_sparql_results("".join(lines), format=format)
        except UnreadableOutput:
            results = None
        if results is not None and any(name in results.form for name in ("CSV", "TSV", "Markdown")):
            return results if results.row_count else None
        del lines[-1:]
    return None
