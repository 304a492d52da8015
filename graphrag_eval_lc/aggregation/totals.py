"""What a run spent: tokens, seconds, and the costs of the agent and of the judges."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphrag_eval_lc.aggregation.sample_values import Sample, number
from graphrag_eval_lc.aggregation.statistics import Column, exact_sum
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.prices import failed_without_tokens
from graphrag_eval_lc.registry.metric_spec import Over
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    BUILT_IN,
    COST,
    JUDGES_COST,
    NUMBER_OF_SAMPLES,
    aggregated_metrics,
)

# By the key of each cost, the keys that a result has if that judge was called.
Judges = Mapping[str, tuple[str, ...]]


def _judges(over: Over) -> Judges:
    """Return the costs of this package's judges, without those that are sums of others."""
    judges: dict[str, tuple[str, ...]] = {}
    for spec in BUILT_IN:
        # The cost of the contexts' F1 is the sum of its parts' costs.
        is_sum = any(part.part_of == spec.key and part.cost_key not in (None, spec.cost_key) for part in BUILT_IN)
        if spec.over == over and spec.cost_key is not None and not is_sum:
            others = (key for key in spec.keys if key != spec.cost_key)
            judges[spec.cost_key] = (*judges.get(spec.cost_key, ()), *others)
    return judges


_SAMPLE_JUDGES = _judges("questions")
_STEP_JUDGES = _judges("steps")


class JudgeCosts:
    """Finds the costs of judges in results.

    Example:
        >>> costs = JudgeCosts(EvaluationConfig())
        >>> costs.of({"answer_f1": 0.5, "answer_correctness_cost": 0.01, "answer_relevance": 0.9})
        [0.01, None]
    """

    def __init__(self, config: EvaluationConfig) -> None:
        custom = {each.cost_key: tuple(each.outputs) for each in config.custom_evaluations or ()}
        # Error keys of custom judges are left out: a judge that lacks its inputs fails without a request.
        self._sample_judges = {**_SAMPLE_JUDGES, **custom}
        self._sample_keys = _keys_of(self._sample_judges)

    def of(self, sample: Sample) -> list[float | None]:
        """Return the cost in USD of each judge that was called; None if it is unknown.

        A judge that failed states its cost next to its error, also one of 0; if it does not, the cost is unknown.
        """
        # A quick check: most records have no key of any judge.
        costs = [] if self._sample_keys.isdisjoint(sample) else list(_costs(sample, self._sample_judges))
        for step in sample.get("actual_steps") or ():
            if not _STEP_KEYS.isdisjoint(step):
                costs += _costs(step, _STEP_JUDGES)
        return costs


def _keys_of(judges: Judges) -> frozenset[str]:
    return frozenset(judges).union(*judges.values())


_STEP_KEYS = _keys_of(_STEP_JUDGES)


def _costs(record: Sample, judges: Judges) -> Iterable[float | None]:
    for key, others in judges.items():
        cost = number(record.get(key))
        if cost is not None or any(record.get(each) is not None for each in others):
            yield cost


_OF_AGENT = [spec for spec in aggregated_metrics("questions") if spec.spent_by == "agent"]
_AGENT_METRICS = tuple(spec.key for spec in _OF_AGENT)
# Sums over the agent's model calls; 0 if no model was called.
_MODEL_METRICS = tuple(spec.key for spec in _OF_AGENT if spec.unit in ("tokens", "usd"))
_METRICS = (*_AGENT_METRICS, JUDGES_COST)


class Totals:
    """The totals of the results added so far.

    A sample spent what its response and the failed attempts before it spent. If no model was called, no tokens were
    spent. A model call that failed without usage counts as nothing, as in a response's own sums. Any other call with
    unknown tokens or cost makes the sample unmeasured. Judges that were not called are not missing a cost.
    """

    def __init__(self, judge_costs: JudgeCosts) -> None:
        self._judge_costs = judge_costs
        self._number_of_samples = 0
        self._number_of_failed_attempts = 0
        self._spent = {metric: Column() for metric in _METRICS}
        self._measured = dict.fromkeys(_METRICS, 0)
        self._unmeasured = dict.fromkeys(_METRICS, 0)

    def add(self, sample: Sample) -> None:
        """Add what a result spent."""
        attempts: Sequence[Mapping[str, Any]] = failed_attempts_of(sample) if "failed_attempts" in sample else ()
        self._number_of_samples += 1
        self._number_of_failed_attempts += len(attempts)
        unmeasured: set[str] = set()
        for index, record in enumerate((sample, *attempts)):
            asked_no_model = None
            for metric in _AGENT_METRICS:
                given = record.get(metric)
                value = None if given is None else number(given)
                if value is not None:
                    self._measured[metric] += 1
                    self._spent[metric].add(0, [value])
                    continue
                if asked_no_model is None:
                    asked_no_model = record.get("llm_calls") == [] or _asked_no_model(record, is_attempt=index > 0)
                if metric not in _MODEL_METRICS or not asked_no_model:
                    unmeasured.add(metric)
        for cost in self._judge_costs.of(sample):
            if cost is None:
                unmeasured.add(JUDGES_COST)
            else:
                self._measured[JUDGES_COST] += 1
                self._spent[JUDGES_COST].add(0, [cost])
        for metric in unmeasured:
            self._unmeasured[metric] += 1

    def summary(self) -> dict[str, Any]:
        """Return the totals; one that some samples lack is absent, and ``unmeasured_samples`` says how many do."""
        summary: dict[str, Any] = {NUMBER_OF_SAMPLES: self._number_of_samples}
        if self._number_of_failed_attempts:
            summary["number_of_failed_attempts"] = self._number_of_failed_attempts
        measured = [metric for metric in _METRICS if self._measured[metric]]
        summary.update(
            {metric: exact_sum(self._spent[metric].values()) for metric in measured if not self._unmeasured[metric]}
        )
        if AGENT_COST in summary and JUDGES_COST in summary:
            summary[COST] = summary[AGENT_COST] + summary[JUDGES_COST]
        unmeasured = {metric: self._unmeasured[metric] for metric in measured if self._unmeasured[metric]}
        if unmeasured:
            summary["unmeasured_samples"] = unmeasured
        return summary


def failed_attempts_of(sample: Sample) -> list[Mapping[str, Any]]:
    """Return the failed attempts before a result."""
    attempts = sample.get("failed_attempts")
    return [attempt for attempt in attempts if isinstance(attempt, Mapping)] if isinstance(attempts, list) else []


def _asked_no_model(record: Mapping[str, Any], *, is_attempt: bool) -> bool:
    """Return whether no model answered. Without calls, an attempt has no list, and a response an empty one."""
    calls = record.get("llm_calls", [] if is_attempt else None)
    return isinstance(calls, list) and all(map(failed_without_tokens, calls))
