"""Numbers that are linked by steps within the tolerance, found in one pass over the sorted numbers."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.sparql.numbers import (
    ABSOLUTE_TOLERANCE,
    NumberKind,
    Tolerances,
    all_are_equal,
    numbers_are_equal,
)

Finite: TypeAlias = int | Decimal

_SLACK: Final = 1.000001
"""More than what is lost where the tolerance is computed in floats."""


class Chain(NamedTuple):
    """Numbers of which each equals another one.

    Attributes:
        numbers: The numbers, in order.
        are_equal: Whether all of them are known to equal each other.
    """

    numbers: list[Finite]
    are_equal: bool


def number_chains(
    kinds_of: Mapping[Finite, Sequence[NumberKind]], tolerances: Tolerances, *, are_fine: bool = True
) -> list[Chain]:
    """Give the chains of more than one number.

    Args:
        kinds_of: The numbers, each with the kinds in which it occurs.
        tolerances: The tolerances of these kinds.
        are_fine: Whether numbers may be within 1e-8 of each other.

    Example:
        >>> floats = {5000: [NumberKind.FLOAT], Decimal("5000.001"): [NumberKind.FLOAT], 6000: [NumberKind.FLOAT]}
        >>> number_chains(floats, Tolerances.of(None))
        [Chain(numbers=[5000, Decimal('5000.001')], are_equal=True)]
    """
    numbers = sorted(kinds_of)
    kinds = [kinds_of[number] for number in numbers]
    approximate = list(map(_as_float, numbers))
    chain_of: dict[int, int] = {}
    present = set[NumberKind]().union(*set(map(tuple, kinds)))
    for tolerance in sorted({Decimal(0), *(tolerances[kind] for kind in present)}):
        if not tolerance and not are_fine:
            continue
        # What is within the tolerance of a looser kind is linked by that one's own.
        tight = {kind for kind in present if not tolerance or (kind and tolerances[kind] <= tolerance)}
        own = {kind for kind in tight if not tolerance or tolerances[kind] == tolerance}
        members = [at for at in range(len(numbers)) if tight == present or not tight.isdisjoint(kinds[at])]
        anchors = None if own == tight else [not own.isdisjoint(kinds[at]) for at in members]
        for one, other in _links(members, anchors, numbers, approximate, tolerance):
            _join(chain_of, one, other)
    chains: defaultdict[int, list[int]] = defaultdict(list)
    for at in sorted(chain_of):
        chains[_root(chain_of, at)].append(at)
    return [
        Chain([numbers[at] for at in places], _are_equal(places, numbers, kinds, tolerances))
        for places in chains.values()
    ]


def _links(
    members: Sequence[int],
    anchors: Sequence[bool] | None,
    numbers: Sequence[Finite],
    approximate: Sequence[float],
    tolerance: Decimal,
) -> Iterator[tuple[int, int]]:
    """Give the neighbours that lie within the tolerance of an anchor: the nearest one before or after them.

    Args:
        members: The places of the numbers to link.
        anchors: Which of them have this tolerance; None for all.
        numbers: All numbers, in order.
        approximate: The same as floats.
        tolerance: The tolerance.
    """
    absolute, relative = _SLACK * float(ABSOLUTE_TOLERANCE), _SLACK * float(tolerance) + 1e-15

    def are_equal(one: int, other: int) -> bool:
        low, high = approximate[one], approximate[other]
        spread = high - low
        if spread > absolute and spread > relative * high and spread > -relative * low:
            return False
        return numbers_are_equal(numbers[one], numbers[other], tolerance)

    if anchors is None:
        yield from (pair for pair in pairwise(members) if are_equal(*pair))
        return
    after: list[int | None] = [None] * len(members)
    last: int | None = None
    for place in range(len(members) - 1, -1, -1):
        after[place] = last = members[place] if anchors[place] else last
    before: int | None = None
    for place, (one, other) in enumerate(pairwise(members)):
        before = one if anchors[place] else before
        following = after[place + 1]
        if (before is not None and are_equal(before, other)) or (following is not None and are_equal(one, following)):
            yield one, other


def _are_equal(
    places: Sequence[int], numbers: Sequence[Finite], kinds: Sequence[Sequence[NumberKind]], tolerances: Tolerances
) -> bool:
    """Tell whether all numbers are equal by the tightest tolerance that any two of them have."""
    times = Counter(kind for at in places for kind in kinds[at])
    pairs = ((one, other) for one in times for other in times if one != other or times[one] > 1)
    tightest = min(tolerances.between(one, other) for one, other in pairs)
    return all_are_equal(numbers[places[0]], numbers[places[-1]], tightest)


def _as_float(number: Finite) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _join(chain_of: dict[int, int], one: int, other: int) -> None:
    chain_of[_root(chain_of, other)] = _root(chain_of, one)


def _root(chain_of: dict[int, int], at: int) -> int:
    while chain_of.setdefault(at, at) != at:
        chain_of[at] = at = chain_of[chain_of[at]]
    return at
