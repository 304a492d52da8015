"""Each question in a process of this machine that is asked nothing else meanwhile: what crashes or blocks costs one."""

import asyncio
import contextlib
import os
import pickle
import re
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from loky import ProcessPoolExecutor

from graphrag_eval_lc.benchmark.attempts import (
    Attempt,
    QuestionTimeoutError,
    RunInterruptedError,
    WorkerLostError,
    lost_attempt,
    unheard_attempt,
)
from graphrag_eval_lc.benchmark.workers.shipping import packed
from graphrag_eval_lc.benchmark.workers.so_far import SoFarWriter
from graphrag_eval_lc.benchmark.workers.worker import Job, Unusable, Worker
from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.records import Question

Outcome = TypeVar("Outcome")

_OVERTIME_SEC = 3.0  # in which a worker itself ends an attempt whose time is over
_CLOSING_SEC = 15.0
_LEAVING_SEC = 5.0  # for what an agent's own threads still do after it was closed
_LOOKING_SEC = 0.5
_MOST_STARTS = 3
# loky ends a process that has grown, which an agent that loads a model at its first question does.
_ENVIRONMENT = {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}


class IsolatedWorkers:
    """Makes each attempt in a worker process; the runner uses it as it uses ``AgentCall``.

    Each worker is an executor of loky with one process, so that the end of one is not the end of others.

    Args:
        job: What a worker must know.
        timeout: Seconds for an attempt; None for no limit.
        warn: Given what went wrong when an agent was closed.

    Raises:
        AgentError: The agent cannot be sent to another process.
    """

    def __init__(self, job: Job, timeout: float | None, warn: Callable[[str], None]) -> None:
        self._job = packed(job)
        self._timeout = timeout
        self._warn = warn
        self._free: list[ProcessPoolExecutor] = []
        self._all: set[ProcessPoolExecutor] = set()
        self._so_far = tempfile.TemporaryDirectory(prefix="graphrag-eval-lc-", ignore_cleanup_errors=True)

    async def aattempt(self, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]") -> Attempt:
        """Have a worker ask a question once; see ``AgentCall.aattempt``.

        Raises:
            AgentError: No worker can be started, or none can load the agent.
        """
        worker = await self._free_worker(abandoned)
        began = _Began(Path(self._so_far.name, uuid.uuid4().hex))
        if worker is None:
            return began.lost(RunInterruptedError("the run was stopped before the agent was asked"), question)
        try:
            asked = asyncio.wrap_future(worker.submit(_attempt, question, attempt_id, str(began.so_far)))
        except BrokenExecutor:  # its process ended while nothing was asked
            await self._end(worker)
            return await self.aattempt(question, attempt_id, abandoned)
        longest = None if self._timeout is None else self._timeout + _OVERTIME_SEC
        await asyncio.wait({asked, abandoned}, timeout=longest, return_when=asyncio.FIRST_COMPLETED)
        attempt = self._outcome(asked, abandoned)
        if isinstance(attempt, Attempt) and not isinstance(attempt.error, QuestionTimeoutError):
            self._free.append(worker)
        else:
            await self._end(worker)  # its code may still be at work
        attempt = attempt if isinstance(attempt, Attempt) else began.lost(attempt, question)
        began.remove()
        return attempt

    def _outcome(self, asked: "asyncio.Future[Attempt]", abandoned: "asyncio.Future[None]") -> Attempt | BaseException:
        """Return what a worker made of a question, or why it made nothing of it."""
        if asked.done():
            problem = asked.exception()
            return asked.result() if problem is None else _loss(problem)
        asked.add_done_callback(_forget)
        if abandoned.done():
            return RunInterruptedError("the run was stopped before the agent answered")
        text = f"no answer within {self._timeout:g} s, the run's timeout; its process was ended, as it was blocked"
        return QuestionTimeoutError(text)

    async def aclose(self, *, waits: bool = True) -> None:
        """Close the agents of all workers, and end them.

        Args:
            waits: Whether the agents have time to be closed; else the workers are ended at once.
        """
        try:
            async with asyncio.timeout(_CLOSING_SEC if waits else 0):
                await asyncio.gather(*map(self._close, self._free))
        except TimeoutError:
            pass
        finally:
            await asyncio.gather(*map(self._end, list(self._all)))
            self._so_far.cleanup()

    async def _close(self, worker: ProcessPoolExecutor) -> None:
        with contextlib.suppress(BrokenExecutor):
            problem = await asyncio.wrap_future(worker.submit(_close))
            if problem is not None:
                self._warn(problem)
        await asyncio.to_thread(worker.shutdown, wait=True)

    async def _free_worker(self, abandoned: "asyncio.Future[None]") -> ProcessPoolExecutor | None:
        """Return a worker that has loaded the agent; None if the run is abandoned before."""
        if self._free:
            return self._free.pop()
        for _ in range(_MOST_STARTS):
            worker = ProcessPoolExecutor(1, initializer=_begin, initargs=(self._job, os.getpid()), env=_ENVIRONMENT)
            self._all.add(worker)
            # In a thread, as a large job takes its time on the way to the process.
            loading = asyncio.wrap_future(await asyncio.to_thread(worker.submit, _load))
            await asyncio.wait({loading, abandoned}, return_when=asyncio.FIRST_COMPLETED)
            loading.add_done_callback(_forget)
            problem = loading.exception() if loading.done() else None
            if loading.done() and problem is None:
                unusable: Unusable | None = loading.result()
                if unusable is None:
                    return worker
                raise AgentError(unusable[0], hint=unusable[1])
            await self._end(worker)
            if problem is None:
                return None
        raise AgentError(
            f"no process can be started for questions: {_loss(problem)}",
            hint="Look at what it printed. If memory ran out, lower max_concurrency (--max-concurrency).",
        )

    async def _end(self, worker: ProcessPoolExecutor) -> None:
        """Kill the process of a worker and those that it has started."""
        self._all.discard(worker)
        await asyncio.to_thread(worker.shutdown, wait=True, kill_workers=True)


