"""What a run spent in tokens, seconds and dollars, and the questions that spent the most."""

from array import array
from collections.abc import Mapping
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
    """What samples spent of one thing, failed samples included.

    Attributes:
        metric: The metric, such as ``total_tokens``.
        name: Its heading.
        unit: Its unit: ``tokens``, ``seconds``, ``usd`` or a user's own.
        total: All of it, with failed attempts.
        mean: The mean over the samples that have it.
        median: The median over them.
        p95: Their 95th percentile.
        samples: How many samples have it.
        note: What the total lacks; None if it is whole.
    """

    metric: str
    name: str
    unit: str
    total: float
    mean: float
    median: float
    p95: float
    samples: int
    note: str | None


class Spent:
    """Adds up what samples spent, failed ones included.

    Args:
        config: The configuration, for the names of custom evaluations.
    """

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
        of_template = self._of_templates.get(str(result.get("template_id")))
        if of_template is None:
            of_template = {metric: array("d") for metric in self._shown}
            self._of_templates[str(result.get("template_id"))] = of_template
        given = ((metric, number(result[metric])) for metric in self._shown if metric in result)
        values = {metric: value for metric, value in given if value is not None}
        if judged := [cost for cost in self._judge_costs.of(result) if cost is not None]:
            values[JUDGES_COST] = sum(judged)
        for metric, value in values.items():
            self._values[metric].append(value)
            of_template[metric].append(value)

    def totals(self) -> dict[str, Any]:
        """Return the totals, as in aggregates.yaml."""
        return dict(self._totals.summary())

    def lines(self) -> tuple[SpentLine, ...]:
        """Return a line for each thing that was spent: totals with failed attempts, all else over the samples."""
        totals = self._totals.summary()
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
                note=_note(metric, totals),
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
        return {metric: fmean(values) for metric, values in self._of_templates[template_id].items() if values}


def _shown() -> list[MetricSpec]:
    """Return the metrics of what was spent that are shown: wholes before their parts, then users' own."""
    built_in = [spec for spec in BUILT_IN if spec.heading]
    own = {**metrics_of_records.get({}), **{key: each.spec for key, each in metrics_of_users.items()}}
    return [
        *sorted(built_in, key=lambda spec: (_UNITS.index(spec.unit), spec.is_part)),
        *(spec for spec in own.values() if spec.is_spent),
    ]


def _note(metric: str, totals: Mapping[str, Any]) -> str | None:
    unmeasured = totals.get("unmeasured_samples", {}).get(metric)
    if not unmeasured:
        return None
    samples = counted(unmeasured, "sample is", "samples are")
    return f"{samples} not measured in full, so the total is of the rest"


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
        self._kept = {unit: _Most() for unit in _UNITS}

    def add(self, sample: Sample) -> None:
        """Add a sample; its time includes that of its failed attempts."""
        attempts = failed_attempts_of(sample.result)
        seconds = [sample.seconds, *(number(attempt.get(ELAPSED_SEC)) for attempt in attempts)]
        values = {"seconds": sum(filter(None, seconds)), "tokens": sample.tokens, "usd": sample.usd}
        for unit, value in values.items():
            self._kept[unit].add(sample, value, unit, len(attempts))

    def slowest(self) -> tuple[Extreme, ...]:
        """Return the questions that took the longest."""
        return self._kept["seconds"].found()

    def most_expensive(self) -> tuple[Extreme, ...]:
        """Return those with the highest cost of the agent, or if nothing has a price with the most tokens."""
        return self._kept["usd"].found() or self._kept["tokens"].found()


class _Most:
    """The questions whose worst samples spent the most of one thing."""

    def __init__(self) -> None:
        self._by_question: dict[str, Extreme] = {}
        self._least = 0.0  # what spent no more is not among the most

    def add(self, sample: Sample, value: float | None, unit: str, failed_attempts: int) -> None:
        """Add what a sample spent."""
        if value is None or value <= self._least:
            return
        question = str(sample.result.get("question_id"))
        known = self._by_question.get(question)
        if known is None or value > known.value:
            text = one_line(sample.result.get("question_text", ""), QUESTION_LENGTH)
            self._by_question[question] = Extreme(sample.key, text, value, unit, failed_attempts)
            if len(self._by_question) > _MOST_KEPT:
                kept = nlargest(_MOST_EXTREMES, self._by_question.items(), key=lambda each: each[1].value)
                self._by_question = {name: each for name, each in self._by_question.items() if (name, each) in kept}
                self._least = kept[-1][1].value

    def found(self) -> tuple[Extreme, ...]:
        """Return the most; of equal ones the first."""
        return tuple(nlargest(_MOST_EXTREMES, self._by_question.values(), key=lambda each: each.value))
