"""The driver's side of the workers: which attempt goes to which of them, and what becomes of those that are lost."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from graphrag_eval_lc.benchmark.attempts import (
    Attempt,
    QuestionTimeoutError,
    RunInterruptedError,
    WorkerLostError,
    unheard_attempt,
)
from graphrag_eval_lc.benchmark.workers.messages import (
    Abandon,
    Answered,
    Ask,
    Close,
    FromWorker,
    OutOfBudget,
    Ready,
    Spending,
    Told,
    ToWorker,
    Unusable,
)
from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.evaluation.events import Observer
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.records import Question
from graphrag_eval_lc.retrying import ToldError
from graphrag_eval_lc.texts import counted

_ABANDONING_SEC = 5.0  # in which a worker tells what an abandoned attempt did so far
_OVERTIME_SEC = 3.0  # in which it tells that the time is over
_CLOSING_SEC = 15.0
_LOOKING_SEC = 0.5
_MOST_LOST = 3  # as often a question may be lost with its worker, and workers one after the other without an answer


class Link(Protocol):
    """The way to one worker. All is called in the driver's event loop."""

    def send(self, message: ToWorker) -> None:
        """Send a message soon; it does not wait, and says nothing where the worker is gone."""

    def end(self) -> None:
        """End the worker at once, whatever it does; nothing more is heard of it."""


class Transport(Protocol):
    """How workers are started.

    Attributes:
        places: How many questions one worker may be asked at the same time.
        is_question_to_blame: Whether a worker that is lost was lost for the question that it was asked, which then
            fails; else its questions are asked again.
        is_begun_whole: Whether all workers are started at the beginning; else each when it is needed.
    """

    places: int
    is_question_to_blame: bool
    is_begun_whole: bool

    async def aopen(self) -> int:
        """Reach the machines, and return how many workers there are to be, at most.

        Raises:
            GraphRAGEvalError: They cannot be reached.
        """

    async def aleft_behind(self) -> Sequence[Mapping[str, Any]]:
        """Take the responses that workers of lost sessions of the run have kept, each with its repeat."""

    async def astart(self, number: int, hear: Callable[[FromWorker], None], lost: Callable[[str], None]) -> Link:
        """Start a worker.

        Args:
            number: The number of the worker, from 1.
            hear: To be called with each message of the worker, in the driver's loop.
            lost: To be called once with the reason, in that loop, where the worker is gone without being told to.

        Raises:
            GraphRAGEvalError: No worker can be started.
        """

    async def aclose(self) -> None:
        """Take down what is left once all workers have ended."""


