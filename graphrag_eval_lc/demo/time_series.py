"""The demo's time series with made-up values, and their data points, raw or aggregated."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

from langchain_core.tools import ToolException

from graphrag_eval_lc.matching.time_series import absolute_time, normalized_granularity, relative_offset

FIRST = datetime(2025, 1, 1, tzinfo=UTC)
"""The time of the first value of each series."""

NOW = datetime(2025, 11, 12, 9, 30, tzinfo=UTC)
"""The demo's clock does not move, so that answers can be checked. No series has a value from then on."""

STEP = timedelta(minutes=5)
"""The time from one value to the next."""

_DAY = timedelta(days=1) // STEP
_WEEK = 7 * _DAY


class TimeSeriesError(ToolException):
    """A time series or its data points cannot be returned; the message is for the model."""


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """A time series of a thing in the graph."""

    external_id: str
    mrid: str  # the mRID of the thing
    name: str
    unit: str  # the unit of its values
    low: float
    high: float

    def value_at(self, time: datetime) -> float:
        """Return the value at a time: a daily wave, a weekly one and noise, the same on each machine."""
        step = (time - FIRST) // STEP
        shift = crc32(self.external_id.encode())
        noise = crc32(f"{self.external_id} {step}".encode()) / 2**32
        share = 0.5 * _wave(step + shift, _DAY) + 0.4 * _wave(step + shift // _DAY, _WEEK) + 0.1 * noise
        return round(self.low + (self.high - self.low) * share, 1)


class TimeSeriesIndex:
    """The time series of a JSON Lines file, read once and safe to look up from several threads."""

    def __init__(self, path: Path) -> None:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        self._by_id = {row["external_id"]: TimeSeries(**row) for row in rows}
        self._by_mrid: defaultdict[str, list[TimeSeries]] = defaultdict(list)
        for series in self._by_id.values():
            self._by_mrid[series.mrid].append(series)

    def of_thing(self, mrid: str) -> list[TimeSeries]:
        """Return the time series of a thing."""
        return list(self._by_mrid.get(mrid, ()))

    def with_id(self, external_id: str) -> TimeSeries:
        """Return the time series with an id."""
        if external_id not in self._by_id:
            raise TimeSeriesError(
                f"Unknown time series {external_id!r:.80}. Take the external_id from retrieve_time_series."
            )
        return self._by_id[external_id]


def _wave(step: int, period: int) -> float:
    """Return a triangle wave from 0 to 1 and back; the last digits of a sine would differ between systems."""
    return 1 - abs(2 * (step % period) / period - 1)


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
    """Return the data points from ``start`` (included) to ``end`` (excluded)."""
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
    """Parse an absolute or relative time; ``key`` names the argument in errors."""
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
    """Return a time in UTC as ISO 8601."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _length(granularity: str) -> timedelta:
    match = _GRANULARITY.fullmatch(str(normalized_granularity(granularity)))
    if match is None:
        raise TimeSeriesError(
            f"granularity is {granularity!r:.40}, but must be a number and one of m, h, d and w, such as 15m or 1d."
        )
    return timedelta(**{f"{match[2]}s": int(match[1])})


def _times(first: datetime, last: datetime) -> Iterator[datetime]:
    """Yield the times of the values from ``first`` (included) to ``last`` (excluded)."""
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