@dataclass(frozen=True, slots=True)
class _Began:
    """The beginning of an attempt, and the file in which its worker writes what it has done so far."""

    so_far: Path
    started_at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.perf_counter)

    def lost(self, error: BaseException, question: Question) -> Attempt:
        """Return the attempt, whose worker did not return it, as far as it is known."""
        elapsed_sec = time.perf_counter() - self.began
        if not self.so_far.is_file():
            return unheard_attempt(question, error, self.started_at, elapsed_sec)
        return lost_attempt(Attempt(pickle.loads(self.so_far.read_bytes()), None), error, elapsed_sec)

    def remove(self) -> None:
        """Remove the file."""
        self.so_far.unlink(missing_ok=True)


def _forget(ended: "asyncio.Future[Any]") -> None:
    """Take note of an exception that nobody waits for, as asyncio would print it."""
    if not ended.cancelled():
        ended.exception()


def _loss(problem: BaseException | None) -> BaseException:
    """Return the error of an attempt whose worker did not return it.

    Example:
        >>> _loss(BrokenExecutor("The exit codes of the workers are {SIGSEGV(-11)}"))
        WorkerLostError('the process that asked it was ended by SIGSEGV (Segmentation fault)')
        >>> _loss(BrokenExecutor("The exit codes of the workers are {EXIT(3)}"))
        WorkerLostError('the process that asked it ended itself with the exit code 3')
    """
    if not isinstance(problem, BrokenExecutor):
        return problem or WorkerLostError("the process that asked it is gone")
    found = re.search(r"exit codes of the workers are \{\w+\((-?\d+)\)", str(problem))
    if found is None:
        return WorkerLostError("the process that asked it is gone")
    code = int(found[1])
    if code >= 0:
        return WorkerLostError(f"the process that asked it ended itself with the exit code {code}")
    known = signal.Signals(-code)
    why = "; the system does that where memory runs out" if known.name == "SIGKILL" else ""
    return WorkerLostError(f"the process that asked it was ended by {known.name} ({signal.strsignal(known)}){why}")


# --- in the worker process -------------------------------------------------------------------------------------------

_worker: Worker
_loop: asyncio.AbstractEventLoop  # lasts as long as the process: clients of models live as long as their loop


def _begin(job: bytes, driver: int) -> None:
    """Prepare this process, which ends with the driver, and leaves Ctrl-C and the like to it."""
    global _worker, _loop
    _worker, _loop = Worker(job), asyncio.new_event_loop()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:  # not SIG_IGN, which the programs that an agent starts would inherit
            signal.signal(number, lambda *_: None)
    threading.Thread(target=_run_loop, daemon=True).start()
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()


def _end_with(driver: int) -> None:
    while os.getppid() == driver:
        time.sleep(_LOOKING_SEC)
    os._exit(0)


def _run_loop() -> None:
    """Run the loop, also after an agent has raised SystemExit in it."""
    while True:
        with contextlib.suppress(BaseException):
            _loop.run_forever()


def _leave() -> None:
    """End this process even if a thread of the agent never ends."""
    time.sleep(_LEAVING_SEC)
    os._exit(0)


def _load() -> Unusable | None:
    return _in_loop(_worker.aload())


def _attempt(question: Question, attempt_id: str, so_far: str) -> Attempt:
    follow = SoFarWriter.of(Path(so_far))
    return _in_loop(_worker.aattempt(question, attempt_id, follow=follow))


def _close() -> str | None:
    problem = _in_loop(_worker.aclose())
    threading.Thread(target=_leave, daemon=True).start()
    return problem


def _in_loop(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    return asyncio.run_coroutine_threadsafe(work, _loop).result()
