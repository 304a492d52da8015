"""The time of one attempt, and how much of it others took by blocking the event loop."""

import asyncio
import time
from typing import Any, NamedTuple

from graphrag_eval_lc.event_loop.stalls import SHORTEST_STALL_SEC, TOLD_SEC, UNBLOCK_HINT, Span


class Times(NamedTuple):
    """The times of an attempt.

    Attributes:
        started_at: Seconds since 1970.
        elapsed_sec: Seconds in all, more than the handler saw where a blocked loop delayed the beginning.
        stalled_sec: Seconds of these for which others blocked the loop.
        blocked: A sentence that and where it blocked the loop itself; None where it did not.
    """

    started_at: float
    elapsed_sec: float
    stalled_sec: float
    blocked: str | None


class AttemptClock:
    """Measures the time of one attempt, and for how much of it others blocked the event loop.

    Args:
        span: That of the attempts of one question; None where the loop is not watched.
    """

    def __init__(self, span: Span | None) -> None:
        self._span = span
        self._started_at = time.time()
        self._began = time.perf_counter()
        self._stalled_before = 0.0 if span is None else span.stalled_sec
        self._blocked_before = 0.0 if span is None else span.blocked_sec

    @property
    def elapsed_sec(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self._began

    @property
    def stalled_sec(self) -> float:
        """Seconds of these for which others blocked the loop; 0.0 where they are too few to count."""
        stalled = 0.0 if self._span is None else self._span.stalled_sec - self._stalled_before
        return min(stalled, self.elapsed_sec) if stalled >= SHORTEST_STALL_SEC else 0.0

    async def first_of(self, ends: "set[asyncio.Future[Any]]", seconds: float | None) -> None:
        """Wait for the first of some futures, at most ``seconds`` and those for which others blocked the loop."""
        left = seconds
        while True:
            done, _ = await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if done or seconds is None:
                return
            left = seconds + self.stalled_sec - self.elapsed_sec
            if left <= 0:
                return

    def times(self) -> Times:
        """Return the times of an attempt that ends now."""
        return Times(self._started_at, self.elapsed_sec, self.stalled_sec, self.blocked())

    def blocked(self) -> str | None:
        """Say that and where the attempt blocked the loop itself; None where it did not, or not for long."""
        if self._span is None or self._span.where is None:
            return None
        blocked = self._span.blocked_sec - self._blocked_before
        if blocked < TOLD_SEC:
            return None
        return f"it blocked the event loop for {blocked:.1f} s in {self._span.where}: {UNBLOCK_HINT}"
