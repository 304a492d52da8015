"""The engine ``ray``: a cluster, and workers that run questions in its tasks.

It is imported only if the engine is Ray, which is an optional extra. Judges, limits and files stay with the driver.
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
from typing import Any, TypeVar
from uuid import uuid4

from graphrag_eval_lc.benchmark.attempts import Attempt, RunInterruptedError, WorkerLostError
from graphrag_eval_lc.benchmark.limits import ConcurrencyLimit
from graphrag_eval_lc.benchmark.worker import Job, Unusable, Worker, Workers
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.records import Question
from graphrag_eval_lc.retrying import masked_error_text

Outcome = TypeVar("Outcome")

RETRIES = 2  # how often a question or batch of responses is retried after its process was lost
_HINT = "Install it: pip install 'graphrag-eval-lc[ray]'."
# Files in an agent's folder that are not code, and are not sent to the cluster.
_NOT_SENT = [".git", ".venv", "venv", "__pycache__", "node_modules", "runs", "*.jsonl", "*.parquet", "report.html"]
_ANSWER_SEC = 10.0
_LOOKING_SEC = 0.5


class RayCluster:
    """The cluster of a run. If this process is already connected to a cluster, that one is used."""

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
        """Connect to the cluster or start it, and return the number of its processors."""
        if not self.ray.is_initialized():
            with _signal_handlers_kept():
                try:
                    self._connect()
                except Exception as problem:
                    raise self._not_connected(problem) from problem
            self._is_ours = True
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def close(self) -> None:
        """Disconnect from the cluster; a cluster that was started here ends."""
        if self._is_ours:
            self.ray.shutdown()

    def _connect(self) -> None:
        if self._address is not None:
            _require_answer(self._address)
            sent = {} if self.folder is None else {"working_dir": self.folder, "excludes": _NOT_SENT}
            self.ray.init(address=self._address, logging_level="error", runtime_env=sent)
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # users have not agreed to it
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
    """Refuse an address if nothing answers there, as Ray would retry for 15 minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "://" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SEC).close()
    except OSError as problem:
        raise ConnectionError(f"nothing answers at {address} ({problem.strerror or problem})") from problem


@contextlib.contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def places_of_code() -> tuple[str, list[str]]:
    """Return the current folder and ``sys.path``, as absolute paths."""
    return str(Path.cwd()), [str(Path(path).absolute()) for path in sys.path if path]


def use_code_in(folder: str | None, paths: Iterable[str]) -> None:
    """Change to the driver's folder and add its ``sys.path``, as far as these folders exist on this machine."""
    sys.path.extend(path for path in paths if path not in sys.path and Path(path).exists())
    if folder is not None:
        with contextlib.suppress(OSError):
            os.chdir(folder)


async def answer_of(reference: Any) -> Any:
    """Wait for the result of a task.

    Cancelling stops the waiting but not the task, as Ray's client treats a cancelled task as an error.
    """
    answer = asyncio.wrap_future(reference.future())
    answer.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # else asyncio may print it
    return await asyncio.shield(answer)


# --- asking -----------------------------------------------------------------------------------------------------------


class RayWorkers(Workers[bool]):
    """Runs each attempt in a task.

    Ray starts and reuses the processes, and retries a question whose process or machine is lost.
    """

    def __init__(
        self, job: Job, slots: ConcurrencyLimit, *, workers: int | None, address: str | None, max_concurrency: int
    ) -> None:
        self._cluster = RayCluster(workers=workers, address=address)
        if self._cluster.is_to_be_joined:
            job, self._cluster.folder = _with_file_by_name(job)
        super().__init__(job, slots)
        self._size = min(workers or max_concurrency, max_concurrency)
        self._opened: Future[int] = Future()
        self._is_over = threading.Event()
        self._preparing: dict[asyncio.Future[None], Any] = {}
        self._ready = asyncio.Semaphore(0)  # one for each idle process that has loaded the agent

    async def aopen(self, stop: StopSignal) -> None:
        """Connect to the cluster, and have its processes load the agent."""
        self._keeping = threading.Thread(target=self._keep_cluster, daemon=True)
        self._keeping.start()
        processors = await _unless_stopped(asyncio.wrap_future(self._opened), stop)
        ray = self._cluster.ray
        folder, paths = places_of_code()
        self._code = (uuid4().hex, None if self._cluster.folder is not None else folder, paths)
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
        """Open the cluster and wait for the run's end, as Ray's processes die with the thread that started them."""
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

    async def _free(self) -> bool:
        return await self._ready.acquire()

    def _leave(self, worker: bool) -> None:
        self._ready.release()

    async def _outcome(
        self, worker: bool, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]"
    ) -> Attempt | Unusable | BaseException:
        errors = self._cluster.ray.exceptions
        try:
            reference = self._task.remote(self._sent, *self._code, question, attempt_id)
            asking = asyncio.ensure_future(answer_of(reference))
            await asyncio.wait({asking, abandoned}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leave(worker)
        if not asking.done():
            asking.cancel()
            self._cluster.ray.cancel(reference, force=True)
            return RunInterruptedError("the run was stopped before the agent answered")
        problem = asking.exception()
        if isinstance(problem, errors.RayError) and not isinstance(problem, errors.RayTaskError):
            return WorkerLostError(f"{RETRIES + 1} workers were lost while they asked it")
        return asking.result() if problem is None else problem

    async def aclose(self, *, waits: bool) -> None:
        """Disconnect from the cluster; a cluster that was started here ends, with all its processes."""
        for preparing, reference in self._preparing.items():
            if not preparing.done():  # a cluster does not end while a process is prepared
                preparing.cancel()
                self._cluster.ray.cancel(reference, force=True)
        self._is_over.set()
        if self._opened.done():  # else its thread closes it, when it is open
            await asyncio.to_thread(self._keeping.join)


_worker: tuple[str, Worker] | None = None


def asked(
    job: bytes, run: str, folder: str | None, paths: list[str], question: Question, attempt_id: str
) -> Attempt | Unusable:
    """Run a question in a process of Ray's, which loads the agent once."""
    worker = _worker_of(job, run, folder, paths)
    return worker.load() or worker.attempt(question, attempt_id)


def prepared(job: bytes, run: str, folder: str | None, paths: list[str]) -> None:
    """Load the agent in a process of Ray's, before the first question."""
    _worker_of(job, run, folder, paths).load()


def _worker_of(job: bytes, run: str, folder: str | None, paths: list[str]) -> Worker:
    """Return this process's worker for a run. The next run loads its agent again, as the file may have changed."""
    global _worker
    if _worker is None or _worker[0] != run:
        use_code_in(folder, paths)
        _worker = run, Worker(job)
    return _worker[1]


async def _unless_stopped(work: Awaitable[Outcome], stop: StopSignal) -> Outcome:
    """Wait for ``work``, or raise KeyboardInterrupt if the run is stopped: nothing else listens to the signal yet."""
    waiting = asyncio.ensure_future(work)
    while not waiting.done():
        await asyncio.wait({waiting}, timeout=_LOOKING_SEC)
        if stop.reason is not None and not waiting.done():
            waiting.cancel()
            raise KeyboardInterrupt(stop.message)
    return waiting.result()


def _with_file_by_name(job: Job) -> tuple[Job, str | None]:
    """Return a job that names the agent's file relative to the worker's folder, and the folder to send there."""
    place, _, attribute = job.agent.rpartition(":") if isinstance(job.agent, str) else ("", "", "")
    path = Path(place)
    if path.suffix != ".py" or not path.is_file():
        return job, None
    return replace(job, agent=f"{path.name}:{attribute}"), str(path.resolve().parent)
