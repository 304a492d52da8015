"""The mean of values in clusters, its cluster-robust standard error, and the degrees of freedom that this has."""

from collections.abc import Sequence
from math import fsum, sqrt
from typing import NamedTuple


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
