from decimal import Decimal
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.rows.coded_rows import ColumnNumbers
from graphrag_eval_lc.matching.rows.xsd_numbers import NumberKind, Tolerances, numbers_are_equal

TOLERANCES = Tolerances.of(None)
RELATIVE = TOLERANCES.float
NUMBERS = st.integers(-4, 4).map(lambda steps: Decimal(1_000_000 + steps * 6) / 1_000)
COLUMNS = st.lists(NUMBERS | NUMBERS.map(lambda number: -number), min_size=1, max_size=4)


def column(numbers: list[Decimal]) -> ColumnNumbers:
    return ColumnNumbers(sorted(numbers), frozenset({NumberKind.FLOAT}), TOLERANCES)


@given(COLUMNS, COLUMNS)
def test_as_a_bag_numbers_can_be_paired_off(mine: list[Decimal], others: list[Decimal]) -> None:
    others = (others * 4)[: len(mine)]
    expected = any(
        all(numbers_are_equal(one, other, RELATIVE) for one, other in zip(mine, order, strict=True))
        for order in permutations(others)
    )
    assert column(mine).may_equal(column(others), "bag") == expected


@given(COLUMNS, COLUMNS)
def test_as_a_set_each_number_is_near_some_other(mine: list[Decimal], others: list[Decimal]) -> None:
    expected = all(any(numbers_are_equal(one, other, RELATIVE) for other in others) for one in mine) and all(
        any(numbers_are_equal(one, other, RELATIVE) for one in mine) for other in others
    )
    assert column(mine).may_equal(column(others), "set") == expected
