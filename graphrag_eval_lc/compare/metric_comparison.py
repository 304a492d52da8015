"""The comparison of two runs in one metric: its numbers, and the texts about them."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isclose, log2, log10
from typing import Literal

from graphrag_eval_lc.metrics.intervals import Interval
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.metric_spec import Unit
from graphrag_eval_lc.registry.metrics import MAIN_METRIC, metric_spec
from graphrag_eval_lc.texts import counted, listed

_FORMATS = {"tokens": ",.0f", "seconds": ",.2f", "score": ",.3f", "count": ",.3f"}
# For units that users declare: the fewest significant digits, and the most digits after the decimal point.
_DIGITS, _MOST_DECIMALS = 3, 6


def value_text(value: float, unit: Unit) -> str:
    """Return a mean as text. A unit that a user declared follows the number.

    Example:
        >>> value_text(0.71254, "score"), value_text(5297.4, "tokens"), value_text(0.0036, "usd")
        ('0.713', '5,297', '$0.0036')
        >>> value_text(12, "km"), value_text(-0.0123, "km"), value_text(5297.4, "km")
        ('12.0 km', '−0.0123 km', '5,297 km')
    """
    if unit == "usd":
        return f"{'−' if value < 0 else ''}{dollars(abs(value))}"
    known = _FORMATS.get(unit)
    decimals = min(_MOST_DECIMALS, max(0, _DIGITS - 1 - floor(log10(abs(value))))) if value else 0
    text = format(value, known or f",.{decimals}f")
    # A value that rounds to 0 has no sign.
    shown = text.replace("-", "−") if _is_something(text) else text.lstrip("-")
    return shown if known else f"{shown} {unit}"


def change_text(value: float, unit: Unit) -> str:
    """Return a difference as text, with its sign."""
    text = value_text(value, unit)
    return f"+{text}" if value > 0 and _is_something(text) else text


def p_text(p_value: float) -> str:
    """Return a p-value as text."""
    return "< 0.001" if p_value < 0.001 else format(p_value, ".3f")


def p_statement(p_value: float) -> str:
    """Return a p-value as an equation."""
    return f"p {'' if p_value < 0.001 else '= '}{p_text(p_value)}"


def _is_something(text: str) -> bool:
    return any(digit in text for digit in "123456789")


SIGNIFICANT = 0.05
# With G clusters that differ, sign flips return no p-value below 2 / 2^G; with fewer than 6 that is not below 0.05.
FEWEST_FOR_A_VERDICT = 6
# With fewer templates, skewed differences are called significant too often, because rare large changes are not seen.
FEW_FOR_SKEWED = 30
_NAMED = 5  # how many metrics a text names

Verdict = Literal["better", "worse", "no evidence"]
Pair = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of two runs, A and another one, over the questions that have it in both.

    Attributes:
        metric: Its name.
        is_main: Whether it is the comparison's ``metric``, which was chosen beforehand.
        is_spent: Whether it is what was spent: tokens, time or money.
        lower_is_better: Whether lower is better, as for what was spent and for scores that declare it.
        unit: ``score``, ``tokens``, ``seconds``, ``usd`` or ``count``, or a unit that a user declared.
        is_proportion: Whether it is a score whose values are all between 0 and 1, and cannot be above 1.
        number_of_questions: How many questions are compared.
        number_of_templates: How many templates these have. If it is one, but the two runs have more in common,
            there is neither an interval nor a verdict.
        left_out: How many common questions have the metric in only one of the runs.
        mean_a: The mean of A. Each question counts once, with the mean of its repeats; failed samples score 0.
        mean_b: The mean of the other run.
        difference: The other run's mean minus that of A.
        interval: The confidence interval of the difference, from the test of ``p_value``: it contains 0 if, and only
            if, the verdict is ``no evidence``. None with one question, and if nothing differs in a metric without a
            greatest value.
        confidence: The level of the interval: 0.95 for the main metric; higher for others, to match their adjusted
            p-values.
        p_value: The p-value of the difference: the larger one of a t test and of sign flips of whole templates
            (``metrics.MeanDifference``).
        adjusted_p_value: The p-value adjusted by Holm's method for all metrics that can be tested, scores and what was
            spent together.
        can_tell: Whether ``p_value`` could have fallen below 0.05, however large the differences are. It could not
            if fewer than 6 templates differ, or if fewer than 6 go the way of the difference and the others do
            not together make up for even the smallest of these.
        is_tested: Whether it can be tested, and so counts in the adjustment: at least one question differs, and the
            questions are not all of one template of several.
        effect_size: Cohen's d_z; None if all questions differ alike.
        wins: How many questions are better in the other run.
        ties: How many questions are the same.
        losses: How many questions are better in A.
        templates_better: How many templates have a better mean in the other run. If there is only one template, how
            many questions.
        templates_worse: How many have a better mean in A.
        verdict: Whether the other run is ``better`` or ``worse`` if the deciding p-value is below 0.05; otherwise
            ``no evidence``, which says little if the test cannot decide (``can_tell``).
        questions_needed: How many questions are needed to detect a difference of this size, at a level of 0.05 for the
            main metric, and of 0.05 / m for each of m others that are tested. None without a difference, and with
            fewer than 6 templates. The smaller the difference, the less certain the number, so messages show the
            range.
        questions_needed_low: The lower end of a range that contains the number for the true difference in about 80 of
            100 comparisons, rounded down to one digit. None if ``questions_needed`` is None.
        questions_needed_high: The upper end, rounded up. None also if the true difference may be 0.
        power: The probability, 0 to 1, that the test detects a drop at the 0.05 level, given the measured standard
            error. The drop is 0.05 for a score between 0 and 1, otherwise 5 % of A's mean. 0 with fewer than 6
            templates. None if it is undefined: with one question, with one template of several, if A's mean of
            such a metric is 0, and if nothing differs in a metric without a greatest value.
        sentence: The comparison in words.
        chosen_from: The number of runs of which A was chosen as the best, otherwise 1. ``p_value`` and what follows
            from it, such as ``interval`` and ``power``, are corrected for it (Bonferroni).
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
    confidence: float
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
    questions_needed_low: int | None
    questions_needed_high: int | None
    power: float | None
    sentence: str
    chosen_from: int = 1

    @property
    def deciding_p_value(self) -> float:
        """The p-value that decides the verdict: for the main metric its own, for all others the adjusted one."""
        return self.p_value if self.is_main else self.adjusted_p_value

    @property
    def direction_note(self) -> str:
        """Which direction is better, if that is unusual for a score or for what is spent; otherwise empty."""
        if self.lower_is_better is self.is_spent:
            return ""
        return "less is better" if self.lower_is_better else "more is better"


def difference_of(pair: Pair) -> float:
    """Return B − A; 0 if they differ only by rounding errors."""
    a, b = pair
    return 0.0 if isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) else b - a


def better_or_worse(metric: MetricComparison) -> Literal["better", "worse"]:
    """Return the direction of the difference, even if it may be chance."""
    return "better" if (metric.difference < 0) is metric.lower_is_better else "worse"


def is_same(metric: MetricComparison) -> bool:
    """Return whether all questions have the same value in both runs."""
    return not (metric.wins or metric.losses)


def failures_text(metrics: Iterable[MetricComparison]) -> str:
    """Return a text about what the scores of failed samples count as in these metrics."""
    scores = [metric for metric in metrics if not metric.is_spent]
    text = "count as 0"
    if any((metric_spec(metric.metric).value_of_failure or 0.0) < 0 for metric in scores):
        text += ", where scores go below 0 as the least value that there can be"
    if any(metric.lower_is_better for metric in scores):
        text += ", where less is better as the greatest value that there can be"
    return text


def means_text(metric: MetricComparison) -> str:
    """Return both means as text, that of A first."""
    return f"{value_text(metric.mean_a, metric.unit)} → {value_text(metric.mean_b, metric.unit)}"


def interval_text(metric: MetricComparison) -> str:
    """Return the interval of the difference as text; a dash if there is none."""
    if metric.interval is None:
        return "–"
    return f"{change_text(metric.interval.low, metric.unit)} to {change_text(metric.interval.high, metric.unit)}"


def p_values_note(main: str | None, metrics: Iterable[MetricComparison]) -> str:
    """Return a note on which p-values decide and on the intervals; ``metrics`` are those that are shown."""
    shown = list(metrics)
    parts = [each.metric for each in shown if each.is_tested and each.metric != main and is_part_of_main(each.metric)]
    level = _level(max((each.chosen_from for each in shown), default=1))
    adjusted = "adjusted for the number of metrics (Holm's method)"
    if main is not None:
        notes = [
            f"{main} is the main metric, so its p-value is not adjusted",
            f"All other p-values are {adjusted}",
            f"The interval of {main} is at {level}",
            "Other intervals are wider, to match the adjusted p-values",
        ]
    else:
        notes = [f"p-values are {adjusted}", f"Intervals are at {level}, or wider to match the adjusted p-values"]
    if parts:
        group = f"{listed(parts)} {'are' if len(parts) > 1 else 'is'} adjusted separately"
        notes.insert(len(notes) // 2, f"{group}, as {'parts' if len(parts) > 1 else 'a part'} of {MAIN_METRIC}")
    notes.append("An interval contains 0 if, and only if, the difference is not significant")
    found = [each.number_of_templates for each in shown if each.verdict != "no evidence"]
    # With only one template, each question is a cluster; another text says so.
    few = min((number for number in found if 1 < number < FEW_FOR_SKEWED), default=0)
    if few:
        notes.append(
            f"If rare, large changes are missing from these {few} templates by chance, the p-values are too small"
        )
    return f"{'. '.join(notes)}."


def verdict_text(metric: MetricComparison, letter: str) -> str:
    """Return the verdict in words; ``letter`` names the run that is compared with A.

    Why the test cannot tell is the same for most metrics, so ``undecided_text`` says it once.
    """
    if is_same(metric):
        return "the same"
    if metric.verdict != "no evidence":
        return f"{letter} is {metric.verdict}"
    return " ".join(["no evidence", *_questions_text(metric)]) if metric.can_tell else "cannot tell"


def undecided_text(metrics: Iterable[MetricComparison]) -> str:
    """Return for which metrics the test cannot tell, and why; empty if there are none."""
    found = [metric for metric in metrics if metric.is_tested and not metric.can_tell]
    if not found:
        return ""
    names, units = listed([metric.metric for metric in found], _NAMED), f"{_unit(found[0])}s"
    is_few = all(metric.templates_better + metric.templates_worse < _fewest(metric) for metric in found)
    what = "differ" if is_few else "differ in the same direction"
    return (
        f"The test cannot tell for {names}: too few {units} {what}. With fewer than {_fewest(found[0])}, no p-value is "
        f"below {SIGNIFICANT}."
    )


def sentence_text(metric: MetricComparison, letter: str) -> str:
    """Return means, difference and verdict as a sentence; ``letter`` names the run that is compared with A."""
    questions = counted(metric.number_of_questions, "question")
    if is_same(metric):
        which = "each question"
        if metric.left_out:
            one = metric.number_of_questions == 1
            which = "the 1 question that has it" if one else f"each of the {questions} that have it"
            which += f" ({metric.left_out:,} left out)"
        return f"{metric.metric} is the same in A and {letter} for {which}."
    kind = f"{_level(metric.chosen_from)} interval" if metric.is_main else "interval"
    interval = f", {kind} {interval_text(metric)}" if metric.interval else ""
    p_value = f"{'' if metric.is_main else 'adjusted '}{p_statement(metric.deciding_p_value)}"
    change = change_text(metric.difference, metric.unit)
    in_numbers = f"in {metric.metric}: {means_text(metric)} ({change}{interval}, {p_value}, {questions})"
    if metric.verdict != "no evidence":
        return f"{letter} is {metric.verdict} {in_numbers}."
    what = "No evidence of a difference"
    if not metric.can_tell:
        differs = f"is {better_or_worse(metric)}" if metric.difference else "differs"
        what = f"Cannot tell whether {letter} {differs}"
    reasons = [f"{what} {in_numbers}"]
    if not metric.can_tell:
        too_few = too_few_text(metric)
        reasons.append(f"{too_few[0].upper()}{too_few[1:]}")
    return ". ".join([*reasons, *_questions_text(metric, "To show a difference of this size, use ")]) + "."


def _questions_text(metric: MetricComparison, start: str = "(it needs ") -> list[str]:
    """Return a text on how many questions would be evidence, or none if that is not known."""
    low, high, number = metric.questions_needed_low, metric.questions_needed_high, metric.number_of_questions
    needed = ""
    if low is not None and high is None:
        # With almost no degrees of freedom nothing else can be said.
        needed = f"at least {low:,} questions" if low > number else "more questions; how many cannot be estimated"
    elif low is not None and high is not None and high > number:
        about = f"about {low:,} questions" if low == high else f"about {low:,} to {high:,} questions"
        needed = about if low > number else f"up to {high:,} questions"
    elif metric.questions_needed is not None and metric.can_tell:
        # Even a large difference may be without evidence if few templates differ.
        needed = f"more templates{'' if metric.is_main else ', or fewer metrics'}"
    return [f"{start}{needed}{')' if start.startswith('(') else ''}"] if needed else []


def too_few_text(metric: MetricComparison) -> str:
    """Return why the test cannot find a difference, if ``can_tell`` is false."""
    fewest, unit = _fewest(metric), _unit(metric)
    differ, which = metric.templates_better + metric.templates_worse, better_or_worse(metric)
    if metric.number_of_templates == 1 and not metric.is_tested:
        what = "only one template has it"
    elif not differ:
        what = f"no {unit}'s mean differs"
    elif differ < fewest:
        what = f"only {counted(differ, f'{unit} differs', f'{unit}s differ')}"
    else:
        number = metric.templates_better if which == "better" else metric.templates_worse
        what = f"only {counted(number, f'{unit} is', f'{unit}s are')} {which}"
    return f"{what}; with fewer than {fewest}, no p-value is below {SIGNIFICANT}"


def _fewest(metric: MetricComparison) -> int:
    """Return how many templates must differ: more if the baseline is the best of several runs."""
    return max(FEWEST_FOR_A_VERDICT, ceil(log2(2 * metric.chosen_from / SIGNIFICANT)))


def _unit(metric: MetricComparison) -> str:
    """Return what a cluster is: the template, or if the runs have only one template, the question."""
    return "question" if metric.number_of_templates == 1 else "template"


def _level(chosen_from: int) -> str:
    """Return the level of the main metric's interval as text."""
    return f"{100 * (1 - SIGNIFICANT / chosen_from):.4g} %"


def is_part_of_main(metric: str) -> bool:
    """Return whether a metric is only a part of steps_score."""
    whole = metric_spec(metric).part_of
    return whole is not None and (whole == MAIN_METRIC or is_part_of_main(whole))
