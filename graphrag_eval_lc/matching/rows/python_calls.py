"""Values of drivers, numpy and pandas that Python shows as calls, such as ``Decimal('1.5')``, as terms."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from zoneinfo import ZoneInfo

from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.rows.xsd_numbers import XSD

NAMES: Final = (
    r"datetime\.timezone\.utc|datetime\.(?:datetime|date|timedelta|timezone|time)(?=\()"
    r"|(?:zoneinfo\.ZoneInfo|UUID|Decimal|Timestamp|Timedelta|IPv[46](?:Address|Network|Interface))(?=\()"
    r"|(?:OrderedDict|RealDictRow|Row)(?=\()|(?:np|numpy)\.(?:(?:u?int(?:8|16|32|64)|float(?:16|32|64)|str_|bool_?)(?=\()|True_|False_)|NaT"
)
"""The names that may stand in a text, as a regular expression."""

CONSTANTS: Final[Mapping[str, Any]] = {"NaT": None, "True_": True, "False_": False}
"""Those of them that are not called, without their module."""

_MOST_DIGITS: Final = 1_000
_ZONE: Final = re.compile(r"[\w+-]{1,20}(?:/[\w+-]{1,20}){0,2}", re.ASCII)


class Zone(str):
    """A zone as it stands behind a time: ``+01:00``."""


class NamedZone(str):
    """The name of a zone, of which the time must say how far it is from UTC."""


class Duration(str):
    """A duration as XSD writes it, with its length."""

    length = timedelta()


def call_value(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the value of a call, as a term where it has a type.

    Args:
        name: What is called, without its module.
        arguments: The values in the brackets.
        keywords: Those with a name.

    Raises:
        UnreadableOutput: There is no such value.

    Example:
        >>> call_value("date", [2020, 1, 31], {})["value"], call_value("int64", [5], {})
        ('2020-01-31', 5)
    """
    read = _CALLS.get(name)
    if read is None:
        raise UnreadableOutput("a Python value that is neither plain nor a term")
    try:
        return read(*arguments, **keywords)
    except UnreadableOutput:
        raise
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError):
        raise UnreadableOutput(f"a Python value with a {name} that cannot be") from None


def as_cell(value: Any) -> Any:
    """Return a value that has been read as it stands in a cell: a duration as a term, bytes as a text.

    Bytes that are no text are their hex digits, as xsd:hexBinary has them.

    Example:
        >>> as_cell(b"ab"), as_cell(bytes([0, 255]))["value"]
        ('ab', '00FF')
    """
    if isinstance(value, Duration):
        return _term(str(value), "dayTimeDuration")
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = "\0"
        return text if text.isprintable() else _term(value.hex().upper(), "hexBinary")
    if isinstance(value, Zone | NamedZone):
        raise UnreadableOutput("a Python value with a time zone alone")
    return value


def decimal_term(text: Any) -> dict[str, str]:
    """Return a decimal as a term, with all its digits.

    Raises:
        UnreadableOutput: It is none, or has too many digits.

    Example:
        >>> decimal_term("1.50")["value"], decimal_term("1E+3")["value"]
        ('1.50', '1000')
    """
    try:
        number = Decimal(text)
    except (InvalidOperation, TypeError, ValueError):
        raise UnreadableOutput("a Python value with a Decimal that cannot be") from None
    if not number.is_finite():
        return _term("NaN" if number.is_nan() else "INF" if number > 0 else "-INF", "double")
    if len(number.as_tuple().digits) + abs(number.adjusted()) > _MOST_DIGITS:
        raise UnreadableOutput(f"a Python value with a Decimal of more than {_MOST_DIGITS:,} digits")
    return _term(f"{number:f}", "decimal")


def _term(text: str, datatype: str) -> dict[str, str]:
    return {"type": "literal", "value": text, "datatype": f"{XSD}{datatype}"}


def _date(year: int, month: int, day: int) -> dict[str, str]:
    return _term(datetime(year, month, day).date().isoformat(), "date")


def _date_time(year: int, month: int, day: int, *clock: int, tzinfo: Any = None, fold: int = 0) -> dict[str, str]:
    hour, minute, second, micro = _four(clock)
    local = datetime(year, month, day, hour, minute, second, micro, fold=fold)
    return _term(local.isoformat() + zone_behind(tzinfo, local), "dateTime")


def _time(*clock: int, tzinfo: Any = None, fold: int = 0) -> dict[str, str]:
    hour, minute, second, micro = _four(clock)
    local = datetime(2000, 1, 1, hour, minute, second, micro, fold=fold)
    return _term(local.time().isoformat() + zone_behind(tzinfo, None), "time")  # a named one needs a date


