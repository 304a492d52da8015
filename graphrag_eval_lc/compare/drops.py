"""How much worse a mean is than that of the baseline, in numbers and in words."""

from math import copysign, inf
from typing import Final

from graphrag_eval_lc.compare.metric_comparison import MetricComparison

# A drop of 0.05 is 0.05, whatever rounding makes of it.
ROUNDING: Final = 1e-9


def drop_between(mean_a: float, difference: float, *, lower_is_better: bool, is_proportion: bool) -> float:
    """Return how much worse a mean is than A's, negative where it is better.

    Args:
        mean_a: The mean of A.
        difference: The other run's mean minus that of A.
        lower_is_better: Whether less is better.
        is_proportion: Whether all values are between 0 and 1: points count, else a share of A's mean.

    Returns:
        The drop; infinite where it is a share of 0.

    Example:
        >>> drop_between(0.75, -0.25, lower_is_better=False, is_proportion=True)
        0.25
        >>> drop_between(2000, 500, lower_is_better=True, is_proportion=False)
        0.25
    """
    worse_by = difference if lower_is_better else -difference
    if is_proportion or not worse_by:
        return worse_by
    return worse_by / abs(mean_a) if mean_a else copysign(inf, worse_by)


def drop_of(metric: MetricComparison) -> float:
    """Return how much worse a run is than A in a metric, as ``drop_between``."""
    return drop_between(
        metric.mean_a,
        metric.difference,
        lower_is_better=metric.lower_is_better,
        is_proportion=metric.is_proportion,
    )


def sure_drop_of(metric: MetricComparison, *, is_proportion: bool) -> float | None:
    """Return the lower end of the 95 % interval of the drop; None where too few questions differ to be sure of any.

    Args:
        metric: The metric.
        is_proportion: Whether points count, as in ``drop_between``.
    """
    if metric.interval is None or not metric.can_tell:
        return None
    ends = (
        drop_between(metric.mean_a, end, lower_is_better=metric.lower_is_better, is_proportion=is_proportion)
        for end in (metric.interval.low, metric.interval.high, metric.difference)
    )
    return min(ends)


def is_above(value: float, limit: float) -> bool:
    """Return whether a value is above a limit by more than rounding."""
    return value > limit + ROUNDING


def drop_text(drop: float, limit: float, *, is_proportion: bool) -> str:
    """Return a drop as text, exact enough to show its side of the limit.

    Example:
        >>> drop_text(0.25, 0.05, is_proportion=True), drop_text(0.25, 0.05, is_proportion=False)
        ('0.250', '25.0 %')
        >>> drop_text(0.0501, 0.05, is_proportion=True)
        '0.050100000'
    """
    if drop == inf:
        return "more than any share of A's mean, which is 0"
    scale, unit, decimals = (1, "", 3) if is_proportion else (100, " %", 1)
    text = format(scale * drop, f".{decimals}f")
    if is_above(float(text) / scale, limit) is not is_above(drop, limit):
        text = format(scale * drop, ".9f")
    return f"{text}{unit}"


def limit_text(limit: float, *, is_proportion: bool) -> str:
    """Return the drop that is allowed as text.

    Example:
        >>> limit_text(0.05, is_proportion=True), limit_text(0.05, is_proportion=False)
        ('0.05', "5 % of A's mean")
    """
    return f"{limit:g}" if is_proportion else f"{100 * limit:g} % of A's mean"
