"""Whole values of a property graph as short texts: equal values of two results have the same.

Numbers that are nearly equal have one text too, where it does not matter which of them stands where. Only those that
are near several others stay cells of their own, to be compared within the tolerance.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.rows.coded_rows import Rules
from graphrag_eval_lc.matching.rows.graph_parts import Parts, pairs_of
from graphrag_eval_lc.matching.rows.terms import Shape, Term
from graphrag_eval_lc.matching.rows.values import in_nfc, untyped_time
from graphrag_eval_lc.matching.rows.xsd_numbers import (
    ABSOLUTE_TOLERANCE,
    SLACK,
    Finite,
    NumberKind,
    number_chains,
    number_from,
    number_kind,
)

_LITERAL: Final[Shape] = ("literal", None, None)
_NUMBER: Final = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_WHOLE_NUMBERS: Final = frozenset("0123456789\n")
_EXACT_LENGTH: Final = 15
MOST_NEAR_NUMBERS: Final = 100
"""A value may have so many numbers that are compared as cells of their own; those after them must be the same."""

Side: TypeAlias = Sequence[Parts]
"""The parts of all values of one result."""


class Whole(NamedTuple):
    """A whole value.

    Attributes:
        text: What it is but for the numbers that follow.
        near: The numbers that are near several others.
    """

    text: str
    near: list[Term]


def whole_values(sides: Sequence[Side], rules: Rules) -> list[list[Whole]]:
    """Return the values of both results as short texts, given their parts.

    Args:
        sides: The values of the reference, and the actual ones.
        rules: How the results are compared.

    Example:
        >>> from graphrag_eval_lc.matching.rows.values import NO_VALUES
        >>> from graphrag_eval_lc.matching.rows.xsd_numbers import Tolerances
        >>> one, other = ["/0", "5.0"], ["/0", "5"]
        >>> [[mine], [theirs]] = whole_values([[one], [other]], Rules("set", False, Tolerances(), NO_VALUES))
        >>> mine == theirs
        True
    """
    texts = _TermTexts() if rules.strict else _ValueTexts(rules, sides)
    next_id = count().__next__
    ids: defaultdict[tuple[str | None, ...], int] = defaultdict(next_id)
    return [[_whole(parts, texts, ids) for parts in side] for side in sides]


def _whole(parts: Parts, texts: "_TermTexts", ids: defaultdict[tuple[str | None, ...], int]) -> Whole:
    near: list[Term] = []
    key: list[str | None] = []
    for place, part in pairs_of(parts):
        text = texts.text(place, part)
        if text is None:
            near.append(Term(str(part), _LITERAL))
            if len(near) > MOST_NEAR_NUMBERS:
                text = f"number {part}"
        key += (place, text)
    return Whole(f"v{ids[tuple(key)]}", near[:MOST_NEAR_NUMBERS])


class _TermTexts:
    """The texts of parts that are compared as RDF terms."""

    def text(self, place: str, part: str | Term) -> str | None:
        """Return a text that equal parts at one place have, too; None for a number that is near several others."""
        del place
        return part if isinstance(part, str) else f"{part.text}\n{part.shape}"


class _ValueTexts(_TermTexts):
    """The texts of parts that are compared by value."""

    def __init__(self, rules: Rules, sides: Sequence[Side]) -> None:
        self._values = rules.values
        self._known: dict[str, str] = {}
        self._numbers = dict(_numbers_by_place(sides, rules))

    def text(self, place: str, part: str | Term) -> str | None:
        """Return a text that equal parts at one place have, too; None for a number that is near several others."""
        if not isinstance(part, str):
            return part.text
        numbers = self._numbers.get(place)
        if numbers is not None and part in numbers:
            return numbers[part]
        known = self._known.get(part)
        if known is None:
            known = self._known[part] = self._by_value(part)
        return known

    def _by_value(self, text: str) -> str:
        if self._values.times and ":" in text:
            time = untyped_time(text)
            if time is not None:
                return f"time {time}"
        return text if text.isascii() or not self._values.nfc else in_nfc(text)


def _numbers_by_place(sides: Sequence[Side], rules: Rules) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the places of which some numbers equal others, with the texts of these numbers."""
    places: defaultdict[str, tuple[set[str], ...]] = defaultdict(lambda: tuple(set() for _ in sides))
    for at, side in enumerate(sides):
        for parts in side:
            for place, part in pairs_of(parts):
                if isinstance(part, str):
                    places[place][at].add(part)
    share = float(rules.tolerances.loosest(frozenset(NumberKind), frozenset(NumberKind)))
    for place, texts in places.items():
        found = _near_numbers(texts, rules, share)
        if found:
            yield place, found


def _near_numbers(texts: Sequence[set[str]], rules: Rules, share: float) -> dict[str, str | None]:
    """Return the texts of numbers at one place that equal others there: None where it matters which one it is."""
    every = set[str]().union(*texts)
    joined = "\n".join(every)
    if len(every) < 2 or (_WHOLE_NUMBERS.issuperset(joined) and max(map(len, every)) <= _EXACT_LENGTH):
        return {}  # no leading zeros come from JSON, but these are numbers of their own at worst
    numbers = sorted((float(text), text) for text in every if _NUMBER.fullmatch(text))
    found: dict[str, str | None] = {}
    group: list[str] = []
    before = 0.0
    for number, text in numbers:
        if group and number - before > SLACK * max(float(ABSOLUTE_TOLERANCE), share * max(-before, number)):
            _settle(group, texts, rules, found)
            group = []
        group.append(text)
        before = number
    _settle(group, texts, rules, found)
    return found


def _settle(group: list[str], texts: Sequence[set[str]], rules: Rules, found: dict[str, str | None]) -> None:
    if len(group) < 2:
        return
    if len(group) == 2 and _are_surely_equal(group[0], group[1], texts):
        found |= dict.fromkeys(group, f"near {group[0]}")
        return
    values: dict[str, Finite] = {}
    kinds: defaultdict[Finite, set[NumberKind]] = defaultdict(set)
    is_fine = False
    for text in group:
        read = number_from(text, None)
        if read is None or isinstance(read[0], str):
            continue
        values[text] = read[0]
        kinds[read[0]].add(number_kind(text, None))
        is_fine |= read[1]
    of: dict[Finite, str | None] = {value: f"number {value}" for value in kinds}
    for chain, are_equal in number_chains(
        {value: tuple(each) for value, each in kinds.items()}, rules.tolerances, are_fine=is_fine
    ):
        same = list(chain)
        is_told = are_equal and (rules.rows_as != "set" or all(_has_one(same, values, side) for side in texts))
        of |= dict.fromkeys(same, f"number {same[0]}" if is_told else None)
    found |= {text: of[value] for text, value in values.items()}


def _are_surely_equal(low: str, high: str, texts: Sequence[set[str]]) -> bool:
    """Return whether two numbers of different sides are within the absolute tolerance, whatever floats lose."""
    one, other = float(low), float(high)
    if not (abs(other - one) < float(ABSOLUTE_TOLERANCE) / 2 and abs(other) < _EXACT_ENOUGH):
        return False
    return all((low in side) != (high in side) for side in texts)


_EXACT_ENOUGH: Final = 1e6
"""Floats below this one are off by less than 1e-9."""


def _has_one(numbers: Sequence[Finite], values: Mapping[str, Finite], texts: set[str]) -> bool:
    """Return whether one side writes no more than one of some numbers."""
    return len({values[text] for text in values.keys() & texts}.intersection(numbers)) < 2
