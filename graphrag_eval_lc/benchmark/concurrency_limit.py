"""How many questions are asked at the same time: fewer after a rate limit, and more again while it goes well."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from graphrag_eval_lc.evaluation.stop_signal import StopSignal


class ConcurrencyLimit:
    """How many attempts may be under way at once, in one event loop; it adapts to rate limits.

    Additive increase, multiplicative decrease, as TCP does. At a rate limit the number of slots is halved, and nothing
    starts before the time that the server names; attempts that began before the halving halve nothing again. After as
    many good attempts in a row as there are slots there is one more, up to ``most``.

    Args:
        most: The highest number of slots, at least 1.
        per_minute: How many attempts may start in a minute, evenly spread; None for no limit.
        on_change: Told the new number of slots and why.
        clock: Seconds, for tests.
    """

    def __init__(
        self,
        most: int,
        per_minute: float | None,
        on_change: Callable[[int, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._interval = 0.0 if per_minute is None else 60.0 / per_minute
        self._on_change = on_change
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._starts_from = 0.0
        self._asks_from = 0.0
        self._good_in_a_row = 0
        self.limit = most
        self.in_flight = 0
        self.epoch = 0

    async def take_slot(self, stop: StopSignal) -> int | None:
        """Wait for a slot and return the number of halvings so far, for ``was_limited``; None if the run stops."""
        while True:
            if stop.reason is not None:
                return None
            if self.in_flight >= self.limit:
                await self._wait_for_slot()
                continue
            seconds = self._starts_from - self._clock()
            if seconds <= 0:
                break
            await stop.sleep(seconds)
        if self._interval:
            self._starts_from = max(self._clock(), self._starts_from) + self._interval
        self.in_flight += 1
        return self.epoch

    async def wait_for_pace(self, abandoned: "asyncio.Future[None]") -> bool:
        """Wait until a request may be sent by a process that was not ready at the time of its slot.

        Processes become ready together, and their questions would be sent together, too.

        Args:
            abandoned: Done when the questions in flight are given up.

        Returns:
            Whether the request may be sent; False if the run was abandoned.
        """
        while (seconds := self._asks_from - self._clock()) > 0 and not abandoned.done():
            await asyncio.wait({abandoned}, timeout=seconds)
        self._asks_from = max(self._asks_from, self._clock() + self._interval)
        return not abandoned.done()

    def leave(self) -> None:
        """Free a slot."""
        self.in_flight -= 1
        if self._waiting:
            self._wake()

    def went_well(self) -> None:
        """Note an attempt without a rate limit."""
        if self.limit == self._most:
            return
        self._good_in_a_row += 1
        if self._good_in_a_row >= self.limit:
            self._set(self.limit + 1, "no rate limit for a while")

    def was_limited(self, epoch: int | None, retry_after: float | None) -> None:
        """Note a rate limit.

        Args:
            epoch: What ``take_slot`` returned for the attempt.
            retry_after: Seconds that the server asks to wait.
        """
        self._good_in_a_row = 0
        if retry_after:
            self._asks_from = max(self._asks_from, self._clock() + retry_after)
            self._starts_from = max(self._starts_from, self._asks_from)
        if epoch == self.epoch and self.limit > 1:
            self.epoch += 1
            self._set(self.limit // 2, "rate limit")

    def wake_all(self) -> None:
        """Wake all that wait for a slot, since the run stops."""
        while self._waiting:
            self._wake()

    def _set(self, limit: int, reason: str) -> None:
        self.limit = limit
        self._good_in_a_row = 0
        self._on_change(limit, reason)
        self._wake()

    async def _wait_for_slot(self) -> None:
        slot = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        await slot

    def _wake(self) -> None:
        while self._waiting:
            slot = self._waiting.popleft()
            if not slot.done():
                slot.set_result(None)
                return
