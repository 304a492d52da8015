"""Geometries as GeoSPARQL writes them (WKT): read without regard to case and spacing, their numbers as numbers."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.rows.xsd_numbers import (
    ABSOLUTE_TOLERANCE,
    MAX_NUMBER_LENGTH,
    SLACK,
    XSD,
    Finite,
    Number,
    all_are_equal,
    number_from,
    numbers_are_equal,
)

WKT_LITERAL: Final = "http://www.opengis.net/ont/geosparql#wktLiteral"

_DEFAULT_CRS: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_DOUBLE: Final = f"{XSD}double"
_WHITE_SPACE: Final = " \t\n\r"
_CRS: Final = re.compile(r"<([^<>\s]*)>")
_NUMBER: Final = re.compile(
    r"(?<![\w.+-])([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.+-])", re.ASCII
)
_PLACEHOLDER: Final = "#"
_WORDS_AND_BRACKETS: Final = re.compile(r"[A-Z][A-Z(),#]*")
_NO_WHITE_SPACE: Final = str.maketrans("", "", _WHITE_SPACE)


class Geometry:
    """A geometry.

    Attributes:
        skeleton: The IRI of its coordinate reference system, its words and brackets, with a mark for each number.
        numbers: The numbers, as they are written.
    """

    def __init__(self, skeleton: str, numbers: tuple[str, ...]) -> None:
        self.skeleton = skeleton
        self.numbers = numbers
        self._hash = hash((skeleton, numbers))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Return whether all numbers are written alike too."""
        if not isinstance(other, Geometry):
            return NotImplemented
        return self._hash == other._hash and (self.skeleton, self.numbers) == (other.skeleton, other.numbers)

    def __repr__(self) -> str:
        return f"Geometry({self.skeleton!r}, {self.numbers!r})"

    @cached_property
    def floats(self) -> tuple[float, ...]:
        """The numbers as floats."""
        return tuple(map(float, self.numbers))

    @cached_property
    def first_number(self) -> Finite | None:
        """The first number; None where there is none, or it is beyond all doubles."""
        number = _number(self.numbers[0]) if self.numbers else "NaN"
        return None if isinstance(number, str) else number


def geometry_from(lexical: str) -> Geometry | None:
    """Read a geo:wktLiteral; None where ``lexical`` has more in it than words, brackets, commas and numbers.

    Example:
        >>> geometry_from("Point ( 1  2.0 )")
        Geometry('POINT(##)', ('1', '2.0'))
        >>> geometry_from("<http://www.opengis.net/def/crs/OGC/1.3/CRS84> POINT(1 2)") == geometry_from("POINT(1 2)")
        True
        >>> geometry_from("POINT(1;2)") is None
        True
    """
    text = lexical.strip(_WHITE_SPACE)
    crs = ""
    found = _CRS.match(text)
    if found is not None:
        crs = "" if found[1] == _DEFAULT_CRS else f"<{found[1]}>"
        text = text[found.end() :]
    if not text.isascii() or _PLACEHOLDER in text:
        return None
    parts = _NUMBER.split(text)
    skeleton = _PLACEHOLDER.join(parts[::2]).translate(_NO_WHITE_SPACE).upper()
    numbers = tuple(parts[1::2])
    if _WORDS_AND_BRACKETS.fullmatch(skeleton) is None:
        return None
    if len(text) > MAX_NUMBER_LENGTH and max(map(len, numbers), default=0) > MAX_NUMBER_LENGTH:
        return None
    return Geometry(crs + skeleton, numbers)


def _number(text: str) -> Number:
    found = number_from(text, _DOUBLE)
    return "NaN" if found is None else found[0]


def geometries_are_equal(one: Geometry, other: Geometry, relative: Decimal = Decimal(0)) -> bool:
    """Return whether two geometries are written alike but for numbers that are equal.

    Args:
        one: A geometry.
        other: Another one.
        relative: The relative tolerance of doubles.
    """
    if one.skeleton != other.skeleton:
        return False
    pairs = zip(one.floats, other.floats, strict=True)
    return all(
        (_is_small(low, high) or numbers_are_equal(_number(one.numbers[at]), _number(other.numbers[at]), relative))
        for at, (low, high) in enumerate(pairs)
    )


