"""The interval in which the mean of clustered values lies: the bootstrap."""

from math import sqrt
from typing import Any, NamedTuple

from graphrag_eval_lc.statistics.clusters import Clusters, batch_size, drawn_clusters, sums_and_sizes
from graphrag_eval_lc.statistics.scipy_import import scipy_stats


class Interval(NamedTuple):
    """The bounds of an interval."""

    low: float
    high: float


def bootstrap_interval(
    values_by_cluster: Clusters, *, level: float = 0.95, resamples: int = 9999, seed: int = 0
) -> Interval | None:
    """Give the interval in which the mean over all values lies, where values of one cluster resemble each other.

    Clusters are drawn as a whole, with replacement, and the mean is taken over all values of those drawn (Davison and
    Hinkley 1997, "Bootstrap Methods and their Application", 3.8). The bounds are percentiles of these means, at
    ``Φ(−sqrt(G / (G − 1)) · t)`` in place of α/2 for G clusters, t the quantile of Student's distribution with G − 1
    degrees of freedom: the plain percentiles are too near each other where clusters are few (Hesterberg 2015, "What
    Teachers Should Know About the Bootstrap", The American Statistician 69, 371–386).

    Args:
        values_by_cluster: The values by cluster; neither the order of the clusters nor that of the values matters.
            Of one cluster each value counts as a cluster of its own, which promises too much where they resemble
            each other.
        level: How sure the interval is to hold the mean, between 0 and 1.
        resamples: How often clusters are drawn, at least 1.
        seed: Makes the same draws each time.

    Returns:
        The bounds, in the unit of the values, never beyond the smallest and largest mean of a cluster; None with
        fewer than 2 values, where nothing can be said.

    Raises:
        MissingExtraError: scipy is not installed.
        ValueError: The level is outside its range.

    Example:
        >>> interval = bootstrap_interval({"t1": [1.0, 1.0], "t2": [0.0, 0.5], "t3": [1.0]})
        >>> 0 <= interval.low <= 0.7 <= interval.high <= 1
        True
    """
    if not 0 < level < 1:
        raise ValueError(f"the level is between 0 and 1, not {level}")
    groups = drawn_clusters(values_by_cluster)
    if len(groups) < 2:
        return None
    sums, sizes = zip(*sums_and_sizes(groups), strict=True)
    stats = scipy_stats()
    drawn = stats.bootstrap(
        (sums, sizes),
        _mean,
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=_widened(level, len(groups), stats),
        n_resamples=resamples,
        batch=batch_size(len(groups)),
        rng=seed,
    )
    interval = drawn.confidence_interval
    return Interval(float(interval.low), float(interval.high))


def _mean(sums: Any, sizes: Any, axis: int) -> Any:
    return sums.sum(axis=axis) / sizes.sum(axis=axis)


def _widened(level: float, number_of_clusters: int, stats: Any) -> float:
    """Give the level whose plain percentiles are those of ``level`` expanded for few clusters."""
    quantile = stats.t.ppf((1 + level) / 2, number_of_clusters - 1)
    expanded = sqrt(number_of_clusters / (number_of_clusters - 1)) * quantile
    return float(1 - 2 * stats.norm.sf(expanded))
