"""XSD numbers and booleans: read exactly, equal within a tolerance, and linked into chains of equal ones."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import ROUND_UP, Context, Decimal
from enum import IntEnum
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.config import ToleranceConfig
from graphrag_eval_lc.records import relative_tolerance

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
XSD_BOOLEAN: Final = f"{XSD}boolean"
XSD_STRING: Final = f"{XSD}string"

ABSOLUTE_TOLERANCE: Final = Decimal("1E-8")
"""Numbers of any datatype are equal when they differ by at most this much."""

RELATIVE_TOLERANCES: Final[Mapping[str, float]] = ToleranceConfig().model_dump()
"""By XSD datatype: numbers are equal, too, when they differ by at most this share of the larger one."""

MAX_NUMBER_LENGTH: Final = 4_000
"""A longer lexical form is compared as text; Python does not read much longer integers either."""

Number = int | Decimal | str
"""A finite value, or one of the texts INF, -INF and NaN."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.([0-9]*))?|\.([0-9]+))")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?")
_UNTYPED = re.compile(r"(-?(?:0|[1-9][0-9]*)(?:\.([0-9]+))?)(?:[eE]([+-]?[0-9]+))?")
"""A number as JSON writes it: a code such as 007 or 1_000 is none."""
_FIRST_CHARACTERS: Final = frozenset("-0123456789")
_first_character = itemgetter(slice(1))
_SPECIAL: Final[dict[str, Number]] = {"INF": "INF", "+INF": "INF", "-INF": "-INF", "NaN": "NaN"}
_BOOLEANS: Final = {"true": True, "1": True, "True": True, "false": False, "0": False, "False": False}
_WHITE_SPACE: Final = " \t\n\r"
_EXACT: Final = Context(prec=20_000)

_ROUNDED_UP: Final = Context(prec=30, rounding=ROUND_UP)


class NumberKind(IntEnum):
    """What a number is by its datatype; the tolerance depends on it."""

    INTEGER = 0
    DECIMAL = 1
    DOUBLE = 2
    FLOAT = 3


_NAMES_OF_KINDS: Final = {
    NumberKind.INTEGER: "integer int long short byte nonNegativeInteger positiveInteger nonPositiveInteger"
    " negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte",
    NumberKind.DECIMAL: "decimal",
    NumberKind.DOUBLE: "double",
    NumberKind.FLOAT: "float",
}
_KINDS: Final = {XSD + name: kind for kind, names in _NAMES_OF_KINDS.items() for name in names.split()}
_LEXICAL_FORMS: Final = {
    NumberKind.INTEGER: _INTEGER,
    NumberKind.DECIMAL: _DECIMAL,
    NumberKind.DOUBLE: _DOUBLE,
    NumberKind.FLOAT: _DOUBLE,
}


def is_numeric_datatype(datatype: str | None) -> bool:
    """Return whether a datatype is one of XSD's numeric ones."""
    return datatype in _KINDS


def number_kind(lexical: str, datatype: str | None) -> NumberKind:
    """Return a number's kind; without a datatype it is an integer if it is written whole, else a double.

    Example:
        >>> number_kind("5", XSD + "float").name, number_kind("5", None).name, number_kind("5.0", None).name
        ('FLOAT', 'INTEGER', 'DOUBLE')
    """
    if datatype is not None:
        return _KINDS[datatype]
    return NumberKind.INTEGER if lexical.lstrip("-").isdigit() else NumberKind.DOUBLE


def number_from(lexical: str, datatype: str | None) -> tuple[Number, bool] | None:
    """Read a number as its datatype writes it.

    A double or float beyond the range of a double is an infinity or zero, as XSD rounds it.

    Args:
        lexical: The lexical form; XSD's white space around it is allowed.
        datatype: One of XSD's numeric datatypes; None for a text without a datatype, which is a number if JSON
            writes numbers so.

    Returns:
        The value, and whether it may have digits from the eighth decimal place on (only such a number can be
        within 1e-8 of another one). None where ``lexical`` is no lexical form of the datatype.

    Example:
        >>> number_from("+05", XSD + "byte")
        (5, False)
        >>> number_from("1_000", XSD + "integer") is None
        True
        >>> number_from("15.5", None), number_from("007", None)
        ((Decimal('15.5'), False), None)
    """
    if datatype is None:
        return _untyped(lexical)
    text = lexical.strip(_WHITE_SPACE)
    if len(text) > MAX_NUMBER_LENGTH:
        return None
    form = _LEXICAL_FORMS[_KINDS[datatype]]
    found = form.fullmatch(text)
    if found is None:
        special = _SPECIAL.get(text) if form is _DOUBLE else None
        return None if special is None else (special, False)
    if form is _INTEGER:
        return int(text), False
    places = len(found[1] or found[2] or "")
    if form is _DECIMAL:
        return (Decimal(text), places >= 8) if places else (int(text.rstrip(".")), False)
    return _double(text, places, found[3])


