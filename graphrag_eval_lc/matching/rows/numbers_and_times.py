"""Reads numbers, booleans, times, durations and geometries from the texts of RDF terms and untyped cells.

Values are hashable and compare with ``==``; only numbers also have a tolerance.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from functools import partial
from itertools import repeat
from typing import Any, Final, TypeAlias

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
XSD_BOOLEAN: Final = f"{XSD}boolean"
XSD_STRING: Final = f"{XSD}string"
WKT_LITERAL: Final = "http://www.opengis.net/ont/geosparql#wktLiteral"

Number: TypeAlias = float | int | Decimal | str
"""A float if it is exact or the datatype is one; else an int or a decimal. NaN is a text, so that it equals itself."""

Value: TypeAlias = tuple[Any, ...]
"""The name of its kind, then the value of a time, duration or geometry."""


class NumberKind(IntEnum):
    """What a number is by its datatype; the tolerance depends on it."""

    INTEGER = 0
    DECIMAL = 1
    DOUBLE = 2
    FLOAT = 3


_INTEGERS: Final = (
    "int long short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger"
    " unsignedLong unsignedInt unsignedShort unsignedByte"
)
NUMBER_KINDS: Final[Mapping[str | None, NumberKind]] = {
    **{XSD + kind.name.lower(): kind for kind in NumberKind},
    **{XSD + name: NumberKind.INTEGER for name in _INTEGERS.split()},
}
"""The numeric datatypes."""

ABSOLUTE_TOLERANCE: Final = 1e-8
"""Numbers of any datatype are equal if they differ by at most this much."""

MAX_NUMBER_LENGTH: Final = 4_000
"""Longer lexical forms are compared as texts; Python's own limit for integers is not much higher."""

_EXACT_DIGITS: Final = 15
_SHORT: Final = 300  # numbers of at most so many characters are within the range of a float
_DECIMAL: Final = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_DOUBLE: Final = re.compile(rf"{_DECIMAL}(?:[eE][+-]?[0-9]+)?")
_FORMS: Final = (re.compile(r"[+-]?[0-9]+"), re.compile(_DECIMAL), _DOUBLE, _DOUBLE)  # by NumberKind
_UNTYPED_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?([eE][+-]?[0-9]+)?")
"""A number in JSON's syntax, so that a code such as 007 or 1_000 is a text."""
_SPECIAL: Final[Mapping[str, Number]] = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": "NaN"}
_SPECIAL_NUMBERS: Final = tuple(_SPECIAL.values())
_WHITE_SPACE: Final = " \t\n\r"


def number_from(text: str, datatype: str | None) -> Number | None:
    """Read a number in the syntax of its datatype, or of JSON if it has none; None if ``text`` is not a number."""
    if len(text) > MAX_NUMBER_LENGTH:
        return None
    if datatype is None:
        found = _UNTYPED_NUMBER.fullmatch(text)
        if found is None or found[1] is None:
            return None if found is None else _exact(text)
        number = float(text)
        return None if math.isinf(number) else number
    text, kind = text.strip(_WHITE_SPACE), NUMBER_KINDS[datatype]
    if _FORMS[kind].fullmatch(text) is None:
        return _SPECIAL.get(text) if kind >= NumberKind.DOUBLE else None
    return float(text) if kind >= NumberKind.DOUBLE else _exact(text)


def _exact(text: str) -> Number:
    """Return an integer or decimal, or a float if it has so few digits that no two numbers share a float."""
    digits = text.lstrip("+-").replace(".", "").strip("0")
    if len(digits) <= _EXACT_DIGITS and len(text) < _SHORT:
        return float(text)
    return Decimal(text) if "." in text else int(text)


_PLAIN: Final = re.compile(r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?\n)*")
_PLAIN_INTEGERS: Final = re.compile(r"(?:-?[0-9]+\n)*")


