"""Scoring on a Ray cluster: batches of responses are compared in its tasks, and the driver keeps judges and files."""

import contextlib
import pickle
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

from graphrag_eval_lc.benchmark.ray_engine import RETRIES, RayCluster, answer_of, places_of_code, use_code_in
from graphrag_eval_lc.benchmark.worker import pickled
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import GraphRAGEvalError, OptionError
from graphrag_eval_lc.evaluation.pipeline import Compared
from graphrag_eval_lc.evaluation.question_result import evaluate_question
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.records import Response, Template
from graphrag_eval_lc.registry import registered_only_here
from graphrag_eval_lc.registry.plugins import loaded_plugin, plugin_of, registered_name
from graphrag_eval_lc.registry.step_kinds import StepKind, custom_step_kinds, register_step_kind
from graphrag_eval_lc.texts import listed

_MOST_SAMPLES = 32
_MOST_BYTES = 1_000_000
_BATCHES = 4  # at least this many for each worker, so that all stay busy


class ShippedKinds(NamedTuple):
    """The step kinds that users registered, in a form for processes that know only the package's own."""

    plugins: dict[str, bytes | None]
    by_value: bytes

    @classmethod
    def of_this_process(cls) -> "ShippedKinds":
        """Return the kinds that users registered in this process."""
        plugins: dict[str, bytes | None] = {}
        by_value: dict[StepKind, None] = {}
        for key, kind in custom_step_kinds().items():
            plugin = plugin_of(registered_name(key), kind.matcher)
            if plugin.name.endswith(".py"):
                plugins[str(Path(plugin.name).resolve())] = _content(plugin.name)
            elif plugin.via != "Python":
                plugins[plugin.module if plugin.entry_point is not None else plugin.name] = None
            else:
                by_value[kind] = None
        return cls(plugins, _pickled_kinds(by_value))

    def register(self) -> None:
        """Register the kinds in this process; if a plugin's file is missing or different here, it is written first."""
        for name, content in self.plugins.items():
            path = Path(name)
            if content is None or (path.is_file() and path.read_bytes() == content):
                loaded_plugin(name, "Python")
                continue
            with TemporaryDirectory() as folder:
                copy = Path(folder, path.name)
                copy.write_bytes(content)
                loaded_plugin(str(copy), "Python")
        for kind in pickle.loads(self.by_value):
            register_step_kind(kind)


def _content(plugin: str) -> bytes:
    try:
        return Path(plugin).read_bytes()
    except OSError as problem:
        raise OptionError(f"the plugin {plugin} cannot be read again: {problem}", key="engine") from problem


def _pickled_kinds(kinds: Iterable[StepKind]) -> bytes:
    for kind in kinds:
        try:
            pickled(kind)
        except Exception as problem:
            reason = (str(problem) or type(problem).__name__).splitlines()[0].rstrip(".")
            what = f"the matcher of {kind.title} cannot be sent to another process ({reason})"
            hint = "Put it into a file, and name that as a plugin: --plugin FILE, or plugins in the config."
            raise OptionError(what, key="engine", hint=hint) from problem
    return pickled(list(kinds))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a task needs to compare responses."""

    config: EvaluationConfig
    kinds: ShippedKinds
    folder: str
    paths: list[str]


class Answer(NamedTuple):
    """What a task returns for a batch."""

    results: list[bytes]
    failure: bytes | None = None
    refusal: tuple[str, str | None] | None = None


@contextlib.contextmanager
def ray_comparer(config: EvaluationConfig, *, workers: int | None, address: str | None) -> Iterator["RayComparer"]:
    """Yield a comparer that uses tasks of a cluster; the context's end disconnects from the cluster or ends it."""
    cluster = RayCluster(workers=workers, address=address)
    sent = EvaluationConfig(steps=config.steps, sparql=config.sparql, retrieval=config.retrieval)
    job = pickled(Comparison(sent, ShippedKinds.of_this_process(), *places_of_code()))
    try:
        processors = cluster.open()
        yield RayComparer(cluster, job, workers or processors)
    finally:
        cluster.close()


