"""The search for columns finds what trying everything finds, in few steps."""

import random
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc.matching.rows.coded_rows import Budget
from graphrag_eval_lc.matching.rows.column_choices import choices_of_columns, has_few_choices
from graphrag_eval_lc.matching.rows.column_search import ColumnClass, RowSearch

Rows = list[tuple[int, ...]]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """Rows of two values and some of their columns in another order, or nearly so."""
    rng = draw(st.randoms(use_true_random=False))
    width, count = rng.randint(1, 5), rng.randint(1, 6)
    rows = [tuple(rng.randrange(2, 4) for _ in range(width)) for _ in range(count)]
    columns = rng.sample(range(width), rng.randint(1, width))
    mine = [[row[at] for at in columns] for row in rows]
    for _ in range(rng.choice([0, 0, 1, 2])):
        mine[rng.randrange(count)][rng.randrange(len(columns))] = rng.randrange(2, 4)
    return [tuple(row) for row in mine], rows


def found_columns(mine: Rows, others: Rows) -> tuple[int, ...] | None:
    reference, actual = list(zip(*mine, strict=True)), dict(enumerate(zip(*others, strict=True)))
    classes = [ColumnClass(list(range(len(reference))), list(actual))]
    search = RowSearch(reference, len(others), Budget(1))
    parts = search.parts_of_classes(actual, classes)
    if parts is None:
        return None
    candidates = {at: part.candidates for part in parts for at in part.required}
    return search.mapping(actual, candidates, {}, lambda _: True)


@pytest.mark.full
@settings(max_examples=600)
@given(pair=tables(), as_set=st.booleans())
def test_columns_are_found_if_some_order_of_columns_has_the_rows(pair: tuple[Rows, Rows], as_set: bool) -> None:
    mine, others = pair
    if as_set:
        mine, others = list(dict.fromkeys(mine)), list(dict.fromkeys(others))

    def fits(columns: tuple[int, ...]) -> bool:
        rows = [tuple(row[at] for at in columns) for row in others]
        return set(rows) == set(mine) if as_set else sorted(rows) == sorted(mine)

    expected = any(map(fits, permutations(range(len(others[0])), len(mine[0]))))
    if as_set and len(others) < len(mine):  # the caller sees to that
        assert not expected
        return
    found = found_columns(mine, others)
    assert (found is not None) is expected
    assert found is None or fits(found)


@pytest.mark.full
@settings(max_examples=200)
@given(pair=tables())
def test_the_right_columns_are_among_the_choices_that_leave_as_many_rows(pair: tuple[Rows, Rows]) -> None:
    mine, others = (list(dict.fromkeys(rows)) for rows in pair)
    columns = dict(enumerate(zip(*others, strict=True)))
    classes = [ColumnClass(list(range(len(mine[0]))), list(columns))]
    assert has_few_choices(classes, len(others))
    chosen = [set(kept) for kept, _ in choices_of_columns(columns, classes, {}, len(mine), Budget(1))]
    for order in permutations(columns, len(mine[0])):
        if {tuple(row[at] for at in order) for row in others} == set(mine):
            assert set(order) in chosen


def test_many_choices_are_not_looked_at_one_by_one() -> None:
    assert not has_few_choices([ColumnClass(list(range(25)), list(range(50)))], 12)


@pytest.mark.parametrize("seed", range(5))
def test_25_of_50_columns_of_two_values_are_found_in_few_steps(seed: int) -> None:
    rng = random.Random(seed)
    others = [tuple(rng.randrange(2, 4) for _ in range(50)) for _ in range(12)]
    columns = rng.sample(range(50), 25)
    mine = [tuple(row[at] for at in columns) for row in others]
    budget = Budget(1)
    reference, actual = list(zip(*mine, strict=True)), dict(enumerate(zip(*others, strict=True)))
    candidates = {at: list(actual) for at in range(25)}
    found = RowSearch(reference, len(others), budget).mapping(actual, candidates, {}, lambda _: True)
    assert found is not None
    assert budget.spent < 2_000_000
