"""Workers as actors of a Ray cluster: one that is there, or one that is started here and ends with the run.

Imported only where the engine is Ray, which is an optional extra.
"""

import asyncio
import contextlib
import importlib
import os
import pickle
import secrets
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphrag_eval_lc.benchmark.workers.messages import FromWorker, Job, ToWorker
from graphrag_eval_lc.benchmark.workers.shipping import packed
from graphrag_eval_lc.benchmark.workers.spool import left_behind
from graphrag_eval_lc.benchmark.workers.worker import Worker
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.retrying import masked_error_text

_LISTENING_SEC = 10.0
_ADDRESS = "RAY_ADDRESS"
_HINT = "Install it: pip install 'graphrag-eval-lc[ray]'."
# What a folder with an agent holds beside its code; it is not sent to the cluster.
_NOT_SENT = [".git", ".venv", "venv", "__pycache__", "node_modules", "runs", "*.jsonl", "*.parquet", "report.html"]
# Of a cluster that is started here: it tells nobody of its use, and without a token Ray would write one into the home.
_OWN_CLUSTER = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
_TOKENS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


def _ray() -> Any:
    """Return Ray's module.

    Raises:
        OptionError: It is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ImportError as problem:
        raise OptionError("the engine ray needs the package ray", key="engine", hint=_HINT) from problem


class RayTransport:
    """Starts workers as actors of Ray, each on one processor of the cluster.

    Args:
        job: The job of all workers.
        workers: How many there are; None: one for each processor of the cluster.
        address: The cluster; None: that of RAY_ADDRESS, else one that is started here. A cluster that this process is
            connected to already goes before both.

    Raises:
        GraphRAGEvalError: Ray is not installed, or the agent cannot be sent.
    """

    is_question_to_blame = False
    is_begun_whole = True

    def __init__(self, job: Job, *, workers: int | None = None, address: str | None = None) -> None:
        self.places = job.places
        self._ray = _ray()
        self._workers = workers
        self._address = address or os.environ.get(_ADDRESS) or None
        self._is_own = False
        self._run_id = job.run_id
        self._closing = contextlib.ExitStack()
        is_joined = self._address is not None and not self._ray.is_initialized()
        job, self._folder = _with_file_by_name(job) if is_joined else (job, None)
        self._job = packed(job, importlib.import_module("ray.cloudpickle").dumps)

    async def aopen(self) -> int:
        """Connect to the cluster or start it, and return how many workers there are to be."""
        if not self._ray.is_initialized():
            await asyncio.to_thread(self._connect)
        if self._workers is not None:
            return self._workers
        resources = await asyncio.to_thread(self._ray.cluster_resources)
        return max(1, int(resources.get("CPU", 1)))

    async def aleft_behind(self) -> Sequence[Mapping[str, Any]]:
        """Take the responses that workers of lost sessions of the run have kept, on each machine of the cluster."""
        ray = self._ray
        affinity = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        take = ray.remote(_left_behind)
        nodes = [node["NodeID"] for node in await asyncio.to_thread(ray.nodes) if node["Alive"]]
        taking = [
            take.options(num_cpus=0, scheduling_strategy=affinity(node, soft=False)).remote(self._run_id)
            for node in nodes
        ]
        found = await asyncio.gather(*(_awaited(each) for each in taking), return_exceptions=True)
        return [response for responses in found if isinstance(responses, list) for response in responses]

    async def astart(self, number: int, hear: Callable[[FromWorker], None], lost: Callable[[str], None]) -> "RayLink":
        """Start an actor."""
        remote = self._ray.remote(num_cpus=1, max_restarts=0, concurrency_groups={"post": 1, "take": 1})(RayWorker)
        folder, paths = _places_of_code()
        made = await asyncio.to_thread(remote.remote, self._job, folder, paths)
        return RayLink(self._ray, made, hear, lost)

    async def aclose(self) -> None:
        """Leave the cluster; one that was started here ends."""
        await asyncio.to_thread(self._closing.close)

    def _connect(self) -> None:
        quiet = {"logging_level": "error", "include_dashboard": False}
        with _signal_handlers_kept():
            try:
                if self._address is not None:
                    sent = {} if self._folder is None else {"working_dir": self._folder, "excludes": _NOT_SENT}
                    self._ray.init(address=self._address, logging_level="error", runtime_env=sent)
                else:
                    self._closing.enter_context(_own_environment())
                    processors = self._workers or os.cpu_count() or 1
                    self._ray.init(address="local", num_cpus=processors, **quiet)
            except Exception as problem:
                self._closing.close()
                where = "started here" if self._address is None else f"reached at {self._address}"
                raise OptionError(
                    f"no Ray cluster can be {where}: {masked_error_text(problem).splitlines()[0]}",
                    key="engine" if self._address is None else "ray_address",
                    hint="Look at it with: ray status. A token goes into RAY_AUTH_TOKEN, with RAY_AUTH_MODE=token.",
                ) from problem
        self._closing.callback(self._ray.shutdown)


class RayLink:
    """The way to one actor: messages that come together go together, and one call waits for what it has to tell."""

    def __init__(self, ray: Any, actor: Any, hear: Callable[[FromWorker], None], lost: Callable[[str], None]) -> None:
        self._ray = ray
        self._actor = actor
        self._hear = hear
        self._lost = lost
        self._outbox: list[ToWorker] = []
        self._is_ended = False
        self._listening = asyncio.create_task(self._listen())

    def send(self, message: ToWorker) -> None:
        """Send a message with others of this turn of the loop."""
        self._outbox.append(message)
        if len(self._outbox) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def end(self) -> None:
        """Kill the actor."""
        self._flush()
        self._is_ended = True
        if asyncio.current_task() is not self._listening:
            self._listening.cancel()
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor)

    def _flush(self) -> None:
        messages, self._outbox = self._outbox, []
        if messages:
            self._actor.post.remote(pickle.dumps(messages, pickle.HIGHEST_PROTOCOL))

    async def _listen(self) -> None:
        while not self._is_ended:
            try:
                told: list[FromWorker] = pickle.loads(await self._actor.take.remote(_LISTENING_SEC))
            except asyncio.CancelledError:
                raise
            except Exception as problem:
                self._lost(_why_lost(problem))
                return
            for message in told:
                self._hear(message)


class RayWorker:
    """A worker in an actor; its calls come and go in threads of Ray's, and the agent's loop has one of its own.

    Args:
        job: The job, pickled.
        folder: The folder of the driver; used where it is there.
        paths: Where the driver finds modules; used where they are there.
    """

    def __init__(self, job: bytes, folder: str, paths: Sequence[str]) -> None:
        sys.path.extend(path for path in paths if path not in sys.path and Path(path).exists())
        loaded: Job = pickle.loads(job)
        with contextlib.suppress(OSError):
            if isinstance(loaded.agent, str) and not Path(loaded.agent.rpartition(":")[0]).exists():
                os.chdir(folder)
        self._told: deque[FromWorker] = deque()
        self._some_told = threading.Event()
        self._worker = Worker(loaded, self._tell)
        threading.Thread(target=self._worker.run, daemon=True).start()

    def post(self, messages: bytes) -> None:
        """Take messages of the driver."""
        for message in pickle.loads(messages):
            self._worker.post(message)

    def take(self, seconds: float) -> bytes:
        """Give what the driver is to be told, once there is something, or after ``seconds``."""
        self._some_told.wait(seconds)
        self._some_told.clear()
        messages = []
        while self._told:
            messages.append(self._told.popleft())
        return pickle.dumps(messages, pickle.HIGHEST_PROTOCOL)

    def _tell(self, message: FromWorker) -> None:
        self._told.append(message)
        self._some_told.set()


# Ray's own decorator would need it at import.
RayWorker.post.__ray_concurrency_group__ = "post"  # type: ignore[attr-defined]
RayWorker.take.__ray_concurrency_group__ = "take"  # type: ignore[attr-defined]


def _left_behind(run_id: str) -> list[dict[str, Any]]:
    return list(left_behind(run_id))


async def _awaited(reference: Any) -> Any:
    return await reference


def _with_file_by_name(job: Job) -> tuple[Job, str | None]:
    """Return a job whose agent is a file beside the worker, and the file's folder, which goes there with it."""
    if not isinstance(job.agent, str):
        return job, None
    place, _, attribute = job.agent.rpartition(":")
    path = Path(place)
    if path.suffix != ".py" or not path.is_file():
        return job, None
    return replace(job, agent=f"{path.name}:{attribute}"), str(path.resolve().parent)


