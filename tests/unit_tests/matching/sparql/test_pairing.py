from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.sparql.budget import Budget, SearchCutOff
from graphrag_eval_lc.matching.sparql.pairing import can_be_paired


@given(st.lists(st.lists(st.integers(0, 4), max_size=3, unique=True), max_size=5))
def test_items_are_paired_off_if_some_order_does(partners: list[list[int]]) -> None:
    expected = any(
        all(partner in possible for partner, possible in zip(order, partners, strict=True))
        for order in permutations(range(5), len(partners))
    )
    assert can_be_paired(partners, Budget(1)) is expected


def test_a_search_ends_at_its_bound() -> None:
    budget = Budget(1)
    budget.spend(budget.limit)
    with pytest.raises(SearchCutOff):
        can_be_paired([[0]], budget)


def test_long_tables_get_a_larger_bound() -> None:
    assert Budget(10_000_000).limit > Budget(10).limit
