"""Times as agents and datasets write them: absolute, or relative to the moment of a call."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

# Between asking for "now" and the clock time that an agent writes out, this much may pass.
TOLERANCE = timedelta(seconds=60)

_RELATIVE = re.compile(r"(\d+)([smhdw])-(ago|ahead)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_GRANULARITY = re.compile(r"\s*(\d+)\s*([a-zA-Z]+)\s*")
_GRANULARITY_UNITS = {
    "s": "second",
    "m": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    "mo": "month",
    "q": "quarter",
    "y": "year",
}


def do_times_equal(anchor_time: Any, reference_time: Any, actual_time: Any) -> bool:
    """Tell whether an actual time is the one that a reference means.

    Times are datetimes, ISO 8601 texts, milliseconds since 1970 as numbers, or texts relative to the anchor: ``now``,
    ``2h-ago``, ``1d-ahead`` (units s, m, h, d, w). Without a zone they are UTC. A relative reference and an absolute
    actual time may be 60 seconds apart; an absolute reference is never met by a relative time, which would mean
    something else on another day.

    Args:
        anchor_time: When the call was made; None is enough where no relative time meets an absolute one.
        reference_time: The reference's time; None where it gives none.
        actual_time: The agent's time; None where it gave none.

    Example:
        >>> do_times_equal("2025-12-15T15:00:00Z", "2h-ago", "2025-12-15T13:00:45Z")
        True
        >>> do_times_equal("2025-12-15T15:00:00Z", "2025-12-15T13:00:00Z", "2h-ago")
        False
    """
    if reference_time is None or actual_time is None:
        return reference_time is actual_time
    reference_offset, actual_offset = relative_offset(reference_time), relative_offset(actual_time)
    if reference_offset is not None and actual_offset is not None:
        return reference_offset == actual_offset
    if reference_offset is None:
        if actual_offset is not None:
            return False
        reference, actual = absolute_time(reference_time), absolute_time(actual_time)
        return reference_time == actual_time if reference is None or actual is None else reference == actual
    anchor, actual = absolute_time(anchor_time), absolute_time(actual_time)
    if anchor is None or actual is None:
        return False
    return abs(anchor - actual + reference_offset) <= TOLERANCE


def relative_offset(time: Any) -> timedelta | None:
    """Give the offset of a relative time from its anchor; None for every other value."""
    if not isinstance(time, str):
        return None
    time = time.strip()
    if time == "now":
        return timedelta(0)
    match = _RELATIVE.fullmatch(time)
    if match is None:
        return None
    try:
        offset = timedelta(**{_UNITS[match[2]]: int(match[1])})
    except (OverflowError, ValueError):
        return None
    return offset if match[3] == "ahead" else -offset


def absolute_time(time: Any) -> datetime | None:
    """Give a datetime, an ISO 8601 text or milliseconds since 1970 as a datetime in UTC; None for all else."""
    try:
        if isinstance(time, str):
            time = datetime.fromisoformat(time.strip().upper())
        elif isinstance(time, int | float) and not isinstance(time, bool):
            return datetime.fromtimestamp(time / 1000, UTC)
        if not isinstance(time, datetime):
            return None
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def normalized_granularity(granularity: Any) -> Any:
    """Give a granularity in one spelling: ``15m``, ``15minutes`` and ``15 Minute`` are the same.

    Example:
        >>> normalized_granularity("15m") == normalized_granularity("15minutes")
        True
    """
    match = _GRANULARITY.fullmatch(granularity) if isinstance(granularity, str) else None
    if match is None:
        return granularity or None
    unit = match[2].lower()
    unit = _GRANULARITY_UNITS.get(unit, unit.removesuffix("s"))
    return f"{match[1]}{unit}"
