"""The gate of a regression: whether a run is worse than the baseline in the main metric, and what decided that."""

import math
from dataclasses import dataclass
from typing import Literal

from graphrag_eval_lc.compare.metric_comparison import (
    MetricComparison,
    change_text,
    is_same,
    means_text,
    p_statement,
    too_few_text,
)
from graphrag_eval_lc.errors import OptionError

DEFAULT_MAX_DROP = 0.05

# A drop of 0.05 is 0.05, whatever rounding makes of it.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class RegressionGate:
    """Whether a run is worse than the baseline in the comparison's main metric, and what decided that.

    Where the test can tell a difference, its p-value decides: the run is worse where that is below 0.05. Where it
    cannot, as too few templates differ, the effect decides: the run is worse where ``drop`` is above ``max_drop``.

    Attributes:
        letter: What the run is called in the comparison.
        metric: The main metric of the run and the baseline A.
        max_drop: How much worse the run may be where the effect decides, 0 to 1.
    """

    letter: str
    metric: MetricComparison
    max_drop: float

    @property
    def drop(self) -> float:
        """How much worse the run is than A, negative where it is better.

        Of a score of which all values lie between 0 and 1 it is A's mean minus that of the run (where less is better,
        the run's minus A's). Of all else, as scores from 1 to 5 or tokens, it is a share of A's mean; infinite where
        that is 0.
        """
        worse_by = self.metric.difference if self.metric.lower_is_better else -self.metric.difference
        if self.metric.is_proportion or not worse_by:
            return worse_by
        return worse_by / abs(self.metric.mean_a) if self.metric.mean_a else math.copysign(math.inf, worse_by)

    @property
    def decided_by(self) -> Literal["p-value", "effect"]:
        """What decides: the p-value where the test can tell a difference, else the effect."""
        return "p-value" if self.metric.can_tell else "effect"

    @property
    def has_passed(self) -> bool:
        """Whether the run is not worse."""
        if self.decided_by == "p-value":
            return self.metric.verdict != "worse"
        return self.drop <= self.max_drop + _ROUNDING

    @property
    def is_comparable(self) -> bool:
        """Whether there was anything to check: always, as the runs have the metric in common."""
        return True

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
            return f"{claim} in {metric.metric}: {means} ({change}, {p_value}); the p-value decided"
        limit = f"{self.max_drop:g}" if metric.is_proportion else f"{100 * self.max_drop:g} % of A's mean"
        return (
            f"{claim} in {metric.metric} by more than {limit}: {means} ({change}{self._drop_text()}); "
            f"the effect decided: {too_few_text(metric)}"
        )

    def _drop_text(self) -> str:
        """Return the drop as text, exact enough to show its side of the limit; empty where the difference does."""
        if not 0 < self.drop < math.inf:
            return ""
        scale, unit = (1, "") if self.metric.is_proportion else (100, " %")
        decimals = 3 if self.metric.is_proportion else 1
        text = format(scale * self.drop, f".{decimals}f")
        if (float(text) > scale * self.max_drop) is self.has_passed:
            return f", by {scale * self.drop:.9f}{unit}"
        return "" if self.metric.is_proportion else f", by {text}{unit}"


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
        raise _no_drop(text)
    return value


def regression_gate(letter: str, metric: MetricComparison, max_drop: float) -> RegressionGate:
    """Return whether a run is worse than the baseline in a metric.

    Args:
        letter: What the run is called in the comparison.
        metric: The metric of the run and the baseline.
        max_drop: How much worse the run may be where the test cannot tell, 0 to 1.

    Raises:
        OptionError: ``max_drop`` is no number from 0 to 1.
    """
    if isinstance(max_drop, bool) or not isinstance(max_drop, int | float) or not 0 <= max_drop <= 1:
        raise _no_drop(max_drop)
    return RegressionGate(letter, metric, float(max_drop))


def _no_drop(value: object) -> OptionError:
    return OptionError(
        f"{value!r} is no drop that can be allowed",
        hint="Give one number from 0 to 1, for the main metric, as in --max-drop 0.05.",
    )
