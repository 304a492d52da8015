"""How sure a mean is over values in clusters (templates): its standard error and its bootstrap interval."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum, sqrt
from statistics import mean
from typing import Any, NamedTuple

from graphrag_eval_lc.errors import MissingExtraError

# With fewer, intervals and p-values that are clustered say little; a caller warns.
FEWEST_CLUSTERS = 10

# So many numbers are held at a time while samples are drawn: some 30 MB.
_NUMBERS_AT_A_TIME = 4_000_000

Clusters = Mapping[str, Sequence[float]] | Sequence[Sequence[float]]


def drawn_clusters(clusters: Clusters) -> list[Sequence[float]]:
    """Return what is drawn as a whole: the clusters that have values, or where there is but one, its values.

    Example:
        >>> drawn_clusters({"t1": [1.0, 0.5], "t2": [], "t3": [0.0]})
        [[1.0, 0.5], [0.0]]
        >>> drawn_clusters([[1.0, 0.5]])
        [[1.0], [0.5]]
    """
    groups = [values for values in (clusters.values() if isinstance(clusters, Mapping) else clusters) if len(values)]
    return [[value] for value in groups[0]] if len(groups) == 1 else groups


def sums_and_sizes(groups: Sequence[Sequence[float]]) -> list[tuple[float, int]]:
    """Return the sum and the number of each group's values, in an order that depends neither on theirs nor on signs."""
    return sorted(((fsum(values), len(values)) for values in groups), key=lambda each: (abs(each[0]), *each))


def batch_size(number_of_clusters: int) -> int:
    """Return how many samples of so many clusters are drawn at a time."""
    return max(1, _NUMBERS_AT_A_TIME // number_of_clusters)


class Interval(NamedTuple):
    """The bounds of an interval."""

    low: float
    high: float


def bootstrap_interval(
    values_by_cluster: Clusters, *, level: float = 0.95, resamples: int = 9999, seed: int = 0
) -> Interval | None:
    """Return the interval in which the mean over all values lies, where values of one cluster resemble each other.

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
    """Return the level whose plain percentiles are those of ``level`` expanded for few clusters."""
    quantile = stats.t.ppf((1 + level) / 2, number_of_clusters - 1)
    expanded = sqrt(number_of_clusters / (number_of_clusters - 1)) * quantile
    return float(1 - 2 * stats.norm.sf(expanded))


def clustered_standard_error(clusters: Iterable[Iterable[float]]) -> float | None:
    """Return the standard error of the mean over all values, where values of one cluster resemble each other.

    ``sqrt(G / (G − 1) · Σ_g (Σ_i (x_gi − x̄))²) / n`` for n values in G clusters. Questions of one template
    succeed and fail together, so that the plain standard error promises too much. The formula is that of Miller
    2024, "Adding Error Bars to Evals" (arXiv:2411.00640), with the usual correction for few clusters (Cameron and
    Miller 2015, "A Practitioner's Guide to Cluster-Robust Inference"). Where each cluster has one value it is the
    plain standard error, ``s / sqrt(n)``.

    Args:
        clusters: The values by cluster, in any order; clusters without values are left out.

    Returns:
        At least 0, in the unit of the values; None with fewer than 2 clusters, where nothing can be said. With few
        clusters (below some 20) it is itself uncertain, and rather too small.

    Example:
        >>> clustered_standard_error([[1.0, 1.0], [0.0, 0.0]])
        0.5
        >>> clustered_standard_error([[1.0, 0.0], [1.0, 0.0]])
        0.0
    """
    groups = [values for values in map(list, clusters) if values]
    if len(groups) < 2:
        return None
    values = [value for group in groups for value in group]
    centre = mean(values)
    squares = fsum(fsum(value - centre for value in group) ** 2 for group in groups)
    return sqrt(squares * len(groups) / (len(groups) - 1)) / len(values)


def scipy_stats() -> Any:
    """Return the module ``scipy.stats``, which is loaded by the first that asks for it.

    Raises:
        MissingExtraError: scipy or numpy is not installed.
    """
    try:
        import scipy.stats
    except ModuleNotFoundError as problem:
        missing = str(problem.name).partition(".")[0]
        if missing not in ("scipy", "numpy"):
            raise
        raise MissingExtraError("An interval or a test of significance", "stats", missing) from problem
    return scipy.stats
