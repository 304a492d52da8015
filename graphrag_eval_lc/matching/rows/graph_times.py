"""Times, durations and points as the stores of property graphs write them in texts, each brought to one form.

The same time is ``2020-01-01T00:00:00.000000000`` in texts of the Neo4j driver, ``2020-01-01T00:00`` in those of
Cypher's ``toString`` and ``2020-01-01 00:00:00`` in those of Python.
"""

import re
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.rows.terms import Shape
from graphrag_eval_lc.matching.rows.xsd_numbers import XSD

_LONGEST: Final = 80
_DATE_TIME: Final = re.compile(
    r"(-?\d{4,9}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:\.(\d{1,18}))?(Z|[+-]\d\d:?\d\d)?(?:\[[\w/+-]{1,40}\])?", re.ASCII
)
_TIME: Final = re.compile(r"(\d\d:\d\d)(:\d\d)?(?:\.(\d{1,18}))?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_PART: Final = r"(-?\d{1,18})"
_DURATION: Final = re.compile(
    rf"(-)?P(?=[-\dT])(?:{_PART}Y)?(?:{_PART}M)?(?:{_PART}W)?(?:{_PART}D)?"
    rf"(?:T(?=[-\d])(?:{_PART}H)?(?:{_PART}M)?(?:{_PART}(?:\.(\d{{1,18}}))?S)?)?",
    re.ASCII,
)
_TIMEDELTA: Final = re.compile(r"(?:(-?\d{1,9}) days?, )?(\d{1,2}):(\d\d):(\d\d)(?:\.(\d{1,9}))?", re.ASCII)
_NUMBER: Final = r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?"
_POINT: Final = re.compile(
    rf"(?:SRID=(\d{{1,9}});)?\s?POINT\s?Z?\s?\(\s?({_NUMBER})\s({_NUMBER})(?:\s({_NUMBER}))?\s?\)", re.ASCII | re.I
)
_CYPHER_POINT: Final = re.compile(
    rf"point\(\{{x: ?({_NUMBER}), ?y: ?({_NUMBER}),(?: ?z: ?({_NUMBER}),)? ?crs: ?'([\w-]{{1,20}})'\}}\)", re.ASCII
)
_MAY_BE_ONE: Final = re.compile(
    r"^(?:-?\d{4,9}-\d\d-\d\d[T ]\d\d:\d\d|\d{1,2}:\d\d(?::|$)|-?P[-\dT]|-?\d+ days?, |SRID=|POINT|point\()", re.M
)
_MAY_BE_VALUE: Final = re.compile(rf"{_MAY_BE_ONE.pattern}|^[\[{{(<]", re.M)
DURATION_SHAPE: Final[Shape] = ("literal", f"{XSD}duration", None)
_LITERAL: Final[Shape] = ("literal", None, None)
_ATTO: Final = 10**18


def may_have_values(joined: str) -> bool:
    """Return whether one of the lines of a text may be a time, duration or point, or begins with a bracket."""
    return _MAY_BE_VALUE.search(joined) is not None


def canonical_text(text: str) -> tuple[str, Shape] | None:
    """Return a time or duration in its one form, and its shape; None for all other texts.

    Example:
        >>> canonical_text("2020-01-01 10:00:00.500000000"), canonical_text("2020-01-01")
        (('2020-01-01T10:00:00.5', ('literal', None, None)), None)
        >>> canonical_text("P1DT1.50S")[0] == canonical_text("1 day, 0:00:01.5")[0] == "P0M1DT1.5S"
        True
    """
    if len(text) > _LONGEST or _MAY_BE_ONE.match(text) is None:
        return None
    found = _DATE_TIME.fullmatch(text)
    if found is not None:
        date, minutes, seconds, fraction, zone = found.groups()
        return f"{date}T{_clock(minutes, seconds, fraction)}{_zone(zone)}", _LITERAL
    found = _TIME.fullmatch(text)
    if found is not None:
        minutes, seconds, fraction, zone = found.groups()
        return f"{_clock(minutes, seconds, fraction)}{_zone(zone)}", _LITERAL
    return _duration(text)


def _clock(minutes: str, seconds: str | None, fraction: str | None) -> str:
    decimals = (fraction or "").rstrip("0")
    return f"{minutes}{seconds or ':00'}{'.' if decimals else ''}{decimals}"


def _zone(zone: str | None) -> str:
    if zone is None or zone == "Z":
        return zone or ""
    return f"{zone[:3]}:{zone[-2:]}"


def _duration(text: str) -> tuple[str, Shape] | None:
    found = _DURATION.fullmatch(text)
    if found is not None:
        years, months, weeks, days, hours, minutes = (int(part or "0") for part in found.groups()[1:7])
        whole, fraction = found[8] or "0", found[9]
        atto = _atto(whole, fraction) + ((((weeks * 7 + days) * 24 + hours) * 60) + minutes) * 60 * _ATTO
        sign = -1 if found[1] else 1
        return _duration_form(sign * (years * 12 + months), sign * atto)
    found = _TIMEDELTA.fullmatch(text)
    if found is None or (found[1] is None and len(found[2]) > 1):
        return None
    seconds = ((int(found[1] or "0") * 24 + int(found[2])) * 60 + int(found[3])) * 60 + int(found[4])
    return _duration_form(0, seconds * _ATTO + _atto("0", found[5]))


def _atto(whole: str, fraction: str | None) -> int:
    part = int((fraction or "").ljust(18, "0"))
    return int(whole) * _ATTO + (-part if whole.startswith("-") else part)


def _duration_form(months: int, atto: int) -> tuple[str, Shape]:
    seconds, rest = divmod(abs(atto), _ATTO)
    fraction = f".{rest:018d}".rstrip("0") if rest else ""
    days, seconds = divmod(seconds, 86_400)
    if months >= 0 and atto >= 0:
        return f"P{months}M{days}DT{seconds}{fraction}S", DURATION_SHAPE
    if months <= 0 and atto <= 0:
        return f"-P{-months}M{days}DT{seconds}{fraction}S", DURATION_SHAPE
    sign = "-" if atto < 0 else ""
    return f"P{months}M{sign}{days}DT{sign}{seconds}{fraction}S", _LITERAL  # which no xsd:duration can be


def duration_text(months: int, days: int, seconds: int, nanoseconds: int) -> str:
    """Return a duration as Neo4j has it as a text.

    Example:
        >>> duration_text(14, 3, 4, 500_000_000), duration_text(0, 0, -1, -500_000_000)
        ('P0Y14M3DT4.500000000S', 'P0Y0M0DT-1.500000000S')
    """
    total = seconds * 1_000_000_000 + nanoseconds
    whole, rest = divmod(abs(total), 1_000_000_000)
    return f"P0Y{months}M{days}DT{'-' if total < 0 else ''}{whole}.{rest:09d}S"


class PointText(NamedTuple):
    """A point as a text writes it: the number or the name of its reference system, and its coordinates."""

    srid: int | None
    crs: str
    numbers: tuple[float, ...]


def point_from(text: str) -> PointText | None:
    """Read a point as WKT, with or without its SRID, or as Cypher's ``toString`` writes it.

    Example:
        >>> point_from("POINT(1 2.5)")
        PointText(srid=None, crs='', numbers=(1.0, 2.5))
    """
    if len(text) > 4 * _LONGEST or text[:1] not in ("P", "p", "S"):
        return None
    found = _POINT.fullmatch(text)
    if found is not None:
        return PointText(None if found[1] is None else int(found[1]), "", _floats(found.groups()[1:]))
    found = _CYPHER_POINT.fullmatch(text)
    return None if found is None else PointText(None, found[4].lower(), _floats(found.groups()[:3]))


def _floats(texts: tuple[str | None, ...]) -> tuple[float, ...]:
    return tuple(float(text) for text in texts if text is not None)
