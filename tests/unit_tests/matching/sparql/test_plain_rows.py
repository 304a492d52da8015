from graphrag_eval_lc.matching.sparql.plain_cells import PlainCells
from graphrag_eval_lc.matching.sparql.plain_rows import PlainVerdict, plain_verdict

A, B = PlainCells(["a1", "a2", "a2"]), PlainCells(["b1", "b2", "b3"])
FREE = PlainCells(["f", "f", "f"])


def shuffled(column: PlainCells) -> PlainCells:
    return PlainCells([column.cells[2], column.cells[0], column.cells[1]])  # type: ignore[list-item]


def test_columns_are_found_by_their_contents() -> None:
    assert plain_verdict([A, B], [FREE, shuffled(B), shuffled(A)], "set") == PlainVerdict([2, 1])


def test_rows_decide_where_the_contents_agree() -> None:
    assert plain_verdict([A, B], [shuffled(A), B], "set") == PlainVerdict(None)
    assert plain_verdict([A, B], [shuffled(A), B], "bag") == PlainVerdict(None)


def test_no_column_of_the_same_content_is_no_match() -> None:
    assert plain_verdict([A, B], [A, FREE], "set") == PlainVerdict(None)


def test_order_and_duplicates_count_as_asked_for() -> None:
    assert plain_verdict([A], [shuffled(A)], "list") == PlainVerdict(None)
    assert plain_verdict([A], [A], "list") == PlainVerdict([0])
    twice = PlainCells(["a1", "a1", "a2"])
    assert plain_verdict([A], [twice], "bag") == PlainVerdict(None)
    assert plain_verdict([A], [twice], "set") == PlainVerdict([0])


def test_columns_that_look_alike_are_left_to_the_search() -> None:
    assert plain_verdict([A], [A, shuffled(A)], "set") is None
    assert plain_verdict([A, shuffled(A)], [A], "set") is None