def _double(text: str, places: int, exponent: str | None) -> tuple[Number, bool]:
    rounded = float(text)
    if rounded in (float("inf"), float("-inf")):
        return ("INF" if rounded > 0 else "-INF"), False
    if rounded == 0:
        return 0, False
    return Decimal(text), places - int(exponent or "0") >= 8


def _untyped(text: str) -> tuple[Number, bool] | None:
    found = _UNTYPED.fullmatch(text) if len(text) <= MAX_NUMBER_LENGTH else None
    if found is None:
        return None
    mantissa, fraction, exponent = found.groups()
    if fraction is None and exponent is None:
        return int(text), False
    value = _double(text, len(fraction or ""), exponent)
    is_beyond_range = isinstance(value[0], str) or (value[0] == 0 and mantissa.strip("-0.") != "")
    return None if is_beyond_range else value


def has_untyped_number(texts: Sequence[str]) -> bool:
    """Return whether one of the texts, which have no datatype, is written as a number.

    Example:
        >>> has_untyped_number(["OSLO T1", "007"]), has_untyped_number(["OSLO T1", "15.5"])
        (False, True)
    """
    if _FIRST_CHARACTERS.isdisjoint(map(_first_character, texts)):
        return False
    return any(map(_UNTYPED.fullmatch, texts))


Tolerance: TypeAlias = float | Mapping[str, float]
"""A relative tolerance from 0 to below 1 for all numbers but integers, or those of ``float`` and ``double``."""


class Tolerances(NamedTuple):
    """The relative tolerance of each kind of numbers; of two kinds the looser one counts, and integers are exact.

    Example:
        >>> Tolerances.of(None).between(NumberKind.FLOAT, NumberKind.DOUBLE)
        Decimal('0.00001')
        >>> Tolerances.of(1e-6).between(NumberKind.DECIMAL, NumberKind.INTEGER)
        Decimal('0')
    """

    integer: Decimal = Decimal(0)
    decimal: Decimal = Decimal(0)
    double: Decimal = Decimal(0)
    float: Decimal = Decimal(0)

    @classmethod
    def of(cls, tolerance: Tolerance | None, *, strict: bool = False) -> "Tolerances":
        """Return the tolerances from what a caller says.

        Args:
            tolerance: One for all numbers but integers, or those of ``float`` and ``double`` that differ from the
                default; None for the defaults.
            strict: Whether RDF terms are compared; then only a tolerance for all numbers counts.

        Raises:
            ValueError: It is none from 0 to below 1, or for a datatype that has none.
        """
        if tolerance is not None and not isinstance(tolerance, Mapping):
            every = _exact_share("tolerance", tolerance)
            return cls(decimal=every, double=every, float=every)
        given = {} if tolerance is None else dict(tolerance)
        unknown = [str(name) for name in given if name not in RELATIVE_TOLERANCES]
        if unknown:
            raise ValueError(f"there is no tolerance of {unknown[0]}, only of {' and '.join(RELATIVE_TOLERANCES)}")
        merged = {**RELATIVE_TOLERANCES, **given}
        if merged == RELATIVE_TOLERANCES:
            return cls() if strict else _DEFAULTS
        shares = {name: _exact_share(f"tolerance of {name}", share) for name, share in merged.items()}
        return cls() if strict else cls(**shares)

    def between(self, one: NumberKind, other: NumberKind) -> Decimal:
        """Return the relative tolerance of two kinds."""
        return max(self[one], self[other]) if one and other else self.integer

    def loosest(self, kinds: Collection[NumberKind], others: Collection[NumberKind]) -> Decimal:
        """Return the largest relative tolerance between numbers of some kinds and of others; 0 where there are none."""
        return max((self.between(one, other) for one in kinds for other in others), default=self.integer)


def _exact_share(name: str, share: object) -> Decimal:
    try:
        return Decimal(repr(relative_tolerance(share)))
    except ValueError as problem:
        raise ValueError(f"the {name} is {share!r:.40}: {problem}") from None


_DEFAULTS: Final = Tolerances(**{name: _exact_share(name, share) for name, share in RELATIVE_TOLERANCES.items()})


def tolerated_range(number: int | Decimal, relative: Decimal) -> tuple[Decimal, Decimal]:
    """Return close bounds around all numbers that equal a finite one within a relative tolerance."""
    width = ABSOLUTE_TOLERANCE
    if relative:
        share = _ROUNDED_UP.divide(relative, 1 - relative)
        width = max(width, _EXACT.multiply(_absolute(number), share))
    return _EXACT.subtract(number, width), _EXACT.add(number, width)


