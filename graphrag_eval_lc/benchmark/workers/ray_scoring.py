"""Responses compared with their references by actors of a Ray cluster, in batches; judges and files stay at the driver.

Imported only where the engine is Ray, which is an optional extra.
"""

import asyncio
import contextlib
import os
import pickle
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from graphrag_eval_lc.benchmark.workers.ray_cluster import RayCluster, answer_of, places_of_code, use_code_in, why_lost
from graphrag_eval_lc.benchmark.workers.shipped_kinds import ShippedKinds, reason_and_hint
from graphrag_eval_lc.benchmark.workers.shipping import pickled
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import GraphRAGEvalError, OptionError
from graphrag_eval_lc.evaluation.comparing import Compared
from graphrag_eval_lc.evaluation.question_result import evaluate_question
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.records import Question, Response, Template
from graphrag_eval_lc.texts import counted, listed

_MOST_SAMPLES = 32
_MOST_BYTES = 1_000_000
_AT_ONE_ACTOR = 2  # batches: one that it compares, and one that waits there
_AHEAD = 4  # batches for each actor that are read ahead or not taken yet
_MOST_LOST = 3  # as often a batch may be lost, and actors one after the other beside those that began together
_LOST_HINT = "Look whether their machines have enough memory, and at Ray's logs; or score without an engine."


@dataclass(frozen=True, slots=True)
class Comparison:
    """What an actor must know to compare.

    Attributes:
        config: The sections of the configuration that comparing needs; what judges need stays at the driver.
        kinds: The step kinds of users.
    """

    config: EvaluationConfig
    kinds: ShippedKinds


class Answer(NamedTuple):
    """What an actor gives for a batch.

    Attributes:
        results: The results in order, each pickled; of those before the failure, where there is one.
        failure: What ``evaluate_question`` raised, pickled; None where it did not.
    """

    results: list[bytes]
    failure: bytes | None = None


class _Batch(NamedTuple):
    """Samples that go to an actor together."""

    asked: list[tuple[Sample, Response | None]]
    data: list[bytes]


@contextlib.contextmanager
def ray_comparer(
    config: EvaluationConfig, *, workers: int | None, address: str | None, warn: Callable[[str], None]
) -> Iterator["RayComparer"]:
    """Give what compares by actors of a cluster, which is left or ended with the context.

    Args:
        config: The configuration.
        workers: How many actors there are; None: one for each processor of the cluster.
        address: The cluster; None: that of RAY_ADDRESS, else one that is started here.
        warn: Told of lost actors.

    Raises:
        OptionError: Ray is not installed, its cluster cannot be reached, or a matcher cannot be sent.
    """
    cluster = RayCluster(workers=workers, address=address)
    sent = EvaluationConfig(steps=config.steps, sparql=config.sparql, retrieval=config.retrieval)
    job = pickled(Comparison(sent, ShippedKinds.of_this_process()))
    try:
        yield RayComparer(cluster, job, cluster.open(), warn)
    finally:
        cluster.close()


