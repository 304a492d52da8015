"""Asks an agent the question of a test, returns the result, and explains it if the test fails."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, cast

import pytest

from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.options import named_by
from graphrag_eval_lc.benchmark.run_benchmark import arun_benchmark
from graphrag_eval_lc.benchmark.run_options import CheckedOptions, RunOptions
from graphrag_eval_lc.compare.gate_names import nearest
from graphrag_eval_lc.errors import GraphRAGEvalError, OptionError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.pytest_plugin.datasets import AskedQuestion, question_of, run_of
from graphrag_eval_lc.pytest_plugin.session import Part, part_of
from graphrag_eval_lc.pytest_plugin.settings import settings_of
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metric_spec import error_key, reason_key
from graphrag_eval_lc.registry.metrics import COST, ELAPSED_SEC, TOTAL_TOKENS, is_declared, metric_spec, own_metrics
from graphrag_eval_lc.texts import on_one_line, shortened, visible

# The options of run_benchmark for asking one question. How it is scored is set by the marker.
ASKING = (
    "input_fn", "answer_fn", "agent_config", "agent_key_env", "timeout", "max_retries", "retry_on", "capture",
)  # fmt: skip
_SPENT = (TOTAL_TOKENS, ELAPSED_SEC, COST)


class AskResult(dict[str, Any]):
    """The result of a question, as in a run's ``results.jsonl``. If the question failed, each of its scores is 0.

    A missing key raises an error that names the nearest one.

    Args:
        result: The result.
        own: The names of metrics that your evaluators returned.

    Example:
        >>> AskResult({"status": "error", "error": "away"})["steps_score"]
        0.0
    """

    def __init__(self, result: Mapping[str, Any], own: Iterable[str] = ()) -> None:
        super().__init__(result)
        self._own = frozenset(own)
        if is_error(result):
            self.update({key: metric_spec(key).value_of_failure for key in result if self._is_score(key)})

    def __missing__(self, key: str) -> Any:
        spec = metric_spec(key)
        if is_error(self) and is_declared(key) and spec.kind == "score":
            return spec.value_of_failure
        if is_declared(key):
            needs = f"; it needs {spec.requires}" if spec.requires else ""
            raise KeyError(f"{key} was not measured for this question{needs}")
        near = get_close_matches(key, self, n=1, cutoff=0.6)
        raise KeyError(f"the result has no {key}. {nearest(key, near or list(self.scores_and_spent()) or list(self))}")

    def scores_and_spent(self) -> dict[str, float]:
        """Return the scores, then tokens, seconds and cost, as floats by name."""
        keys = [*(key for key in self if self._is_score(key)), *_SPENT]
        values = {key: number(self.get(key)) for key in keys}
        return {key: value for key, value in values.items() if value is not None}

    def _is_score(self, key: str) -> bool:
        return key in self._own or (is_declared(key) and metric_spec(key).kind == "score")


_ASKED = pytest.StashKey[AskResult]()
_NAMED = pytest.StashKey[dict[str, Any]]()


class Asker:
    """Asks an agent the question of one test: ``graphrag_ask(agent)``, or ``await graphrag_ask.aask(agent)``."""

    def __init__(self, item: pytest.Item, question: AskedQuestion, part: Part | None) -> None:
        self._item = item
        self._question = question
        self._part = part
        self._run = run_of(item, question)

    @on_one_line
    def __repr__(self) -> str:
        return f"<graphrag_ask {self._question.id}>"

    def __call__(self, agent: Any, **options: Any) -> AskResult:
        """Ask an agent, with the capture handler of this package, and score its response.

        Args:
            agent: A graph or another Runnable, a function, or the spec of one; see ``run_benchmark``.
            **options: ``input_fn``, ``answer_fn``, ``agent_config``, ``agent_key_env``, ``timeout``, ``max_retries``,
                ``retry_on`` and ``capture``, as for ``run_benchmark``.

        Returns:
            The result: a dict with ``status``, ``actual_answer``, ``actual_steps``, the scores, such as
            ``steps_score``, and their reasons. If the agent failed, it has ``error``, and its scores are 0.

        Raises:
            OptionError: An option does not exist, or has a wrong value.
            AgentError: The agent cannot be loaded.
        """
        __tracebackhide__ = True  # a failed test shows its own line
        given = self._options(options)
        candidate = self._begun(agent, given)
        with self._noting_why():
            return self._ended(run_sync(lambda: self._aask(candidate, given)))

    async def aask(self, agent: Any, **options: Any) -> AskResult:
        """Ask an agent from an async test; see ``__call__``."""
        __tracebackhide__ = True  # a failed test shows its own line
        given = self._options(options)
        candidate = self._begun(agent, given)
        with self._noting_why():
            return self._ended(await self._aask(candidate, given))

    def _options(self, asking: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options for a run of this one question: those of the marker, and those of this call."""
        __tracebackhide__ = True
        _refuse_unknown(asking)
        dataset = self._question.dataset
        config = dataset.config.model_copy(update={"gates": []})  # gates are checked on the whole run
        return {**dataset.scoring, "config": config, **asking}

    async def _aask(self, candidate: Any, options: Mapping[str, Any]) -> BenchmarkRun:
        return await arun_benchmark(candidate, [self._question.alone()], progress="off", **options)

    def _begun(self, agent: Any, options: Mapping[str, Any]) -> Any:
        """Record that the question is being asked, and return the loaded agent."""
        __tracebackhide__ = True
        CheckedOptions(**options)
        candidate = _named(agent, self._item.config)
        if self._part is not None:
            label = settings_of(self._item.config).label
            described = {**options, "config": self._question.dataset.config, "label": label}
            self._part.begin(self._item, self._run, self._question, agent, described)
        return candidate

    @contextmanager
    def _noting_why(self) -> Iterator[None]:
        """Record why there is no answer if something other than the agent failed."""
        __tracebackhide__ = True
        try:
            yield
        except BaseException as problem:
            if self._part is not None:
                self._part.broke_off(self._run, self._question, problem)
            _shorten(problem)
            raise

    def _ended(self, asked: BenchmarkRun) -> AskResult:
        """Record the result, and add its scores to pytest's reports."""
        if self._part is not None:
            self._part.end(self._run, self._question, asked)
        given = AskResult(asked.results[0], own_metrics(asked.aggregates["micro"]))
        self._item.stash[_ASKED] = given
        numbers = given.scores_and_spent()
        others = [(name, value) for name, value in self._item.user_properties if name not in numbers]
        self._item.user_properties[:] = [*others, *numbers.items()]
        return given


