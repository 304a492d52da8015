"""The pool of workers: each attempt is answered once, whatever becomes of the workers.

The workers are real ones, in threads of this process.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.attempts import Attempt, WorkerLostError
from graphrag_eval_lc.benchmark.workers.messages import Close, FromWorker, Job, ToWorker
from graphrag_eval_lc.benchmark.workers.pool import WorkerPool
from graphrag_eval_lc.benchmark.workers.worker import Worker
from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.retrying import is_rate_limit, retry_after_of


class ThreadLink:
    """A worker in a thread."""

    def __init__(self, job: Job, hear: Callable[[FromWorker], None]) -> None:
        loop = asyncio.get_running_loop()
        self._worker = Worker(job, lambda message: loop.call_soon_threadsafe(hear, message))
        threading.Thread(target=self._worker.run, daemon=True).start()

    def send(self, message: ToWorker) -> None:
        self._worker.post(message)

    def end(self) -> None:
        self._worker.post(Close())  # a thread cannot be ended at once


class Threads:
    """Starts workers in threads, and loses them on demand."""

    places = 8
    is_question_to_blame = False
    is_begun_whole = True

    def __init__(self, agent: Any, size: int = 2) -> None:
        self._job = Job(agent=agent, places=8)
        self._size = size
        self.lost: dict[int, Callable[[str], None]] = {}

    async def aopen(self) -> int:
        return self._size

    async def aleft_behind(self) -> Sequence[Mapping[str, Any]]:
        return ()

    async def astart(self, number: int, hear: Callable[[FromWorker], None], lost: Callable[[str], None]) -> ThreadLink:
        self.lost[number] = lost
        return ThreadLink(self._job, hear)

    async def aclose(self) -> None:
        pass


class Asked:
    """A pool that is open while the context lasts."""

    def __init__(self, transport: Threads) -> None:
        self.transport = transport
        self.warnings: list[str] = []
        self.pool = WorkerPool(
            transport, timeout=10.0, budget=Budget(), tell=lambda event: None, warn=self.warnings.append
        )

    async def __aenter__(self) -> "Asked":
        await self.pool.aopen(StopSignal())
        await self.pool.abegin(StopSignal())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.pool.aclose()

    async def attempt(self, text: str, number: int = 1) -> Attempt:
        question: Any = {"id": text, "question_text": text}
        abandoned = asyncio.get_running_loop().create_future()
        return await self.pool.aattempt(question, f"run/1/{text}/1/{number}", abandoned)


def echo(question: str) -> str:
    return f"{question}!"


async def test_each_attempt_comes_back_to_who_asked() -> None:
    async with Asked(Threads(echo)) as asked:
        attempts = await asyncio.gather(*(asked.attempt(str(number)) for number in range(20)))
    assert [attempt.response.get("actual_answer") for attempt in attempts] == [f"{number}!" for number in range(20)]


class LimitError(Exception):
    status_code = 429
    retry_after = 7


def limited(question: str) -> str:
    raise LimitError("slower")


async def test_what_an_error_says_of_retries_comes_with_it() -> None:
    async with Asked(Threads(limited)) as asked:
        error = (await asked.attempt("q")).error
    assert error is not None
    assert str(error) == "LimitError: slower"
    assert is_rate_limit(error)
    assert retry_after_of(error) == 7


def broken() -> Any:
    raise RuntimeError("no database here")


async def test_an_agent_that_no_worker_can_load_ends_it_with_the_reason() -> None:
    with pytest.raises(AgentError, match="no database here"):
        async with Asked(Threads(broken)) as asked:
            await asked.attempt("q")


class NotThere(Threads):
    async def aopen(self) -> int:
        await asyncio.Event().wait()
        return 0


def test_a_run_that_is_stopped_before_its_machines_are_reached_ends() -> None:
    async def opened() -> None:
        stop = StopSignal()
        asyncio.get_running_loop().call_later(0.1, stop.request, "interrupted", "Ctrl-C")
        await Asked(NotThere(pid)).pool.aopen(stop)

    with pytest.raises(KeyboardInterrupt, match="Ctrl-C"):
        asyncio.run(opened())


async def never(question: str) -> str:
    await asyncio.Event().wait()
    return question


async def test_attempts_of_a_lost_worker_are_to_be_made_again_three_times() -> None:
    async with Asked(Threads(never, size=1)) as asked:
        errors = []
        for number in range(1, 4):
            attempt = asyncio.create_task(asked.attempt("q", number))
            await asyncio.sleep(0.05)
            asked.transport.lost[number]("its process is gone")
            errors.append((await attempt).error)
            await asked.pool.abegin(StopSignal())
    assert all(isinstance(error, WorkerLostError) for error in errors)
    assert [getattr(error, "is_asked_again", None) for error in errors] == [True, True, False]
    assert str(errors[-1]) == "3 workers were lost while they asked it: its process is gone"
    assert asked.warnings[0] == "worker 1 was lost (its process is gone): 1 question asked again"


async def test_workers_that_are_lost_again_and_again_end_it() -> None:
    async with Asked(Threads(never, size=1)) as asked:
        for number in range(1, 5):
            asked.transport.lost[number]("no room")
            await asked.pool.abegin(StopSignal())
        asked.transport.lost[5]("no room")
        with pytest.raises(AgentError, match="the workers are lost one after the other, the last one: no room"):
            await asked.pool.abegin(StopSignal())


def pid(question: str) -> str:
    return str(os.getpid())


async def test_nothing_is_asked_once_the_run_is_abandoned() -> None:
    async with Asked(Threads(pid)) as asked:
        abandoned = asyncio.get_running_loop().create_future()
        abandoned.set_result(None)
        question: Any = {"id": "q", "question_text": "q"}
        attempt = await asked.pool.aattempt(question, "run/1/q/1/1", abandoned)
    assert type(attempt.error).__name__ == "RunInterruptedError"
