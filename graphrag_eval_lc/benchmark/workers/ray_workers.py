"""Questions asked by tasks of a Ray cluster, each in a process that is asked nothing else meanwhile.

Imported only if the engine is Ray, which is an optional extra.
"""

import asyncio
import contextlib
import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from time import perf_counter, time
from typing import Any, TypeVar

from graphrag_eval_lc.benchmark.attempts import Attempt, RunInterruptedError, WorkerLostError, unheard_attempt
from graphrag_eval_lc.benchmark.concurrency_limit import ConcurrencyLimit
from graphrag_eval_lc.benchmark.workers.shipping import packed
from graphrag_eval_lc.benchmark.workers.worker import Job, Unusable, Worker, unless_abandoned
from graphrag_eval_lc.errors import AgentError, OptionError
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.records import Question
from graphrag_eval_lc.retrying import masked_error_text

Outcome = TypeVar("Outcome")

RETRIES = 2  # of a question or a batch whose process is lost
_HINT = "Install it: pip install 'graphrag-eval-lc[ray]'."
# What a folder with an agent holds in addition to its code; it is not sent to the cluster.
_NOT_SENT = [".git", ".venv", "venv", "__pycache__", "node_modules", "runs", "*.jsonl", "*.parquet", "report.html"]
_ANSWER_SEC = 10.0
_LOOKING_SEC = 0.5


class RayCluster:
    """The cluster of a run. A cluster that this process is connected to already takes precedence over all others.

    Args:
        workers: How many processes there are at most; None: as many as are needed.
        address: The cluster; None: that of RAY_ADDRESS, else one that is started here.

    Attributes:
        ray: Ray's module.
        is_to_be_joined: Whether this process is to connect to an existing cluster.
        folder: A folder of code that goes to such a cluster; None: none does.

    Raises:
        OptionError: Ray is not installed.
    """

    def __init__(self, *, workers: int | None = None, address: str | None = None) -> None:
        try:
            self.ray: Any = importlib.import_module("ray")
        except ImportError as problem:
            raise OptionError("the engine ray needs the package ray", key="engine", hint=_HINT) from problem
        self.folder: str | None = None
        self._workers = workers
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self.is_to_be_joined = self._address is not None and not self.ray.is_initialized()
        self._is_ours = False

    def open(self) -> int:
        """Connect to the cluster or start it, and return the number of its processors.

        Raises:
            OptionError: It cannot be reached or started.
        """
        if not self.ray.is_initialized():
            with _signal_handlers_kept():
                try:
                    self._connect()
                except Exception as problem:
                    raise self._not_connected(problem) from problem
            self._is_ours = True
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._is_ours:
            self.ray.shutdown()

    def _connect(self) -> None:
        if self._address is not None:
            _require_answer(self._address)
            sent = {} if self.folder is None else {"working_dir": self.folder, "excludes": _NOT_SENT}
            self.ray.init(address=self._address, logging_level="error", runtime_env=sent)
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # our users did not agree to it
        processors = self._workers or os.cpu_count() or 1
        self.ray.init(address="local", num_cpus=processors, logging_level="error", include_dashboard=False)

    def _not_connected(self, problem: Exception) -> OptionError:
        if self.folder is not None and type(problem).__name__ == "RuntimeEnvSetupError":
            reason = masked_error_text(problem.__cause__ or problem).splitlines()[-1].partition(". ")[0]
            hint = f"Name what workers do not need, such as data, in {Path(self.folder, '.rayignore')}."
            return OptionError(f"the agent's folder cannot be sent to the cluster: {reason}", key="agent", hint=hint)
        where = "started here" if self._address is None else f"reached at {self._address}"
        return OptionError(
            f"no Ray cluster can be {where}: {masked_error_text(problem).splitlines()[0]}",
            key="engine" if self._address is None else "ray_address",
            hint="Look at it with: ray status. A token goes into RAY_AUTH_TOKEN, with RAY_AUTH_MODE=token.",
        )


