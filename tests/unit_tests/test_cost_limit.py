"""The bound on a run's money: what is reserved and spent never passes it."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.cost_limit import CostLimit, CostLimitError


async def test_request_waits_while_those_in_flight_stand_in_its_way() -> None:
    limit = CostLimit(1.0)
    first = await limit.areserve(0.75)
    second = asyncio.create_task(limit.areserve(0.5))
    await asyncio.sleep(0)
    assert not second.done()
    first.settle(0.25)
    (await second).settle(0.5)
    assert (limit.spent, limit.held, limit.message) == (0.75, 0.0, None)


async def test_first_request_that_does_not_fit_closes_the_limit() -> None:
    limit = CostLimit(1.0, spent=0.5)
    with pytest.raises(CostLimitError, match=r"budget of \$1.00: \$0.50 are spent, and it can cost \$0.75"):
        await limit.areserve(0.75)
    with pytest.raises(CostLimitError, match=r"it can cost \$0.75"):
        await limit.areserve(0.001)


async def test_those_who_wait_are_refused_when_it_closes() -> None:
    limit = CostLimit(1.0)
    reservation = await limit.areserve(1.0)
    waiting = [asyncio.create_task(limit.areserve(0.25)) for _ in range(3)]
    await asyncio.sleep(0)
    reservation.settle(1.0)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, CostLimitError) for outcome in outcomes)


async def test_unknown_cost_counts_as_the_most_and_is_told() -> None:
    limit = CostLimit(1.0)
    (await limit.areserve(0.75)).settle(None)
    assert (limit.spent, limit.assumed) == (0.75, 0.75)
    with pytest.raises(CostLimitError, match=r"\$0.75 of them at most, on requests without an answer"):
        await limit.areserve(0.5)


async def test_second_settlement_changes_nothing() -> None:
    limit = CostLimit(1.0)
    reservation = await limit.areserve(0.75)
    reservation.settle(0.25)
    reservation.settle(None)
    assert (limit.spent, limit.held) == (0.25, 0.0)


async def test_request_without_a_bound_is_refused_where_there_is_a_limit() -> None:
    assert (await CostLimit().areserve(None)).amount == 0.0
    with pytest.raises(CostLimitError, match="cannot be kept: nothing bounds it"):
        await CostLimit(1.0).areserve(None, unbounded="nothing bounds it")


async def test_all_of_the_money_can_be_spent() -> None:
    limit = CostLimit(0.3)
    for _ in range(3):
        (await limit.areserve(0.1)).settle(0.1)
    assert limit.message is None


@given(
    most=st.floats(0.01, 10),
    requests=st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1), st.booleans()), max_size=40),
    seed=st.integers(0, 1000),
)
def test_what_is_spent_and_held_never_passes_the_limit(
    most: float, requests: list[tuple[float, float, bool]], seed: int
) -> None:
    limit = CostLimit(most)
    chance = random.Random(seed)

    async def ask(amount: float, share: float, is_known: bool) -> float:
        reservation = await limit.areserve(amount)
        for _ in range(chance.randrange(4)):
            assert limit.spent + limit.held <= most + 1e-9
            await asyncio.sleep(0)
        reservation.settle(amount * share if is_known else None)
        return amount * share if is_known else amount

    async def ask_all() -> list[float | BaseException]:
        return await asyncio.gather(*(ask(*request) for request in requests), return_exceptions=True)

    outcomes = asyncio.run(ask_all())
    assert all(isinstance(outcome, float | CostLimitError) for outcome in outcomes)
    assert limit.spent == pytest.approx(sum(outcome for outcome in outcomes if isinstance(outcome, float)))
    assert limit.spent <= most + 1e-9
    assert limit.held == 0.0


async def test_request_that_is_alone_keeps_all_others_back() -> None:
    limit = CostLimit(1.0)
    first = await limit.areserve(0.25, is_alone=True)
    second = asyncio.create_task(limit.areserve(0.25))
    await asyncio.sleep(0)
    assert not second.done()
    first.settle(None)
    (await second).settle(0.25)
    assert (limit.spent, limit.assumed, limit.held) == (0.5, 0.25, 0.0)


async def test_large_amounts_leave_nothing_held() -> None:
    limit = CostLimit(1e7)
    amounts = [0.1 + 1e5 / number for number in range(1, 60)]
    reservations = [await limit.areserve(amount) for amount in amounts]
    for reservation in reservations:
        reservation.settle(0.0)
    assert limit.held == 0.0
    with pytest.raises(CostLimitError):
        await asyncio.wait_for(limit.areserve(2e7), 1)
