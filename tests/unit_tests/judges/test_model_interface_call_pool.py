import asyncio

import pytest

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.model_interface import CallPool


async def most_at_once(pool: CallPool, calls: int) -> int:
    now = most = 0

    async def call() -> None:
        nonlocal now, most
        async with pool.place():
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1

    await asyncio.gather(*(call() for _ in range(calls)))
    return most


async def test_no_more_than_its_places_are_held_at_once() -> None:
    assert await most_at_once(CallPool(3), 20) == 3


def test_a_pool_serves_one_event_loop_after_the_other() -> None:
    pool = CallPool(2)
    assert [run_sync(lambda: most_at_once(pool, 10)) for _ in range(3)] == [2, 2, 2]


async def test_a_place_is_given_back_where_the_call_fails() -> None:
    pool = CallPool(1)
    with pytest.raises(ValueError, match="broken"):
        async with pool.place():
            raise ValueError("broken")
    assert await most_at_once(pool, 2) == 1


def test_a_pool_without_places_is_refused() -> None:
    with pytest.raises(OptionError, match="max_concurrency is at least 1, not 0"):
        CallPool(0)