def _require_answer(address: str) -> None:
    """Refuse an address if nothing answers: Ray would try again for a quarter of an hour.

    Raises:
        ConnectionError: No connection can be made there.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "://" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SEC).close()
    except OSError as problem:
        raise ConnectionError(f"nothing answers at {address} ({problem.strerror or problem})") from problem


@contextlib.contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """Put back the handler of SIGTERM, which Ray replaces in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def places_of_code() -> tuple[str, list[str]]:
    """Return the current folder, and where modules are found."""
    return str(Path.cwd()), [str(Path(path).absolute()) for path in sys.path if path]


def use_code_in(folder: str | None, paths: Iterable[str]) -> None:
    """Work in the driver's folder, and add its ``sys.path``, on a machine that has these places."""
    sys.path.extend(path for path in paths if path not in sys.path and Path(path).exists())
    if folder is not None:
        with contextlib.suppress(OSError):
            os.chdir(folder)


async def answer_of(reference: Any) -> Any:
    """Wait for what a task returns.

    Whoever is cancelled waits no longer, but the task continues: Ray's client takes a cancelled one for an error.
    """
    answer = asyncio.wrap_future(reference.future())
    answer.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # else asyncio may print it
    return await asyncio.shield(answer)


class RayWorkers:
    """Makes each attempt in a task; the runner uses it as it uses ``AgentCall``.

    Ray starts the processes, uses them again, and retries a question whose process or machine is lost.

    Args:
        job: What a worker must know.
        workers: How many processes ask at the same time at most; None: one for each question.
        address: The cluster; see ``RayCluster``.
        places: How many questions are asked at the same time in all.
        slots: The limit of requests.

    Raises:
        GraphRAGEvalError: Ray is not installed, or the agent cannot be sent.
    """

    def __init__(
        self, job: Job, *, workers: int | None, address: str | None, places: int, slots: ConcurrencyLimit
    ) -> None:
        self._cluster = RayCluster(workers=workers, address=address)
        if self._cluster.is_to_be_joined:
            job, self._cluster.folder = _with_file_by_name(job)
        self._job = packed(job)
        self._size = min(workers or places, places)
        self._slots = slots
        self._opened: Future[int] = Future()
        self._is_over = threading.Event()
        self._preparing: dict[asyncio.Future[None], Any] = {}
        self._ready = asyncio.Semaphore(0)  # one for each process that has loaded the agent and asks nothing

    async def aopen(self, stop: StopSignal) -> None:
        """Reach the cluster.

        Raises:
            GraphRAGEvalError: It cannot be reached.
            KeyboardInterrupt: The run is stopped before.
        """
        self._keeping = threading.Thread(target=self._keep_cluster, daemon=True)
        self._keeping.start()
        processors = await _unless_stopped(asyncio.wrap_future(self._opened), stop)
        ray = self._cluster.ray
        folder, paths = places_of_code()
        self._code = (None if self._cluster.folder is not None else folder, paths)
        self._sent = ray.put(self._job)
        share = min(1.0, processors / self._size)
        self._task = ray.remote(num_cpus=share, max_retries=RETRIES)(asked)
        prepare = ray.remote(num_cpus=share, max_retries=0)(prepared)
        for _ in range(self._size):
            reference = prepare.remote(self._sent, *self._code)
            preparing = asyncio.ensure_future(answer_of(reference))
            preparing.add_done_callback(self._prepared)
            self._preparing[preparing] = reference

    def _keep_cluster(self) -> None:
        """Open the cluster, and wait for the end: Ray's processes are killed with the thread that started them."""
        self._opened.set_running_or_notify_cancel()  # it cannot be cancelled from here on
        try:
            self._opened.set_result(self._cluster.open())
        except BaseException as problem:
            self._opened.set_exception(problem)
            return
        self._is_over.wait()
        self._cluster.close()  # also one that was opened after the run had ended

    def _prepared(self, preparing: "asyncio.Future[None]") -> None:
        self._ready.release()
        if not preparing.cancelled():
            preparing.exception()  # it will be the error of a question

    async def aattempt(self, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]") -> Attempt:
        """Have a task ask a question once; see ``AgentCall.aattempt``.

        Raises:
            AgentError: The agent cannot be loaded.
        """
        is_ready = await unless_abandoned(self._ready.acquire(), abandoned)
        may_ask = is_ready and await self._slots.wait_for_pace(abandoned)
        started_at, began = time(), perf_counter()
        if not may_ask:
            error = RunInterruptedError("the run was stopped before the agent was asked")
            return unheard_attempt(question, error, started_at, 0.0)
        try:
            outcome = await self._outcome(question, attempt_id, abandoned)
        finally:
            self._ready.release()
        if isinstance(outcome, Unusable):
            raise AgentError(outcome.what, hint=outcome.hint)
        if isinstance(outcome, Attempt):
            return outcome
        return unheard_attempt(question, outcome, started_at, perf_counter() - began)

    async def _outcome(
        self, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]"
    ) -> Attempt | Unusable | BaseException:
        """Return what a task made of a question, or why it made nothing of it."""
        errors = self._cluster.ray.exceptions
        reference = self._task.remote(self._sent, *self._code, question, attempt_id)
        asking = asyncio.ensure_future(answer_of(reference))
        await asyncio.wait({asking, abandoned}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            asking.cancel()
            self._cluster.ray.cancel(reference, force=True)
            return RunInterruptedError("the run was stopped before the agent answered")
        problem = asking.exception()
        if isinstance(problem, errors.RayError) and not isinstance(problem, errors.RayTaskError):
            return WorkerLostError(f"{RETRIES + 1} workers were lost while they asked it")
        return asking.result() if problem is None else problem

    async def aclose(self, *, waits: bool) -> None:
        """Leave the cluster; one that was started here ends, and processes of a run end with it."""
        for preparing, reference in self._preparing.items():
            if not preparing.done():  # a cluster does not end while a process is prepared
                preparing.cancel()
                self._cluster.ray.cancel(reference, force=True)
        self._is_over.set()
        if self._opened.done():  # else its thread closes it, when it is open
            await asyncio.to_thread(self._keeping.join)


_worker: Worker | None = None


def asked(job: bytes, folder: str | None, paths: list[str], question: Question, attempt_id: str) -> Attempt | Unusable:
    """Ask a question in a process of Ray's, which loads the agent once."""
    worker = _worker_of(job, folder, paths)
    return worker.load() or worker.attempt(question, attempt_id)


def prepared(job: bytes, folder: str | None, paths: list[str]) -> None:
    """Load the agent in a process of Ray's, before the first question."""
    _worker_of(job, folder, paths).load()


def _worker_of(job: bytes, folder: str | None, paths: list[str]) -> Worker:
    global _worker
    if _worker is None or _worker.job != job:
        use_code_in(folder, paths)
        _worker = Worker(job)
    return _worker


async def _unless_stopped(work: Awaitable[Outcome], stop: StopSignal) -> Outcome:
    """Wait for something, unless the run is stopped meanwhile: nothing else listens to the signal yet."""
    waiting = asyncio.ensure_future(work)
    while not waiting.done():
        await asyncio.wait({waiting}, timeout=_LOOKING_SEC)
        if stop.reason is not None and not waiting.done():
            waiting.cancel()
            raise KeyboardInterrupt(stop.message)
    return waiting.result()


def _with_file_by_name(job: Job) -> tuple[Job, str | None]:
    """Return a job whose agent is a file in the worker's folder, and the file's folder, which is sent there."""
    place, _, attribute = job.agent.rpartition(":") if isinstance(job.agent, str) else ("", "", "")
    path = Path(place)
    if path.suffix != ".py" or not path.is_file():
        return job, None
    return replace(job, agent=f"{path.name}:{attribute}"), str(path.resolve().parent)
