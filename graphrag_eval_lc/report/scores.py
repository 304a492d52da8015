"""The scores of a run: means over answered and over all questions, how sure they are, and their distributions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from graphrag_eval_lc.aggregation import QuestionNumbers, RunNumbers
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.registry.metrics import JUDGES, MAIN_METRIC, metric_spec
from graphrag_eval_lc.report.distributions import bins_of, range_of
from graphrag_eval_lc.report.texts import shown_name
from graphrag_eval_lc.stats import FEWEST_CLUSTERS, bootstrap_interval

_JUDGES = [judge.key for judge in JUDGES]


@dataclass(frozen=True, slots=True)
class ScoreValues:
    """The values of one score, one for each question: with repeats the question's mean.

    Attributes:
        answered: By template those of the questions that were answered.
        every: By template those of all questions, failed ones as what they count as.
    """

    answered: Mapping[str, Sequence[float]]
    every: Mapping[str, Sequence[float]]

    def all_values(self) -> list[float]:
        """Give the values of all questions."""
        return [value for values in self.every.values() for value in values]

    def answered_values(self) -> list[float]:
        """Give the values of the questions that were answered."""
        return [value for values in self.answered.values() for value in values]


def score_values(numbers: RunNumbers) -> dict[str, ScoreValues]:
    """Give the values of each score that was measured, the most important scores first."""
    measured = [metric for metric in numbers.measured() if not metric_spec(metric).is_spent]
    return {shown_name(metric): _values(metric, numbers.questions.values()) for metric in sorted(measured, key=_rank)}


def template_metrics(metrics: Iterable[str]) -> list[str]:
    """Give the scores that have a column in the table of templates: those that no other one sums up."""
    return [metric for metric in metrics if not metric_spec(metric).is_part]


def score_records(scores: Mapping[str, ScoreValues], number_of_questions: int) -> list[dict[str, Any]]:
    """Give the section ``scores``.

    Args:
        scores: The values of each score.
        number_of_questions: How many questions the run has, with and without the score.
    """
    return [
        {
            "metric": metric,
            **(record := score_record(metric, values)),
            "macro": mean_of([fmean(of_template) for of_template in values.every.values()]),
            "without": number_of_questions - record["n_all"],
            **_interval(values),
        }
        for metric, values in scores.items()
    ]


def score_record(metric: str, values: ScoreValues, shown_range: tuple[float, float] | None = None) -> dict[str, Any]:
    """Give means, numbers and distribution of a score."""
    every, answered = values.all_values(), values.answered_values()
    low, high = shown_range or range_of(metric_spec(metric), every)
    return {
        "mean_answered": mean_of(answered),
        "mean_all": mean_of(every),
        "n_answered": len(answered),
        "n_all": len(every),
        "bins": bins_of(every, low, high),
        "range": [low, high],
    }


def mean_of(values: Sequence[float]) -> float | None:
    """Give the mean; None where there are no values."""
    return fmean(values) if values else None


def _rank(metric: str) -> tuple[int, int, bool]:
    """Order the main metric first, then what judges say of answers, each judge's parts last, then all others."""
    spec = metric_spec(metric)
    if spec.judge is not None and spec.over == "questions":
        return 1, _JUDGES.index(spec.judge), spec.is_part
    return (0 if metric == MAIN_METRIC else 2), 0, False


def _values(metric: str, questions: Iterable[QuestionNumbers]) -> ScoreValues:
    answered: dict[str, list[float]] = {}
    every: dict[str, list[float]] = {}
    for question in questions:
        total, count = question.sums.get(metric, (0.0, 0))
        if count:
            answered.setdefault(question.template_id, []).append(total / count)
        value = question.score(metric)
        if value is not None:
            every.setdefault(question.template_id, []).append(value)
    return ScoreValues(answered, every)


def _interval(values: ScoreValues) -> dict[str, Any]:
    clusters = len(values.every)
    try:
        interval = bootstrap_interval(values.every)
    except MissingExtraError as problem:
        return {"low": None, "high": None, "interval_note": str(problem)}
    if interval is None:
        return {"low": None, "high": None, "interval_note": "one question says nothing of how sure this is"}
    note = None
    if clusters == 1:
        note = "all questions are of one template, so each was taken for itself: the interval may be too narrow"
    elif clusters < FEWEST_CLUSTERS:
        note = f"only {clusters} templates: the interval says little below {FEWEST_CLUSTERS}"
    return {"low": interval.low, "high": interval.high, "interval_note": note}