@dataclass(slots=True)
class _Asked:
    """An attempt that a worker is at."""

    question: Question
    attempt_id: str
    outcome: "asyncio.Future[Attempt]"
    started_at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.perf_counter)

    def failed(self, error: BaseException) -> Attempt:
        elapsed_sec = time.perf_counter() - self.began
        return unheard_attempt(self.question, error, self.started_at, elapsed_sec)


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker as the driver knows it."""

    number: int
    link: Link | None = None
    is_ready: bool = False
    is_gone: bool = False
    asked: dict[int, _Asked] = field(default_factory=dict)

    def send(self, message: ToWorker) -> None:
        if self.link is not None and not self.is_gone:
            self.link.send(message)


class WorkerPool:
    """Has attempts made by workers; the harness uses it as it uses ``AgentCall``.

    Args:
        transport: How workers are started.
        timeout: Seconds for an attempt; None for no limit.
        budget: What the run may spend.
        tell: Told the events of workers.
        warn: Told the warnings of workers, and what was lost.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        timeout: float | None,
        budget: Budget,
        tell: Observer,
        warn: Callable[[str], None],
    ) -> None:
        self._transport = transport
        self._size = 0
        self._timeout = timeout
        self._budget = budget
        self._tell = tell
        self._warn = warn
        self._attempts = count(1)
        self._names = count(1)
        self._workers: list[_Worker] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._problem: Exception | None = None
        self._waiting = 0
        self._losses: dict[str, int] = {}  # of attempts, by sample
        self._one_suspect = asyncio.Lock()
        self._lost_in_a_row = 0
        self._is_closing = False

    async def aopen(self, stop: StopSignal) -> None:
        """Reach the machines.

        Raises:
            GraphRAGEvalError: They cannot be reached.
            KeyboardInterrupt: The run is stopped before they are.
        """
        opening = asyncio.ensure_future(self._transport.aopen())
        while not opening.done():
            await asyncio.wait({opening}, timeout=_LOOKING_SEC)  # the signal does not tell of itself here
            if stop.reason is not None and not opening.done():
                opening.cancel()
                raise KeyboardInterrupt(stop.message)
        self._size = opening.result()

    async def abegin(self, stop: StopSignal) -> None:
        """Start the workers, where the transport wants all at the beginning, and wait for the first of them.

        Else what waits for it would start at once, whatever the limit of requests is.

        Raises:
            GraphRAGEvalError: They cannot be started, or cannot load the agent.
        """
        while self._transport.is_begun_whole and len(self._workers) < self._size:
            self._start()
        while self._workers and not any(worker.is_ready for worker in self._workers) and stop.reason is None:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):  # the signal does not tell of itself here
                await asyncio.wait_for(self._changed.wait(), _LOOKING_SEC)
        if self._problem is not None:
            raise self._problem

    async def aleft_behind(self) -> Sequence[Mapping[str, Any]]:
        """Take the responses that workers of lost sessions of the run have kept, each with its repeat."""
        return await self._transport.aleft_behind()

    async def aattempt(self, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]") -> Attempt:
        """Have a worker ask a question once; see ``AgentCall.aattempt``.

        Raises:
            GraphRAGEvalError: The workers cannot be started, or cannot load the agent.
        """
        sample = attempt_id.rpartition("/")[0]
        if sample not in self._losses:
            return await self._ask_somebody(question, attempt_id, abandoned)
        async with self._one_suspect:  # whatever ended its worker is not to end that of others with it
            return await self._ask_somebody(question, attempt_id, abandoned)

    async def _ask_somebody(self, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]") -> Attempt:
        worker = await self._free_worker(abandoned)
        asked = _Asked(question, attempt_id, asyncio.get_running_loop().create_future())
        if worker is None:
            return asked.failed(RunInterruptedError("the run was stopped before the agent was asked"))
        return await self._ask(worker, asked, abandoned)

    async def aclose(self, *, waits: bool = True) -> None:
        """Close the agents of all workers, and end them.

        Args:
            waits: Whether the agents have time to be closed; else the workers are ended at once.
        """
        self._is_closing = True
        for worker in self._workers:
            worker.send(Close())
        try:
            async with asyncio.timeout(_CLOSING_SEC if waits else 0):
                while any(not worker.is_gone for worker in self._workers if worker.is_ready):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        finally:
            for worker in list(self._workers):
                self._end(worker)
            for task in self._tasks:
                task.cancel()
            await self._transport.aclose()

    # --- one attempt ---

    async def _free_worker(self, abandoned: "asyncio.Future[None]") -> _Worker | None:
        """Return the worker with the fewest questions, once one has a free place; None where the run is abandoned."""
        while not abandoned.done():
            if self._problem is not None:
                raise self._problem
            free = [each for each in self._workers if each.is_ready and len(each.asked) < self._transport.places]
            if free:
                return min(free, key=lambda worker: len(worker.asked))
            if len(self._workers) < self._size and self._waiting >= sum(not each.is_ready for each in self._workers):
                self._start()
            await self._wait_for_change(abandoned)
        return None

    async def _wait_for_change(self, abandoned: "asyncio.Future[None]") -> None:
        self._changed.clear()
        changed = asyncio.ensure_future(self._changed.wait())
        ends: set[asyncio.Future[Any]] = {changed, abandoned}
        self._waiting += 1
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting -= 1
            changed.cancel()

    async def _ask(self, worker: _Worker, asked: _Asked, abandoned: "asyncio.Future[None]") -> Attempt:
        """Have a worker ask."""
        number = next(self._attempts)
        worker.asked[number] = asked
        try:
            worker.send(Ask(number, asked.question, asked.attempt_id))
            most = None if self._timeout is None or self._transport.places > 1 else self._timeout + _OVERTIME_SEC
            ends: set[asyncio.Future[Any]] = {asked.outcome, abandoned}
            await asyncio.wait(ends, timeout=most, return_when=asyncio.FIRST_COMPLETED)
            if abandoned.done() and not asked.outcome.done():
                worker.send(Abandon(number))
                await asyncio.wait({asked.outcome}, timeout=_ABANDONING_SEC)
            if asked.outcome.done():
                attempt = asked.outcome.result()
                if self._leaves_work(attempt):
                    self._end(worker)
                return attempt
            self._end(worker)  # it does not hear: something blocks it
            if abandoned.done():
                return asked.failed(RunInterruptedError("the run was stopped before the agent answered"))
            text = f"no answer within {self._timeout:g} s, the run's timeout; its process was ended, as it was blocked"
            return asked.failed(QuestionTimeoutError(text))
        finally:
            worker.asked.pop(number, None)
            self._changed.set()

    def _leaves_work(self, attempt: Attempt) -> bool:
        """Return whether code of a question may still be at work in a worker that is asked nothing else meanwhile."""
        given_up = isinstance(attempt.error, QuestionTimeoutError | RunInterruptedError)
        return given_up and self._transport.is_question_to_blame

    # --- workers ---

    def _start(self) -> None:
        worker = _Worker(next(self._names))
        self._workers.append(worker)
        self._in_background(self._astart(worker))

    async def _astart(self, worker: _Worker) -> None:
        try:
            worker.link = await self._transport.astart(
                worker.number, lambda message: self._hear(worker, message), lambda why: self._lost(worker, why)
            )
        except Exception as problem:
            self._fail(worker, problem)

    def _hear(self, worker: _Worker, message: FromWorker) -> None:
        """Take a message of a worker."""
        if worker.is_gone:
            return
        if isinstance(message, Answered):
            self._lost_in_a_row = 0
            if message.number in worker.asked:
                asked = worker.asked[message.number]
                if not asked.outcome.done():
                    asked.outcome.set_result(_attempt_of(message))
        elif isinstance(message, Spending):
            self._budget.spend(message.cost, message.tokens)
            if self._budget.limit is not None:
                for each in self._workers:
                    each.send(OutOfBudget(self._budget.limit, self._budget.message))
            return
        elif isinstance(message, Told):
            if message.event is not None:
                self._tell(message.event)
            if message.warning is not None:
                self._warn(message.warning)
        elif isinstance(message, Ready):
            worker.is_ready = True
        elif isinstance(message, Unusable):
            self._fail(worker, AgentError(message.reason, hint=message.hint))
        else:
            if message.problem is not None:
                self._warn(message.problem)
            self._end(worker)
        self._changed.set()

    def _lost(self, worker: _Worker, why: str) -> None:
        """Take note of a worker that is gone without being told to."""
        if worker.is_gone:
            return
        self._lost_in_a_row += 1
        asked = [each for each in worker.asked.values() if not each.outcome.done()]
        self._end(worker)
        if self._is_closing:
            return
        for each in asked:
            each.outcome.set_result(each.failed(self._loss_of(each, worker, why)))
        if self._transport.is_question_to_blame and asked:
            return
        again = f": {counted(len(asked), 'question')} asked again" if asked else ""
        self._warn(f"worker {worker.number} was lost ({why}){again}")
        if self._lost_in_a_row > _MOST_LOST + self._size:
            self._fail(worker, AgentError(f"the workers are lost one after the other, the last one: {why}"))
        elif self._transport.is_begun_whole:
            self._start()

    def _loss_of(self, asked: _Asked, worker: _Worker, why: str) -> WorkerLostError:
        """Return the error of an attempt that was lost with its worker."""
        if self._transport.is_question_to_blame:
            return WorkerLostError(why)
        sample = asked.attempt_id.rpartition("/")[0]
        self._losses[sample] = losses = self._losses.get(sample, 0) + 1
        if losses < _MOST_LOST:
            return WorkerLostError(f"worker {worker.number} was lost: {why}", is_asked_again=True)
        return WorkerLostError(f"{losses} workers were lost while they asked it: {why}")

    def _end(self, worker: _Worker) -> None:
        """End a worker that is no longer wanted."""
        if worker.is_gone:
            return
        worker.is_gone = True
        if worker in self._workers:
            self._workers.remove(worker)
        if worker.link is not None:
            worker.link.end()
        self._changed.set()

    def _fail(self, worker: _Worker, problem: Exception) -> None:
        """End the run, as it cannot go on with workers."""
        self._problem = self._problem or problem
        self._end(worker)
        self._changed.set()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _attempt_of(message: Answered) -> Attempt:
    """Return the attempt that a worker told of."""
    failure = message.failure
    error: BaseException | None = None
    if failure is not None and failure.is_interrupted:
        error = RunInterruptedError(failure.text)
    elif failure is not None and failure.is_timeout:
        error = QuestionTimeoutError(failure.text)
    elif failure is not None:
        error = told = ToldError(failure.text)
        told.is_rate_limit, told.asked_wait = failure.is_rate_limit, failure.retry_after
        told.is_worth_a_retry = failure.is_worth_a_retry
    return Attempt(message.response, error, message.counted)
