"""The gate of a regression: whether a run is worse than the baseline in the main metric, and what decided that."""

import math
from dataclasses import dataclass
from typing import Final, Literal

from graphrag_eval_lc.compare.drops import drop_of, drop_text, is_above, limit_text, sure_drop_of
from graphrag_eval_lc.compare.metric_comparison import (
    MetricComparison,
    change_text,
    interval_text,
    is_same,
    means_text,
    p_statement,
    too_few_text,
)
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.texts import counted, on_one_line

DEFAULT_MAX_DROP = 0.05
# The test decides where it would find the drop of MetricComparison.power at least so often: what Cohen 1988,
# "Statistical Power Analysis for the Behavioral Sciences", proposes as enough.
_ENOUGH_POWER: Final = 0.8
_DROP_OF_POWER: Final = 0.05


@dataclass(frozen=True, slots=True)
class RegressionGate:
    """Whether a run is worse than the baseline in the comparison's main metric, and what decided that.

    If the test would find a drop of 0.05 in at least 80 % of such comparisons (``MetricComparison.power``), its
    p-value decides: the run is worse if that is below 0.05. If it would not, as it has few or noisy questions, the
    effect decides: the run is worse if ``drop`` is above ``max_drop``. A run that the test calls worse is worse in
    any case, so that the gate never contradicts the table.

    Attributes:
        letter: What the run is called in the comparison.
        metric: The main metric of the run and the baseline A.
        max_drop: How much worse the run may be where the effect decides, 0 to 1.
        is_confident: Whether only a sure drop counts where the effect decides: the lower end of its 95 % interval.
    """

    letter: str
    metric: MetricComparison
    max_drop: float
    is_confident: bool = False

    @property
    def drop(self) -> float:
        """How much worse the run is than A, negative where it is better.

        Of a score of which all values lie between 0 and 1 it is A's mean minus that of the run (where less is better,
        the run's minus A's). Of all else, as scores from 1 to 5 or tokens, it is a share of A's mean; infinite where
        that is 0.
        """
        return drop_of(self.metric)

    @property
    def decided_by(self) -> Literal["p-value", "effect"]:
        """What decides: the p-value if the test is strong, or shows what the effect does not; else the effect."""
        is_strong = self.metric.can_tell and _has_power(self.metric)
        is_shown = self.metric.verdict == "worse" and self._has_passed_by_effect
        return "p-value" if is_strong or is_shown else "effect"

    @property
    def has_passed(self) -> bool:
        """Whether the run is not worse."""
        return self.metric.verdict != "worse" if self.decided_by == "p-value" else self._has_passed_by_effect

    @property
    def _has_passed_by_effect(self) -> bool:
        if not is_above(self.drop, self.max_drop):
            return True
        sure = self._sure_drop() if self.is_confident else self.drop
        return sure is None or not is_above(sure, self.max_drop)

    @property
    def is_comparable(self) -> bool:
        """Whether there was anything to check: always, as the runs have the metric in common."""
        return True

    @on_one_line
    def __str__(self) -> str:
        metric = self.metric
        if is_same(metric):
            return metric.sentence.removesuffix(".")
        means, change = means_text(metric), change_text(metric.difference, metric.unit)
        claim = f"{self.letter} is {'not worse' if self.has_passed else 'worse'}"
        if self.decided_by == "p-value":
            if metric.verdict == "no evidence" and self.drop > 0:
                claim = f"no evidence that {self.letter} is worse"
            p_value = p_statement(metric.p_value)
            why = _power_text(metric) if _has_power(metric) else "it is below 0.05"
            return f"{claim} in {metric.metric}: {means} ({change}, {p_value}); the p-value decided: {why}"
        limit = limit_text(self.max_drop, is_proportion=metric.is_proportion)
        p_value = f", {p_statement(metric.p_value)}" if metric.can_tell else ""
        why = _power_text(metric) if metric.can_tell else too_few_text(metric)
        if self.has_passed and is_above(self.drop, self.max_drop):
            claim = f"{self.letter} is not surely worse"
        return (
            f"{claim} in {metric.metric} by more than {limit}: {means} "
            f"({change}{self._drop_text()}{p_value}{self._sure_text()}); the effect decided: {why}"
        )

    def _sure_drop(self) -> float | None:
        return sure_drop_of(self.metric, is_proportion=self.metric.is_proportion)

    def _sure_text(self) -> str:
        """Say what is sure of a drop above the limit, where only a sure one counts."""
        if not self.is_confident or not is_above(self.drop, self.max_drop):
            return ""
        if self._sure_drop() is None:
            return ", of which nothing is sure"
        return f", 95 % interval {interval_text(self.metric)}"

    def _drop_text(self) -> str:
        """Return the drop as text where the difference does not show it; empty where it does."""
        if not 0 < self.drop < math.inf:
            return ""
        text = drop_text(self.drop, self.max_drop, is_proportion=self.metric.is_proportion)
        is_told = self.metric.is_proportion and text == format(self.drop, ".3f")
        return "" if is_told else f", by {text}"


def _has_power(metric: MetricComparison) -> bool:
    return metric.power is not None and metric.power >= _ENOUGH_POWER


def _power_text(metric: MetricComparison) -> str:
    """Say how often the test would find a drop, where it could find any."""
    if metric.power is None:
        return "A's mean is 0, so that there is no share of it that the test should see"
    way = "rise" if metric.lower_is_better else "drop"
    drop = limit_text(_DROP_OF_POWER, is_proportion=metric.is_proportion)
    percent = math.floor(100 * metric.power)
    share = f"{percent} %" if percent else "less than 1 %"
    only = "" if _has_power(metric) or not percent else "only "
    units = f"{counted(metric.number_of_questions, 'question')} in {counted(metric.number_of_templates, 'template')}"
    return f"the test would see a {way} of {drop} in {only}{share} of such comparisons ({units})"


def allowed_drop(text: str) -> float:
    """Read how much worse a run may be from a text such as ``0.05``.

    Raises:
        OptionError: The text is no number from 0 to 1.

    Example:
        >>> allowed_drop("0.02")
        0.02
    """
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise no_drop(text)
    return value


def regression_gate(
    letter: str, metric: MetricComparison, max_drop: float, *, is_confident: bool = False
) -> RegressionGate:
    """Return whether a run is worse than the baseline in a metric.

    Args:
        letter: What the run is called in the comparison.
        metric: The metric of the run and the baseline.
        max_drop: How much worse the run may be where the effect decides, 0 to 1.
        is_confident: Whether only a sure drop counts where the effect decides.

    Raises:
        OptionError: ``max_drop`` is no number from 0 to 1.
    """
    if isinstance(max_drop, bool) or not isinstance(max_drop, int | float) or not 0 <= max_drop <= 1:
        raise no_drop(max_drop)
    return RegressionGate(letter, metric, float(max_drop), is_confident)


def no_drop(value: object) -> OptionError:
    """Return the error of what is no drop."""
    return OptionError(
        f"{value!r} is no drop that can be allowed",
        hint="Give one number from 0 to 1, as in --max-drop 0.05 for the main metric or --max-drop steps_score=0.05.",
    )
