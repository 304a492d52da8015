"""Reading data points of a time series: values as they are, or an aggregate for each step of time."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Literal

from graphrag_eval_lc.demo.time_series import FIRST, NOW, STEP, TimeSeries, TimeSeriesError
from graphrag_eval_lc.matching.time_series import absolute_time, normalized_granularity, relative_offset

Aggregate = Literal["average", "max", "min"]

MAX_POINTS = 1000

_AGGREGATES: dict[Aggregate, Callable[[Sequence[float]], float]] = {
    "average": lambda values: round(math.fsum(values) / len(values), 1),
    "max": max,
    "min": min,
}
_GRANULARITY = re.compile(r"([1-9]\d{0,3})(minute|hour|day|week)")


def data_points(
    series: TimeSeries, start: str, end: str, aggregates: Sequence[Aggregate] = (), granularity: str | None = None
) -> list[dict[str, Any]]:
    """Give the data points from ``start`` on and before ``end``.

    Args:
        series: The time series.
        start: ISO 8601, UTC where it has no zone, or relative to the demo's now: ``now``, ``2h-ago``, ``1d-ahead``.
        end: As ``start``.
        aggregates: What to give for each step of time; none for the values themselves.
        granularity: How long a step is, such as ``15m``, ``1h`` or ``1d``. Steps count from ``start``.

    Returns:
        At the most 1000 data points with their ``timestamp`` and their ``value``, or their aggregates by name;
        steps without a value are left out.

    Raises:
        TimeSeriesError: A time or granularity cannot be read, they do not fit together, or there are too many points.
    """
    first, last = moment("start", start), moment("end", end)
    if first >= last:
        raise TimeSeriesError(f"start {start!r:.40} is not before end {end!r:.40}.")
    if bool(aggregates) != bool(granularity):
        raise TimeSeriesError("Give both aggregates and granularity, or neither for the values themselves.")
    if granularity:
        points = _aggregated(series, first, last, aggregates, _length(granularity))
    else:
        points = [{"timestamp": time_text(time), "value": series.value_at(time)} for time in _times(first, last)]
    if len(points) > MAX_POINTS:
        raise TimeSeriesError(
            f"These are {len(points)} data points, more than {MAX_POINTS}. Shorten the time, or take longer steps."
        )
    return points


def moment(key: str, time: str) -> datetime:
    """Give the time that a text means.

    Raises:
        TimeSeriesError: It cannot be read; ``key`` is the argument's name for the message.
    """
    offset = relative_offset(time)
    try:
        found = absolute_time(time) if offset is None else NOW + offset
    except OverflowError:
        found = None
    if found is None:
        raise TimeSeriesError(
            f"{key} is {time!r:.40}, but must be ISO 8601, such as 2025-11-01T00:00:00Z, or relative, such as 2h-ago."
        )
    return found


def time_text(time: datetime) -> str:
    """Give a time in UTC as ISO 8601.

    Example:
        >>> time_text(NOW)
        '2025-11-12T09:30:00Z'
    """
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _length(granularity: str) -> timedelta:
    match = _GRANULARITY.fullmatch(str(normalized_granularity(granularity)))
    if match is None:
        raise TimeSeriesError(
            f"granularity is {granularity!r:.40}, but must be a number and one of m, h, d and w, such as 15m or 1d."
        )
    return timedelta(**{f"{match[2]}s": int(match[1])})


def _times(first: datetime, last: datetime) -> Iterator[datetime]:
    """Give the times of the values from ``first`` on and before ``last``."""
    begin, end = (-((FIRST - min(max(time, FIRST), NOW)) // STEP) for time in (first, last))
    return (FIRST + step * STEP for step in range(begin, end))


def _aggregated(
    series: TimeSeries, first: datetime, last: datetime, aggregates: Sequence[Aggregate], length: timedelta
) -> list[dict[str, Any]]:
    points = []
    for step, times in groupby(_times(first, last), key=lambda time: (time - first) // length):
        values = [series.value_at(time) for time in times]
        timestamp = {"timestamp": time_text(first + step * length)}
        points.append(timestamp | {aggregate: _AGGREGATES[aggregate](values) for aggregate in aggregates})
    return points
