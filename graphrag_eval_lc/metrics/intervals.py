"""Numbers in clusters go in; standard errors, bounds and percentiles come out: what intervals and tests share."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from math import fsum, sqrt
from statistics import mean
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.errors import MissingExtraError

# With fewer, clustered intervals and p-values say little; callers warn.
FEWEST_CLUSTERS = 10

# Held at a time while samples are drawn: some 30 MB.
_NUMBERS_AT_A_TIME = 4_000_000

# Beyond it squares and their sums would have no number; differences of results are far smaller.
_LARGEST: Final = 1e120

Clusters = Mapping[str, Sequence[float]] | Sequence[Sequence[float]]


def drawn_clusters(clusters: Clusters) -> list[Sequence[float]]:
    """Return the units to draw: the clusters with values, or the values of the only one.

    Example:
        >>> drawn_clusters({"t1": [1.0, 0.5], "t2": [], "t3": [0.0]})
        [[1.0, 0.5], [0.0]]
        >>> drawn_clusters([[1.0, 0.5]])
        [[1.0], [0.5]]
    """
    groups = [values for values in (clusters.values() if isinstance(clusters, Mapping) else clusters) if len(values)]
    return [[value] for value in groups[0]] if len(groups) == 1 else groups


def refuse_too_large(values: Iterable[float]) -> None:
    """Refuse values whose squares cannot be reckoned with.

    Raises:
        ValueError: There is one.
    """
    too_large = next((value for value in values if abs(value) > _LARGEST), None)
    if too_large is not None:
        raise ValueError(f"{too_large} is too large to reckon with, which goes up to {_LARGEST}")


def sums_and_sizes(groups: Sequence[Sequence[float]]) -> list[tuple[float, int]]:
    """Return each group's sum and number of values, in an order independent of the groups' and of signs."""
    return sorted(((fsum(values), len(values)) for values in groups), key=lambda each: (abs(each[0]), *each))


def batch_size(number_of_clusters: int) -> int:
    """Return how many samples to draw at a time."""
    return max(1, _NUMBERS_AT_A_TIME // number_of_clusters)


class Interval(NamedTuple):
    """The bounds of an interval."""

    low: float
    high: float


def wilson_bounds(mean: float, number: float, quantile: float) -> Interval:
    """Return Wilson's bounds of a mean of ``number`` values between 0 and 1, which need be no whole number.

    ``(m + q²/2n ± q·sqrt(m(1 − m)/n + q²/4n²)) / (1 + q²/n)``: Wilson 1927, "Probable Inference, the Law of
    Succession, and Statistical Inference" (JASA 22, 209–212).

    Example:
        >>> [round(bound, 3) for bound in wilson_bounds(1.0, 6, 1.96)]
        [0.61, 1.0]
    """
    spread = quantile**2 / number
    centre = (mean + spread / 2) / (1 + spread)
    half = quantile * sqrt(max(mean * (1 - mean), 0.0) / number + spread / (4 * number)) / (1 + spread)
    # Rounding must not push a bound beyond the mean itself.
    return Interval(max(0.0, min(centre - half, mean)), min(1.0, max(centre + half, mean)))


def clustered_standard_error(clusters: Iterable[Iterable[float]]) -> float | None:
    """Return the standard error of the mean over all values, where values of one cluster correlate.

    ``sqrt(G / (G − 1) · Σ_g (Σ_i (x_gi − x̄))²) / n`` for n values in G clusters. Questions of one template tend to
    pass and fail together, so that the plain standard error is too small. The formula is that of Miller 2024,
    "Adding Error Bars to Evals" (arXiv:2411.00640), with the usual correction for few clusters (Cameron and Miller
    2015, "A Practitioner's Guide to Cluster-Robust Inference"). With one value in each cluster it is the plain
    standard error, ``s / sqrt(n)``.

    Args:
        clusters: The values by cluster, in any order; clusters without values are left out.

    Returns:
        At least 0, in the unit of the values; None with fewer than 2 clusters. With few clusters (below some 20) it
        is itself uncertain, and tends to be too small.

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


class ClusterRobustMean(NamedTuple):
    """A mean over values of which those of a cluster correlate.

    Attributes:
        mean: The mean over all values.
        standard_error: Its standard error, at least 0.
        degrees_of_freedom: Those of the standard error, above 0 and at most the number of clusters less 1.
    """

    mean: float
    standard_error: float
    degrees_of_freedom: float


def cluster_robust_mean(clusters: Sequence[Sequence[float]]) -> ClusterRobustMean:
    """Return the mean over all values with its cluster-robust standard error.

    The standard error is CR2 of Bell and McCaffrey 2002, "Bias Reduction in Standard Errors for Linear Regression with
    Multi-Stage Samples" (Survey Methodology 28, 169–181), for a mean: ``sqrt(Σ_g e_g² / (1 − w_g)) / n`` with
    ``e_g = Σ_i (x_gi − x̄)`` and ``w_g = n_g / n``; it is without bias where values do not correlate. The degrees of
    freedom are Satterthwaite's as they propose: G − 1 if G clusters are of one size, and fewer where some are large.

    Args:
        clusters: The values by cluster, in any order; at least two, and none is empty.

    Raises:
        ValueError: There are fewer than 2 clusters, which say nothing of how clusters differ.

    Example:
        >>> cluster_robust_mean([[1.0, 1.0], [0.0, 0.0]])
        ClusterRobustMean(mean=0.5, standard_error=0.5, degrees_of_freedom=1.0)
    """
    if len(clusters) < 2:
        raise ValueError("the standard error of a mean over clusters needs at least 2 of them")
    number = sum(map(len, clusters))
    mean = fsum(value for values in clusters for value in values) / number
    shares = [len(values) / number for values in clusters]
    residuals = (fsum(value - mean for value in values) for values in clusters)
    variance = fsum(total**2 / (1 - share) for total, share in zip(residuals, shares, strict=True)) / number**2
    ratios = [share**2 / (1 - share) for share in shares]
    freedom = 1 / (fsum(share**2 for share in shares) + fsum(ratios) ** 2 - fsum(ratio**2 for ratio in ratios))
    return ClusterRobustMean(mean, sqrt(variance), freedom)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies, interpolated between two values as numpy does.

    Args:
        values: At least one.
        share: 0 to 1.

    Example:
        >>> percentile([1, 2, 3, 4], 0.5), percentile([7], 0.95)
        (2.5, 7)
    """
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    if below + 1 >= len(ordered):
        return ordered[below]
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])


def scipy_stats() -> Any:
    """Return the module ``scipy.stats``, imported at the first call.

    Raises:
        MissingExtraError: scipy or numpy is not installed.
    """
    return _scipy("stats")


def student_quantile(share: float, degrees_of_freedom: float) -> float:
    """Return a quantile of Student's distribution, without ``scipy.stats``, which takes half a second to import.

    Raises:
        MissingExtraError: scipy or numpy is not installed.
    """
    return float(_scipy("special").stdtrit(degrees_of_freedom, share))


def normal_quantile(share: float) -> float:
    """Return a quantile of the standard normal distribution; see ``student_quantile``."""
    return float(_scipy("special").ndtri(share))


def _scipy(part: str) -> Any:
    try:
        return import_module(f"scipy.{part}")
    except ModuleNotFoundError as problem:
        missing = str(problem.name).partition(".")[0]
        if missing not in ("scipy", "numpy"):
            raise
        raise MissingExtraError("An interval or a test of significance", "stats", missing) from problem
