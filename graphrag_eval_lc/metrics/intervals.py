"""Numbers in clusters go in; standard errors, percentiles, and the confidence interval of their mean come out."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from math import fsum, inf, isfinite, sqrt
from statistics import mean
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.errors import MissingExtraError

# With fewer, clustered intervals and p-values are unreliable; callers warn.
FEWEST_CLUSTERS = 10

# Held at a time while samples are drawn: some 30 MB.
_NUMBERS_AT_A_TIME = 4_000_000

# Squares and sums of larger values would overflow; differences of results are far smaller.
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
    """Raise a ValueError if a value is so large that its square could overflow."""
    too_large = next((value for value in values if abs(value) > _LARGEST), None)
    if too_large is not None:
        raise ValueError(f"{too_large} is too large; the limit is {_LARGEST}")


def batch_size(number_of_clusters: int) -> int:
    """Return how many samples to draw at a time."""
    return max(1, _NUMBERS_AT_A_TIME // number_of_clusters)


class Interval(NamedTuple):
    """The bounds of an interval."""

    low: float
    high: float


def wilson_bounds(mean: float, number: float, quantile: float) -> Interval:
    """Return Wilson's bounds of a mean of ``number`` values between 0 and 1; ``number`` need not be whole.

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
    """Return the standard error of the mean over all values, which correlate within clusters.

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
    """A mean over values that correlate within clusters, with the degrees of freedom of its standard error."""

    mean: float
    standard_error: float
    degrees_of_freedom: float


def cluster_robust_mean(clusters: Sequence[Sequence[float]]) -> ClusterRobustMean:
    """Return the mean over the values of at least two clusters, with its cluster-robust standard error.

    The standard error is CR2 of Bell and McCaffrey 2002, "Bias Reduction in Standard Errors for Linear Regression with
    Multi-Stage Samples" (Survey Methodology 28, 169–181), for a mean: ``sqrt(Σ_g e_g² / (1 − w_g)) / n`` with
    ``e_g = Σ_i (x_gi − x̄)`` and ``w_g = n_g / n``; it is unbiased if values do not correlate. The degrees of
    freedom are Satterthwaite's as they propose: G − 1 if G clusters are of one size, and fewer if some are large.

    Example:
        >>> cluster_robust_mean([[1.0, 1.0], [0.0, 0.0]])
        ClusterRobustMean(mean=0.5, standard_error=0.5, degrees_of_freedom=1.0)
    """
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
    """Return the module ``scipy.stats``, imported at the first call; without it a MissingExtraError is raised."""
    return _scipy("stats")


def student_quantile(share: float, degrees_of_freedom: float) -> float:
    """Return a quantile of Student's distribution, without ``scipy.stats``, which takes half a second to import."""
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


# With fewer templates, almost nothing is known about how much they differ.
FEWEST_TEMPLATES: Final = 5

# The prior assumption is that questions of one template behave alike. It weighs as much as this many questions that
# lack something (that have something, if most lack all). benchmarks/interval_coverage.py shows that this is enough.
PRIOR_WEIGHT: Final = 2

# Variances below this are rounding.
_ROUNDING = 1e-12

Bounds = tuple[float | None, float | None]


class MeanInterval(NamedTuple):
    """The confidence interval of a mean.

    Attributes:
        low: The lower bound, in the unit of the values.
        high: The upper bound.
        mean: The mean.
        note: Why the interval is too narrow, as a sentence without a full stop; None if it is not.

    Example:
        >>> interval = mean_interval([1, 1, 1, 0, 1, 1, 1], ["a", "a", "b", "c", "d", "d", "e"])
        >>> interval.low < interval.mean < interval.high, interval.note
        (True, None)
    """

    low: float
    high: float
    mean: float
    note: str | None


def mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    confidence: float = 0.95,
    *,
    bounds: Bounds | None = None,
) -> MeanInterval | None:
    """Return the confidence interval of the mean over all values, which correlate within clusters.

    Values with bounds, such as scores: Wilson's interval (1927, "Probable Inference, the Law of Succession, and
    Statistical Inference", JASA 22, 209–212) for as many independent values as say as much, ``x̄ (1 − x̄) / SE²``
    (at most n), with the quantile of Student's distribution in place of the normal one (as Korn and Graubard 1998,
    "Confidence Intervals for Proportions With Small Expected Number of Positive Counts Estimated From Survey Data",
    Survey Methodology 24, 193–201, do for the exact one). SE is the larger of two:

    * the cluster-robust one, CR2 with the degrees of freedom of Bell and McCaffrey (``cluster_robust_mean``), and
    * that of a model in which any two values of a cluster correlate alike. The correlation is that of an analysis of
      variance, drawn towards 1 by ``PRIOR_WEIGHT``: if few questions fail, next to nothing is known of whether
      they fail together.

    If all values are equal they say as much as ``(Σ n_g)² / Σ n_g²`` values: one a cluster, if all are of one size.

    Values without bounds, such as tokens: ``x̄ ± t · SE`` with the cluster-robust standard error.

    With fewer than 5 clusters each value is a separate cluster, and ``note`` says that this is too narrow.

    Args:
        values: Finite numbers, one for each question; with repeats the question's mean.
        clusters: The cluster of each value, such as its template's id.
        confidence: The confidence level, between 0 and 1.
        bounds: The least and the greatest possible value, each None if unbounded. By default they
            are 0 and 1 if all values lie between, else there are none.

    Returns:
        The interval, never beyond ``bounds``; None with fewer than 2 values, or if values without bounds are all
        equal and so do not show how far others vary.

    Raises:
        ValueError: A value is not finite, above 1e120 or beyond the bounds, there are not as many clusters as values,
            or the confidence level is out of range.
        MissingExtraError: scipy is not installed.

    Example:
        >>> interval = mean_interval([1.0] * 6, ["t1", "t2", "t3", "t4", "t5", "t6"])
        >>> round(interval.low, 3), round(interval.high, 3)
        (0.61, 1.0)
    """
    numbers = [float(value) for value in values]
    low, high = _checked_bounds(numbers, len(clusters), confidence, bounds)
    if len(numbers) < 2:
        return None
    groups = _groups(numbers, clusters)
    note = _note(len(groups)) if len(groups) < FEWEST_TEMPLATES else None
    units = groups if note is None else [[value] for value in sorted(numbers)]
    if low is not None and high is not None:
        unit = high - low
        mean, least, greatest = _bounded_interval(
            [[(value - low) / unit for value in group] for group in units], confidence
        )
        mean, least, greatest = (low + unit * each for each in (mean, least, greatest))
    else:
        robust = cluster_robust_mean(units)
        if robust.standard_error <= _ROUNDING * max(map(abs, numbers)):
            return None
        half = student_quantile((1 + confidence) / 2, robust.degrees_of_freedom) * robust.standard_error
        mean, least, greatest = robust.mean, robust.mean - half, robust.mean + half
        least, greatest = max(least, -inf if low is None else low), min(greatest, inf if high is None else high)
    return MeanInterval(min(least, mean), max(greatest, mean), mean, note)


def _note(number: int) -> str:
    count = f"{number} templates are" if number > 1 else "one template is"
    return (
        f"{count} too few to show how templates differ, so each question was treated separately: the interval is too "
        "narrow if the questions of a template are alike"
    )


def _checked_bounds(values: Sequence[float], number: int, confidence: float, bounds: Bounds | None) -> Bounds:
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence level is between 0 and 1, not {confidence}")
    if len(values) != number:
        raise ValueError(f"each value needs its cluster, and there are {len(values)} values and {number} clusters")
    if unusable := next((value for value in values if not isfinite(value)), None):
        raise ValueError(f"{unusable} is not a finite number; leave out what was not measured")
    refuse_too_large(values)
    if bounds is None:
        return (0.0, 1.0) if all(0 <= value <= 1 for value in values) else (None, None)
    low, high = (-inf if bounds[0] is None else bounds[0], inf if bounds[1] is None else bounds[1])
    if not low < high:
        raise ValueError(f"the bounds are the least and the greatest value, not {bounds}")
    beyond = next((value for value in values if not low <= value <= high), None)
    if beyond is not None:
        raise ValueError(f"{beyond} lies beyond the bounds {bounds}")
    return bounds


def _groups(values: Sequence[float], clusters: Sequence[Hashable]) -> list[list[float]]:
    """Return the values by cluster, in an order that depends on the values alone."""
    groups: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        groups.setdefault(cluster, []).append(value)
    return sorted(sorted(group) for group in groups.values())


def _bounded_interval(groups: Sequence[Sequence[float]], confidence: float) -> tuple[float, float, float]:
    """Return the mean of values between 0 and 1, and the ends of Wilson's interval."""
    mean, error, freedom = cluster_robust_mean(groups)
    sizes = [len(group) for group in groups]
    number = sum(sizes)
    spread = mean * (1 - mean)
    variance = max(error**2, _model_variance(groups, mean))
    is_extreme = spread <= _ROUNDING
    if is_extreme or variance <= _ROUNDING:
        size = number**2 / sum(each**2 for each in sizes)
    else:
        size = min(max(spread / variance, 1.0), float(number))
    upper = (1 + confidence) / 2
    quantile = normal_quantile(upper) if is_extreme else student_quantile(upper, freedom)
    return mean, *wilson_bounds(mean, size, quantile)


def _model_variance(groups: Sequence[Sequence[float]], mean: float) -> float:
    """Return the variance of the mean in a model where any two values of a group correlate alike."""
    sizes = [len(group) for group in groups]
    number, squares = sum(sizes), sum(size**2 for size in sizes)
    means = [fsum(group) / len(group) for group in groups]
    between = fsum(size * (each - mean) ** 2 for size, each in zip(sizes, means, strict=True)) / (len(groups) - 1)
    within = 0.0
    if number > len(groups):
        within_sum = fsum((value - each) ** 2 for group, each in zip(groups, means, strict=True) for value in group)
        within = within_sum / (number - len(groups))
    of_groups = (between - within) * (len(groups) - 1) / (number - squares / number)
    total = of_groups + within
    correlation = min(max(of_groups / total, 0.0), 1.0) if total > _ROUNDING else 1.0
    telling = min(len(groups) - 1.0, number * min(mean, 1 - mean))
    drawn = (correlation * telling + PRIOR_WEIGHT) / (telling + PRIOR_WEIGHT)
    return max(total, 0.0) * ((1 - drawn) * number + drawn * squares) / number**2
