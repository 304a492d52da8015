"""Tests the difference of two runs in each metric: intervals, p-values that are adjusted together, and verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final

from graphrag_eval_lc.compare.metric_comparison import (
    FEWEST_FOR_A_VERDICT,
    SIGNIFICANT,
    MetricComparison,
    Pair,
    Verdict,
    difference_of,
    is_part_of_main,
    sentence_text,
)
from graphrag_eval_lc.metrics.difference import MeanDifference, cohens_dz, differing_sums, holm, lowest_p_value
from graphrag_eval_lc.metrics.intervals import Interval
from graphrag_eval_lc.registry import MetricSpec

# The drop for which ``power`` is computed.
_DROP: Final = 0.05
# A tolerance, so that rounding does not let an interval at the adjusted level contradict the adjusted p-value.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class MetricValues:
    """The values of a metric in A and in another run by template, and how many questions only one run has it for."""

    spec: MetricSpec
    pairs_by_template: Mapping[str, Sequence[Pair]]
    left_out: int

    def differences(self) -> dict[str, list[float]]:
        """Return the other run's values minus those of A, by template."""
        return {template_id: [*map(difference_of, pairs)] for template_id, pairs in self.pairs_by_template.items()}

    def are_proportions(self) -> bool:
        """Return whether the values are proportions, so that differences are in points and not in percent.

        They are if the metric is a score whose declared range, if it has one, does not exceed 1, and if all values are
        between 0 and 1.
        """
        spec, greatest = self.spec, self.spec.range[1]
        may_be = spec.unit == "score" and (spec.range == (None, None) if greatest is None else greatest <= 1)
        values = (value for pairs in self.pairs_by_template.values() for pair in pairs for value in pair)
        return may_be and all(0 <= value <= 1 for value in values)

    def mean_difference(self, number_of_templates: int) -> MeanDifference | None:
        """Return the tested mean difference; None if only one of several templates has the metric."""
        by_template = self.differences()
        # The values of a single cluster would be tested as separate clusters, which is wrong if the runs have more.
        if len(by_template) == 1 < number_of_templates:
            return None
        low, high = self.spec.range
        scale = None if low is None or high is None else high - low
        return MeanDifference(by_template, scale=1.0 if self.are_proportions() else scale)


def compared_metrics(
    metrics: Sequence[MetricValues], *, main: str | None, number_of_templates: int, letter: str, chosen_from: int = 1
) -> tuple[MetricComparison, ...]:
    """Compare two runs in metrics that are tested together; ``letter`` names the run that is compared with A.

    Metrics that are parts of ``steps_score`` are adjusted as a separate group: they repeat what it says, so they do not
    make the others less certain. The main metric, chosen beforehand, is judged by its own p-value, all others by
    adjusted ones. If A was chosen as the best of several runs (``chosen_from``), all p-values are multiplied by their
    number (Bonferroni), because the best of many looks better than it is.
    """
    found = [(values, values.mean_difference(number_of_templates)) for values in metrics]
    tested = [
        (values.spec.key, min(1.0, chosen_from * difference.p_value))
        for values, difference in found
        if difference is not None and any(map(any, values.differences().values()))
    ]
    families = [[each for each in tested if is_part_of_main(each[0]) is are_parts] for are_parts in (False, True)]
    adjusted = {
        key: p_value
        for family in families
        for (key, _), p_value in zip(family, holm([each for _, each in family]), strict=True)
    }
    compared = []
    for values, difference in found:
        key = values.spec.key
        number_of_tests = 1 if key == main else len(families[is_part_of_main(key)])
        metric = _compared(values, difference, adjusted.get(key), key == main, number_of_tests, chosen_from)
        compared.append(replace(metric, sentence=sentence_text(metric, letter)))
    return tuple(compared)


def _compared(
    values: MetricValues,
    mean_difference: MeanDifference | None,
    adjusted: float | None,
    is_main: bool,
    number_of_tests: int,
    chosen_from: int,
) -> MetricComparison:
    """Return the comparison in one metric, without its sentence; ``adjusted`` is None if it is not tested."""
    spec, by_template, is_proportion = values.spec, values.differences(), values.are_proportions()
    pairs = [pair for group in values.pairs_by_template.values() for pair in group]
    differences = [difference for group in by_template.values() for difference in group]
    wins, losses = _better_and_worse(differences, spec)
    templates_better, templates_worse = _better_and_worse(differing_sums(by_template), spec)
    mean_a, difference = fsum(a for a, _ in pairs) / len(pairs), fsum(differences) / len(differences)
    p_value, significance = 1.0, SIGNIFICANT
    verdict: Verdict = "no evidence"
    interval: Interval | None = None
    power: float | None = None
    needed: tuple[int | None, ...] = (None, None, None)
    if mean_difference is not None:
        p_value = min(1.0, chosen_from * mean_difference.p_value)
        deciding = p_value if is_main else 1.0 if adjusted is None else adjusted
        # The interval has the same level as the verdict.
        significance = SIGNIFICANT / chosen_from * p_value / deciding
        if deciding < SIGNIFICANT:
            verdict = "better" if (difference < 0) is spec.lower_is_better else "worse"
        rounding = -_ROUNDING if verdict == "no evidence" else _ROUNDING
        interval = mean_difference.interval(1 - significance * (1 + rounding))
        if interval is not None and is_proportion:
            interval = Interval(max(interval.low, -1.0), min(interval.high, 1.0))
        if drop := _DROP if is_proportion else _DROP * abs(mean_a):
            power = mean_difference.power(drop, SIGNIFICANT / chosen_from)
        if adjusted is not None and not 1 < len(by_template) < FEWEST_FOR_A_VERDICT:
            level = SIGNIFICANT / (chosen_from * number_of_tests)
            needed_range = mean_difference.questions_needed_range(level) or (None, None)
            needed = (mean_difference.questions_needed(level), *needed_range)
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
        difference=difference,
        interval=interval,
        confidence=1 - significance,
        p_value=p_value,
        adjusted_p_value=1.0 if adjusted is None else adjusted,
        can_tell=mean_difference is not None and chosen_from * lowest_p_value(by_template) < SIGNIFICANT,
        is_tested=adjusted is not None,
        effect_size=cohens_dz(differences),
        wins=wins,
        ties=len(pairs) - wins - losses,
        losses=losses,
        templates_better=templates_better,
        templates_worse=templates_worse,
        verdict=verdict,
        questions_needed=needed[0],
        questions_needed_low=needed[1],
        questions_needed_high=needed[2],
        power=power,
        sentence="",
        chosen_from=chosen_from,
    )


def _better_and_worse(differences: Sequence[float], spec: MetricSpec) -> tuple[int, int]:
    more, less = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return (less, more) if spec.lower_is_better else (more, less)
