"""The scores of a run: means, intervals and distributions, over all questions, by template and over repeats."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.aggregation.repeats import passes, repeats_summary, shown_chances
from graphrag_eval_lc.aggregation.score_means import ScoreValues, mean_of, score_values
from graphrag_eval_lc.config import RepeatsConfig
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.registry.metrics import JUDGES, MAIN_METRIC, NUMBER_OF_QUESTIONS, UPPER_BOUNDS, metric_spec
from graphrag_eval_lc.report.formats import passing_sign, shown_name
from graphrag_eval_lc.report.reported_run import ReportedSample
from graphrag_eval_lc.report.spent import Spent
from graphrag_eval_lc.stats import mean_interval
from graphrag_eval_lc.tables.run_tables import repeat_of

_JUDGES = [judge.key for judge in JUDGES]


def shown_scores(numbers: RunValues) -> dict[str, ScoreValues]:
    """Return the values of each score that was measured by its shown name, the most important first."""
    values = score_values(numbers)
    return {shown_name(metric): values[metric] for metric in sorted(values, key=_rank)}


def template_metrics(metrics: Iterable[str]) -> list[str]:
    """Return the scores with a column in the table of templates: those that no other score sums up."""
    return [metric for metric in metrics if not metric_spec(metric).is_part]


def score_records(scores: Mapping[str, ScoreValues], number_of_questions: int) -> list[dict[str, Any]]:
    """Return the section ``scores``.

    Args:
        scores: The values of each score.
        number_of_questions: How many questions the run has, with and without the score.
    """
    return [
        {
            "metric": metric,
            **(record := score_record(metric, values)),
            "macro": values.mean_of_templates().every,
            "without": number_of_questions - record["n_all"],
            **_interval(metric, values),
        }
        for metric, values in scores.items()
    ]


def score_record(metric: str, values: ScoreValues, shown_range: tuple[float, float] | None = None) -> dict[str, Any]:
    """Return a score's means, numbers of values, and distribution over the shown range; ``upper`` where it differs."""
    every, answered, mean = values.all_values(), values.answered_values(), values.mean()
    upper = mean_of([value for of_template in values.upper.values() for value in of_template])
    low, high = shown_range or metric_spec(metric).shown_range(every)
    return {
        "mean_answered": mean.answered,
        "mean_all": mean.every,
        "n_answered": len(answered),
        "n_all": len(every),
        "bins": bins_of(every, low, high),
        "range": [low, high],
        **({"upper": upper} if upper is not None and upper > fmean(every) else {}),
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
        note = "one question says nothing of how sure this is" if len(every) < 2 else "all questions are alike"
        return {"low": None, "high": None, "interval_note": note}
    return {"low": interval.low, "high": interval.high, "interval_note": interval.note}


NUMBER_OF_BINS = 10


def bins_of(values: Sequence[float], low: float, high: float) -> list[int]:
    """Count values in ten bins of equal width from ``low`` to ``high``, which falls into the last.

    Example:
        >>> bins_of([0, 0.05, 0.1, 1], 0, 1)
        [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    """
    counts = [0] * NUMBER_OF_BINS
    width = high - low
    for value in values:
        at = int((value - low) / width * NUMBER_OF_BINS) if width else 0
        counts[min(at, NUMBER_OF_BINS - 1)] += 1
    return counts


def template_rows(
    numbers: RunValues, scores: Mapping[str, ScoreValues], metrics: Iterable[str], spent: Spent
) -> list[dict[str, Any]]:
    """Return the section ``templates``, in the order of the results.

    Args:
        numbers: The values of all questions.
        scores: The values of their scores.
        metrics: The scores that have a column.
        spent: What the samples spent.
    """
    questions, errors = Counter[str](), Counter[str]()
    for question in numbers.questions.values():
        questions[question.template_id] += 1
        errors[question.template_id] += question.errors
    ranges = {metric: metric_spec(metric).shown_range(scores[metric].all_values()) for metric in metrics}
    return [
        {
            "id": shown_name(template_id),
            "questions": count,
            "errors": errors[template_id],
            "scores": {
                metric: score_record(metric, scores[metric].of_template(template_id), shown_range)
                for metric, shown_range in ranges.items()
                if template_id in scores[metric].every
            },
            **spent.means(shown_name(template_id)),
        }
        for template_id, count in questions.items()
    ]


_OUTCOMES = (False, True, None)


class Repeats:
    """The chances that questions asked several times are passed, as the aggregates have them.

    Args:
        config: The metric and the threshold that say whether a sample passed.
    """

    def __init__(self, config: RepeatsConfig) -> None:
        self._config = config
        self._count = 1
        self._question_ids: list[str] = []
        self._outcomes = bytearray()  # of the samples, by their places in _OUTCOMES

    def add(self, sample: ReportedSample) -> None:
        """Add a sample."""
        self._count = max(self._count, repeat_of(sample.result))
        self._question_ids.append(str(sample.result["question_id"]))
        metric = self._config.metric
        values = sample.values.get(metric) or sample.values.get(UPPER_BOUNDS.get(metric) or "")
        outcome: bool | None = None
        if sample.has_failed:
            outcome = False
        elif values:
            is_lower_better = metric_spec(metric).lower_is_better
            outcome = passes(fmean(values), self._config.threshold, lower_is_better=is_lower_better)
        self._outcomes.append(_OUTCOMES.index(outcome))

    def records(self) -> list[dict[str, Any]]:
        """Return the section ``repeats``: pass@1, and pass@k and pass^k for the largest k that all questions allow."""
        return [{"name": name, "value": value} for name, value in shown_chances(self._summary())]

    def note(self) -> str | None:
        """Say what passing means, and how many questions are left out; None without repeats."""
        summary = self._summary()
        if not summary:
            return None
        unmeasured = summary["number_of_unmeasured_questions"]
        without = f"; {unmeasured:,} of {summary[NUMBER_OF_QUESTIONS]:,} questions were not measured"
        passing = f"{self._config.metric} {passing_sign(self._config.metric)} {self._config.threshold:g}"
        return f"passed: {passing}{without if unmeasured else ''}"

    def _summary(self) -> dict[str, Any]:
        if self._count == 1:
            return {}
        by_question: dict[str, list[bool | None]] = {}
        for question_id, outcome in zip(self._question_ids, self._outcomes, strict=True):
            by_question.setdefault(question_id, []).append(_OUTCOMES[outcome])
        return repeats_summary(by_question, self._count, {}, self._config)