def numbers_by_kind(texts: Sequence[str], datatype: str | None) -> dict[NumberKind, dict[str, Number]]:
    """Return the numbers among texts by kind; without a datatype, whole numbers are integers, others doubles."""
    kind = None if datatype is None else NUMBER_KINDS[datatype]
    form = _PLAIN_INTEGERS if kind == NumberKind.INTEGER else _PLAIN
    longest = _EXACT_DIGITS if kind is None or kind < NumberKind.DOUBLE else MAX_NUMBER_LENGTH
    joined = "\n".join([*texts, ""])
    is_plain = joined.count("\n") == len(texts) and form.fullmatch(joined)  # a text may have lines of numbers
    numbers: dict[str, Number]
    if is_plain and max(map(len, texts), default=0) <= longest:  # nearly always
        numbers = dict(zip(texts, map(float, texts), strict=True))
    else:
        numbers = {text: number for text in texts if (number := number_from(text, datatype)) is not None}
    if kind is not None:
        return {kind: numbers}
    whole = {text: number for text, number in numbers.items() if text.lstrip("-").isdigit()}
    others = {text: number for text, number in numbers.items() if text not in whole}
    return {kind: some for kind, some in ((NumberKind.INTEGER, whole), (NumberKind.DOUBLE, others)) if some}


def numbers_are_equal(one: Number, other: Number, relative: float = 0.0) -> bool:
    """Return whether two numbers differ by at most 1e-8, or by at most a share of the larger one."""
    if one == other:
        return True
    if isinstance(one, float) and isinstance(other, float):
        larger = max(abs(one), abs(other))
        distance, bound = abs(one - other), max(ABSOLUTE_TOLERANCE, relative * larger)
        if abs(distance - bound) > larger * 1e-15:  # nearer to the bound, or for infinities, floats are not reliable
            return distance < bound
    if one in _SPECIAL_NUMBERS or other in _SPECIAL_NUMBERS:
        return False
    share = _fraction(relative) * max(abs(_fraction(one)), abs(_fraction(other)))
    return distance_of(one, other) <= max(_fraction(ABSOLUTE_TOLERANCE), share)


def distance_of(one: Number, other: Number) -> Fraction:
    """Return the exact difference of two finite numbers."""
    return abs(_fraction(one) - _fraction(other))


def _fraction(number: Number) -> Fraction:
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


_BOOLEANS: Final = {"true": "true", "True": "true", "1": "true", "false": "false", "False": "false", "0": "false"}


def boolean_text(text: str) -> str | None:
    """Return ``true`` or ``false`` for an xsd:boolean or Python's True and False; None for other texts."""
    return _BOOLEANS.get(text.strip(_WHITE_SPACE))


_DATE: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = "(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?"
_FRACTION: Final = r"(?:(?<=:[0-9]{2}:[0-9]{2})(\.[0-9]{1,40}))?"
_ZONE: Final = r"(?:(Z| UTC|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)(?:\[[A-Za-z_/+0-9-]{1,40}\])?)?"
_TIMES: Final = {
    "dateTime": re.compile(rf"({_DATE}[T ]{_CLOCK}){_FRACTION}{_ZONE}"),
    "date": re.compile(rf"({_DATE})(){_ZONE}"),
    "time": re.compile(rf"({_CLOCK}){_FRACTION}{_ZONE}"),
}
_DAY: Final = re.compile(_DATE)
_WITH_SECONDS: Final = 2  # colons


def time_from(text: str, name: str) -> Value | None:
    """Read a point in time, a date or a time of day, as XSD, SQL, Cypher and JSON write it; None for other texts.

    Values with a zone are converted to UTC: a date by its start, a time of day on a fixed reference day, as in XPath.
    A date is its start, as databases and pandas make points in time of dates.
    """
    kind = name.removesuffix("Stamp")
    found = _TIMES[kind].fullmatch(text.strip(_WHITE_SPACE))
    if found is None:
        return None
    moment, fraction, zone = found.groups()
    if zone is None and (name != kind or (kind != "date" and moment.count(":") < _WITH_SECONDS)):
        return None
    whole = {"date": f"{moment}T00:00", "time": f"2000-01-01T{moment}"}.get(kind, moment)
    zone = "Z" if zone == " UTC" else zone or ""
    try:
        when = datetime.fromisoformat(whole + zone)  # equal to all that are the same instant
    except ValueError:  # no such day
        return None
    return "dateTime" if kind == "date" else kind, when, (fraction or "").rstrip(".0")


