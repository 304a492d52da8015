from collections.abc import Sequence

import pytest

from graphrag_eval_lc.matching.rows.coded_rows import RowsAs, Rules
from graphrag_eval_lc.matching.rows.plain_cells import PlainCells
from graphrag_eval_lc.matching.rows.quick_verdict import PlainVerdict, plain_verdict
from graphrag_eval_lc.matching.rows.values import ValueRules
from graphrag_eval_lc.matching.rows.xsd_numbers import NumberKind, Tolerances

A, B = PlainCells(["a1", "a2", "a2"]), PlainCells(["b1", "b2", "b3"])
FREE = PlainCells(["f", "f", "f"])


def verdict(required: Sequence[PlainCells], actual: Sequence[PlainCells], rows_as: RowsAs) -> PlainVerdict | None:
    return plain_verdict(
        required, actual, Rules(rows_as, strict=False, tolerances=Tolerances.of(None), values=ValueRules())
    )


def shuffled(column: PlainCells) -> PlainCells:
    return PlainCells([column.cells[2], column.cells[0], column.cells[1]])  # type: ignore[list-item]


def test_columns_are_found_by_their_contents() -> None:
    assert verdict([A, B], [FREE, shuffled(B), shuffled(A)], "set") == PlainVerdict([2, 1])


def test_rows_decide_where_the_contents_agree() -> None:
    assert verdict([A, B], [shuffled(A), B], "set") == PlainVerdict(None)
    assert verdict([A, B], [shuffled(A), B], "bag") == PlainVerdict(None)


def test_no_column_of_the_same_content_is_no_match() -> None:
    assert verdict([A, B], [A, FREE], "set") == PlainVerdict(None)


def test_order_and_duplicates_count_as_asked_for() -> None:
    assert verdict([A], [shuffled(A)], "list") == PlainVerdict(None)
    assert verdict([A], [A], "list") == PlainVerdict([0])
    twice = PlainCells(["a1", "a1", "a2"])
    assert verdict([A], [twice], "bag") == PlainVerdict(None)
    assert verdict([A], [twice], "set") == PlainVerdict([0])


def test_columns_that_look_alike_are_left_to_the_search() -> None:
    assert verdict([A], [A, shuffled(A)], "set") is None
    assert verdict([A, shuffled(A)], [A], "set") is None


def column(kind: NumberKind, *numbers: float) -> PlainCells:
    return PlainCells(list(numbers), frozenset(map(str, numbers)), frozenset({kind}))


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        (NumberKind.FLOAT, 1_000.5, PlainVerdict([0])),
        (NumberKind.FLOAT, 1_000.501, None),
        (NumberKind.FLOAT, 1_000.6, PlainVerdict(None)),
        (NumberKind.DOUBLE, 1_000.501, PlainVerdict(None)),
        (NumberKind.DECIMAL, 1_000.501, PlainVerdict(None)),
        (NumberKind.INTEGER, 1_000.0, PlainVerdict(None)),
    ],
)
def test_numbers_within_a_tolerance_are_left_to_the_search(
    kind: NumberKind, found: float, expected: PlainVerdict | None
) -> None:
    assert verdict([column(kind, 1_000.5)], [column(kind, found)], "set") == expected


def test_what_has_no_tolerance_settles_it() -> None:
    near = column(NumberKind.FLOAT, 1_000.5), column(NumberKind.FLOAT, 1_000.501)
    assert verdict([A, near[0]], [FREE, near[1]], "set") == PlainVerdict(None)
