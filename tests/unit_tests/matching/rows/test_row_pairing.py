from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.rows.coded_rows import Budget, SearchCutOff
from graphrag_eval_lc.matching.rows.row_pairing import can_be_paired, unpaired_items


@given(st.lists(st.lists(st.integers(0, 4), max_size=3, unique=True), max_size=5))
def test_items_are_paired_off_if_some_order_does(partners: list[list[int]]) -> None:
    expected = any(
        all(partner in possible for partner, possible in zip(order, partners, strict=True))
        for order in permutations(range(5), len(partners))
    )
    assert can_be_paired(partners, Budget(1)) is expected


def most_pairs(partners: list[list[int]], times: list[int]) -> int:
    """Return how many items can have a partner at most, by trying everything."""
    if not partners:
        return 0
    best = most_pairs(partners[1:], times)
    for partner in partners[0]:
        if times[partner]:
            left = [count - (at == partner) for at, count in enumerate(times)]
            best = max(best, 1 + most_pairs(partners[1:], left))
    return best


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=3, unique=True), max_size=6),
    st.lists(st.integers(1, 2), min_size=5, max_size=5),
    st.booleans(),
)
def test_as_few_items_are_left_as_can_be(partners: list[list[int]], times: list[int], has_likely: bool) -> None:
    likely = (lambda item: reversed(partners[item])) if has_likely else None
    left = list(unpaired_items(range(len(partners)), partners.__getitem__, Budget(1), times=times, likely=likely))
    assert len(left) == len(partners) - most_pairs(partners, times)
    assert len(left) == len(set(left))


def test_a_search_ends_at_its_bound() -> None:
    budget = Budget(1)
    budget.spend(budget.limit)
    with pytest.raises(SearchCutOff):
        can_be_paired([[0]], budget)


def test_long_tables_get_a_larger_bound() -> None:
    assert Budget(10_000_000).limit > Budget(10).limit
