"""The values of XSD numbers and booleans, read from their lexical forms exactly, and when two numbers are equal."""

import re
from collections.abc import Collection, Mapping, Sequence
from decimal import ROUND_UP, Context, Decimal
from enum import IntEnum
from operator import itemgetter
from typing import Final, NamedTuple, Self, TypeAlias

from graphrag_eval_lc.config import ToleranceConfig
from graphrag_eval_lc.records import relative_tolerance

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
XSD_BOOLEAN: Final = f"{XSD}boolean"
XSD_STRING: Final = f"{XSD}string"

ABSOLUTE_TOLERANCE: Final = Decimal("1E-8")
"""Two numbers are equal when they differ by at most this much, whatever their datatypes."""

RELATIVE_TOLERANCES: Final[Mapping[str, float]] = ToleranceConfig().model_dump()
"""Two numbers are equal, too, when they differ by at most this share of the larger one; by XSD datatype."""

MAX_NUMBER_LENGTH: Final = 4_000
"""A longer lexical form is compared as text; Python refuses to read much longer integers, too."""

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
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_WHITE_SPACE: Final = " \t\n\r"
_EXACT: Final = Context(prec=20_000)

_ROUNDED_UP: Final = Context(prec=30, rounding=ROUND_UP)


class NumberKind(IntEnum):
    """What a number is by its datatype; the tolerance hangs on it."""

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
    """Tell whether a datatype is one of XSD's numeric ones."""
    return datatype in _KINDS


def number_kind(lexical: str, datatype: str | None) -> NumberKind:
    """Tell what a number is; without a datatype it is an integer where it is written whole, else a double.

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
    """Tell whether one of the texts may be a number although it has no datatype.

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
    def of(cls, tolerance: Tolerance | None, *, strict: bool = False) -> Self:
        """Give the tolerances from what a caller says.

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
        shares = {name: _exact_share(f"tolerance of {name}", share) for name, share in merged.items()}
        return cls() if strict else cls(**shares)

    def between(self, one: NumberKind, other: NumberKind) -> Decimal:
        """Give the relative tolerance of two kinds."""
        return max(self[one], self[other]) if one and other else self.integer

    def loosest(self, kinds: Collection[NumberKind], others: Collection[NumberKind]) -> Decimal:
        """Give the largest relative tolerance of numbers of some kinds and those of others; 0 where there are none."""
        return max((self.between(one, other) for one in kinds for other in others), default=self.integer)


def _exact_share(name: str, share: object) -> Decimal:
    try:
        return Decimal(repr(relative_tolerance(share)))
    except ValueError as problem:
        raise ValueError(f"the {name} is {share!r:.40}: {problem}") from None


def tolerated_range(number: int | Decimal, relative: Decimal) -> tuple[Decimal, Decimal]:
    """Give bounds between which all numbers lie that equal a finite one within a relative tolerance, and few others."""
    width = ABSOLUTE_TOLERANCE
    if relative:
        share = _ROUNDED_UP.divide(relative, 1 - relative)
        width = max(width, _EXACT.multiply(_absolute(number), share))
    return _EXACT.subtract(number, width), _EXACT.add(number, width)


def _absolute(number: int | Decimal) -> int | Decimal:
    return number.copy_abs() if isinstance(number, Decimal) else abs(number)


def boolean_from(lexical: str) -> bool | None:
    """Read an xsd:boolean; None where ``lexical`` is none of true, false, 1 and 0."""
    return _BOOLEANS.get(lexical.strip(_WHITE_SPACE))


def numbers_are_equal(one: Number, other: Number, relative: Decimal = Decimal(0)) -> bool:
    """Tell whether two numbers differ by at most 1e-8 or by at most a share of the larger one, computed exactly.

    Args:
        one: A number.
        other: Another number.
        relative: That share.

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
    """Tell whether any two numbers from the least to the greatest are sure to be equal within a relative tolerance."""
    spread = _EXACT.subtract(greatest, least)
    if spread <= ABSOLUTE_TOLERANCE:
        return True
    if not relative or least <= 0 <= greatest:
        return False
    return spread <= _EXACT.multiply(min(_absolute(least), _absolute(greatest)), relative)


def relative_difference(one: Number, other: Number) -> float | None:
    """Give the difference of two numbers as a share of the larger one; None where one is infinite or none.

    Example:
        >>> relative_difference(Decimal("0.5"), 1)
        0.5
    """
    if isinstance(one, str) or isinstance(other, str):
        return None
    larger = max(_absolute(one), _absolute(other))
    return float(_ROUNDED_UP.divide(_EXACT.subtract(one, other).copy_abs(), larger)) if larger else 0.0
