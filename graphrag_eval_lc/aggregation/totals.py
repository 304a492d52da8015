"""What a run spent, failed questions and failed attempts included."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.aggregation.figures import exact_sum
from graphrag_eval_lc.aggregation.judge_costs import JudgeCosts
from graphrag_eval_lc.aggregation.numbers import Numbers
from graphrag_eval_lc.aggregation.sample_values import Sample, number
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    COST,
    JUDGES_COST,
    NUMBER_OF_SAMPLES,
    STALLED_SEC,
    TOKENS,
    summed_up,
)

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
        """Give the sums; one is absent where a sample lacks the figure, and the summary says how many do."""
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
    """Give the failed attempts before a result."""
    attempts = sample.get("failed_attempts")
    return [attempt for attempt in attempts if isinstance(attempt, Mapping)] if isinstance(attempts, list) else []


def _asked_no_model(record: Mapping[str, Any], *, is_attempt: bool) -> bool:
    """Tell whether no model call answered; an attempt leaves an empty list of calls out, a response does not."""
    calls = record.get("llm_calls", [] if is_attempt else None)
    return isinstance(calls, list) and all(map(_failed_without_tokens, calls))


def _failed_without_tokens(call: object) -> bool:
    return isinstance(call, Mapping) and "error" in call and not any(metric in call for metric in TOKENS)
