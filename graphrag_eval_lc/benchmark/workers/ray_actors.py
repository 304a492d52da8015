"""Workers as actors of a Ray cluster: one that is there, or one that is started here and ends with the run.

Imported only where the engine is Ray, which is an optional extra.
"""

import asyncio
import contextlib
import importlib
import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphrag_eval_lc.benchmark.workers.messages import FromWorker, Job, ToWorker
from graphrag_eval_lc.benchmark.workers.ray_cluster import RayCluster, answer_of, places_of_code, use_code_in, why_lost
from graphrag_eval_lc.benchmark.workers.shipping import packed
from graphrag_eval_lc.benchmark.workers.spool import left_behind
from graphrag_eval_lc.benchmark.workers.worker import Worker

_LISTENING_SEC = 10.0


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
        self._cluster = RayCluster(workers=workers, address=address)
        self._run_id = job.run_id
        if self._cluster.is_to_be_joined:
            job, self._cluster.folder = _with_file_by_name(job)
        self._job = packed(job)

    async def aopen(self) -> int:
        """Connect to the cluster or start it, and return how many workers there are to be."""
        return await asyncio.to_thread(self._cluster.open)

    async def aleft_behind(self) -> Sequence[Mapping[str, Any]]:
        """Take the responses that workers of lost sessions of the run have kept, on each machine of the cluster."""
        ray = self._cluster.ray
        affinity = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        take = ray.remote(_left_behind)
        nodes = [node["NodeID"] for node in await asyncio.to_thread(ray.nodes) if node["Alive"]]
        taking = [
            take.options(num_cpus=0, scheduling_strategy=affinity(node, soft=False)).remote(self._run_id)
            for node in nodes
        ]
        found = await asyncio.gather(*map(answer_of, taking), return_exceptions=True)
        return [response for responses in found if isinstance(responses, list) for response in responses]

    async def astart(self, number: int, hear: Callable[[FromWorker], None], lost: Callable[[str], None]) -> "RayLink":
        """Start an actor."""
        ray = self._cluster.ray
        remote = ray.remote(num_cpus=1, max_restarts=0, concurrency_groups={"post": 1, "take": 1})(RayWorker)
        folder, paths = places_of_code()
        made = await asyncio.to_thread(remote.remote, self._job, folder, paths)
        return RayLink(ray, made, hear, lost)

    async def aclose(self) -> None:
        """Leave the cluster; one that was started here ends."""
        await asyncio.to_thread(self._cluster.close)


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
                told: list[FromWorker] = pickle.loads(await answer_of(self._actor.take.remote(_LISTENING_SEC)))
            except asyncio.CancelledError:
                raise
            except Exception as problem:
                self._lost(why_lost(problem))
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
        use_code_in(paths)
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


def _with_file_by_name(job: Job) -> tuple[Job, str | None]:
    """Return a job whose agent is a file beside the worker, and the file's folder, which goes there with it."""
    if not isinstance(job.agent, str):
        return job, None
    place, _, attribute = job.agent.rpartition(":")
    path = Path(place)
    if path.suffix != ".py" or not path.is_file():
        return job, None
    return replace(job, agent=f"{path.name}:{attribute}"), str(path.resolve().parent)
