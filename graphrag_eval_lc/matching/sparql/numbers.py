"""The values of XSD numbers and booleans, read from their lexical forms exactly."""

import re
from decimal import Context, Decimal
from typing import Final

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
XSD_BOOLEAN: Final = f"{XSD}boolean"
XSD_STRING: Final = f"{XSD}string"

TOLERANCE: Final = Decimal("1E-8")
"""Two numbers are equal when they differ by at most this much."""

MAX_NUMBER_LENGTH: Final = 4_000
"""A longer lexical form is compared as text; Python refuses to read much longer integers, too."""

Number = int | Decimal | str
"""A finite value, or one of the texts INF, -INF and NaN."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.([0-9]*))?|\.([0-9]+))")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?")
_SPECIAL: Final[dict[str, Number]] = {"INF": "INF", "+INF": "INF", "-INF": "-INF", "NaN": "NaN"}
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_WHITE_SPACE: Final = " \t\n\r"
_EXACT: Final = Context(prec=20_000)

_LEXICAL_FORMS: Final = {
    XSD + name: form
    for form, names in (
        (
            _INTEGER,
            "integer int long short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger"
            " unsignedLong unsignedInt unsignedShort unsignedByte",
        ),
        (_DECIMAL, "decimal"),
        (_DOUBLE, "double float"),
    )
    for name in names.split()
}


def is_numeric_datatype(datatype: str | None) -> bool:
    """Tell whether a datatype is one of XSD's numeric ones."""
    return datatype in _LEXICAL_FORMS


def number_from(lexical: str, datatype: str) -> tuple[Number, bool] | None:
    """Read a number as its datatype writes it.

    A double or float beyond the range of a double is an infinity or zero, as XSD rounds it.

    Args:
        lexical: The lexical form; XSD's white space around it is allowed.
        datatype: One of XSD's numeric datatypes.

    Returns:
        The value, and whether it may have digits from the eighth decimal place on (only such a number can be
        within the tolerance of another one). None where ``lexical`` is no lexical form of the datatype.

    Example:
        >>> number_from("+05", XSD + "byte")
        (5, False)
        >>> number_from("1_000", XSD + "integer") is None
        True
    """
    text = lexical.strip(_WHITE_SPACE)
    if len(text) > MAX_NUMBER_LENGTH:
        return None
    form = _LEXICAL_FORMS[datatype]
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


def tolerated_range(number: int | Decimal) -> tuple[Decimal, Decimal]:
    """Give the least and the greatest number that equal a finite one."""
    return _EXACT.subtract(number, TOLERANCE), _EXACT.add(number, TOLERANCE)


def boolean_from(lexical: str) -> bool | None:
    """Read an xsd:boolean; None where ``lexical`` is none of true, false, 1 and 0."""
    return _BOOLEANS.get(lexical.strip(_WHITE_SPACE))


def numbers_are_equal(one: Number, other: Number) -> bool:
    """Tell whether two numbers differ by at most the tolerance, computed exactly.

    Example:
        >>> numbers_are_equal(5, Decimal("5.00000001")), numbers_are_equal(5, Decimal("5.000000011"))
        (True, False)
    """
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return abs(_EXACT.subtract(one, other)) <= TOLERANCE
