"""One metric of two runs: its difference, interval, p-value and verdict, in numbers and in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, fsum, isclose, log10
from typing import Literal

from graphrag_eval_lc.metrics import clustered_standard_error
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metric_spec import Unit
from graphrag_eval_lc.registry.metrics import metric_spec
from graphrag_eval_lc.stats import (
    Interval,
    bootstrap_interval,
    cohens_dz,
    differing_sums,
    holm,
    lowest_p_value,
    permutation_p_value,
    questions_needed,
)
from graphrag_eval_lc.texts import counted

_FORMATS = {"tokens": ",.0f", "seconds": ",.2f", "score": ",.3f", "count": ",.3f"}
# How many digits a number of a user's own unit has at least, and how many of them stand behind the point at most.
_DIGITS, _MOST_DECIMALS = 3, 6


def value_text(value: float, unit: Unit) -> str:
    """Return a mean as text; a unit of a user's own stands behind the number.

    Example:
        >>> value_text(0.71254, "score"), value_text(5297.4, "tokens"), value_text(0.0036, "usd")
        ('0.713', '5,297', '$0.0036')
        >>> value_text(12, "km"), value_text(-0.0123, "km"), value_text(5297.4, "km")
        ('12.0 km', '−0.0123 km', '5,297 km')
    """
    if unit == "usd":
        return f"{'−' if value < 0 else ''}{dollars(abs(value))}"
    known = _FORMATS.get(unit)
    text = format(value, known or f",.{_decimals(value)}f")
    # What rounds to nothing has no sign.
    shown = text.replace("-", "−") if _is_something(text) else text.lstrip("-")
    return shown if known else f"{shown} {unit}"


def change_text(value: float, unit: Unit) -> str:
    """Return a difference as text, with its sign.

    Example:
        >>> change_text(0.0204, "score"), change_text(-120.0, "tokens"), change_text(0.0, "seconds")
        ('+0.020', '−120', '0.00')
    """
    text = value_text(value, unit)
    return f"+{text}" if value > 0 and _is_something(text) else text


def p_text(p_value: float) -> str:
    """Return a p-value as text.

    Example:
        >>> p_text(0.0123), p_text(0.00001), p_text(1.0)
        ('0.012', '< 0.001', '1.000')
    """
    return "< 0.001" if p_value < 0.001 else format(p_value, ".3f")


def _is_something(text: str) -> bool:
    return any(digit in text for digit in "123456789")


def _decimals(value: float) -> int:
    return min(_MOST_DECIMALS, max(0, _DIGITS - 1 - floor(log10(abs(value))))) if value else 0


SIGNIFICANT = 0.05
# With G clusters that differ no p-value is below 2 / 2^G, which with fewer than 6 is not below 0.05.
FEWEST_FOR_A_VERDICT = 6

Verdict = Literal["better", "worse", "no evidence"]
Pair = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of two runs, A and another one, over the questions that have it in both.

    Attributes:
        metric: Its name.
        is_main: Whether it is the comparison's ``metric``, which was chosen beforehand.
        is_spent: Whether it says what was spent, tokens, time or money.
        lower_is_better: Whether less is better: of what was spent, and of the scores that are declared so.
        unit: ``score``, ``tokens``, ``seconds``, ``usd`` or ``count``, or the text of a user's own.
        is_proportion: Whether it is a score of which all values lie between 0 and 1, and none could be above 1.
        number_of_questions: How many questions are compared.
        number_of_templates: How many templates these have. Where it is one, and the two runs have more in common,
            nothing can be told: there is neither an interval nor a verdict.
        left_out: How many common questions are not, for want of the metric in one of the runs.
        mean_a: The mean of A over these questions; each counts once, with the mean of its repeats. A failed
            sample's score counts as 0.
        mean_b: The mean of the other run.
        difference: The other run's mean minus that of A.
        interval: The 95 % interval of the difference, by a bootstrap clustered by template, of this metric for
            itself; None with one question.
        p_value: That of a permutation test clustered by template.
        adjusted_p_value: The same adjusted by Holm's method for all metrics that can be tested, scores and what was
            spent together.
        can_tell: Whether the test could have told a difference: whether ``p_value`` could have fallen below 0.05,
            however large the differences are. It could not where fewer than 6 templates differ, nor where fewer than
            6 go the way of the difference and the others do not together make up for even the smallest of these.
        is_tested: Whether it can be tested, and so counts among these: some question differs, and not all are of
            one template while the runs have more.
        effect_size: Cohen's d_z; None where all questions differ alike.
        wins: Of how many questions the other run has the better value.
        ties: How many are alike.
        losses: Of how many A has the better value.
        templates_better: Of how many templates the other run has the better mean; of how many questions, where all
            are of one template, whose questions count each for itself.
        templates_worse: Of how many A has.
        verdict: ``better`` or ``worse``, of the other run, where the p-value that decides is below 0.05; else
            ``no evidence``, which says little of a metric that the test cannot tell (``can_tell``).
        questions_needed: How many questions it takes to see a difference of this size, at a level of 0.05 for the
            main metric and of 0.05 / m for each other of m that are tested; None where there is none, and with
            fewer than 6 templates, with which no p-value is below 0.05.
        sentence: All that for people.
    """

    metric: str
    is_main: bool
    is_spent: bool
    lower_is_better: bool
    unit: Unit
    is_proportion: bool
    number_of_questions: int
    number_of_templates: int
    left_out: int
    mean_a: float
    mean_b: float
    difference: float
    interval: Interval | None
    p_value: float
    adjusted_p_value: float
    can_tell: bool
    is_tested: bool
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    templates_better: int
    templates_worse: int
    verdict: Verdict
    questions_needed: int | None
    sentence: str

    @property
    def deciding_p_value(self) -> float:
        """The p-value that the verdict is by: of the main metric its own, of all others the adjusted one."""
        return self.p_value if self.is_main else self.adjusted_p_value

    @property
    def direction_note(self) -> str:
        """Which way is better, where that is not as of all scores or of all that is spent; else empty."""
        if self.lower_is_better is self.is_spent:
            return ""
        return "less is better" if self.lower_is_better else "more is better"


