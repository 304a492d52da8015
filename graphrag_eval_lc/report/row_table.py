"""The rows of a query next to those of its reference: which are missing, extra and equal, with all columns."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from graphrag_eval_lc.matching.matchers import StepView, UnreadableOutput
from graphrag_eval_lc.matching.rows.alignment import Alignment
from graphrag_eval_lc.matching.rows.columns import Row, namesakes
from graphrag_eval_lc.matching.rows.results import SparqlResults
from graphrag_eval_lc.matching.rows.row_steps import (
    actual_results,
    compare_row_steps,
    comparison_options,
    reference_results,
)
from graphrag_eval_lc.texts import one_line

_MOST_ROWS: Final = 20  # of each kind
_LONGEST_CELL: Final = 300

_Column = tuple[str | None, str | None, bool]
"""The names of a column in the reference and in the actual results, and whether it is required."""


def row_table(reference: StepView, actual: StepView) -> dict[str, Any] | None:
    """Return the rows of two steps as a table; None if they are equal, or cannot be compared.

    Returns:
        ``columns``: for each its name in the reference, its actual name (None if it has none), and whether it is
        required, the required ones first; ``unlike``: the first rows that are not in both, each as ``missing`` or
        ``extra``, its cells (None if unbound), and the indices of the cells in which it differs from the row of the
        other kind next to it; ``equal``: the cells of the first rows that are in both; ``counts``: the numbers of
        missing, extra and equal rows.
    """
    try:
        options = comparison_options(reference)
        expected = reference_results(reference)
    except (ValueError, UnreadableOutput):
        return None
    compared = compare_row_steps(reference, actual, options)
    # Rows without a partner under the best columns found may have one under others that the search did not reach.
    if compared.is_undecided:
        return None
    if (rows := compared.alignment) is not None:
        return _table(rows.reference, rows.actual, rows.columns, rows)
    try:
        found = actual_results(actual, reference)
    except UnreadableOutput:
        return None
    if expected.boolean is not None or found.boolean is not None or bool(expected.row_count) == bool(found.row_count):
        return None
    required = reference.get("required_columns")
    names = [name for name in expected.columns if required is None or name in required]
    return _table(expected, found, {**dict.fromkeys(names), **namesakes(names, list(found.columns))}, None)


def _table(
    reference: SparqlResults, actual: SparqlResults, required: Mapping[str, str | None], rows: Alignment | None
) -> dict[str, Any] | None:
    missing = list(range(reference.row_count)) if rows is None else rows.missing
    extra = list(range(actual.row_count)) if rows is None else rows.extra
    if not missing and not extra:  # they differ only in their order or in blank nodes
        return None
    columns = list(_columns(reference, actual, required))

    def cells(at: int | None, actual_at: int | None) -> list[str | None]:
        return [
            _cell(actual, name, actual_at)
            if actual_at is not None and name is not None
            else _cell(reference, own_name, at)
            for own_name, name, _ in columns
        ]

    unlike: list[list[Any]] = []
    for at, actual_at, differing in _side_by_side(missing, extra, rows):
        unlike += [] if at is None else [["missing", cells(at, None), differing]]
        unlike += [] if actual_at is None else [["extra", cells(None, actual_at), differing]]
    return {
        "columns": [[*each] for each in columns],
        "unlike": unlike,
        "equal": [] if rows is None else [cells(*each) for each in islice(_equal(rows), _MOST_ROWS)],
        "counts": [len(missing), len(extra), 0 if rows is None else sum(rows.equal.values())],
    }


def _columns(reference: SparqlResults, actual: SparqlResults, required: Mapping[str, str | None]) -> Iterator[_Column]:
    """Yield the required columns, then the reference's others, each with the actual one of its name, then the rest."""
    optional = [name for name in reference.columns if name not in required]
    left = [name for name in actual.columns if name not in required.values()]
    same = namesakes(optional, left)
    for name, found in required.items():
        yield name, found, True
    for name in optional:
        yield name, same.get(name), False
    for name in left:
        if name not in same.values():
            yield None, name, False


def _side_by_side(
    missing: Sequence[int], extra: Sequence[int], rows: Alignment | None
) -> Iterator[tuple[int | None, int | None, list[int]]]:
    """Yield missing and extra rows, pairs that share cells first, with the indices of the cells that differ."""
    left, actual_left = list(missing), list(extra)
    for pair in () if rows is None else rows.pairs[:_MOST_ROWS]:
        at = next(each for each in left if rows and rows.rows[each] == pair.reference)
        actual_at = next(each for each in actual_left if rows and rows.actual_rows[each] == pair.actual)
        left.remove(at)
        actual_left.remove(actual_at)
        yield at, actual_at, [place for place in range(len(pair.reference)) if place not in pair.columns]
    shown = len(missing) - len(left)
    for at in left[: _MOST_ROWS - shown]:
        yield at, None, []
    for actual_at in actual_left[: _MOST_ROWS - shown]:
        yield None, actual_at, []


def _equal(rows: Alignment) -> Iterator[tuple[int, int]]:
    """Yield the indices of equal rows in both results, in the order of the actual rows."""
    places: dict[Row, list[int]] = defaultdict(list)
    for at, row in enumerate(rows.rows):
        places[row].append(at)
    left = dict(rows.equal)
    for actual_at, row in enumerate(rows.actual_rows):
        if left.get(row):
            left[row] -= 1
            yield places[row].pop(0), actual_at


def _cell(results: SparqlResults, name: str | None, at: int | None) -> str | None:
    text = None if name is None or at is None else results.columns[name].readable(at)
    return None if text is None else one_line(text, _LONGEST_CELL)
