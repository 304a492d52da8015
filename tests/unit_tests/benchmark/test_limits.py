"""Concurrency limits: halved by rate limits, restored by successes, and spread over the minute, on a fake clock."""

import asyncio
import time
from itertools import pairwise
from typing import Any

from graphrag_eval_lc.benchmark.limits import ConcurrencyLimit
from graphrag_eval_lc.evaluation.stop_signal import StopSignal


class Clock(StopSignal):
    """A clock that advances when tasks wait, and the stop signal they wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.bind(lambda: None)

    async def sleep(self, seconds: float) -> bool:
        await asyncio.sleep(0)
        self.now += seconds
        return self.reason is not None


class Limit(ConcurrencyLimit):
    """A limit with its own clock, which records reported changes."""

    def __init__(self, most: int, per_minute: float | None = None) -> None:
        self.clock = Clock()
        self.changes: list[tuple[int, str]] = []
        super().__init__(most, per_minute, lambda *change: self.changes.append(change), lambda: self.clock.now)

    async def take(self) -> int:
        epoch = await self.take_slot(self.clock)
        assert epoch is not None
        return epoch

    async def start(self, number: int) -> list[int]:
        return [await self.take() for _ in range(number)]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_concurrency_does_not_exceed_the_limit() -> None:
    limit = Limit(2)
    await limit.start(2)
    third = asyncio.create_task(limit.take())
    await settle()
    assert not third.done()
    limit.leave()
    await asyncio.wait_for(third, 30)
    assert limit.in_flight == 2


# --- rate limits -----------------------------------------------------------------------------------------------------


async def test_burst_of_rate_limits_halves_once() -> None:
    limit = Limit(8)
    for epoch in await limit.start(8):
        limit.leave()
        limit.was_limited(epoch, None)
    assert limit.changes == [(4, "rate limit")]


async def test_rate_limit_of_a_later_attempt_halves_again() -> None:
    limit = Limit(8)
    limit.was_limited(await limit.take(), None)
    limit.was_limited(await limit.take(), None)
    assert [number for number, _ in limit.changes] == [4, 2]


async def test_limit_grows_by_one_after_as_many_successes_as_slots() -> None:
    limit = Limit(4)
    limit.was_limited(await limit.take(), None)
    grown = []
    for _ in range(2 + 3):
        limit.went_well()
        grown.append(limit.limit)
    assert grown == [2, 3, 3, 3, 4]
    limit.went_well()
    assert limit.limit == 4
    assert [number for number, _ in limit.changes] == [2, 3, 4]


async def test_nothing_starts_before_the_servers_retry_after() -> None:
    limit = Limit(4)
    limit.was_limited(await limit.take(), 30.0)
    limit.was_limited(0, 10.0)  # a shorter one does not reduce it
    await limit.take()
    assert limit.clock.now == 1030.0


# --- requests per minute ---------------------------------------------------------------------------------------------


async def test_attempts_are_spread_evenly_over_the_minute() -> None:
    limit = Limit(100, per_minute=30)
    starts = []
    for _ in range(4):
        await limit.take()
        starts.append(limit.clock.now - 1000)
    assert starts == [0, 2, 4, 6]


async def test_requests_of_concurrent_processes_are_spread() -> None:
    limit, starts = ConcurrencyLimit(3, 1_200, lambda limit, reason: None), list[float]()
    running = asyncio.get_running_loop().create_future()

    async def ask() -> None:
        assert await limit.wait_for_pace(running)
        starts.append(time.monotonic())

    await asyncio.gather(*(ask() for _ in range(3)))
    assert all(later - earlier > 0.045 for earlier, later in pairwise(starts))
    limit.was_limited(0, 3600.0)
    waiting = asyncio.create_task(limit.wait_for_pace(running))
    await settle()
    running.set_result(None)  # the run is abandoned
    assert await asyncio.wait_for(waiting, 30) is False


# --- stopping --------------------------------------------------------------------------------------------------------


async def test_no_slot_is_granted_once_the_run_stops() -> None:
    limit = Limit(1)
    limit.clock.request("interrupted", "Ctrl-C")
    assert await limit.take_slot(limit.clock) is None
    assert limit.in_flight == 0


async def test_waiting_tasks_are_woken_when_the_run_stops() -> None:
    limit = Limit(1)
    await limit.take()
    waiting: list[Any] = [asyncio.create_task(limit.take_slot(limit.clock)) for _ in range(3)]
    await settle()
    limit.clock.request("interrupted", "Ctrl-C")
    limit.wake_all()
    assert await asyncio.wait_for(asyncio.gather(*waiting), 30) == [None, None, None]