def untyped_time_from(text: str) -> Value | None:
    """Read a point in time, a date, or a time of day with a zone; 2020-01-01-05 (an id) and 10:15-12 are texts."""
    if ":" not in text or text != text.strip(_WHITE_SPACE):
        return time_from(text, "date") if _DAY.fullmatch(text) else None
    clock = _TIMES["time"].fullmatch(text)
    if clock is None:
        return time_from(text, "dateTime")
    may_be_verse = clock[1].count(":") < _WITH_SECONDS and clock[3] != "Z" and ":" not in (clock[3] or "")
    return None if clock[3] is None or may_be_verse else time_from(text, "time")


_DIGITS: Final = "([0-9]{1,18})"
_DURATION: Final = re.compile(
    rf"(-)?P(?:{_DIGITS}Y)?(?:{_DIGITS}M)?(?:{_DIGITS}W)?(?:{_DIGITS}D)?"
    rf"(?:T(?=[0-9])(?:{_DIGITS}H)?(?:{_DIGITS}M)?(?:{_DIGITS}(\.[0-9]{{1,40}})?S)?)?(?<!P)"
)


def duration_from(text: str) -> Value | None:
    """Read a duration as months and seconds, which are not converted into each other; None if ``text`` is not one."""
    found = _DURATION.fullmatch(text.strip(_WHITE_SPACE))
    if found is None:
        return None
    years, months, weeks, days, hours, minutes, seconds = (int(part or "0") for part in found.groups()[1:8])
    whole = (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds
    sign = -1 if found[1] else 1
    return "duration", sign * (years * 12 + months), sign * (whole + Fraction(f"0{found[9] or ''}"))


_CRS: Final = re.compile(r"<([^<>\s]*)>")
_DEFAULT_CRS: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_COORDINATE: Final = re.compile(
    r"(?<![\w.+-])([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.+-])", re.ASCII
)
_WORDS_AND_BRACKETS: Final = re.compile(r"[A-Z][A-Z(),#]*")


def geometry_from(text: str) -> Value | None:
    """Read a geo:wktLiteral as its reference system, words and brackets, and its numbers; None if it is not one."""
    text, crs = text.strip(_WHITE_SPACE), ""
    found = _CRS.match(text)
    if found is not None:
        crs = "" if found[1] == _DEFAULT_CRS else f"<{found[1]}>"
        text = text[found.end() :]
    if not text.isascii() or "#" in text:
        return None
    parts = _COORDINATE.split(text)
    skeleton = "".join("#".join(parts[::2]).split()).upper()
    return (crs + skeleton, tuple(map(float, parts[1::2]))) if _WORDS_AND_BRACKETS.fullmatch(skeleton) else None


_PLAIN_TIMES: Final = re.compile(r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}Z\n)+")


def values_by_text(texts: Sequence[str], datatype: str | None) -> dict[str, Value]:
    """Return the times, durations or geometries among texts; those of many instants in UTC are read faster."""
    if datatype in (None, f"{XSD}dateTime", f"{XSD}dateTimeStamp") and _PLAIN_TIMES.fullmatch("\n".join([*texts, ""])):
        with suppress(ValueError):  # no such day, or a text with several lines
            return dict(
                zip(texts, zip(repeat("dateTime"), map(datetime.fromisoformat, texts), repeat("")), strict=False)
            )
    _, read = VALUE_READERS[datatype]
    return {text: value for text in texts if (value := read(text)) is not None}


VALUE_READERS: Final[Mapping[str | None, tuple[str, Callable[[str], Value | None]]]] = {
    None: ("times", untyped_time_from),
    **{XSD + name: ("times", partial(time_from, name=name)) for name in ("dateTime", "dateTimeStamp", "date", "time")},
    **{XSD + name: ("durations", duration_from) for name in ("duration", "dayTimeDuration", "yearMonthDuration")},
    WKT_LITERAL: ("wkt", geometry_from),
}
"""For each datatype (None: untyped texts), the switch in ``ValuesConfig`` and the function that reads its values."""
