"""Running many items with limited concurrency: waiting, failures and cancellation."""

import asyncio
from collections.abc import Iterator

import pytest

from graphrag_eval_lc.evaluation import pipeline as module
from graphrag_eval_lc.evaluation.pipeline import Workers


class Counting:
    """Counts items that run at once; items in ``fails`` raise."""

    def __init__(self, *, fails: tuple[int, ...] = ()) -> None:
        self.fails = fails
        self.begun: list[int] = []
        self.done: list[int] = []
        self.cancelled: list[int] = []
        self.now = self.most = 0
        self.release = asyncio.Event()

    async def work(self, item: int) -> None:
        self.begun.append(item)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if item in self.fails:
                await asyncio.sleep(0)
                raise ValueError(f"no {item}")
            await self.release.wait()
            self.done.append(item)
        except asyncio.CancelledError:
            self.cancelled.append(item)
            raise
        finally:
            self.now -= 1


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_items_run_in_order_up_to_the_concurrency_limit() -> None:
    counting = Counting()
    running = asyncio.create_task(Workers(counting.work, max_concurrency=3).arun(range(10)))
    await turns()
    assert counting.begun == [0, 1, 2]
    counting.release.set()
    await running
    assert counting.begun == sorted(counting.done) == list(range(10))
    assert counting.most == 3


async def test_items_are_read_only_when_there_is_room() -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for item in range(10):
            read.append(item)
            yield item

    counting = Counting()
    running = asyncio.create_task(Workers(counting.work, max_concurrency=2).arun(items()))
    await turns()
    assert read == [0, 1, 2]
    counting.release.set()
    await running


async def test_queue_holds_as_many_items_as_there_is_room_for() -> None:
    counting = Counting()
    workers = Workers(counting.work, max_concurrency=1, room=2)
    for item in range(3):
        await asyncio.wait_for(workers.aput(item), 30)
    fourth = asyncio.create_task(workers.aput(3))
    await turns()
    assert (counting.begun, fourth.done()) == ([0], False)
    counting.release.set()
    await asyncio.wait_for(fourth, 30)
    await workers.aclose()
    assert counting.done == [0, 1, 2, 3]


async def test_waiting_items_can_be_taken_by_the_running_one() -> None:
    counting = Counting()
    workers = Workers(counting.work, max_concurrency=1, room=2)
    for item in range(3):
        await workers.aput(item)
    await turns()
    assert workers.take_waiting() == [1, 2]
    assert workers.take_waiting() == []
    counting.release.set()
    await workers.aclose()
    assert counting.done == [0]


async def test_first_error_cancels_the_others_and_is_raised_unchanged() -> None:
    counting = Counting(fails=(2,))
    with pytest.raises(ValueError, match="no 2") as raised:
        await asyncio.wait_for(Workers(counting.work, max_concurrency=3).arun(range(10)), 30)
    assert type(raised.value) is ValueError
    assert (counting.done, sorted(counting.cancelled)) == ([], [0, 1])
    assert set(counting.begun) == {0, 1, 2}


async def test_first_error_can_be_raised_after_the_others_have_finished() -> None:
    counting = Counting(fails=(0, 2))
    counting.release.set()
    workers = Workers(counting.work, max_concurrency=2, continue_on_error=True)
    for item in range(5):
        await workers.aput(item)
    with pytest.raises(ValueError, match="no 0"):
        await workers.aclose()
    assert counting.done == [1, 3, 4]


async def test_cancelling_the_caller_cancels_running_items() -> None:
    counting = Counting()
    running = asyncio.create_task(Workers(counting.work, max_concurrency=2).arun(range(5)))
    await turns()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert counting.begun == sorted(counting.cancelled) == [0, 1]


async def test_worker_cancelled_from_outside_does_not_deadlock() -> None:
    async def cancelled(item: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match=r"CancelledError.* ended it"):
        await asyncio.wait_for(Workers(cancelled, max_concurrency=2).arun(range(5)), 30)


async def test_task_that_ignores_cancellation_does_not_delay_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CANCELLING_SEC", 0.05)
    release = asyncio.Event()

    async def refuse(item: int) -> None:
        if item == 1:
            raise ValueError("broken")
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(ValueError, match="broken"):
        await asyncio.wait_for(Workers(refuse, max_concurrency=2).arun(range(5)), 30)
    release.set()
    await turns()
