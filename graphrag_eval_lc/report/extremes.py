"""The slowest and the dearest questions."""

import heapq
from typing import Any

from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.report.samples import ReportedSample

_SHOWN = 10


class Extremes:
    """Keeps the samples that took the longest and spent the most."""

    def __init__(self) -> None:
        self._longest: list[tuple[float, int, str]] = []
        self._dearest: list[tuple[float, int, str]] = []
        self._most_tokens: list[tuple[float, int, str]] = []
        self._count = 0

    def add(self, sample: ReportedSample, cost: float | None) -> None:
        """Take up a sample and what it cost in USD."""
        self._count += 1
        for kept, value in (
            (self._longest, number(sample.result.get("elapsed_sec"))),
            (self._dearest, cost),
            (self._most_tokens, number(sample.result.get("total_tokens"))),
        ):
            if value is not None and value > 0:
                heapq.heappush(kept, (value, -self._count, sample.key))  # of equal ones the first stay
                if len(kept) > _SHOWN:
                    heapq.heappop(kept)

    def slowest(self) -> list[dict[str, Any]]:
        """Give the section ``slowest``."""
        return [{"key": key, "seconds": value} for value, _, key in sorted(self._longest, reverse=True)]

    def dearest(self) -> list[dict[str, Any]]:
        """Give the section ``dearest``: by cost, and where nothing has a price, by tokens."""
        unit, kept = ("usd", self._dearest) if self._dearest else ("tokens", self._most_tokens)
        return [{"key": key, "value": value, "unit": unit} for value, _, key in sorted(kept, reverse=True)]