def _is_small(low: float, high: float) -> bool:
    """Return whether two numbers are sure to be within the absolute tolerance, whatever floats lose."""
    return abs(high - low) < float(ABSOLUTE_TOLERANCE) / 2 and abs(high) < _EXACT_ENOUGH


_EXACT_ENOUGH: Final = 1e6
"""Floats below this one are off by less than 1e-9."""


class GeometryGroup(NamedTuple):
    """Geometries that may equal each other; they equal none beyond the group.

    Attributes:
        same: The geometries, those with exactly the same numbers together.
        are_equal: Whether all of them are known to equal each other.
    """

    same: list[list[Geometry]]
    are_equal: bool


def geometry_groups(geometries: Iterable[Geometry], relative: Decimal) -> Iterator[GeometryGroup]:
    """Yield the groups of more than one geometry.

    Args:
        geometries: Different geometries.
        relative: The relative tolerance of doubles.

    Example:
        >>> [group] = geometry_groups([Geometry("P(#)", (x,)) for x in ("1", "1.0", "1.000000001", "2")], Decimal(0))
        >>> [len(same) for same in group.same], group.are_equal
        ([2, 1], True)
    """
    by_skeleton: defaultdict[str, list[Geometry]] = defaultdict(list)
    for geometry in geometries:
        by_skeleton[geometry.skeleton].append(geometry)
    for alike in by_skeleton.values():
        groups = [alike] if len(alike) > 1 else []
        for at in range(len(alike[0].numbers)):
            groups = [part for group in groups for part in _near_at(at, group, float(relative)) if len(part) > 1]
            if not groups:
                break
        yield from (_examined(group, relative) for group in groups)


def _near_at(at: int, group: list[Geometry], relative: float) -> list[list[Geometry]]:
    """Split a group into chains of which each number at one place is near the next one."""
    floats = [geometry.floats[at] for geometry in group]
    if min(floats) == max(floats):
        return [group]
    absolute, share = SLACK * float(ABSOLUTE_TOLERANCE), SLACK * relative + 1e-15
    order = sorted(range(len(group)), key=floats.__getitem__)
    parts = [[group[order[0]]]]
    for place, following in pairwise(order):
        low, high = floats[place], floats[following]
        if high - low > max(absolute, share * max(-low, high)):
            parts.append([])
        parts[-1].append(group[following])
    return parts


def _examined(group: Sequence[Geometry], relative: Decimal) -> GeometryGroup:
    by_floats: defaultdict[tuple[float, ...], list[Geometry]] = defaultdict(list)
    for geometry in group:
        by_floats[geometry.floats].append(geometry)
    same = [part for alike in by_floats.values() for part in _with_same_numbers(alike)]
    firsts = [part[0] for part in same]
    are_equal = len(same) == 1 or all(
        _are_near(at, min(floats), max(floats), firsts, relative)
        for at, floats in enumerate(zip(*(geometry.floats for geometry in firsts), strict=True))
    )
    return GeometryGroup(same, are_equal)


def _with_same_numbers(alike: list[Geometry]) -> list[list[Geometry]]:
    """Split geometries of the same floats into those of exactly the same numbers."""
    if len(alike) == 1:
        return [alike]
    written = zip(*(geometry.numbers for geometry in alike), strict=True)
    differing = [at for at, texts in enumerate(written) if len(set(texts)) > 1]
    same: defaultdict[tuple[Number, ...], list[Geometry]] = defaultdict(list)
    for geometry in alike:
        same[tuple(_number(geometry.numbers[at]) for at in differing)].append(geometry)
    return list(same.values())


def _are_near(at: int, low: float, high: float, group: Sequence[Geometry], relative: Decimal) -> bool:
    """Return whether the numbers at one place, whose least and greatest floats are given, are sure to be all equal."""
    if _is_small(low, high):
        return True
    numbers = {_number(geometry.numbers[at]) for geometry in group}
    finite = [number for number in numbers if not isinstance(number, str)]
    if len(finite) < len(numbers):
        return len(numbers) == 1
    return all_are_equal(min(finite), max(finite), relative)
