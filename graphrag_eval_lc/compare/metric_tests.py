"""Tests what two runs have in each metric: differences, intervals, p-values adjusted together, and verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final

from graphrag_eval_lc.compare.metric_comparison import (
    FEWEST_FOR_A_VERDICT,
    SIGNIFICANT,
    MetricComparison,
    Pair,
    better_or_worse,
    difference_of,
    is_part_of_main,
    sentence_text,
)
from graphrag_eval_lc.metrics.difference import MeanDifference
from graphrag_eval_lc.metrics.intervals import Interval
from graphrag_eval_lc.metrics.significance import cohens_dz, differing_sums, holm, lowest_p_value
from graphrag_eval_lc.registry import MetricSpec

# The drop that ``power`` is the chance to find.
_DROP: Final = 0.05
# So that rounding does not have an interval at the adjusted level contradict the adjusted p-value.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class MetricValues:
    """The values of a metric in two runs.

    Attributes:
        spec: Its declaration.
        pairs_by_template: The values of A and of the other run for each question, at least one.
        left_out: How many common questions have it in one of the runs only.
    """

    spec: MetricSpec
    pairs_by_template: Mapping[str, Sequence[Pair]]
    left_out: int

    def differences(self) -> dict[str, list[float]]:
        """Return the other run's values minus those of A, by template."""
        return {template_id: [*map(difference_of, pairs)] for template_id, pairs in self.pairs_by_template.items()}

    def are_proportions(self) -> bool:
        """Return whether values are shares of 1, so that a difference in points says how large it is.

        If the range does not show it, as for a metric that nobody declared, the values do.
        """
        spec, greatest = self.spec, self.spec.range[1]
        may_be = spec.unit == "score" and (spec.range == (None, None) if greatest is None else greatest <= 1)
        return may_be and all(
            0 <= value <= 1 for pairs in self.pairs_by_template.values() for pair in pairs for value in pair
        )


def compared_metrics(
    metrics: Sequence[MetricValues], *, main: str | None, number_of_templates: int, letter: str, chosen_from: int = 1
) -> tuple[MetricComparison, ...]:
    """Compare two runs in metrics that are tested together.

    Those that only take ``steps_score`` apart are adjusted among themselves: they repeat what it says, so they
    do not make the others less certain.

    Args:
        metrics: Their values.
        main: The metric that was chosen beforehand, whose verdict is by its own p-value; all others' are by the
            adjusted ones.
        number_of_templates: How many templates the common questions have.
        letter: What the run that is compared with A is called.
        chosen_from: From how many runs A was chosen as the best. All p-values are multiplied by it (Bonferroni), since
            the best of many looks better than it is.
    """
    all_values = {values.spec.key: values for values in metrics}
    differences = {key: _mean_difference(values, number_of_templates) for key, values in all_values.items()}
    measured = [_measured(values, differences[key], key == main, chosen_from) for key, values in all_values.items()]
    tested = [metric for metric in measured if metric.is_tested]
    parts = {metric.metric for metric in tested if is_part_of_main(metric.metric)}
    families = [[metric for metric in tested if (metric.metric in parts) is are_parts] for are_parts in (False, True)]
    adjusted = {
        metric.metric: p_value
        for family in families
        for metric, p_value in zip(family, holm([each.p_value for each in family]), strict=True)
    }
    compared = []
    for metric in measured:
        judged = replace(metric, adjusted_p_value=adjusted.get(metric.metric, 1.0))
        if judged.deciding_p_value < SIGNIFICANT:
            judged = replace(judged, verdict=better_or_worse(judged))
        if difference := differences[metric.metric]:
            number_of_tests = len(families[is_part_of_main(metric.metric)])
            judged = _with_needed(_with_interval(judged, difference), difference, number_of_tests)
        compared.append(replace(judged, sentence=sentence_text(judged, letter)))
    return tuple(compared)