def _four(clock: Sequence[int]) -> list[int]:
    if len(clock) > 4:
        raise ValueError
    return [*clock, 0, 0, 0, 0][:4]


def zone_behind(zone: Any, local: datetime | None) -> str:
    """Return a zone as it stands behind a time; one that is named needs the local time to tell.

    Raises:
        TypeError: It is no zone, or a named one without a time.

    Example:
        >>> zone_behind(NamedZone("Europe/Oslo"), datetime(2020, 7, 1)), zone_behind(None, None)
        ('+02:00', '')
    """
    if zone is None or isinstance(zone, Zone):
        return zone or ""
    if not isinstance(zone, NamedZone) or local is None:
        raise TypeError
    offset = local.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    return zone_of(offset) if offset is not None else ""


def zone_of(offset: timedelta) -> Zone:
    """Return the zone that is so far from UTC."""
    minutes = abs(offset) // timedelta(minutes=1)
    return Zone(f"{'-' if offset < timedelta() else '+'}{minutes // 60:02d}:{minutes % 60:02d}")


def _timezone(offset: Any, name: str = "") -> Zone:
    return zone_of(offset.length)


def _named_zone(key: str) -> NamedZone:
    if _ZONE.fullmatch(key) is None:
        raise ValueError
    return NamedZone(key)


def _duration(days: int = 0, seconds: int = 0, microseconds: int = 0) -> Duration:
    return duration_of(timedelta(days=days, seconds=seconds, microseconds=microseconds))


def duration_of(length: timedelta) -> Duration:
    """Return a timedelta as XSD writes it.

    Example:
        >>> duration_of(timedelta(days=1, seconds=90))
        'P1DT90S'
    """
    size = abs(length)
    fraction = f".{size.microseconds:06d}".rstrip("0") if size.microseconds else ""
    clock = f"T{size.seconds}{fraction}S" if size.seconds or fraction or not size.days else ""
    found = Duration(f"{'-' if length < timedelta() else ''}P{f'{size.days}D' if size.days else ''}{clock}")
    found.length = length
    return found


def _timestamp(text: str, tz: str | None = None) -> dict[str, str]:
    """Read a Timestamp of pandas; its text has the zone's distance from UTC."""
    if tz is not None and text[-6:-5] not in ("+", "-"):
        raise ValueError
    datetime.fromisoformat(text[:19])
    return _term(text.replace(" ", "T", 1), "dateTime")


_TIMEDELTA: Final = re.compile(r"(-?\d{1,9}) days (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?", re.ASCII)


def _timedelta_text(text: str) -> Duration:
    """Read a Timedelta of pandas: ``1 days 00:00:01``."""
    found = _TIMEDELTA.fullmatch(text)
    if found is None:
        raise ValueError
    days, hours, minutes, seconds = map(int, found.groups()[:4])
    return _duration(days, (hours * 60 + minutes) * 60 + seconds, int((found[5] or "").ljust(6, "0")))


def _text(value: str) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> int | float:
    if not isinstance(value, int | float):
        raise TypeError
    return value


def _row(*pairs: Any, **cells: Any) -> dict[str, Any]:
    """Read a row that is shown as a dict, pairs, or keywords."""
    if cells and not pairs:
        return {name: as_cell(cell) for name, cell in cells.items()}
    (only,) = pairs or ([],)
    if not isinstance(only, dict) and not all(isinstance(pair, tuple) for pair in only):
        raise TypeError
    return {_text(key): as_cell(value) for key, value in (only.items() if isinstance(only, dict) else only)}


_CALLS: Final[Mapping[str, Callable[..., Any]]] = {
    "Decimal": decimal_term,
    "date": _date,
    "datetime": _date_time,
    "time": _time,
    "timedelta": _duration,
    "timezone": _timezone,
    "ZoneInfo": _named_zone,
    "Timestamp": _timestamp,
    "Timedelta": _timedelta_text,
    **dict.fromkeys(("UUID", "str_", "IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network"), _text),
    **dict.fromkeys(("IPv4Interface", "IPv6Interface"), _text),
    **dict.fromkeys((f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), _number),
    **dict.fromkeys(("float16", "float32", "float64", "bool", "bool_"), _number),
    **dict.fromkeys(("OrderedDict", "RealDictRow", "Row"), _row),
}

UTC: Final = Zone("+00:00")
