from decimal import Decimal
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.rows.xsd_numbers import (
    Finite,
    NumberKind,
    Tolerances,
    number_chains,
    numbers_are_equal,
)

TOLERANCES = Tolerances.of({"double": 4e-6})
INTEGER, DECIMAL, DOUBLE, FLOAT = NumberKind

# Numbers from 995.000 to 1005.000 in steps of a thousandth; floats are near to 0.01, doubles to 0.004.
NUMBERS = st.integers(-10, 10).map(lambda steps: Decimal(1_000_000 + steps * 3) / 1_000)


def test_a_float_links_decimals_that_differ() -> None:
    numbers: dict[Finite, list[NumberKind]] = {
        Decimal("999.995"): [DECIMAL], 1_000: [FLOAT], Decimal("1000.005"): [DECIMAL], Decimal("1000.5"): [DECIMAL]
    }  # fmt: skip
    ((linked, are_equal),) = number_chains(numbers, TOLERANCES)
    assert (linked, are_equal) == ([Decimal("999.995"), 1_000, Decimal("1000.005")], False)


def test_numbers_between_that_are_exact_are_left_out() -> None:
    numbers: dict[Finite, list[NumberKind]] = {1_000_000: [FLOAT], 1_000_001: [INTEGER], 1_000_002: [FLOAT]}
    assert number_chains(numbers, TOLERANCES) == [([1_000_000, 1_000_002], True)]


def test_numbers_beyond_the_range_of_floats() -> None:
    huge = 10**400
    assert [chain.numbers for chain in number_chains({huge: [DECIMAL], huge + 1: [FLOAT]}, TOLERANCES)] == [
        [huge, huge + 1]
    ]


@given(
    st.dictionaries(NUMBERS | NUMBERS.map(lambda number: -number), st.sets(st.sampled_from(NumberKind), min_size=1)),
)
def test_chains_are_the_numbers_that_are_linked_by_equal_pairs(drawn: dict[Finite, set[NumberKind]]) -> None:
    kinds_of = {number: sorted(kinds) for number, kinds in drawn.items()}

    def equal(one: Finite, other: Finite, *, all_kinds: bool) -> bool:
        pairs = [(mine, theirs) for mine in kinds_of[one] for theirs in kinds_of[other]]
        found = (numbers_are_equal(one, other, TOLERANCES.between(*pair)) for pair in pairs)
        return all(found) if all_kinds else any(found)

    chains = {number: {number} for number in kinds_of}
    for one, other in combinations(kinds_of, 2):
        if equal(one, other, all_kinds=False) and chains[one] is not chains[other]:
            chains[one] |= chains[other]
            for number in chains[other]:
                chains[number] = chains[one]
    found = number_chains(kinds_of, TOLERANCES)
    assert {frozenset(chain.numbers) for chain in found} == {
        frozenset(chain) for chain in chains.values() if len(chain) > 1
    }
    for chain in found:
        assert chain.numbers == sorted(chain.numbers)
        assert not chain.are_equal or all(equal(*pair, all_kinds=True) for pair in combinations(chain.numbers, 2))