def _mean_difference(values: MetricValues, number_of_templates: int) -> MeanDifference | None:
    """Return the mean difference as it is tested; None if one of several templates has the metric alone."""
    by_template = values.differences()
    # One cluster's values would be taken as clusters of their own, which these are not where the runs have more.
    if len(by_template) == 1 < number_of_templates:
        return None
    low, high = values.spec.range
    scale = None if low is None or high is None else high - low
    return MeanDifference(by_template, scale=1.0 if values.are_proportions() else scale)


def _with_interval(metric: MetricComparison, difference: MeanDifference) -> MetricComparison:
    """Return the comparison with the interval at the level at which the verdict is."""
    significance = SIGNIFICANT / metric.chosen_from * metric.p_value / metric.deciding_p_value
    is_found = metric.verdict != "no evidence"
    interval = difference.interval(1 - significance * (1 + _ROUNDING if is_found else 1 - _ROUNDING))
    if interval is not None and metric.is_proportion:
        interval = Interval(max(interval.low, -1.0), min(interval.high, 1.0))
    return replace(metric, interval=interval, confidence=1 - significance)


def _with_needed(metric: MetricComparison, difference: MeanDifference, number_of_tests: int) -> MetricComparison:
    """Return the comparison with the number of questions that it takes."""
    if not metric.is_tested or 1 < metric.number_of_templates < FEWEST_FOR_A_VERDICT:
        return metric
    significance = SIGNIFICANT / (metric.chosen_from * (1 if metric.is_main else number_of_tests))
    low, high = difference.questions_needed_range(significance) or (None, None)
    return replace(
        metric,
        questions_needed=difference.questions_needed(significance),
        questions_needed_low=low,
        questions_needed_high=high,
    )


def _measured(
    values: MetricValues, mean_difference: MeanDifference | None, is_main: bool, chosen_from: int
) -> MetricComparison:
    """Return the comparison in one metric for itself, without what depends on the others and without a verdict."""
    spec, by_template = values.spec, values.differences()
    pairs = [pair for group in values.pairs_by_template.values() for pair in group]
    differences = [difference for group in by_template.values() for difference in group]
    wins, losses = _better_and_worse(differences, spec)
    templates_better, templates_worse = _better_and_worse(differing_sums(by_template), spec)
    is_proportion = values.are_proportions()
    mean_a = fsum(a for a, _ in pairs) / len(pairs)
    drop = _DROP if is_proportion else _DROP * abs(mean_a)
    return MetricComparison(
        metric=spec.key,
        is_main=is_main,
        is_spent=spec.is_spent,
        lower_is_better=spec.lower_is_better,
        unit=spec.unit,
        is_proportion=is_proportion,
        number_of_questions=len(pairs),
        number_of_templates=len(by_template),
        left_out=values.left_out,
        mean_a=mean_a,
        mean_b=fsum(b for _, b in pairs) / len(pairs),
        difference=fsum(differences) / len(differences),
        interval=None,
        confidence=1 - SIGNIFICANT,
        p_value=1.0 if mean_difference is None else min(1.0, chosen_from * mean_difference.p_value),
        adjusted_p_value=1.0,
        can_tell=mean_difference is not None and chosen_from * lowest_p_value(by_template) < SIGNIFICANT,
        is_tested=bool(wins or losses) and mean_difference is not None,
        effect_size=cohens_dz(differences),
        wins=wins,
        ties=len(pairs) - wins - losses,
        losses=losses,
        templates_better=templates_better,
        templates_worse=templates_worse,
        verdict="no evidence",
        questions_needed=None,
        questions_needed_low=None,
        questions_needed_high=None,
        power=None if mean_difference is None or not drop else mean_difference.power(drop, SIGNIFICANT / chosen_from),
        sentence="",
        chosen_from=chosen_from,
    )


def _better_and_worse(differences: Sequence[float], spec: MetricSpec) -> tuple[int, int]:
    more, less = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return (less, more) if spec.lower_is_better else (more, less)