def _absolute(number: int | Decimal) -> int | Decimal:
    return number.copy_abs() if isinstance(number, Decimal) else abs(number)


def boolean_from(lexical: str) -> bool | None:
    """Read an xsd:boolean, or True and False as Python writes them; None where ``lexical`` is none of these."""
    return _BOOLEANS.get(lexical.strip(_WHITE_SPACE))


def numbers_are_equal(one: Number, other: Number, relative: Decimal = Decimal(0)) -> bool:
    """Return whether two numbers differ by at most 1e-8, or by at most a share of the larger one; computed exactly.

    Example:
        >>> numbers_are_equal(5, Decimal("5.00000001")), numbers_are_equal(5, Decimal("5.000000011"))
        (True, False)
        >>> numbers_are_equal(Decimal("15063.998"), Decimal("15063.999"), Decimal("1E-5"))
        True
    """
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    difference = _EXACT.subtract(one, other).copy_abs()
    if difference <= ABSOLUTE_TOLERANCE:
        return True
    return bool(relative) and difference <= _EXACT.multiply(max(_absolute(one), _absolute(other)), relative)


def all_are_equal(least: int | Decimal, greatest: int | Decimal, relative: Decimal) -> bool:
    """Return whether all numbers between two are sure to equal each other within a relative tolerance."""
    spread = _EXACT.subtract(greatest, least)
    if spread <= ABSOLUTE_TOLERANCE:
        return True
    if not relative or least <= 0 <= greatest:
        return False
    return spread <= _EXACT.multiply(min(_absolute(least), _absolute(greatest)), relative)


def relative_difference(one: Number, other: Number) -> float | None:
    """Return the difference of two numbers as a share of the larger one; None where one is infinite or NaN.

    Example:
        >>> relative_difference(Decimal("0.5"), 1)
        0.5
    """
    if isinstance(one, str) or isinstance(other, str):
        return None
    larger = max(_absolute(one), _absolute(other))
    return float(_ROUNDED_UP.divide(_EXACT.subtract(one, other).copy_abs(), larger)) if larger else 0.0


Finite: TypeAlias = int | Decimal

SLACK: Final = 1.000001
"""Makes up for what is lost where a tolerance is computed in floats."""


class Links:
    """Joins whole numbers, such as codes or positions, into groups of which each has a root.

    Attributes:
        parents: The number to which each one is joined that is no root.
    """

    def __init__(self) -> None:
        self.parents: dict[int, int] = {}

    def join(self, one: int, other: int) -> None:
        """Make two groups one."""
        root, other_root = self.root(one), self.root(other)
        if root != other_root:
            self.parents[other_root] = root

    def root(self, number: int) -> int:
        """Return the root of a number's group; where it is in none, itself."""
        parents = self.parents
        while number in parents:
            parent = parents[number]
            if parent in parents:
                parents[number] = parents[parent]
            number = parent
        return number


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
    """Return the chains of more than one number.

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
    links = Links()
    present = set[NumberKind]().union(*set(map(tuple, kinds)))
    for tolerance in sorted({Decimal(0), *(tolerances[kind] for kind in present)}):
        if not tolerance and not are_fine:
            continue
        # Numbers of looser kinds have their turn with their own tolerance.
        tight = {kind for kind in present if not tolerance or (kind and tolerances[kind] <= tolerance)}
        own = {kind for kind in tight if not tolerance or tolerances[kind] == tolerance}
        members = [at for at in range(len(numbers)) if tight == present or not tight.isdisjoint(kinds[at])]
        anchors = None if own == tight else [not own.isdisjoint(kinds[at]) for at in members]
        for one, other in _links(members, anchors, numbers, approximate, tolerance):
            links.join(one, other)
    chains: defaultdict[int, list[int]] = defaultdict(list)
    for at in sorted({*links.parents, *links.parents.values()}):
        chains[links.root(at)].append(at)
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
    """Yield the pairs of neighbours among the members that the nearest anchor before or after links by its tolerance.

    ``members`` are positions among the numbers, which are in order; ``anchors`` tells which members have the tolerance,
    None that all have it; ``approximate`` holds the numbers as floats.
    """
    absolute, relative = SLACK * float(ABSOLUTE_TOLERANCE), SLACK * float(tolerance) + 1e-15

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
    """Return whether all numbers are equal within the tightest tolerance of any two of them."""
    times = Counter(kind for at in places for kind in kinds[at])
    pairs = ((one, other) for one in times for other in times if one != other or times[one] > 1)
    tightest = min(tolerances.between(one, other) for one, other in pairs)
    return all_are_equal(numbers[places[0]], numbers[places[-1]], tightest)


def _as_float(number: Finite) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
