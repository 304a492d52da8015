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
from graphrag_eval_lc.matching.rows.graph_parts import Parts
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
        >>> one, other = [("/0", Term("5.0", _LITERAL))], [("/0", Term("5", _LITERAL))]
        >>> [[mine], [theirs]] = whole_values([[one], [other]], Rules("set", False, Tolerances(), NO_VALUES))
        >>> mine == theirs
        True
    """
    texts = _TextsByPlace(rules) if rules.strict else _TextsOfNumbers(rules, sides)
    next_id = count().__next__
    ids: defaultdict[tuple[str | None, ...], int] = defaultdict(next_id)
    return [[_whole(parts, texts, ids) for parts in side] for side in sides]


def _whole(parts: Parts, texts: "_TextsByPlace", ids: defaultdict[tuple[str | None, ...], int]) -> Whole:
    near: list[Term] = []
    key: list[str | None] = []
    for path, term in sorted(parts):
        text = texts.text(path, term)
        if text is None and len(near) < MOST_NEAR_NUMBERS:
            near.append(term)
        key += [path, text]
    return Whole(f"v{ids[tuple(key)]}", near)


class _TextsByPlace:
    """The texts of parts that are RDF terms."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def text(self, path: str, term: Term) -> str | None:
        """Return a text that equal parts at one place have, too; None for a number that is near several others."""
        del path
        return f"{term.text}\n{term.shape}"


class _TextsOfNumbers(_TextsByPlace):
    """The texts of parts that are compared by value."""

    def __init__(self, rules: Rules, sides: Sequence[Side]) -> None:
        super().__init__(rules)
        self._others: dict[str, str] = {}
        self._numbers = dict(_numbers_by_place(sides, rules))

    def text(self, path: str, term: Term) -> str | None:
        text = term.text
        if term.shape == _LITERAL:
            known = self._numbers.get(path)
            if known is not None and text in known:
                return known[text]
        if text not in self._others:
            self._others[text] = self._by_value(term)
        return self._others[text]

    def _by_value(self, term: Term) -> str:
        values = self._rules.values
        if values.times and term.shape == _LITERAL and ":" in term.text:
            time = untyped_time(term.text)
            if time is not None:
                return f"time {time}"
        return in_nfc(term.text) if values.nfc else term.text


def _numbers_by_place(sides: Sequence[Side], rules: Rules) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the places of which some numbers equal others, with the texts of these numbers."""
    places: defaultdict[str, tuple[set[str], ...]] = defaultdict(lambda: tuple(set() for _ in sides))
    for at, side in enumerate(sides):
        for parts in side:
            for path, term in parts:
                if term.shape == _LITERAL:
                    places[path][at].add(term.text)
    share = float(rules.tolerances.loosest(frozenset(NumberKind), frozenset(NumberKind)))
    for path, texts in places.items():
        found = _near_numbers(texts, rules, share)
        if found:
            yield path, found


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


def _has_one(numbers: Sequence[Finite], values: Mapping[str, Finite], texts: set[str]) -> bool:
    """Return whether one side writes no more than one of some numbers."""
    return len({values[text] for text in values.keys() & texts}.intersection(numbers)) < 2
