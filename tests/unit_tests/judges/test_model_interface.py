"""Adding up the costs of requests, and their shared concurrency limit."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.model_interface import CallPool, UnusableAnswerError, paid_error, total_cost


def test_total_cost_is_unknown_if_one_cost_is() -> None:
    assert total_cost([0.25, 0.5]) == 0.75
    assert total_cost([0.25, None]) is None


@given(st.lists(st.floats(0, 1), max_size=20), st.randoms(use_true_random=False))
def test_total_cost_does_not_depend_on_the_order_of_answers(costs: list[float], draw: random.Random) -> None:
    other_order = draw.sample(costs, len(costs))
    assert total_cost(other_order) == total_cost(costs)


def test_error_has_the_total_cost() -> None:
    assert paid_error(JudgeError("refused"), [0.25]).cost == 0.25
    assert paid_error(UnusableAnswerError("cut off", cost=0.5), [0.25]).cost == 0.75
    assert paid_error(UnusableAnswerError("cut off", cost=None), [0.25]).cost is None


async def most_at_once(pool: CallPool, calls: int) -> int:
    now = most = 0

    async def call() -> None:
        nonlocal now, most
        async with pool.slot():
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1

    await asyncio.gather(*(call() for _ in range(calls)))
    return most


async def test_concurrency_stays_within_the_limit() -> None:
    assert await most_at_once(CallPool(3), 20) == 3


def test_pool_works_in_successive_event_loops() -> None:
    pool = CallPool(2)
    assert [run_sync(lambda: most_at_once(pool, 10)) for _ in range(3)] == [2, 2, 2]


async def test_slot_is_released_if_the_call_fails() -> None:
    pool = CallPool(1)
    with pytest.raises(ValueError, match="broken"):
        async with pool.slot():
            raise ValueError("broken")
    assert await most_at_once(pool, 2) == 1
