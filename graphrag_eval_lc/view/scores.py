"""The numbers of a run: means, intervals and distributions of scores, and what was spent, also by template."""

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import fsum
from statistics import fmean
from typing import Any

from graphrag_eval_lc.aggregation import JudgeCosts, RunValues
from graphrag_eval_lc.aggregation.question_values import ScoreMean, ScoreValues, mean_of, score_values
from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.aggregation.statistics import Totals, failed_attempts_of
from graphrag_eval_lc.config import EvaluationConfig, RepeatsConfig
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.metrics.intervals import mean_interval, percentile
from graphrag_eval_lc.registry.metrics import (
    BUILT_IN,
    ELAPSED_SEC,
    JUDGES,
    JUDGES_COST,
    MAIN_METRIC,
    metric_spec,
    metrics_of_records,
    metrics_of_users,
)
from graphrag_eval_lc.texts import counted, shown_name
from graphrag_eval_lc.view.samples import SeenSample, deciding_scores

_JUDGES = [judge.key for judge in JUDGES]
NUMBER_OF_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateScore:
    """A score over questions; a failed question counts as the metric declares, mostly 0."""

    mean: float
    mean_answered: float | None  # over the answered questions; None if none was
    upper: float | None  # the mean if all undecided steps fitted; None if that is the same
    questions: int  # how many have it
    answered: int
    range: tuple[float, float]  # over which it is shown
    bins: tuple[int, ...]  # how many questions have a value in each tenth of that range

    @property
    def means(self) -> ScoreMean:
        """Both means, for ``mean_text``."""
        return ScoreMean(self.mean, self.mean_answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLine(TemplateScore):
    """A score over all questions of a run, with the 95 % interval of its mean if it is known."""

    metric: str
    is_part: bool  # whether it is a component of another score, or one of a family
    mean_of_templates: ScoreMean
    without: int  # how many questions do not have it
    low: float | None
    high: float | None
    interval_note: str  # why the interval is missing or may be too narrow


def shown_scores(numbers: RunValues) -> dict[str, ScoreValues]:
    """Return the values of each score that was measured by its shown name, the most important first."""
    values = score_values(numbers)
    return {shown_name(metric): values[metric] for metric in sorted(values, key=_rank)}


def score_lines(scores: Mapping[str, ScoreValues], number_of_questions: int) -> tuple[ScoreLine, ...]:
    """Return a line for each score of a run with so many questions."""
    return tuple(
        ScoreLine(
            **(numbers := _numbers(metric, values)),
            metric=metric,
            is_part=metric_spec(metric).is_part,
            mean_of_templates=values.mean_of_templates(),
            without=number_of_questions - numbers["questions"],
            **_interval(metric, values),
        )
        for metric, values in scores.items()
    )


def template_scores(scores: Mapping[str, ScoreValues]) -> dict[str, dict[str, TemplateScore]]:
    """Return the scores of each template by its id."""
    found: dict[str, dict[str, TemplateScore]] = {}
    for metric, values in scores.items():
        shown_range = metric_spec(metric).shown_range(values.all_values())
        for template_id in values.every:
            numbers = _numbers(metric, values.of_template(template_id), shown_range)
            found.setdefault(template_id, {})[metric] = TemplateScore(**numbers)
    return found


def _numbers(metric: str, values: ScoreValues, shown_range: tuple[float, float] | None = None) -> dict[str, Any]:
    every, answered = values.all_values(), values.answered_values()
    mean, upper = fmean(every), mean_of([value for of_template in values.upper.values() for value in of_template])
    low, high = shown_range or metric_spec(metric).shown_range(every)
    return {
        "mean": mean,
        "mean_answered": mean_of(answered),
        "upper": upper if upper is not None and upper > mean else None,
        "questions": len(every),
        "answered": len(answered),
        "range": (low, high),
        "bins": tuple(bins_of(every, low, high)),
    }


def _rank(metric: str) -> tuple[int, int, bool]:
    """Order the main metric first, then judges' scores of answers, each judge's parts last, then all others."""
    spec = metric_spec(metric)
    if spec.judge is not None and spec.over == "questions":
        return 1, _JUDGES.index(spec.judge), spec.is_part
    return (0 if metric == MAIN_METRIC else 2), 0, False


def _interval(metric: str, values: ScoreValues) -> dict[str, Any]:
    clusters = [template_id for template_id, group in values.every.items() for _ in group]
    every = values.all_values()
    try:
        interval = mean_interval(every, clusters, bounds=metric_spec(metric).bounds_of(every))
    except MissingExtraError as problem:
        return {"low": None, "high": None, "interval_note": str(problem)}
    if interval is None:
        note = "an interval needs at least two questions" if len(every) < 2 else "all questions are alike"
        return {"low": None, "high": None, "interval_note": note}
    return {"low": interval.low, "high": interval.high, "interval_note": interval.note or ""}


def bins_of(values: Sequence[float], low: float, high: float) -> list[int]:
    """Count values in ten bins of equal width from ``low`` to ``high``, which falls into the last."""
    counts = [0] * NUMBER_OF_BINS
    width = high - low
    for value in values:
        at = int((value - low) / width * NUMBER_OF_BINS) if width else 0
        counts[min(at, NUMBER_OF_BINS - 1)] += 1
    return counts


def passing_sign(metric: str) -> str:
    """Return how a metric compares with the threshold if a sample passed."""
    return "≤" if metric_spec(metric).lower_is_better else "≥"


def score_note(main: ScoreLine, measured: Collection[str], passing: RepeatsConfig) -> str:
    """Say what the main score of a run is, and at which score a question is right, partly right and wrong."""
    spec = metric_spec(main.metric)
    interval = "" if main.low is None else " (in brackets: the 95 % interval of its mean)"
    parts = [f"{main.metric} is {spec.title}{interval}."] if spec.title not in ("", spec.key) else []
    for metric, threshold in deciding_scores(passing):
        if metric in measured:
            worst = metric_spec(metric).value_of_failure
            whole = f"{threshold:g}" if (metric, threshold) == (main.metric, 1.0) else ""
            right = whole or f"{metric} {passing_sign(metric)} {threshold:g}"
            others = "" if worst is None else f", wrong at {worst:g}, partly right in between"
            return " ".join([*parts, f"A question is right at {right}{others}."])
    return " ".join(parts)


def whole_scores(metrics: Iterable[str]) -> list[str]:
    """Return the scores with a column in tables of templates: those that no other score sums up."""
    return [metric for metric in metrics if not metric_spec(metric).is_part]


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
    """Adds up what samples spent, failed ones included; only ``totals``, as in aggregates.yaml, has failed attempts."""

    def __init__(self, config: EvaluationConfig) -> None:
        self._judge_costs = JudgeCosts(config)
        self.totals = Totals()
        built_in = [spec for spec in BUILT_IN if spec.heading]
        built_in.sort(key=lambda spec: (_UNITS.index(spec.unit), spec.is_part))  # totals before their parts
        own = {**metrics_of_records.get({}), **{key: each.spec for key, each in metrics_of_users.items()}}
        self._shown = {spec.key: spec for spec in (*built_in, *(spec for spec in own.values() if spec.is_spent))}
        self._of_templates: dict[str, dict[str, array[float]]] = defaultdict(lambda: defaultdict(lambda: array("d")))

    def add(self, sample: SeenSample) -> None:
        """Add a sample."""
        result, judge_costs = sample.result, self._judge_costs.of(sample.result)
        self.totals.add(result, judge_costs)
        of_template = self._of_templates[str(result.get("template_id"))]
        judged = [cost for cost in judge_costs if cost is not None]
        for metric in self._shown:
            given = sum(judged) if judged and metric == JUDGES_COST else result.get(metric)
            if given is not None and (value := number(given)) is not None:
                of_template[metric].append(value)

    def lines(self, totals: Mapping[str, Any]) -> tuple[SpentLine, ...]:
        """Return a line for each resource: ``totals`` include failed attempts, all else is over the samples."""
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
                total=totals.get(metric, fsum(values)),
                mean=fmean(values),
                median=percentile(values, 0.5),
                p95=percentile(values, 0.95),
                samples=len(values),
                note=notes.get(metric),
            )
            for metric, spec in self._shown.items()
            if (values := [value for each in self._of_templates.values() for value in each.get(metric, ())])
        )

    def means(self, template_id: str) -> dict[str, float]:
        """Return the means of a template's samples, by metric."""
        of_template = self._of_templates[template_id]
        return {metric: fmean(of_template[metric]) for metric in self._shown if metric in of_template}


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

    def add(self, sample: SeenSample) -> None:
        """Add a sample; its time includes that of its failed attempts."""
        attempts = failed_attempts_of(sample.result) if "failed_attempts" in sample.result else ()
        seconds = sum(filter(None, (sample.seconds, *(number(attempt.get(ELAPSED_SEC)) for attempt in attempts))))
        values = {"seconds": seconds, "tokens": sample.tokens, "usd": sample.usd}
        for unit, value in values.items():
            if value is None or value <= self._least[unit]:
                continue
            kept, question = self._kept[unit], sample.question_id
            known = kept.get(question)
            if known is None or value > known.value:
                kept[question] = Extreme(sample.key, sample.question, value, unit, len(attempts))
            if len(kept) > _MOST_KEPT:
                most = nlargest(_MOST_EXTREMES, kept.items(), key=lambda each: each[1].value)
                self._kept[unit] = {name: each for name, each in kept.items() if (name, each) in most}
                self._least[unit] = most[-1][1].value

    def most(self, unit: str) -> tuple[Extreme, ...]:
        """Return the questions that spent the most of a unit; of equal ones, the first."""
        return tuple(nlargest(_MOST_EXTREMES, self._kept[unit].values(), key=lambda each: each.value))