def _places_of_code() -> tuple[str, list[str]]:
    return str(Path.cwd()), [str(Path(path).absolute()) for path in sys.path if path]


@contextlib.contextmanager
def _own_environment() -> Iterator[None]:
    """Set the environment of a cluster that is started here, where the user has not, while the context lasts."""
    has_token = any(name in os.environ for name in _TOKENS)
    own = {
        key: value for key, value in _OWN_CLUSTER.items() if not (key in os.environ or (key in _TOKENS and has_token))
    }
    earlier = dict(os.environ)
    os.environ.update(own)
    try:
        yield
    finally:
        for key in (*own, *_TOKENS, "PYTHONBREAKPOINT"):  # of which Ray sets some itself
            if key not in earlier:
                os.environ.pop(key, None)
        with contextlib.suppress(Exception):  # else Ray would go on with tokens, which other clusters may not have
            raylet = importlib.import_module("ray._raylet")
            raylet.Config.initialize("")
            raylet.AuthenticationTokenLoader.instance().reset_cache()


@contextlib.contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """Put back the handler of SIGTERM, which Ray takes for itself in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _why_lost(problem: BaseException) -> str:
    """Say in a few words why an actor is gone."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    if "died because its node has died" in str(problem):
        return "its machine is gone"
    if type(problem).__name__ == "ActorDiedError" and "creation task" in str(problem):
        return lines[-1]
    return "its process is gone"
