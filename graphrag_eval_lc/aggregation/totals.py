"""What a run spent: tokens, seconds, and the costs of the agent and of the judges."""

from collections.abc import Iterable, Mapping
from typing import Any

from graphrag_eval_lc.aggregation.measurements import Sample, number, steps_of
from graphrag_eval_lc.aggregation.samples import Numbers, exact_sum
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metric_spec import Over
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    BUILT_IN,
    COST,
    JUDGES_COST,
    NUMBER_OF_SAMPLES,
    STALLED_SEC,
    TOKENS,
    summed_up,
)

# The key of each cost, and what stands beside it where a model was asked.
Judges = Mapping[str, tuple[str, ...]]


def _judges(over: Over) -> Judges:
    """Return the costs of the package's judges, but for those that are sums of others."""
    judges: dict[str, tuple[str, ...]] = {}
    for spec in BUILT_IN:
        if spec.over == over and spec.cost_key is not None and not _is_sum(spec):
            beside = (key for key in spec.keys if key != spec.cost_key)
            judges[spec.cost_key] = (*judges.get(spec.cost_key, ()), *beside)
    return judges


def _is_sum(spec: MetricSpec) -> bool:
    """Return whether a metric's cost is the sum of what its parts cost, as that of F1 of contexts."""
    return any(part.part_of == spec.key and part.cost_key != spec.cost_key for part in BUILT_IN)


_SAMPLE_JUDGES = _judges("questions")
_STEP_JUDGES = _judges("steps")


class JudgeCosts:
    """Finds in results what their judges cost.

    Args:
        config: The configuration, for the names of its custom evaluations.

    Example:
        >>> costs = JudgeCosts(EvaluationConfig())
        >>> list(costs.of({"answer_f1": 0.5, "answer_correctness_cost": 0.01, "answer_relevance": 0.9}))
        [0.01, None]
    """

    def __init__(self, config: EvaluationConfig) -> None:
        custom = {f"{each.name}_cost": tuple(each.outputs) for each in config.custom_evaluations or ()}
        # A custom evaluation may fail for want of its inputs, and then says nothing of a cost.
        self._sample_judges = {**_SAMPLE_JUDGES, **custom}

    def of(self, sample: Sample) -> Iterable[float | None]:
        """Yield the USD of each judge that was asked, None where they are not known.

        A judge that failed says with its error what was paid for it, which may be 0; without that nobody knows it.
        """
        yield from _costs(sample, self._sample_judges)
        for step in steps_of(sample):
            yield from _costs(step, _STEP_JUDGES)


def _costs(record: Sample, judges: Judges) -> Iterable[float | None]:
    for key, judged in judges.items():
        cost = number(record.get(key))
        if cost is not None or any(record.get(metric) is not None for metric in judged):
            yield cost


_OF_AGENT = [spec for spec in summed_up("questions") if spec.spent_by == "agent"]
_AGENT_METRICS = tuple(spec.key for spec in _OF_AGENT)
# What the calls of the agent's models add up to; where no model was asked, that is nothing.
_MODEL_METRICS = tuple(spec.key for spec in _OF_AGENT if spec.unit in ("tokens", "usd"))
_METRICS = (*_AGENT_METRICS, JUDGES_COST)


class Totals:
    """The sums over the results taken up so far.

    A sample's figure is that of its response and of the failed attempts before it. Where nothing was asked of a
    model, no tokens were spent. A model call that failed without a figure is not counted, as in a response's own
    sums. Any other call of which the tokens or the cost are unknown makes the sample unmeasured. What judges cost
    does not depend on the agent: a sample that no judge was asked about lacks nothing.

    Args:
        judge_costs: Finds what judges cost.
    """

    def __init__(self, judge_costs: JudgeCosts) -> None:
        self._judge_costs = judge_costs
        self._number_of_samples = 0
        self._number_of_failed_attempts = 0
        self._spent = {metric: Numbers() for metric in _METRICS}
        self._measured = dict.fromkeys(_METRICS, 0)
        self._unmeasured = dict.fromkeys(_METRICS, 0)
        self._stalled_sec = Numbers()  # absent where nothing stalled, which is not unmeasured

    def add(self, sample: Sample) -> None:
        """Take up what a result spent."""
        attempts = failed_attempts_of(sample)
        self._number_of_samples += 1
        self._number_of_failed_attempts += len(attempts)
        for metric in _AGENT_METRICS:
            self._add(metric, [sample, *attempts])
        for record in (sample, *attempts):
            if stalled := number(record.get(STALLED_SEC)):
                self._stalled_sec.append(stalled)
        self._add_judges(sample)

    def summary(self) -> dict[str, Any]:
        """Return the sums; one is absent where a sample lacks the figure, and the summary says how many do."""
        summary: dict[str, Any] = {NUMBER_OF_SAMPLES: self._number_of_samples}
        if self._number_of_failed_attempts:
            summary["number_of_failed_attempts"] = self._number_of_failed_attempts
        measured = [metric for metric in _METRICS if self._measured[metric]]
        summary.update(
            {metric: exact_sum(self._spent[metric].values()) for metric in measured if not self._unmeasured[metric]}
        )
        if stalled := self._stalled_sec.values():
            summary[STALLED_SEC] = exact_sum(stalled)
        if AGENT_COST in summary and JUDGES_COST in summary:
            summary[COST] = summary[AGENT_COST] + summary[JUDGES_COST]
        unmeasured = {metric: self._unmeasured[metric] for metric in measured if self._unmeasured[metric]}
        if unmeasured:
            summary["unmeasured_samples"] = unmeasured
        return summary

    def _add(self, metric: str, records: list[Mapping[str, Any]]) -> None:
        """Add a sample's figure: its own record comes first, then its failed attempts."""
        is_unmeasured = False
        for index, record in enumerate(records):
            value = number(record.get(metric))
            if value is not None:
                self._measured[metric] += 1
                self._spent[metric].append(value)
            elif metric not in _MODEL_METRICS or not _asked_no_model(record, is_attempt=index > 0):
                is_unmeasured = True
        self._unmeasured[metric] += is_unmeasured

    def _add_judges(self, sample: Sample) -> None:
        costs = list(self._judge_costs.of(sample))
        known = [cost for cost in costs if cost is not None]
        self._measured[JUDGES_COST] += len(known)
        self._unmeasured[JUDGES_COST] += len(known) < len(costs)
        for cost in known:
            self._spent[JUDGES_COST].append(cost)


def failed_attempts_of(sample: Sample) -> list[Mapping[str, Any]]:
    """Return the failed attempts before a result."""
    attempts = sample.get("failed_attempts")
    return [attempt for attempt in attempts if isinstance(attempt, Mapping)] if isinstance(attempts, list) else []


def _asked_no_model(record: Mapping[str, Any], *, is_attempt: bool) -> bool:
    """Return whether no model call answered; an attempt leaves an empty list of calls out, a response does not."""
    calls = record.get("llm_calls", [] if is_attempt else None)
    return isinstance(calls, list) and all(map(_failed_without_tokens, calls))


def _failed_without_tokens(call: object) -> bool:
    return isinstance(call, Mapping) and "error" in call and not any(metric in call for metric in TOKENS)
