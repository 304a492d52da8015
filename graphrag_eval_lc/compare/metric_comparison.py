"""One metric of two runs: the outcome of the comparison, and its words."""

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
# How many digits a number of a user's own unit has at least, and how many of them stand behind the point at most.
_DIGITS, _MOST_DECIMALS = 3, 6


def value_text(value: float, unit: Unit) -> str:
    """Return a mean as text; a unit that a user declared follows the number.

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
    # What rounds to nothing has no sign.
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
# With G clusters that differ sign flips give no p-value below 2 / 2^G, which with fewer than 6 is not below 0.05.
FEWEST_FOR_A_VERDICT = 6
# With fewer templates a skewed difference, of which the rare large changes are not seen, is found too often.
FEW_FOR_SKEWED = 30

Verdict = Literal["better", "worse", "no evidence"]
Pair = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of two runs, A and another one, over the questions that have it in both.

    Attributes:
        metric: Its name.
        is_main: Whether it is the comparison's ``metric``, which was chosen beforehand.
        is_spent: Whether it says what was spent: tokens, time or money.
        lower_is_better: Whether less is better, as of what was spent and of scores that are declared so.
        unit: ``score``, ``tokens``, ``seconds``, ``usd`` or ``count``, or the text of a user's own.
        is_proportion: Whether it is a score with all values between 0 and 1, and none could be above 1.
        number_of_questions: How many questions are compared.
        number_of_templates: How many templates these have. If it is one, but the two runs have more in common,
            there is neither an interval nor a verdict.
        left_out: How many common questions have the metric in one of the runs only.
        mean_a: The mean of A. Each question counts once, with the mean of its repeats; a failed sample's score as 0.
        mean_b: The mean of the other run.
        difference: The other run's mean minus that of A.
        interval: The interval of the difference, by the test of ``p_value``: it holds 0 if, and only if, the verdict
            is ``no evidence``. None with one question, and if nothing differs in what has no greatest value.
        confidence: The level of the interval: 0.95 for the main metric, for others as much more as the adjustment of
            their p-values asks.
        p_value: That of the difference, by a t test and sign flips of whole templates, whichever p is larger
            (``metrics.MeanDifference``).
        adjusted_p_value: The same adjusted by Holm's method for all metrics that can be tested, scores and what was
            spent together.
        can_tell: Whether ``p_value`` could have fallen below 0.05, however large the differences are. It could not
            if fewer than 6 templates differ, or if fewer than 6 go the way of the difference and the others do
            not together make up for even the smallest of these.
        is_tested: Whether it can be tested, and so counts in the adjustment: some question differs, and not all are
            of one template while the runs have more.
        effect_size: Cohen's d_z; None if all questions differ alike.
        wins: How many questions are better in the other run.
        ties: How many are the same.
        losses: How many are better in A.
        templates_better: How many templates have the better mean in the other run; questions, if all are of one.
        templates_worse: How many have it in A.
        verdict: Whether the other run is ``better`` or ``worse`` if the deciding p-value is below 0.05; otherwise
            ``no evidence``, which says little if the test cannot decide (``can_tell``).
        questions_needed: How many questions it takes to see a difference of this size, at a level of 0.05 for the
            main metric and of 0.05 / m for each other of m that are tested; None without a difference, and with
            fewer than 6 templates. It is as unsure as the difference is small: messages show the range.
        questions_needed_low: The lower end of a range that holds the number for the true difference in some 80 of 100
            comparisons, rounded down to one digit; None if ``questions_needed`` is.
        questions_needed_high: The upper end, rounded up; None, too, if the true difference may as well be 0.
        power: The chance that the test finds a drop of 0.05 (of a score between 0 and 1; of all else of 5 % of A's
            mean) at the 0.05 level, 0 to 1, given the measured standard error; 0 with fewer than 6 templates. None if
            it cannot be said: with one question, one template of several, a mean of 0 to take 5 % of, and if nothing
            differs in what has no greatest value.
        sentence: All that for people.
        chosen_from: From how many runs A was chosen as the best, else 1; ``p_value`` and what follows from it, such as
            ``interval`` and ``power``, take it into account (Bonferroni).
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
        """The p-value behind the verdict: of the main metric its own, of all others the adjusted one."""
        return self.p_value if self.is_main else self.adjusted_p_value

    @property
    def direction_note(self) -> str:
        """Which way is better, if it differs from other scores or from what else is spent; otherwise empty."""
        if self.lower_is_better is self.is_spent:
            return ""
        return "less is better" if self.lower_is_better else "more is better"


def difference_of(pair: Pair) -> float:
    """Return B − A; 0 if they differ by rounding only."""
    a, b = pair
    return 0.0 if isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) else b - a


def better_or_worse(metric: MetricComparison) -> Literal["better", "worse"]:
    """Return the way that the difference goes, be it chance or not."""
    return "better" if (metric.difference < 0) is metric.lower_is_better else "worse"


def is_same(metric: MetricComparison) -> bool:
    """Return whether all questions have the same value in both runs."""
    return not (metric.wins or metric.losses)


def failures_text(metrics: Iterable[MetricComparison]) -> str:
    """Say what scores of failed samples count as in these metrics."""
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
    """Say which p-values decide, and what the intervals are of; ``metrics`` are those that are shown."""
    shown = list(metrics)
    parts = [each.metric for each in shown if each.is_tested and each.metric != main and is_part_of_main(each.metric)]
    apart = f", but {listed(parts)} {'among themselves' if len(parts) > 1 else 'by itself'}" if parts else ""
    own = f"p of {main}, chosen beforehand, is its own; all others are" if main is not None else "p-values are"
    level = _level(max((each.chosen_from for each in shown), default=1))
    levels = f"The interval of {main} is at {level}, others are" if main else f"Intervals are at {level}, or"
    found = [each.number_of_templates for each in shown if each.verdict != "no evidence"]
    # The questions of the only template count each for itself, which is said elsewhere.
    few = min((number for number in found if 1 < number < FEW_FOR_SKEWED), default=0)
    rare = f" If others change far more than these {few} templates, p-values are too small." if few else ""
    return (
        f"{own} adjusted together (Holm){apart}. {levels} as much wider as this adjustment asks: an interval holds 0 "
        f"if, and only if, nothing shows a difference.{rare}"
    )


def verdict_text(metric: MetricComparison, letter: str) -> str:
    """Return the verdict in words; ``letter`` is that of the run that is compared with A."""
    if is_same(metric):
        return "the same"
    if metric.verdict != "no evidence":
        return f"{letter} is {metric.verdict}"
    what, more = _undecided(metric, letter), _what_is_missing(metric, "{} would tell")
    return f"{what} ({more})" if more else what


def sentence_text(metric: MetricComparison, letter: str) -> str:
    """Return means, difference and verdict as a sentence; ``letter`` is that of the run that is compared with A."""
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
    what, more = _undecided(metric, letter), _what_is_missing(metric, "it would take {} to decide")
    return f"{what[0].upper()}{what[1:]} {in_numbers}{f'; {more}' if more else ''}."


def _undecided(metric: MetricComparison, letter: str) -> str:
    if metric.can_tell:
        return "no evidence of a difference"
    return f"cannot tell whether {letter} {f'is {better_or_worse(metric)}' if metric.difference else 'differs'}"


def _what_is_missing(metric: MetricComparison, needed: str) -> str:
    """Say why there is no evidence; ``needed`` is the text around how many questions it takes."""
    reasons = [] if metric.can_tell else [too_few_text(metric)]
    low, high, number = metric.questions_needed_low, metric.questions_needed_high, metric.number_of_questions
    if low is not None and high is None:
        # With next to no degrees of freedom nothing can be said but that.
        many = f"at least {low:,} questions" if low > number else "more questions, nobody can say how many,"
        reasons.append(needed.format(many))
    elif low is not None and high is not None and high > number:
        few = f"some {low:,} questions" if low == high else f"some {low:,} to {high:,} questions"
        reasons.append(needed.format(few if low > number else f"up to {high:,} questions"))
    elif metric.questions_needed is not None and metric.can_tell:
        # A large difference can be without evidence, where few templates differ.
        reasons.append(f"more templates{'' if metric.is_main else ', or fewer metrics,'} would tell")
    return "; ".join(reasons)


def too_few_text(metric: MetricComparison) -> str:
    """Say why the test cannot find a difference, if ``can_tell`` is false."""
    # So many templates must differ, more next to the best of several runs.
    fewest = max(FEWEST_FOR_A_VERDICT, ceil(log2(2 * metric.chosen_from / SIGNIFICANT)))
    # The questions of the only template count each for itself, but not where the runs have more templates.
    unit = "question" if metric.number_of_templates == 1 else "template"
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
    return f"{what}, and with fewer than {fewest} no p-value is below {SIGNIFICANT}"


def _level(chosen_from: int) -> str:
    """Return the level of the main metric's interval as text."""
    return f"{100 * (1 - SIGNIFICANT / chosen_from):.4g} %"


def is_part_of_main(metric: str) -> bool:
    """Return whether a metric only takes the main one of this package apart."""
    whole = metric_spec(metric).part_of
    return whole is not None and (whole == MAIN_METRIC or is_part_of_main(whole))