def difference_of(pair: Pair) -> float:
    """Return B − A, without what is only rounding."""
    a, b = pair
    return 0.0 if isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) else b - a


def better_or_worse(metric: MetricComparison) -> Literal["better", "worse"]:
    """Return the way that the difference goes, be it chance or not."""
    return "better" if (metric.difference < 0) is metric.lower_is_better else "worse"


def failures_text(metrics: Iterable[MetricComparison]) -> str:
    """Say as what the scores of failed samples count.

    Args:
        metrics: Those that are compared.
    """
    scores = [metric for metric in metrics if not metric.is_spent]
    less_is_better = any(metric.lower_is_better for metric in scores)
    goes_below_0 = any((metric_spec(metric.metric).value_of_failure or 0.0) < 0 for metric in scores)
    below = ", where scores go below 0 as the least value that there can be" if goes_below_0 else ""
    return (
        f"count as 0{below}{', where less is better as the greatest value that there can be' if less_is_better else ''}"
    )


def interval_text(metric: MetricComparison) -> str:
    """Return the interval of the difference as text; a dash where there is none."""
    if metric.interval is None:
        return "–"
    return f"{change_text(metric.interval.low, metric.unit)} to {change_text(metric.interval.high, metric.unit)}"


def p_values_note(main: str | None) -> str:
    """Say which p-values decide, and what the intervals are of.

    Args:
        main: The comparison's metric.
    """
    own = f"p of {main}, chosen beforehand, is its own; all others are" if main is not None else "p-values are"
    return f"{own} adjusted together (Holm). Each 95 % interval is of its metric for itself."


