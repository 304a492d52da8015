"""One metric of two runs: means, the difference and how sure it is, and the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isclose
from typing import Literal

from graphrag_eval_lc.comparison.numbers_text import Unit, change_text, p_text, unit_of, value_text
from graphrag_eval_lc.metrics import clustered_standard_error
from graphrag_eval_lc.statistics import (
    Interval,
    bootstrap_interval,
    cohens_dz,
    holm,
    permutation_p_value,
    questions_needed,
)

SIGNIFICANT = 0.05

# A large difference can be without evidence: a p-value is never below 2 / 2^G for G templates that differ.
_MORE_TEMPLATES = "more templates, or fewer metrics, would tell"

Verdict = Literal["better", "worse", "no evidence"]
Pair = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of two runs, A and another one, over the questions that have it in both.

    Attributes:
        metric: Its name.
        is_spent: Whether it says what was spent, so that less is better; of scores more is better.
        unit: ``score``, ``tokens``, ``seconds`` or ``usd``.
        number_of_questions: How many questions are compared.
        left_out: How many common questions are not, for want of the metric in one of the runs.
        mean_a: The mean of A over these questions; each counts once, with the mean of its repeats. A failed
            sample's score counts as 0.
        mean_b: The mean of the other run.
        difference: The other run's mean minus that of A.
        interval: The 95 % interval of the difference, by a bootstrap clustered by template; None with one question.
        p_value: That of a permutation test clustered by template.
        adjusted_p_value: The same adjusted for the number of metrics by Holm's method, scores and what was spent
            each for themselves.
        effect_size: Cohen's d_z; None where all questions differ alike.
        wins: Of how many questions the other run has the better value.
        ties: How many are alike.
        losses: Of how many A has the better value.
        verdict: ``better`` or ``worse``, of the other run, where the adjusted p-value is below 0.05.
        questions_needed: How many questions it takes to see a difference of this size; None where there is none.
        sentence: All that for people.
    """

    metric: str
    is_spent: bool
    unit: Unit
    number_of_questions: int
    left_out: int
    mean_a: float
    mean_b: float
    difference: float
    interval: Interval | None
    p_value: float
    adjusted_p_value: float
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    verdict: Verdict
    questions_needed: int | None
    sentence: str


def compared_metric(
    metric: str, pairs_by_template: Mapping[str, Sequence[Pair]], *, is_spent: bool, left_out: int
) -> MetricComparison:
    """Compare two runs in one metric, with a p-value that is not adjusted yet.

    Args:
        metric: Its name.
        pairs_by_template: The values of A and of the other run for each question, at least one.
        is_spent: Whether less is better.
        left_out: How many common questions lack the metric.
    """
    pairs = [pair for group in pairs_by_template.values() for pair in group]
    by_template = {
        template_id: [difference_of(pair) for pair in group] for template_id, group in pairs_by_template.items()
    }
    differences = [difference for group in by_template.values() for difference in group]
    difference = fsum(differences) / len(differences)
    p_value = permutation_p_value(by_template)
    error = clustered_standard_error(by_template.values() if len(by_template) > 1 else ([each] for each in differences))
    more, less = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return MetricComparison(
        metric=metric,
        is_spent=is_spent,
        unit=unit_of(metric),
        number_of_questions=len(pairs),
        left_out=left_out,
        mean_a=fsum(a for a, _ in pairs) / len(pairs),
        mean_b=fsum(b for _, b in pairs) / len(pairs),
        difference=difference,
        interval=bootstrap_interval(by_template),
        p_value=p_value,
        adjusted_p_value=p_value,
        effect_size=cohens_dz(differences),
        wins=less if is_spent else more,
        ties=len(pairs) - more - less,
        losses=more if is_spent else less,
        verdict="no evidence",
        questions_needed=None if error is None else questions_needed(difference, error, len(pairs)),
        sentence="",
    )


def difference_of(pair: Pair) -> float:
    """Give B − A, without what is only rounding."""
    a, b = pair
    return 0.0 if isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) else b - a


def judged_together(metrics: Sequence[MetricComparison], letter: str) -> tuple[MetricComparison, ...]:
    """Give metrics with adjusted p-values, verdicts and sentences.

    Args:
        metrics: The metrics of two runs.
        letter: What the run that is compared with A is called.
    """
    adjusted: dict[str, float] = {}
    families: dict[str, list[MetricComparison]] = {}
    for metric in metrics:
        families.setdefault(_family(metric), []).append(metric)
    for family in families.values():
        p_values = holm([metric.p_value for metric in family])
        adjusted.update(zip((metric.metric for metric in family), p_values, strict=True))
    return tuple(_judged(replace(metric, adjusted_p_value=adjusted[metric.metric]), letter) for metric in metrics)


def _family(metric: MetricComparison) -> str:
    """Give the metrics with which one is adjusted: the many of retrieval must not hide a difference of the others."""
    if metric.is_spent:
        return "spent"
    return "retrieval" if metric.metric.startswith("retrieval_") else "scores"


def _judged(metric: MetricComparison, letter: str) -> MetricComparison:
    verdict: Verdict = "no evidence"
    if metric.adjusted_p_value < SIGNIFICANT:
        verdict = "better" if (metric.difference < 0) is metric.is_spent else "worse"
    judged = replace(metric, verdict=verdict)
    return replace(judged, sentence=_sentence(judged, letter))


def _sentence(metric: MetricComparison, letter: str) -> str:
    if not (metric.wins or metric.losses):
        return f"{metric.metric} is the same in A and {letter} for each question."
    figures = f"{value_text(metric.mean_a, metric.unit)} → {value_text(metric.mean_b, metric.unit)}"
    sure = ", ".join(
        [
            change_text(metric.difference, metric.unit),
            *([f"95 % interval {interval_text(metric)}"] if metric.interval else []),
            f"adjusted p {'' if metric.adjusted_p_value < 0.001 else '= '}{p_text(metric.adjusted_p_value)}",
        ]
    )
    if metric.verdict != "no evidence":
        return f"{letter} is {metric.verdict} in {metric.metric}: {figures} ({sure})."
    return f"No evidence of a difference in {metric.metric}: {figures} ({sure}){_needed_text(metric)}."


def interval_text(metric: MetricComparison) -> str:
    """Give the interval of the difference as text; a dash where there is none."""
    if metric.interval is None:
        return "–"
    return f"{change_text(metric.interval.low, metric.unit)} to {change_text(metric.interval.high, metric.unit)}"


def verdict_text(metric: MetricComparison, letter: str) -> str:
    """Give the verdict in words.

    Args:
        metric: The metric.
        letter: What the run that is compared with A is called.
    """
    if not (metric.wins or metric.losses):
        return "the same"
    if metric.verdict != "no evidence":
        return f"{letter} is {metric.verdict}"
    needed = metric.questions_needed
    if needed is None:
        return "no evidence of a difference"
    more = _MORE_TEMPLATES if needed <= metric.number_of_questions else f"about {needed:,} questions would show it"
    return f"no evidence of a difference ({more})"


def _needed_text(metric: MetricComparison) -> str:
    needed = metric.questions_needed
    if needed is None:
        return ""
    if needed <= metric.number_of_questions:
        return f"; {_MORE_TEMPLATES}"
    return f"; it would take about {needed:,} questions to see one of this size"
