"""Workers for ``isolate``: local processes that run one question at a time, so that a crash costs only one answer."""

import asyncio
import contextlib
import os
import pickle
import re
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

from loky import ProcessPoolExecutor
from loky.backend import resource_tracker

from graphrag_eval_lc.benchmark.attempts import (
    GIVING_UP_SEC,
    Attempt,
    QuestionTimeoutError,
    RunInterruptedError,
    WorkerLostError,
    lost_attempt,
)
from graphrag_eval_lc.benchmark.limits import ConcurrencyLimit
from graphrag_eval_lc.benchmark.worker import Job, Unusable, Worker, Workers
from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.records import Question

_OVERTIME_SEC = GIVING_UP_SEC + 1.0  # the worker should end a timed-out attempt itself within this time
_CLOSING_SEC = 15.0
_LEAVING_SEC = 5.0  # how long an agent's threads may run after it was closed
_LOOKING_SEC = 0.5
_MOST_STARTS = 3
_STARTS_AT_ONCE = 2  # importing packages takes a processor: the first answer would wait for all processes
# loky restarts processes whose memory grows, as it does if an agent loads a model at its first question.
_ENVIRONMENT = {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}


class IsolatedWorkers(Workers[ProcessPoolExecutor]):
    """Runs each attempt in a process.

    Each worker is a separate loky executor with one process, as a crash breaks its whole executor. A new worker is
    started when a question finds none free.
    """

    def __init__(self, job: Job, slots: ConcurrencyLimit, warn: Callable[[str], None]) -> None:
        super().__init__(job, slots)
        self._warn = warn
        self._unused: asyncio.Queue[ProcessPoolExecutor | AgentError] = asyncio.Queue()
        self._all: set[ProcessPoolExecutor] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._so_far = Path(tempfile.mkdtemp(prefix="graphrag-eval-lc-"))
        resource_tracker.register(str(self._so_far), "folder")  # a process of loky's removes it if this one is killed

    async def _free(self) -> ProcessPoolExecutor:
        self._waiting += 1
        try:
            if self._unused.empty() and len(self._starting) < _STARTS_AT_ONCE:
                starting = asyncio.create_task(self._start())
                self._starting.add(starting)
                starting.add_done_callback(self._starting.discard)
            found = await self._unused.get()
        finally:
            self._waiting -= 1
        if isinstance(found, AgentError):
            self._unused.put_nowait(found)  # for all others that wait
            raise found
        return found

    def _leave(self, worker: ProcessPoolExecutor) -> None:
        self._unused.put_nowait(worker)

    async def _outcome(
        self, worker: ProcessPoolExecutor, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]"
    ) -> Attempt | BaseException:
        so_far, began = self._so_far / uuid.uuid4().hex, time.perf_counter()
        try:
            asked = asyncio.wrap_future(worker.submit(_attempt, question, attempt_id, so_far))
        except BrokenExecutor:  # its process ended while it was idle
            await self._end(worker)
            return await self.aattempt(question, attempt_id, abandoned)
        asked.add_done_callback(_forget)
        longest = None if self._timeout is None else self._timeout + _OVERTIME_SEC
        await asyncio.wait({asked, abandoned}, timeout=longest, return_when=asyncio.FIRST_COMPLETED)
        outcome: Attempt | BaseException
        if asked.done():
            problem = asked.exception()
            outcome = asked.result() if problem is None else _loss(problem)
        elif abandoned.done():
            outcome = RunInterruptedError("the run was stopped before the agent answered")
        else:
            text = f"no answer within {self._timeout:g} s, the run's timeout; its process was ended, as it was blocked"
            outcome = QuestionTimeoutError(text)
        if isinstance(outcome, Attempt) and not isinstance(outcome.error, QuestionTimeoutError):
            self._leave(worker)
        else:
            await self._end(worker)  # its code may still be at work
        if not isinstance(outcome, Attempt) and so_far.is_file():
            captured = Attempt(pickle.loads(so_far.read_bytes()), None)
            outcome = lost_attempt(captured, outcome, time.perf_counter() - began)
        so_far.unlink(missing_ok=True)
        return outcome

    async def aclose(self, *, waits: bool) -> None:
        """Close the agents of all workers, and end them."""
        for task in self._starting:
            task.cancel()
        free = [self._unused.get_nowait() for _ in range(self._unused.qsize())]
        try:
            async with asyncio.timeout(_CLOSING_SEC if waits else 0):
                await asyncio.gather(*(self._close(each) for each in free if not isinstance(each, AgentError)))
        except TimeoutError:
            pass
        finally:
            await asyncio.gather(*map(self._end, list(self._all)))
            shutil.rmtree(self._so_far, ignore_errors=True)
            resource_tracker.unregister(str(self._so_far), "folder")

    async def _close(self, worker: ProcessPoolExecutor) -> None:
        with contextlib.suppress(BrokenExecutor):
            problem = await asyncio.wrap_future(worker.submit(_close))
            if problem is not None:
                self._warn(problem)
        await asyncio.to_thread(worker.shutdown, wait=True)

    async def _start(self) -> None:
        """Start workers while questions wait for one."""
        while self._waiting > self._unused.qsize():
            self._unused.put_nowait(await self._started())

    async def _started(self) -> ProcessPoolExecutor | AgentError:
        """Return a new worker that has loaded the agent, or why there is none."""
        for _ in range(_MOST_STARTS):
            worker = ProcessPoolExecutor(1, initializer=_begin, initargs=(self._job, os.getpid()), env=_ENVIRONMENT)
            self._all.add(worker)
            # In a thread, as sending a large job to the process takes time.
            loading = asyncio.wrap_future(await asyncio.to_thread(worker.submit, _load))
            loading.add_done_callback(_forget)
            try:
                unusable = await asyncio.shield(loading)
            except BrokenExecutor as problem:
                lost: BaseException = _loss(problem)
                await self._end(worker)
                continue
            return worker if unusable is None else AgentError(unusable.what, hint=unusable.hint)
        return AgentError(
            f"no process can be started for questions: {lost}",
            hint="Look at what it printed. If memory ran out, lower max_concurrency (--max-concurrency).",
        )

    async def _end(self, worker: ProcessPoolExecutor) -> None:
        """Kill the process of a worker and those that it has started."""
        self._all.discard(worker)
        await asyncio.to_thread(worker.shutdown, wait=True, kill_workers=True)


