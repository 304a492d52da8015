from collections.abc import Sequence

from graphrag_eval_lc.matching.sparql.numbers import NumberKind, Tolerances
from graphrag_eval_lc.matching.sparql.plain_cells import PlainCells
from graphrag_eval_lc.matching.sparql.plain_rows import PlainVerdict, plain_verdict
from graphrag_eval_lc.matching.sparql.rows import RowsAs

A, B = PlainCells(["a1", "a2", "a2"]), PlainCells(["b1", "b2", "b3"])
FREE = PlainCells(["f", "f", "f"])


def verdict(required: Sequence[PlainCells], actual: Sequence[PlainCells], rows_as: RowsAs) -> PlainVerdict | None:
    return plain_verdict(required, actual, rows_as, Tolerances.of(None))


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


def test_numbers_that_differ_are_left_to_the_search_where_they_have_a_tolerance() -> None:
    def column(number: float, kind: NumberKind) -> PlainCells:
        return PlainCells([number], frozenset({str(number)}), frozenset({kind}))

    for kind, expected in ((NumberKind.FLOAT, None), (NumberKind.DECIMAL, PlainVerdict(None))):
        assert verdict([column(1.5, kind)], [column(1.5, kind)], "set") == PlainVerdict([0])
        assert verdict([column(1.5, kind)], [column(1.6, kind)], "set") == expected
    # What has no tolerance still settles it.
    assert verdict([A, column(1.5, NumberKind.FLOAT)], [FREE, column(1.6, NumberKind.FLOAT)], "set") == PlainVerdict(
        None
    )