def verdict_text(metric: MetricComparison, letter: str) -> str:
    """Return the verdict in words.

    Args:
        metric: The metric.
        letter: What the run that is compared with A is called.
    """
    if not (metric.wins or metric.losses):
        return "the same"
    if metric.verdict != "no evidence":
        return f"{letter} is {metric.verdict}"
    what = "no evidence of a difference" if metric.can_tell else f"cannot tell whether {_claim(metric, letter)}"
    more = _what_is_missing(metric, "about {:,} questions would show it")
    return f"{what} ({more})" if more else what


def sentence_text(metric: MetricComparison, letter: str) -> str:
    """Return figures and verdict as a sentence.

    Args:
        metric: The metric.
        letter: What the run that is compared with A is called.
    """
    questions = counted(metric.number_of_questions, "question")
    if not (metric.wins or metric.losses):
        each = (
            f"each of the {questions} that have it" if metric.number_of_questions > 1 else "the 1 question that has it"
        )
        which = f"{each} ({metric.left_out:,} left out)" if metric.left_out else "each question"
        return f"{metric.metric} is the same in A and {letter} for {which}."
    figures = f"{value_text(metric.mean_a, metric.unit)} → {value_text(metric.mean_b, metric.unit)}"
    p_value = metric.deciding_p_value
    sure = ", ".join(
        [
            change_text(metric.difference, metric.unit),
            *([f"95 % interval {interval_text(metric)}"] if metric.interval else []),
            f"{'' if metric.is_main else 'adjusted '}p {'' if p_value < 0.001 else '= '}{p_text(p_value)}",
            questions,
        ]
    )
    if metric.verdict != "no evidence":
        return f"{letter} is {metric.verdict} in {metric.metric}: {figures} ({sure})."
    more = _what_is_missing(metric, "it would take about {:,} questions to see one of this size")
    what = "No evidence of a difference" if metric.can_tell else f"Cannot tell whether {_claim(metric, letter)}"
    return f"{what} in {metric.metric}: {figures} ({sure}){f'; {more}' if more else ''}."


def too_few_text(metric: MetricComparison) -> str:
    """Say why the test could not have told a difference, of a metric where ``can_tell`` is false."""
    return f"{_too_few(metric)}, and with fewer than {FEWEST_FOR_A_VERDICT} no p-value is below {SIGNIFICANT}"


def _too_few(metric: MetricComparison) -> str:
    # The questions of the only template count each for itself, but not where the runs have more templates.
    if metric.number_of_templates == 1 and not metric.is_tested:
        return "only one template has it"
    unit = "question" if metric.number_of_templates == 1 else "template"
    differ = metric.templates_better + metric.templates_worse
    if not differ:
        return f"no {unit}'s mean differs"
    if differ < FEWEST_FOR_A_VERDICT:
        return f"only {counted(differ, f'{unit} differs', f'{unit}s differ')}"
    which = better_or_worse(metric)
    number = metric.templates_better if which == "better" else metric.templates_worse
    return f"only {counted(number, f'{unit} is', f'{unit}s are')} {which}"


def _claim(metric: MetricComparison, letter: str) -> str:
    """Say what would be the verdict if it were no chance."""
    return f"{letter} is {better_or_worse(metric)}" if metric.difference else f"{letter} differs"


def _what_is_missing(metric: MetricComparison, needed: str) -> str:
    """Say why there is no evidence; ``needed`` has the place of the number of questions that it takes."""
    reasons = [] if metric.can_tell else [too_few_text(metric)]
    if metric.questions_needed is not None:
        if metric.questions_needed > metric.number_of_questions:
            reasons.append(needed.format(metric.questions_needed))
        elif metric.can_tell:
            # A large difference can be without evidence, where few templates differ.
            reasons.append(f"more templates{'' if metric.is_main else ', or fewer metrics,'} would tell")
    return "; ".join(reasons)


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
    """Return figures and p-value of a metric, for itself and not judged yet."""
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
    """Return whether values are shares of 1, of which a difference in points says how large it is.

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