def _forget(ended: "asyncio.Future[Any]") -> None:
    """Retrieve an exception that nobody awaits, so that asyncio does not print it."""
    if not ended.cancelled():
        ended.exception()


def _loss(problem: BaseException) -> BaseException:
    """Return the error of an attempt whose worker did not return it.

    Example:
        >>> _loss(BrokenExecutor("The exit codes of the workers are {SIGSEGV(-11)}"))
        WorkerLostError('the worker process was killed by SIGSEGV (Segmentation fault)')
        >>> _loss(BrokenExecutor("The exit codes of the workers are {EXIT(3)}"))
        WorkerLostError('the worker process exited with code 3')
    """
    if not isinstance(problem, BrokenExecutor):
        return problem
    found = re.search(r"exit codes of the workers are \{\w+\((-?\d+)\)", str(problem))
    if found is None:
        return WorkerLostError("the worker process disappeared")
    code = int(found[1])
    if code >= 0:
        return WorkerLostError(f"the worker process exited with code {code}")
    known = signal.Signals(-code)
    why = "; the system does that if memory runs out" if known.name == "SIGKILL" else ""
    return WorkerLostError(f"the worker process was killed by {known.name} ({signal.strsignal(known)}){why}")


# --- in the worker process -------------------------------------------------------------------------------------------


_worker: Worker


def _begin(job: bytes, driver: int) -> None:
    """Prepare this process: it ends when the driver does, and ignores Ctrl-C and similar signals."""
    global _worker
    _worker = Worker(job)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:  # not SIG_IGN, which the programs that an agent starts would inherit
            signal.signal(number, lambda *_: None)
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()


def _end_with(driver: int) -> None:
    while os.getppid() == driver:
        time.sleep(_LOOKING_SEC)
    os._exit(0)


def _load() -> Unusable | None:
    return _worker.load()


def _attempt(question: Question, attempt_id: str, so_far: Path) -> Attempt:
    return _worker.attempt(question, attempt_id, so_far)


def _close() -> str | None:
    problem = _worker.close()
    threading.Thread(target=_leave, daemon=True).start()
    return problem


def _leave() -> None:
    """End this process even if a thread of the agent never ends."""
    time.sleep(_LEAVING_SEC)
    os._exit(0)