class RayComparer:
    """Has batches of responses compared by actors; see ``Comparer``.

    Args:
        cluster: The cluster, which is open.
        job: The ``Comparison``, pickled.
        size: How many actors there are.
        warn: Told of lost actors.
    """

    def __init__(self, cluster: RayCluster, job: bytes, size: int, warn: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._job = job
        self._size = size
        self._warn = warn

    async def acompared(
        self, samples: Iterable[tuple[Sample, Response | None]], *, number: int, has_repeats: bool
    ) -> AsyncGenerator[Compared]:
        """Compare responses, and yield them in order; see ``Comparer``."""
        size = min(self._size, number)
        batches = self._batches(samples, max(1, min(_MOST_SAMPLES, number // (_AHEAD * max(size, 1)))), has_repeats)
        actors = _Actors(self._cluster, self._job, size, self._warn)
        under_way: deque[tuple[_Batch, asyncio.Task[Answer]]] = deque()
        try:
            while True:
                while len(under_way) < _AHEAD * size and (batch := next(batches, None)) is not None:
                    under_way.append((batch, asyncio.create_task(actors.acompare(batch))))
                    await asyncio.sleep(0)  # so that it is sent before the next one is read
                if not under_way:
                    return
                (asked, _), answering = under_way[0]
                answer = await answering
                under_way.popleft()
                for (sample, response), result in zip(asked, answer.results, strict=False):
                    yield Compared(sample, response, pickle.loads(result))
                if answer.failure is not None:
                    raise pickle.loads(answer.failure)
        finally:
            for _, answering in under_way:
                answering.cancel()
            await asyncio.gather(*(answering for _, answering in under_way), return_exceptions=True)
            actors.close()

    def _batches(
        self, samples: Iterable[tuple[Sample, Response | None]], most: int, has_repeats: bool
    ) -> Iterator[_Batch]:
        batch, size = _Batch([], []), 0
        for sample, response in samples:
            data = self._pickled(sample, response, sample.repeat if has_repeats else None)
            batch.asked.append((sample, response))
            batch.data.append(data)
            size += len(data)
            if len(batch.data) >= most or size >= _MOST_BYTES:
                yield batch
                batch, size = _Batch([], []), 0
        if batch.data:
            yield batch

    def _pickled(self, sample: Sample, response: Response | None, repeat: int | None) -> bytes:
        try:
            return pickled((sample.template["template_id"], sample.question, response, repeat))
        except Exception as problem:
            raise OptionError(
                f"the question or its response cannot be sent to another process ({str(problem).rstrip('.')})",
                question_id=sample.key[0],
                hint="Make it of plain values, such as JSON has them, or score without an engine.",
            ) from problem


class _Actor:
    """An actor as the driver knows it."""

    def __init__(self, number: int, handle: Any) -> None:
        self.number = number
        self.handle = handle
        self.samples = 0
        self.is_gone = False


class _Actors:
    """The actors of a scoring: which batch goes to which of them, and what becomes of those that are lost."""

    def __init__(self, cluster: RayCluster, job: bytes, size: int, warn: Callable[[str], None]) -> None:
        self._ray = cluster.ray
        self._remote = self._ray.remote(num_cpus=1, max_restarts=0)(ComparingActor)
        self._job = job
        self._size = size
        self._warn = warn
        self._free: asyncio.Queue[_Actor | None] = asyncio.Queue()  # None: there will be no more
        self._problem: GraphRAGEvalError | None = None
        self._lost_in_a_row = 0
        self._known: list[_Actor] = []
        self._starts: set[asyncio.Task[None]] = set()
        for _ in range(size):
            self._start()

    async def acompare(self, batch: _Batch) -> Answer:
        """Have a batch compared by the next actor that is free, again where it is lost.

        Raises:
            GraphRAGEvalError: No actor can be had, or each that compares the batch is lost.
        """
        data = pickle.dumps(batch.data, pickle.HIGHEST_PROTOCOL)
        for _ in range(_MOST_LOST):
            actor = await self._afree()
            actor.samples += len(batch.asked)
            try:
                answer = pickle.loads(await answer_of(actor.handle.compare.remote(data)))
            except self._ray.exceptions.RayTaskError as problem:
                raise _failed(problem) from problem
            except Exception as problem:
                why = self._lost(actor, problem)
            else:
                self._lost_in_a_row = 0
                if not actor.is_gone:
                    self._free.put_nowait(actor)
                return Answer(*answer)
            finally:
                actor.samples -= len(batch.asked)
        if self._problem is not None:
            raise self._problem
        ids = listed([sample.key[0] for sample, _ in batch.asked], 3)
        raise OptionError(
            f"{_MOST_LOST} workers were lost while they compared the same questions ({ids}): {why}",
            key="engine",
            hint=_LOST_HINT,
        )

    def close(self) -> None:
        """End the actors."""
        for task in self._starts:
            task.cancel()
        for actor in self._known:
            self._end(actor)

    async def _afree(self) -> _Actor:
        while True:
            actor = await self._free.get()
            if actor is None:
                self._free.put_nowait(None)
                assert self._problem is not None
                raise self._problem
            if not actor.is_gone:
                return actor

    def _start(self) -> None:
        task = asyncio.create_task(self._astart())
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)

    async def _astart(self) -> None:
        actor = _Actor(len(self._known) + 1, self._remote.remote(*places_of_code()))
        self._known.append(actor)
        try:
            refused = await answer_of(actor.handle.begin.remote(self._job))
        except self._ray.exceptions.RayTaskError as problem:
            self._fail(_failed(problem))
        except Exception as problem:
            self._lost(actor, problem)
        else:
            if refused is not None:
                self._fail(OptionError(f"the workers cannot compare: {refused[0]}", key="engine", hint=refused[1]))
            for _ in range(_AT_ONE_ACTOR):
                self._free.put_nowait(actor)

    def _lost(self, actor: _Actor, problem: Exception) -> str:
        """Put another actor in the place of one that is lost, once, and return why it is."""
        why = why_lost(problem)
        if actor.is_gone:
            return why
        self._end(actor)
        self._lost_in_a_row += 1
        again = f": {counted(actor.samples, 'response is', 'responses are')} compared again" if actor.samples else ""
        self._warn(f"worker {actor.number} was lost ({why}){again}")
        if self._lost_in_a_row > _MOST_LOST + self._size:
            what = f"the workers are lost one after the other, the last one: {why}"
            self._fail(OptionError(what, key="engine", hint=_LOST_HINT))
        else:
            self._start()
        return why

    def _end(self, actor: _Actor) -> None:
        actor.is_gone = True
        with contextlib.suppress(Exception):
            self._ray.kill(actor.handle)

    def _fail(self, problem: GraphRAGEvalError) -> None:
        self._problem = self._problem or problem
        self._free.put_nowait(None)


class ComparingActor:
    """Compares responses in an actor.

    Args:
        folder: The folder of the driver; used where it is there.
        paths: Where the driver finds modules; used where they are there.
    """

    def __init__(self, folder: str, paths: list[str]) -> None:
        use_code_in(paths)
        with contextlib.suppress(OSError):
            os.chdir(folder)
        self._config = EvaluationConfig()
        self._views = StepViews()

    def begin(self, job: bytes) -> tuple[str, str | None] | None:
        """Take what it must know; return why it cannot compare, with a hint, and None where it can."""
        try:
            comparison: Comparison = pickle.loads(job)
            comparison.kinds.register()
        except Exception as problem:
            return reason_and_hint(problem)
        self._config = comparison.config
        self._views = StepViews(self._config.steps, self._config.sparql, self._config.retrieval)
        return None

    def compare(self, batch: bytes) -> bytes:
        """Compare a batch, and return its ``Answer``, pickled."""
        results: list[bytes] = []
        failure = None
        for data in pickle.loads(batch):
            try:
                results.append(_sendable(self._result(data)))
            except Exception as problem:
                failure = _sendable_error(problem)
                break
        return pickle.dumps(tuple(Answer(results, failure)), pickle.HIGHEST_PROTOCOL)

    def _result(self, data: bytes) -> Any:
        template_id, question, response, repeat = pickle.loads(data)
        template = cast("Template", {"template_id": template_id})
        asked: Question = question
        return evaluate_question(template, asked, response, self._config, repeat=repeat, views=self._views)


def _sendable(value: Any) -> bytes:
    return pickled(value)


def _sendable_error(problem: Exception) -> bytes:
    try:
        data = pickle.dumps(problem, pickle.HIGHEST_PROTOCOL)
        pickle.loads(data)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(problem).__name__}: {problem}"))
    return data


def _failed(problem: Exception) -> OptionError:
    """Return the error of an actor whose code failed, as with other versions on its machine."""
    last = [line for line in str(problem).splitlines() if line.strip()][-1].strip()
    hint = "Have the same versions of this package and of Python on all machines."
    return OptionError(f"a worker failed: {last}", key="engine", hint=hint)
