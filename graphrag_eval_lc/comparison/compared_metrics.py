"""Comparing two runs in all their metrics, which are tested together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum

from graphrag_eval_lc.comparison.metric_comparison import (
    FEWEST_FOR_A_VERDICT,
    SIGNIFICANT,
    MetricComparison,
    Pair,
    Verdict,
    better_or_worse,
    difference_of,
    sentence_text,
)
from graphrag_eval_lc.metrics import clustered_standard_error
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.stats import (
    bootstrap_interval,
    cohens_dz,
    differing_sums,
    holm,
    lowest_p_value,
    permutation_p_value,
    questions_needed,
)


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


def compared_metrics(
    metrics: Sequence[MetricValues], *, main: str | None, number_of_templates: int, letter: str
) -> tuple[MetricComparison, ...]:
    """Compare two runs in metrics that are tested together.

    Args:
        metrics: Their values.
        main: The metric that was chosen beforehand, which is judged by its own p-value; all others are by the
            adjusted ones.
        number_of_templates: How many templates the questions have that are common to the runs.
        letter: What the run that is compared with A is called.
    """
    measured = [_measured(values, values.spec.key == main, number_of_templates) for values in metrics]
    tested = [metric for metric in measured if metric.is_tested]
    p_values = holm([metric.p_value for metric in tested])
    adjusted = {metric.metric: p_value for metric, p_value in zip(tested, p_values, strict=True)}
    return tuple(
        _judged(
            replace(
                metric,
                adjusted_p_value=adjusted.get(metric.metric, 1.0),
                questions_needed=_needed(metric, values, len(tested)),
            ),
            letter,
        )
        for metric, values in zip(measured, metrics, strict=True)
    )


def _measured(values: MetricValues, is_main: bool, number_of_templates: int) -> MetricComparison:
    """Give figures and p-value of a metric, for itself and not judged yet."""
    spec, groups = values.spec, values.pairs_by_template
    pairs = [pair for group in groups.values() for pair in group]
    by_template = _differences(values)
    differences = [difference for group in by_template.values() for difference in group]
    more, less = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    # One cluster's values would be taken as clusters of their own, which these are not where the runs have more.
    is_one_of_more = len(groups) == 1 < number_of_templates
    sums = differing_sums(by_template)
    templates_more, templates_less = sum(each > 0 for each in sums), sum(each < 0 for each in sums)
    return MetricComparison(
        metric=spec.key,
        is_main=is_main,
        is_spent=spec.is_spent,
        lower_is_better=spec.lower_is_better,
        unit=spec.unit,
        is_proportion=_are_proportions(spec, pairs),
        number_of_questions=len(pairs),
        number_of_templates=len(groups),
        left_out=values.left_out,
        mean_a=fsum(a for a, _ in pairs) / len(pairs),
        mean_b=fsum(b for _, b in pairs) / len(pairs),
        difference=fsum(differences) / len(differences),
        interval=None if is_one_of_more else bootstrap_interval(by_template),
        p_value=1.0 if is_one_of_more else permutation_p_value(by_template),
        adjusted_p_value=1.0,
        can_tell=not is_one_of_more and lowest_p_value(by_template) < SIGNIFICANT,
        is_tested=bool(more or less) and not is_one_of_more,
        effect_size=cohens_dz(differences),
        wins=less if spec.lower_is_better else more,
        ties=len(pairs) - more - less,
        losses=more if spec.lower_is_better else less,
        templates_better=templates_less if spec.lower_is_better else templates_more,
        templates_worse=templates_more if spec.lower_is_better else templates_less,
        verdict="no evidence",
        questions_needed=None,
        sentence="",
    )


def _are_proportions(spec: MetricSpec, pairs: Sequence[Pair]) -> bool:
    """Tell whether values are shares of 1, of which a difference in points says how large it is.

    Where the range does not tell, as of a number that nobody declared, the values do.
    """
    greatest = spec.range[1]
    may_be = spec.unit == "score" and (spec.range == (None, None) if greatest is None else greatest <= 1)
    return may_be and all(0 <= value <= 1 for pair in pairs for value in pair)


def _differences(values: MetricValues) -> dict[str, list[float]]:
    return {
        template_id: [difference_of(pair) for pair in group] for template_id, group in values.pairs_by_template.items()
    }


def _needed(metric: MetricComparison, values: MetricValues, number_of_tests: int) -> int | None:
    if not metric.is_tested or 1 < metric.number_of_templates < FEWEST_FOR_A_VERDICT:
        return None
    groups = list(_differences(values).values())
    # The questions of the only template count each for itself.
    error = clustered_standard_error(groups if len(groups) > 1 else [[difference] for difference in groups[0]])
    if error is None:
        return None
    significance = SIGNIFICANT if metric.is_main else SIGNIFICANT / number_of_tests
    return questions_needed(metric.difference, error, metric.number_of_questions, significance=significance)


def _judged(metric: MetricComparison, letter: str) -> MetricComparison:
    verdict: Verdict = "no evidence"
    if metric.deciding_p_value < SIGNIFICANT:
        verdict = better_or_worse(metric)
    judged = replace(metric, verdict=verdict)
    return replace(judged, sentence=sentence_text(judged, letter))
