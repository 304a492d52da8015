"""What a run spent in tokens, seconds and dollars, and the questions that spent the most."""

from array import array
from collections.abc import Mapping
from heapq import nlargest
from statistics import fmean
from typing import Any

from graphrag_eval_lc.aggregation import JudgeCosts
from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.aggregation.totals import Totals, failed_attempts_of
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    BUILT_IN,
    ELAPSED_SEC,
    JUDGES_COST,
    TOTAL_TOKENS,
    metrics_of_records,
    metrics_of_users,
)
from graphrag_eval_lc.report.formats import one_line
from graphrag_eval_lc.report.reported_run import ReportedSample
from graphrag_eval_lc.stats.percentiles import percentile
from graphrag_eval_lc.texts import counted

_UNITS = ("seconds", "tokens", "usd")


class Spent:
    """What samples spent, failed ones included.

    Args:
        config: The configuration, for the names of custom evaluations.
    """

    def __init__(self, config: EvaluationConfig) -> None:
        self._judge_costs = JudgeCosts(config)
        self._totals = Totals(self._judge_costs)
        self._shown = {spec.key: spec for spec in _shown()}
        self._values = {metric: array("d") for metric in self._shown}
        self._of_templates: dict[str, dict[str, array[float]]] = {}

    def add(self, sample: ReportedSample) -> None:
        """Add a sample."""
        self._totals.add(sample.result)
        of_template = self._of_templates.get(sample.template_id)
        if of_template is None:
            of_template = self._of_templates[sample.template_id] = {metric: array("d") for metric in self._shown}
        result = sample.result
        given = ((metric, number(result[metric])) for metric in self._shown if metric in result)
        values = {metric: value for metric, value in given if value is not None}
        if judged := [cost for cost in self._judge_costs.of(result) if cost is not None]:
            values[JUDGES_COST] = sum(judged)
        for metric, value in values.items():
            self._values[metric].append(value)
            of_template[metric].append(value)

    def records(self) -> list[dict[str, Any]]:
        """Return the section ``spent``: totals with failed attempts, all else over the samples."""
        totals = self._totals.summary()
        return [
            {
                "name": spec.heading or spec.title,
                "unit": spec.unit,
                "total": totals.get(metric, sum(values)),
                "mean": fmean(values),
                "median": percentile(values, 0.5),
                "p95": percentile(values, 0.95),
                "n": len(values),
                "note": _note(metric, totals),
            }
            for metric, spec in self._shown.items()
            if (values := self._values[metric])
        ]

    def note(self) -> str | None:
        """Say what is in the totals alone, not in means and percentiles; None where that is nothing."""
        count = self._totals.summary().get("number_of_failed_attempts")
        return f"totals include {counted(count, 'failed attempt')}" if count else None

    def means(self, template_id: str) -> dict[str, float | None]:
        """Return a template's mean tokens, seconds and agent's cost over the samples that have them."""
        values = self._of_templates[template_id]
        keys = {"tokens": TOTAL_TOKENS, "seconds": ELAPSED_SEC, "usd": AGENT_COST}
        return {key: fmean(values[metric]) if values[metric] else None for key, metric in keys.items()}


def _shown() -> list[MetricSpec]:
    """Return the metrics of what was spent that are shown: wholes before their parts, then users' own."""
    built_in = [spec for spec in BUILT_IN if spec.heading]
    own = {**metrics_of_records.get({}), **{key: each.spec for key, each in metrics_of_users.items()}}
    return [
        *sorted(built_in, key=lambda spec: (_UNITS.index(spec.unit), spec.is_part)),
        *(spec for spec in own.values() if spec.is_spent),
    ]


def _note(metric: str, totals: Mapping[str, Any]) -> str | None:
    notes = []
    if unmeasured := totals.get("unmeasured_samples", {}).get(metric):
        samples = counted(unmeasured, "sample is", "samples are")
        notes.append(f"{samples} not measured in full, so the total is of the rest")
    return "; ".join(notes) or None


_MOST_EXTREMES = 10
_LONGEST_QUESTION = 160
_MOST_KEPT = 50 * _MOST_EXTREMES


class Extremes:
    """The questions that took the longest and spent the most; with repeats by their worst sample."""

    def __init__(self) -> None:
        self._longest = _Worst()
        self._dearest = _Worst()
        self._most_tokens = _Worst()

    def add(self, sample: ReportedSample) -> None:
        """Add a sample; its time includes that of its failed attempts."""
        attempts = failed_attempts_of(sample.result)
        seconds = [sample.seconds, *(number(attempt.get(ELAPSED_SEC)) for attempt in attempts)]
        self._longest.add(sample, sum(filter(None, seconds)), {"failed_attempts": len(attempts)})
        self._dearest.add(sample, sample.usd)
        self._most_tokens.add(sample, sample.tokens)

    def slowest(self) -> list[dict[str, Any]]:
        """Return the section ``slowest``."""
        return [{**shown, "seconds": value} for value, shown in self._longest.most()]

    def dearest(self) -> list[dict[str, Any]]:
        """Return the section ``dearest``: by the agent's cost, or by tokens where nothing has a price."""
        dearest = self._dearest.most()
        unit, kept = ("usd", dearest) if dearest else ("tokens", self._most_tokens.most())
        return [{**shown, "value": value, "unit": unit} for value, shown in kept]


class _Worst:
    """The questions whose worst samples spent the most, and what is shown of these."""

    def __init__(self) -> None:
        self._by_question: dict[str, tuple[float, dict[str, Any]]] = {}
        self._least = 0.0  # what spent no more is not among the most

    def add(self, sample: ReportedSample, value: float | None, more: Mapping[str, Any] | None = None) -> None:
        """Add what a sample spent."""
        if value is None or value <= self._least:
            return
        question = str(sample.result.get("question_id"))
        known = self._by_question.get(question)
        if known is None or value > known[0]:
            text = sample.result.get("question_text", "")
            self._by_question[question] = (value, {"key": sample.key, "question": text, **(more or {})})
            if len(self._by_question) > _MOST_KEPT:
                self._drop_most()

    def most(self) -> list[tuple[float, dict[str, Any]]]:
        """Return the most; of equal ones the first."""
        most = nlargest(_MOST_EXTREMES, self._by_question.values(), key=lambda each: each[0])
        return [(value, {**shown, "question": one_line(shown["question"], _LONGEST_QUESTION)}) for value, shown in most]

    def _drop_most(self) -> None:
        kept = nlargest(_MOST_EXTREMES, self._by_question.items(), key=lambda each: each[1][0])
        names = {question for question, _ in kept}
        self._by_question = {name: each for name, each in self._by_question.items() if name in names}
        self._least = kept[-1][1][0]
