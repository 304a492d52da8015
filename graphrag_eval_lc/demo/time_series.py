"""The time series of the demo: invented values that follow from the series and the time alone, up to a fixed now."""

import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

from langchain_core.tools import ToolException

FIRST = datetime(2025, 1, 1, tzinfo=UTC)
"""The time of the first value of each series."""

NOW = datetime(2025, 11, 12, 9, 30, tzinfo=UTC)
"""The demo's clock stands still here, so that each answer can be checked. No series has a value from then on."""

STEP = timedelta(minutes=5)
"""The time from one value to the next."""

_DAY = timedelta(days=1) // STEP
_WEEK = 7 * _DAY


class TimeSeriesError(ToolException):
    """A time series or its data points cannot be had; the message tells the model what to do about it."""


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """A time series and the thing of the graph that it belongs to.

    Attributes:
        external_id: Its id.
        mrid: The mRID of the thing.
        name: Its name.
        unit: The unit of its values.
        low: No value is below.
        high: No value is above.
    """

    external_id: str
    mrid: str
    name: str
    unit: str
    low: float
    high: float

    def value_at(self, time: datetime) -> float:
        """Give the value at a time, to one decimal: a daily wave, a weekly one and noise, the same on each machine.

        Example:
            >>> TimeSeries("a", "b", "flow", "MW", -100, 100).value_at(NOW)
            8.9
        """
        step = (time - FIRST) // STEP
        shift = crc32(self.external_id.encode())
        noise = crc32(f"{self.external_id} {step}".encode()) / 2**32
        share = 0.5 * _wave(step + shift, _DAY) + 0.4 * _wave(step + shift // _DAY, _WEEK) + 0.1 * noise
        return round(self.low + (self.high - self.low) * share, 1)


class TimeSeriesIndex:
    """The time series of a JSON Lines file, read once and safe to look up from several threads.

    Args:
        path: The file, UTF-8; each line has the attributes of one ``TimeSeries``.
    """

    def __init__(self, path: Path) -> None:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        self._by_id = {row["external_id"]: TimeSeries(**row) for row in rows}
        self._by_mrid: defaultdict[str, list[TimeSeries]] = defaultdict(list)
        for series in self._by_id.values():
            self._by_mrid[series.mrid].append(series)

    def of_thing(self, mrid: str) -> list[TimeSeries]:
        """Give the time series of a thing; none where the thing has none."""
        return list(self._by_mrid.get(mrid, ()))

    def with_id(self, external_id: str) -> TimeSeries:
        """Give the time series with an id.

        Raises:
            TimeSeriesError: There is none.
        """
        if external_id not in self._by_id:
            raise TimeSeriesError(
                f"There is no time series {external_id!r:.80}. Take the external_id from retrieve_time_series."
            )
        return self._by_id[external_id]


def _wave(step: int, period: int) -> float:
    """Give a wave of straight lines from 0 to 1 and back; sines would differ in their last digits between systems."""
    return 1 - abs(2 * (step % period) / period - 1)
