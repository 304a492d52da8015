"""Questions asked by actors of a Ray cluster, several at a time by each.

Imported only where the engine is Ray, which is an optional extra.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from time import perf_counter, time
from typing import Any, TypeVar

from graphrag_eval_lc.benchmark.attempts import Attempt, RunInterruptedError, WorkerLostError, unheard_attempt
from graphrag_eval_lc.benchmark.workers.ray_cluster import RayCluster, answer_of, places_of_code, use_code_in, why_lost
from graphrag_eval_lc.benchmark.workers.shipping import packed
from graphrag_eval_lc.benchmark.workers.worker import Job, Unusable, Worker
from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.records import Question
from graphrag_eval_lc.texts import counted

Outcome = TypeVar("Outcome")

_ABANDONING_SEC = 5.0  # in which a worker returns what an abandoned attempt did so far
_CLOSING_SEC = 15.0
_LOOKING_SEC = 0.5
_MOST_LOST = 3  # as often a question may be lost with its worker, and workers one after the other without an answer


@dataclass(slots=True, eq=False)
class _Actor:
    number: int
    handle: Any
    asked: int = 0
    is_gone: bool = False


class RayWorkers:
    """Makes each attempt in an actor; the runner uses it as it uses ``AgentCall``.

    Args:
        job: What a worker must know.
        workers: How many actors there are, each on one processor; None: one for each processor of the cluster.
        address: The cluster; None: that of RAY_ADDRESS, else one that is started here. A cluster that this process is
            connected to already goes before both.
        places: How many questions are asked at the same time in all.
        warn: Given what was lost.

    Raises:
        GraphRAGEvalError: Ray is not installed, or the agent cannot be sent.
    """

    def __init__(
        self, job: Job, *, workers: int | None, address: str | None, places: int, warn: Callable[[str], None]
    ) -> None:
        self._cluster = RayCluster(workers=workers, address=address)
        if self._cluster.is_to_be_joined:
            job, self._cluster.folder = _with_file_by_name(job)
        self._job = packed(job)
        self._places = places
        self._warn = warn
        self._size = 0
        self._numbers = count(1)
        self._ready: list[_Actor] = []
        self._all: list[_Actor] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._problem: AgentError | None = None
        self._losses: dict[str, int] = {}  # of attempts, by sample
        self._one_suspect = asyncio.Lock()
        self._lost_in_a_row = 0

    async def aopen(self, stop: StopSignal) -> None:
        """Reach the cluster, and start the actors; return once the first one has loaded the agent.

        Raises:
            GraphRAGEvalError: The cluster cannot be reached, or the agent cannot be loaded there.
            KeyboardInterrupt: The run is stopped before.
        """
        self._size = await _unless_stopped(asyncio.to_thread(self._cluster.open), stop)
        for _ in range(self._size):
            self._start()
        await _unless_stopped(self._actor(asyncio.get_running_loop().create_future()), stop)

    async def aattempt(self, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]") -> Attempt:
        """Have an actor ask a question once; see ``AgentCall.aattempt``.

        Raises:
            AgentError: The agent cannot be loaded, or all actors are lost.
        """
        sample = attempt_id.rpartition("/")[0]
        if sample not in self._losses:
            return await self._ask(question, attempt_id, abandoned)
        async with self._one_suspect:  # whatever ended its worker is not to end that of another suspect
            return await self._ask(question, attempt_id, abandoned)

    async def aclose(self, *, waits: bool = True) -> None:
        """Close the agents, end the actors and leave the cluster; one that was started here ends.

        Args:
            waits: Whether the agents have time to be closed.
        """
        for task in self._starting:
            task.cancel()
        try:
            async with asyncio.timeout(_CLOSING_SEC if waits else 0):
                closing = [answer_of(actor.handle.aclose.remote()) for actor in self._ready]
                for problem in await asyncio.gather(*closing, return_exceptions=True):
                    if isinstance(problem, str):
                        self._warn(problem)
        except TimeoutError:
            pass
        finally:
            for actor in self._all:
                self._kill(actor)
            await asyncio.to_thread(self._cluster.close)

    async def _ask(self, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]") -> Attempt:
        actor = await self._actor(abandoned)
        started_at, began = time(), perf_counter()

        def failed(error: BaseException) -> Attempt:
            return unheard_attempt(question, error, started_at, perf_counter() - began)

        if actor is None:
            return failed(RunInterruptedError("the run was stopped before the agent was asked"))
        actor.asked += 1
        try:
            asked = asyncio.ensure_future(answer_of(actor.handle.aattempt.remote(question, attempt_id)))
            await asyncio.wait({asked, abandoned}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                actor.handle.aabandon.remote()
                await asyncio.wait({asked}, timeout=_ABANDONING_SEC)
            if not asked.done():
                asked.cancel()
                return failed(RunInterruptedError("the run was stopped before the agent answered"))
            attempt: Attempt = asked.result()
        except self._cluster.ray.exceptions.RayTaskError as problem:
            return failed(problem)
        except self._cluster.ray.exceptions.RayError as problem:
            return failed(self._loss(actor, attempt_id, why_lost(problem)))
        finally:
            actor.asked -= 1
        self._lost_in_a_row = 0
        return attempt

    async def _actor(self, abandoned: "asyncio.Future[None]") -> _Actor | None:
        """Return the actor with the fewest questions, once one is ready; None if the run is abandoned."""
        while not abandoned.done():
            if self._problem is not None:
                raise self._problem
            if self._ready:
                return min(self._ready, key=lambda actor: actor.asked)
            self._changed.clear()
            changed = asyncio.ensure_future(self._changed.wait())
            ends: set[asyncio.Future[Any]] = {changed, abandoned}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
        return None

    def _start(self) -> None:
        remote = self._cluster.ray.remote(num_cpus=1, max_concurrency=self._places + 2)(RayWorker)
        folder, paths = places_of_code()
        sent = self._cluster.folder is not None
        actor = _Actor(next(self._numbers), remote.remote(self._job, None if sent else folder, paths))
        self._all.append(actor)
        task = asyncio.create_task(self._load(actor))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _load(self, actor: _Actor) -> None:
        try:
            unusable: Unusable | None = await answer_of(actor.handle.aload.remote())
        except Exception as problem:
            self._lost(actor, why_lost(problem))
            return
        if unusable is None:
            self._ready.append(actor)
        else:
            self._problem = AgentError(unusable[0], hint=unusable[1])
        self._changed.set()

    def _loss(self, actor: _Actor, attempt_id: str, why: str) -> WorkerLostError:
        """Return the error of an attempt that was lost with its actor."""
        self._lost(actor, why)
        sample = attempt_id.rpartition("/")[0]
        self._losses[sample] = losses = self._losses.get(sample, 0) + 1
        if losses < _MOST_LOST:
            return WorkerLostError(f"worker {actor.number} was lost: {why}", is_asked_again=True)
        return WorkerLostError(f"{losses} workers were lost while they asked it: {why}")

    def _lost(self, actor: _Actor, why: str) -> None:
        """Start another actor in place of one that is lost, once."""
        if actor.is_gone:
            return
        again = f": {counted(actor.asked, 'question')} asked again" if actor.asked else ""
        self._warn(f"worker {actor.number} was lost ({why}){again}")
        self._kill(actor)
        self._lost_in_a_row += 1
        if self._lost_in_a_row > _MOST_LOST + self._size:
            self._problem = AgentError(f"the workers are lost one after the other, the last one: {why}")
        else:
            self._start()
        self._changed.set()

    def _kill(self, actor: _Actor) -> None:
        actor.is_gone = True
        if actor in self._ready:
            self._ready.remove(actor)
        with contextlib.suppress(Exception):
            self._cluster.ray.kill(actor.handle)


class RayWorker(Worker):
    """A worker in an actor.

    Args:
        job: The ``Job``, packed.
        folder: The folder of the driver, used if it exists here; None: the agent's files were sent.
        paths: Where the driver finds modules, used if they exist here.
    """

    def __init__(self, job: bytes, folder: str | None, paths: list[str]) -> None:
        use_code_in(folder, paths)
        super().__init__(job)


def _with_file_by_name(job: Job) -> tuple[Job, str | None]:
    """Return a job whose agent is a file in the worker's folder, and the file's folder, which is sent there."""
    if not isinstance(job.agent, str):
        return job, None
    place, _, attribute = job.agent.rpartition(":")
    path = Path(place)
    if path.suffix != ".py" or not path.is_file():
        return job, None
    return replace(job, agent=f"{path.name}:{attribute}"), str(path.resolve().parent)


async def _unless_stopped(work: Awaitable[Outcome], stop: StopSignal) -> Outcome:
    """Wait for something, unless the run is stopped meanwhile: nothing else listens to the signal yet."""
    waiting = asyncio.ensure_future(work)
    while not waiting.done():
        await asyncio.wait({waiting}, timeout=_LOOKING_SEC)
        if stop.reason is not None and not waiting.done():
            waiting.cancel()
            raise KeyboardInterrupt(stop.message)
    return waiting.result()