class RayComparer:
    """Has batches of responses compared by tasks; see ``Comparer``."""

    def __init__(self, cluster: RayCluster, job: bytes, size: int) -> None:
        self._ray = cluster.ray
        self._task = self._ray.remote(num_cpus=1, max_retries=RETRIES)(compared_batch)
        self._job = job
        self._size = size

    async def acompared(
        self, samples: Iterable[tuple[Sample, Response | None]], *, number: int, has_repeats: bool
    ) -> AsyncGenerator[Compared]:
        """Compare responses, and yield them in order; see ``Comparer``."""
        most = max(1, min(_MOST_SAMPLES, number // (_BATCHES * self._size)))
        batches = _batches(samples, most, has_repeats=has_repeats)
        job = self._ray.put(self._job)
        under_way: deque[tuple[list[tuple[Sample, Response | None]], Any]] = deque()
        try:
            while True:
                while len(under_way) < self._size and (batch := next(batches, None)) is not None:
                    under_way.append((batch[0], self._task.remote(job, batch[1])))
                if not under_way:
                    return
                answer = await self._answer(*under_way[0])
                asked, _ = under_way.popleft()
                for (sample, response), result in zip(asked, answer.results, strict=False):
                    yield Compared(sample, response, pickle.loads(result))
                if answer.failure is not None:
                    raise pickle.loads(answer.failure)
        finally:
            for _, reference in under_way:
                self._ray.cancel(reference, force=True)

    async def _answer(self, asked: list[tuple[Sample, Response | None]], reference: Any) -> Answer:
        try:
            answer: Answer = await answer_of(reference)
        except self._ray.exceptions.RayTaskError as problem:  # as with other versions there
            last = [line for line in str(problem).splitlines() if line.strip()][-1].strip()
            hint = "Have the same versions of this package and of Python on all machines."
            raise OptionError(f"a worker failed: {last}", key="engine", hint=hint) from problem
        except self._ray.exceptions.RayError as problem:
            ids = listed([sample.key[0] for sample, _ in asked], 3)
            raise OptionError(
                f"{RETRIES + 1} workers were lost while they compared the same questions ({ids})",
                key="engine",
                hint="Look at the memory of their machines and at Ray's logs, or score without an engine.",
            ) from problem
        if answer.refusal is not None:
            what, hint_of_worker = answer.refusal
            raise OptionError(f"the workers cannot compare: {what}", key="engine", hint=hint_of_worker)
        return answer


def _batches(
    samples: Iterable[tuple[Sample, Response | None]], most: int, *, has_repeats: bool
) -> Iterator[tuple[list[tuple[Sample, Response | None]], list[bytes]]]:
    """Yield batches of samples with their responses, each batch as objects and pickled."""
    asked: list[tuple[Sample, Response | None]] = []
    data: list[bytes] = []
    for sample, response in samples:
        repeat = sample.repeat if has_repeats else None
        try:
            data.append(pickled((sample.template["template_id"], sample.question, response, repeat)))
        except Exception as problem:
            raise OptionError(
                f"the question or its response cannot be sent to another process ({str(problem).rstrip('.')})",
                question_id=sample.key[0],
                hint="Make it of plain values, such as JSON has them, or score without an engine.",
            ) from problem
        asked.append((sample, response))
        if len(data) >= most or sum(map(len, data)) >= _MOST_BYTES:
            yield asked, data
            asked, data = [], []
    if data:
        yield asked, data


# --- in the worker ---------------------------------------------------------------------------------------------------

_registered = contextlib.ExitStack()
_prepared: tuple[bytes, EvaluationConfig, StepViews] | None = None


def compared_batch(job: bytes, batch: list[bytes]) -> Answer:
    """Compare a batch of pickled responses."""
    try:
        config, views = _prepared_for(job)
    except GraphRAGEvalError as problem:
        return Answer([], refusal=(problem.what, problem.hint))
    except Exception as problem:
        return Answer([], refusal=(f"{type(problem).__name__}: {problem}", None))
    results: list[bytes] = []
    for data in batch:
        template_id, question, response, repeat = pickle.loads(data)
        template = cast("Template", {"template_id": template_id})
        try:
            results.append(pickled(evaluate_question(template, question, response, config, repeat=repeat, views=views)))
        except Exception as problem:
            return Answer(results, _pickled_error(problem))
    return Answer(results)


def _prepared_for(job: bytes) -> tuple[EvaluationConfig, StepViews]:
    """Register the step kinds of a scoring once for this process, in place of those of an earlier scoring."""
    global _prepared
    if _prepared is None or _prepared[0] != job:
        _prepared = None
        _registered.close()
        comparison: Comparison = pickle.loads(job)
        use_code_in(comparison.folder, comparison.paths)
        _registered.enter_context(registered_only_here())
        comparison.kinds.register()
        config = comparison.config
        _prepared = job, config, StepViews(config.steps, config.sparql, config.retrieval)
    return _prepared[1:]


def _pickled_error(problem: Exception) -> bytes:
    try:
        data = pickle.dumps(problem, pickle.HIGHEST_PROTOCOL)
        pickle.loads(data)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(problem).__name__}: {problem}"))
    return data
