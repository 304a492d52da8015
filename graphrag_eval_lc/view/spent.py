"""What a run spent in tokens, seconds and dollars, and the questions that spent the most."""

from array import array
from dataclasses import dataclass
from heapq import nlargest
from statistics import fmean
from typing import Any

from graphrag_eval_lc.aggregation import JudgeCosts
from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.aggregation.totals import Totals, failed_attempts_of
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.metrics.intervals import percentile
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import (
    BUILT_IN,
    ELAPSED_SEC,
    JUDGES_COST,
    metrics_of_records,
    metrics_of_users,
)
from graphrag_eval_lc.texts import counted, one_line
from graphrag_eval_lc.view.failures import QUESTION_LENGTH
from graphrag_eval_lc.view.samples import Sample

_UNITS = ("seconds", "tokens", "usd")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentLine:
    """What samples spent of one resource, failed samples included; only the total includes failed attempts."""

    metric: str
    name: str
    unit: str
    total: float
    mean: float
    median: float
    p95: float
    samples: int  # how many have it
    note: str | None  # what the total lacks


class Spent:
    """Adds up what samples spent, failed ones included."""

    def __init__(self, config: EvaluationConfig) -> None:
        self._judge_costs = JudgeCosts(config)
        self._totals = Totals(self._judge_costs)
        self._shown = {spec.key: spec for spec in _shown()}
        self._values = {metric: array("d") for metric in self._shown}
        self._of_templates: dict[str, dict[str, array[float]]] = {}

    def add(self, sample: Sample) -> None:
        """Add a sample."""
        result = sample.result
        self._totals.add(result)
        of_template = self._of_templates.setdefault(str(result.get("template_id")), {})
        given = ((metric, number(result[metric])) for metric in self._shown.keys() & result.keys())
        values = {metric: value for metric, value in given if value is not None}
        if judged := [cost for cost in self._judge_costs.of(result) if cost is not None]:
            values[JUDGES_COST] = sum(judged)
        for metric, value in values.items():
            self._values[metric].append(value)
            if metric not in of_template:
                of_template[metric] = array("d")
            of_template[metric].append(value)

    def totals(self) -> dict[str, Any]:
        """Return the totals, as in aggregates.yaml."""
        return dict(self._totals.summary())

    def lines(self) -> tuple[SpentLine, ...]:
        """Return a line for each resource: totals include failed attempts, all else is over the samples."""
        totals = self._totals.summary()
        lacking = totals.get("unmeasured_samples", {})
        notes = {
            metric: f"{counted(count, 'sample is', 'samples are')} not measured in full, so the total is of the rest"
            for metric, count in lacking.items()
            if count
        }
        return tuple(
            SpentLine(
                metric=metric,
                name=spec.heading or spec.title,
                unit=spec.unit,
                total=totals.get(metric, sum(values)),
                mean=fmean(values),
                median=percentile(values, 0.5),
                p95=percentile(values, 0.95),
                samples=len(values),
                note=notes.get(metric),
            )
            for metric, spec in self._shown.items()
            if (values := self._values[metric])
        )

    def note(self) -> str:
        """Say what only the totals include, not the means and percentiles; empty if there is nothing."""
        count = self._totals.summary().get("number_of_failed_attempts")
        return f"totals include {counted(count, 'failed attempt')}" if count else ""

    def means(self, template_id: str) -> dict[str, float]:
        """Return the means of a template's samples, by metric."""
        of_template = self._of_templates[template_id]
        return {metric: fmean(of_template[metric]) for metric in self._shown if metric in of_template}


def _shown() -> list[MetricSpec]:
    """Return the metrics of spending that are shown: totals before their parts, then users' own metrics."""
    built_in = [spec for spec in BUILT_IN if spec.heading]
    own = {**metrics_of_records.get({}), **{key: each.spec for key, each in metrics_of_users.items()}}
    return [
        *sorted(built_in, key=lambda spec: (_UNITS.index(spec.unit), spec.is_part)),
        *(spec for spec in own.values() if spec.is_spent),
    ]


_MOST_EXTREMES = 10
_MOST_KEPT = 50 * _MOST_EXTREMES


@dataclass(frozen=True, slots=True)
class Extreme:
    """A question that spent much: its key, its text, how much in which unit, and its failed attempts."""

    key: str
    question: str
    value: float
    unit: str
    failed_attempts: int


class Extremes:
    """Finds the questions that took the longest and spent the most; with repeats by their worst sample."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Extreme]] = {unit: {} for unit in _UNITS}  # by question
        self._least = dict.fromkeys(_UNITS, 0.0)  # a question that spent no more than this is not among the top

    def add(self, sample: Sample) -> None:
        """Add a sample; its time includes that of its failed attempts."""
        attempts = failed_attempts_of(sample.result) if "failed_attempts" in sample.result else ()
        seconds = [sample.seconds, *(number(attempt.get(ELAPSED_SEC)) for attempt in attempts)]
        values = {"seconds": sum(filter(None, seconds)), "tokens": sample.tokens, "usd": sample.usd}
        for unit, value in values.items():
            if value is None or value <= self._least[unit]:
                continue
            kept, question = self._kept[unit], str(sample.result.get("question_id"))
            known = kept.get(question)
            if known is None or value > known.value:
                text = one_line(sample.result.get("question_text", ""), QUESTION_LENGTH)
                kept[question] = Extreme(sample.key, text, value, unit, len(attempts))
            if len(kept) > _MOST_KEPT:
                most = nlargest(_MOST_EXTREMES, kept.items(), key=lambda each: each[1].value)
                self._kept[unit] = {name: each for name, each in kept.items() if (name, each) in most}
                self._least[unit] = most[-1][1].value

    def slowest(self) -> tuple[Extreme, ...]:
        """Return the questions that took the longest; of equal ones, the first."""
        return self._most("seconds")

    def most_expensive(self) -> tuple[Extreme, ...]:
        """Return the questions with the highest agent cost or, if nothing has a price, with the most tokens."""
        return self._most("usd") or self._most("tokens")

    def _most(self, unit: str) -> tuple[Extreme, ...]:
        return tuple(nlargest(_MOST_EXTREMES, self._kept[unit].values(), key=lambda each: each.value))