def asker_of(request: pytest.FixtureRequest) -> Asker:
    """Return the Asker for the test that requests the fixture."""
    item = cast("pytest.Item", request.node)
    question = question_of(item)
    assert question is not None  # because the fixture graphrag_question has run
    if _ASKED in item.stash:  # the test is re-run
        del item.stash[_ASKED]
    return Asker(item, question, part_of(request.config))


def result_of(item: pytest.Item) -> AskResult | None:
    """Return the result of the last question to an agent in a test; None if there was none."""
    return item.stash.get(_ASKED, None)


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    __tracebackhide__ = True
    for name in options:
        if name in ASKING:
            continue
        if name in RunOptions.model_fields:
            hint = f"graphrag_ask takes {', '.join(ASKING)}; the marker says how it is scored."
            raise OptionError(f"{name} is not an option of one question", key=name, hint=hint)
        raise OptionError(f"unknown option {name}", hint=nearest(name, ASKING))


def _named(agent: Any, config: pytest.Config) -> Any:
    """Load the agent that ``FILE.py:NAME`` or ``module:NAME`` names, once in a session; return others unchanged."""
    __tracebackhide__ = True
    if not isinstance(agent, str) or "://" in agent or ":" not in agent:
        return agent
    if agent.rpartition(":")[0].lower().endswith(".json"):
        return agent
    known = config.stash.setdefault(_NAMED, {})
    if agent not in known:
        try:
            known[agent] = named_by(agent)
        except GraphRAGEvalError as problem:
            _shorten(problem)
            raise
    return known[agent]


def _shorten(problem: BaseException) -> None:
    """Remove the frames of this package from the traceback of an error that explains itself."""
    if isinstance(problem, GraphRAGEvalError):
        problem.__traceback__ = None


_LONGEST = 500
_MOST_STEPS = 10


def add_failure_text(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add the scores of the question, and their reasons, to the text of a failed test, which JUnit files include."""
    result = result_of(item)
    if result is None:
        return
    text = "\n".join(failure_lines(result))
    add_section = getattr(report.longrepr, "addsection", None)
    if add_section is not None:
        add_section("graphrag", text)
    else:
        report.sections.append(("graphrag", text))


def failure_lines(result: AskResult) -> Iterator[str]:
    """Yield the lines about a result: the question, its error and answer, its scores, and the unmatched steps."""
    yield f"{_short(result['template_id'])}/{_short(result['question_id'])}: {_short(result['question_text'])}"
    if "error" in result:
        yield f"error: {_short(result['error'])}"
    if result.get("actual_answer") is not None:
        yield f"answer: {_short(result['actual_answer'])}"
    if result.get("reference_answer") is not None:
        yield f"reference answer: {_short(result['reference_answer'])}"
    for name, value in result.scores_and_spent().items():
        spec = metric_spec(name)
        if spec.is_part:
            continue
        reason = result.get(spec.reason_key or reason_key(name))
        yield f"{_short(name)}: {value:,.4g}" + (f" ({_short(reason)})" if reason and not spec.is_spent else "")
    for key, value in result.items():
        if key.endswith(error_key("")) and isinstance(value, str):
            yield f"{_short(key)}: {_short(value)}"
    yield from _step_lines(result)


def _step_lines(result: AskResult) -> Iterator[str]:
    groups = zip(result.get("reference_steps") or (), result.get("steps_diagnosis") or (), strict=False)
    steps = [
        (step, found)
        for reference, diagnosis in groups
        for step, found in zip(reference, diagnosis, strict=False)
        if found.get("outcome") != "match"
    ]
    for step, found in steps[:_MOST_STEPS]:
        yield f"step {_short(step.get('name'))}: {found.get('outcome')}: {_short(found.get('reason'))}"
    if len(steps) > _MOST_STEPS:
        yield f"and {len(steps) - _MOST_STEPS:,} more steps"


def _short(value: Any) -> str:
    return visible(masked_text(shortened(str(value), _LONGEST)), keeps_lines=False)
