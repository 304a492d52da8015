"""Asking an agent the question of a test: what ``graphrag_ask`` is, and the result that it gives."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, cast

import pytest

from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.benchmark.agent_specs import named_by
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.run_benchmark import arun_benchmark
from graphrag_eval_lc.benchmark.run_options import RunOptions, checked_options
from graphrag_eval_lc.compare.gate_names import nearest
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.pytest_plugin.datasets import AskedQuestion, question_of
from graphrag_eval_lc.pytest_plugin.marked_runs import MarkedRun, run_of
from graphrag_eval_lc.pytest_plugin.parts import Part, part_of
from graphrag_eval_lc.pytest_plugin.settings import settings_of
from graphrag_eval_lc.records import Result, is_error
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metrics import COST, ELAPSED_SEC, TOTAL_TOKENS, is_declared, own_metrics

# The options of run_benchmark that say how one question is asked; the marker says how it is scored.
ASKING = (
    "input_fn", "answer_fn", "agent_config", "agent_key_env", "timeout", "max_retries", "retry_on", "capture",
)  # fmt: skip
_SPENT = (TOTAL_TOKENS, ELAPSED_SEC, COST)


class AskResult(dict[str, Any]):
    """The result of a question, as it stands in a run's ``results.jsonl``; of a failed one every score is 0.

    A key that it does not have is an error that names the nearest.

    Args:
        result: The result.
        own: The metrics in it that evaluators gave.

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
        """Return the scores, then tokens, seconds and cost, as plain numbers."""
        keys = [*(key for key in self if self._is_score(key)), *_SPENT]
        values = {key: number(self.get(key)) for key in keys}
        return {key: value for key, value in values.items() if value is not None}

    def _is_score(self, key: str) -> bool:
        return key in self._own or (is_declared(key) and metric_spec(key).kind == "score")


_ASKED = pytest.StashKey[AskResult]()
_NAMED = pytest.StashKey[dict[str, Any]]()


class Asker:
    """Asks an agent the question of one test: ``graphrag_ask(agent)``, or ``await graphrag_ask.aask(agent)``.

    Args:
        item: The test.
        question: Its question.
        part: Where what is asked is kept; None: nowhere.
    """

    def __init__(self, item: pytest.Item, question: AskedQuestion, part: Part | None) -> None:
        self._item = item
        self._question = question
        self._part = part

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
            ``steps_score``, and their reasons. Where the agent failed it has ``error``, and its scores are 0.

        Raises:
            OptionError: There is no such option, or it has a value that it cannot have.
            AgentError: The agent cannot be loaded.
        """
        return run_sync(lambda: self.aask(agent, **options))

    async def aask(self, agent: Any, **options: Any) -> AskResult:
        """Ask an agent from an async test; see ``__call__``."""
        _refuse_unknown(options)
        question, part = self._question, self._part
        candidate = _named(agent, self._item.config)
        scoring = dict(question.dataset.scoring)
        # Gates are of the whole run.
        scoring["config"] = question.dataset.config.model_copy(update={"gates": []})
        options = {**scoring, **options}
        run = run_of(self._item)
        if part is not None:
            label = settings_of(self._item.config).label
            checked_options(options)
            part.begin(run, question, agent, {**options, "label": label})
        try:
            asked = await arun_benchmark(candidate, [question.alone()], progress="off", **options)
        except BaseException as problem:
            if part is not None:
                part.broke_off(run, question, problem)
            raise
        return self._ended(run, asked)

    def _ended(self, run: MarkedRun, asked: BenchmarkRun) -> AskResult:
        """Keep what came of it, and note its scores for the reports of pytest."""
        result: Result = asked.results[0]
        if self._part is not None:
            self._part.end(run, self._question, asked)
        given = AskResult(result, own_metrics(asked.aggregates["micro"]))
        self._item.stash[_ASKED] = given
        numbers = given.scores_and_spent()
        others = [(name, value) for name, value in self._item.user_properties if name not in numbers]
        self._item.user_properties[:] = [*others, *numbers.items()]
        return given


def asker_of(request: pytest.FixtureRequest) -> Asker:
    """Return what asks the question of the test that wants it."""
    item = cast("pytest.Item", request.node)
    question = question_of(item)
    assert question is not None  # the fixture of the question has seen to it
    if _ASKED in item.stash:  # a test that is run again
        del item.stash[_ASKED]
    return Asker(item, question, part_of(request.config))


def result_of(item: pytest.Item) -> AskResult | None:
    """Return what the last question to an agent gave in a test; None where there was none."""
    return item.stash.get(_ASKED, None)


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in ASKING:
            continue
        if name in RunOptions.model_fields:
            hint = f"graphrag_ask takes {', '.join(ASKING)}; the marker says how it is scored."
            raise OptionError(f"{name} is no option of one question", key=name, hint=hint)
        raise OptionError(f"there is no option {name}", hint=nearest(name, ASKING))


def _named(agent: Any, config: pytest.Config) -> Any:
    """Return what a spec names, loaded once in a session; anything else, and other specs, as they are."""
    if not isinstance(agent, str) or "://" in agent or ":" not in agent:
        return agent
    if agent.rpartition(":")[0].lower().endswith(".json"):
        return agent
    known = config.stash.setdefault(_NAMED, {})
    if agent not in known:
        known[agent] = named_by(agent)
    return known[agent]
