"""XSD times and durations: read exactly, for any year and any number of decimals of a second."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.rows.xsd_numbers import MAX_NUMBER_LENGTH, XSD


class Moment(NamedTuple):
    """A point in time, the start of a day, or a time of day.

    Attributes:
        has_zone: Whether it has a time zone; then it counts in UTC, else where it is.
        seconds: Whole seconds since the start of 1970-01-01, or of the day.
        fraction: The decimals of the second, without zeros at the end.
    """

    has_zone: bool
    seconds: int
    fraction: str = ""


class Duration(NamedTuple):
    """Months and seconds, of which neither makes up for the other; below 0 where the duration is negative.

    Attributes:
        months: Years and months.
        seconds: Days, hours, minutes and whole seconds.
        fraction: The decimals of the seconds, without zeros at the end; after a minus where the duration is negative.
    """

    months: int
    seconds: int
    fraction: str = ""


_WHITE_SPACE: Final = " \t\n\r"
_WHITE_SPACE_CHARACTERS: Final = frozenset(_WHITE_SPACE)
_DATE: Final = re.compile(r"(-?(?:[1-9][0-9]{3,}|0[0-9]{3}))-(0[1-9]|1[0-2])-([0-2][0-9]|3[01])")
_ZONE: Final = r"Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00)"
_CLOCK: Final = re.compile(rf"([01][0-9]|2[0-4]):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]+))?({_ZONE})?")
_DATE_AND_ZONE: Final = re.compile(rf"(.*?[0-9]-[0-9]{{2}}-[0-9]{{2}})({_ZONE})?")
_DURATION: Final = re.compile(
    r"(-)?P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]+))?S)?)?(?<!P)"
)
_DAYS_OF_MONTH: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_SHORT_ZONE: Final = r"[+-](?:0[0-9]|1[0-4])(?:[0-5][0-9])?"
_UNTYPED: Final = re.compile(
    rf"(?:({_DATE.pattern})[T ])?([01][0-9]|2[0-4]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]+))?)?"
    rf"(?:({_ZONE}|{_SHORT_ZONE})(?:\[[A-Za-z_/+0-9-]+\])?)?"
)
"""As Cypher, SQL and JSON write times: a space for the T, +01, +0100, with a zone also without seconds or its name."""
_LOCAL: Final = re.compile(r"^-?[0-9]{4,9}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:", re.MULTILINE)


def _day_number(date: str) -> int | None:
    """Return the number of days since 1970-01-01, in the calendar of today; None where there is no such day."""
    return _day_number_of_short(date) if len(date) <= _KEPT_LENGTH else _counted_days(date)


@lru_cache(maxsize=1 << 16)
def _day_number_of_short(date: str) -> int | None:
    return _counted_days(date)


_KEPT_LENGTH: Final = 12
"""Longer dates, of which there are few, are not kept in memory."""


def _counted_days(date: str) -> int | None:
    found = _DATE.fullmatch(date)
    if found is None:
        return None
    year, month, day = map(int, found.groups())
    is_leap_year = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _DAYS_OF_MONTH[month - 1] or (month == 2 and day == 29 and not is_leap_year):
        return None
    years = year - (month < 3)  # counted from March on, so that a leap day is the last of its year
    days_before = (153 * ((month - 3) % 12) + 2) // 5
    return years * 365 + years // 4 - years // 100 + years // 400 + days_before + day - 1 - 719_468


@lru_cache(maxsize=2_048)
def _offset(zone: str | None) -> int:
    """Return the seconds by which a zone is before UTC."""
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = int(digits[:2]) * 3_600 + int(digits[2:]) * 60
    return -seconds if zone[0] == "-" else seconds


def date_time_from(lexical: str) -> Moment | None:
    """Read an xsd:dateTime; None where ``lexical`` is none.

    Example:
        >>> date_time_from("1970-01-01T01:00:00.50+01:00"), date_time_from("1969-12-31T24:00:00")
        (Moment(has_zone=True, seconds=0, fraction='5'), Moment(has_zone=False, seconds=0, fraction=''))
        >>> date_time_from("2021-02-29T00:00:00Z") is None
        True
    """
    if len(lexical) > MAX_NUMBER_LENGTH:
        return None
    date, _, clock = lexical.strip(_WHITE_SPACE).partition("T")
    found = _CLOCK.fullmatch(clock)
    days = None if found is None else _day_number(date)
    if found is None or days is None:
        return None
    hour, minute, second, fraction, zone = found.groups()
    fraction = fraction.rstrip("0") if fraction else ""
    seconds = int(hour) * 3_600 + int(minute) * 60 + int(second)
    if seconds > _DAY or (seconds == _DAY and fraction):
        return None
    is_local = zone is None or zone == "Z"
    return Moment(zone is not None, days * _DAY + seconds - (0 if is_local else _offset(zone)), fraction)


_DAY: Final = 86_400


def time_stamp_from(lexical: str) -> Moment | None:
    """Read an xsd:dateTimeStamp, which is a dateTime with a zone."""
    found = date_time_from(lexical)
    return found if found is not None and found.has_zone else None


def date_from(lexical: str) -> Moment | None:
    """Read an xsd:date as the moment at which the day starts; None where ``lexical`` is none."""
    if len(lexical) > MAX_NUMBER_LENGTH:
        return None
    found = _DATE_AND_ZONE.fullmatch(lexical.strip(_WHITE_SPACE))
    days = None if found is None else _day_number(found[1])
    return None if found is None or days is None else Moment(found[2] is not None, days * _DAY - _offset(found[2]))


def time_from(lexical: str) -> Moment | None:
    """Read an xsd:time as a moment of one and the same day, as XPath does; None where ``lexical`` is none.

    Example:
        >>> time_from("21:30:00+10:30") == time_from("06:00:00-05:00"), time_from("24:00:00") == time_from("00:00:00")
        (True, True)
        >>> time_from("08:00:00+09:00") == time_from("17:00:00-06:00")
        False
    """
    found = _CLOCK.fullmatch(lexical.strip(_WHITE_SPACE)) if len(lexical) <= MAX_NUMBER_LENGTH else None
    return None if found is None else _time_of_day(*found.groups())


def _time_of_day(hour: str, minute: str, second: str | None, fraction: str | None, zone: str | None) -> Moment | None:
    seconds = int(hour) * 3_600 + int(minute) * 60 + int(second or "0")
    fraction = (fraction or "").rstrip("0")
    if seconds > _DAY or (seconds == _DAY and fraction):
        return None
    return Moment(zone is not None, seconds % _DAY - _offset(zone), fraction)


def duration_from(lexical: str) -> Duration | None:
    """Read an xsd:duration; None where ``lexical`` is none.

    Example:
        >>> duration_from("P1DT0.50S"), duration_from("PT24H0.5S"), duration_from("P1Y") == duration_from("P12M")
        (Duration(months=0, seconds=86400, fraction='5'), Duration(months=0, seconds=86400, fraction='5'), True)
        >>> duration_from("P"), duration_from("P1DT")
        (None, None)
    """
    found = _DURATION.fullmatch(lexical.strip(_WHITE_SPACE)) if len(lexical) <= MAX_NUMBER_LENGTH else None
    if found is None:
        return None
    years, months, days, hours, minutes, seconds = (int(part or "0") for part in found.groups()[1:7])
    fraction = (found[8] or "").rstrip("0")
    all_months, all_seconds = years * 12 + months, ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if found[1]:
        return Duration(-all_months, -all_seconds, f"-{fraction}" if fraction else "")
    return Duration(all_months, all_seconds, fraction)


def _day_time_duration_from(lexical: str) -> Duration | None:
    date_part = lexical.partition("T")[0]
    return None if "Y" in date_part or "M" in date_part else duration_from(lexical)


def _year_month_duration_from(lexical: str) -> Duration | None:
    return None if "D" in lexical or "T" in lexical else duration_from(lexical)


DATE_TIME_READERS: Final[Mapping[str, Callable[[str], Moment | None]]] = {
    f"{XSD}dateTime": date_time_from,
    f"{XSD}dateTimeStamp": time_stamp_from,
}
DURATION_READERS: Final[Mapping[str, Callable[[str], Duration | None]]] = {
    f"{XSD}duration": duration_from,
    f"{XSD}dayTimeDuration": _day_time_duration_from,
    f"{XSD}yearMonthDuration": _year_month_duration_from,
}


class UntypedTime(NamedTuple):
    """What a text without a datatype says: an instant, or a time of day."""

    has_date: bool
    moment: Moment


def untyped_time_from(text: str) -> UntypedTime | None:
    """Read a text that is a point in time, or a time of day with a time zone; None for all else.

    Without a zone it is one with a date and with seconds, as SQL writes it. A date is none, even with a zone: no
    language of queries writes dates so, but ids look like it (2020-01-01-05). Nor is a time of day without seconds
    before a zone without a colon, as in chapters and verses (10:15-12).

    Example:
        >>> untyped_time_from("1970-01-01 01:00+01")
        UntypedTime(has_date=True, moment=Moment(has_zone=True, seconds=0, fraction=''))
        >>> untyped_time_from("1970-01-01 01:00:00").moment == date_time_from("1970-01-01T01:00:00")
        True
        >>> untyped_time_from("01:00:00") is None
        True
    """
    found = _UNTYPED.fullmatch(text) if len(text) <= MAX_NUMBER_LENGTH else None
    if found is None:
        return None
    date, _, _, _, hour, minute, second, fraction, zone = found.groups()
    if zone is None and (date is None or second is None):
        return None
    if date is None:
        if second is None and zone != "Z" and ":" not in zone:
            return None
        moment = _time_of_day(hour, minute, second, fraction, _with_colon(zone))
        return None if moment is None else UntypedTime(False, moment)
    point = date_time_from(f"{date}T{hour}:{minute}:{second or '00'}.{fraction or '0'}{_with_colon(zone)}")
    return None if point is None else UntypedTime(True, point)


def _with_colon(zone: str | None) -> str:
    if zone is None or zone == "Z":
        return zone or ""
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return f"{zone[0]}{digits[:2]}:{digits[2:]}"


_SIGNS_OF_SHORT_ZONES: Final = tuple(itemgetter(slice(at, at + 1)) for at in (-6, -5, -3))
"""Where the minus of -01:00, -0100 and -01 stands."""


def has_untyped_time(texts: Sequence[str]) -> bool:
    """Return whether one of the texts, which have no datatype, is a point in time or a time with a zone.

    It tells quickly where none is.

    Example:
        >>> has_untyped_time(["2020-01-01", "OSLO T1: a"]), has_untyped_time(["a", "2020-01-01T00:00Z"])
        (False, True)
    """
    joined = "\n".join(texts)
    if ":" not in joined:
        return False
    has_sign = "Z" in joined or "+" in joined or any("-" in set(map(sign, texts)) for sign in _SIGNS_OF_SHORT_ZONES)
    if not has_sign and _LOCAL.search(joined) is None:
        return False
    return any(map(_UNTYPED.fullmatch, texts)) and any(untyped_time_from(text) is not None for text in texts)


TimeForm: TypeAlias = tuple[int, str, str]
"""Length, zone and what stands before the hour: different times of one such form have different texts."""

_last_six: Final = itemgetter(slice(-6, None))
_first: Final = itemgetter(slice(1))


def form_of_times(texts: Sequence[str]) -> TimeForm | None:
    """Return the form that all texts of one datatype have; None where they have several, or rare ones.

    Example:
        >>> form_of_times(["2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"])
        (20, 'Z', 'T')
        >>> form_of_times(["2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00"]) is None
        True
    """
    lengths = set(map(len, texts))
    joined = "".join(texts)
    if len(lengths) != 1 or "24:00:00" in joined or not _WHITE_SPACE_CHARACTERS.isdisjoint(joined):
        return None
    zones = {_zone_at_end(end) for end in set(map(_last_six, texts))}
    if len(zones) != 1 or "-" in set(map(_first, texts)):
        return None
    return lengths.pop(), zones.pop(), "T" if "T" in joined else ""


def _zone_at_end(end: str) -> str:
    if end.endswith("Z"):
        return "Z"
    return end if end[:1] in ("+", "-") and end[3:4] == ":" else ""


def forms_of_untyped_times(texts: Iterable[str]) -> set[tuple[bool, TimeForm]]:
    """Return the forms of the texts that are points in time or times with a zone, each with whether it has a date."""
    forms = set()
    for text in texts:
        found = _UNTYPED.fullmatch(text)
        if found is not None:
            is_rare = "24:00" in text or text[0] == "-" or text[-1] == "]"
            before_hour = "" if found[1] is None else text[found.end(1)]
            forms.add((found[1] is not None, (len(text), text if is_rare else found[9] or "", before_hour)))
    return forms
