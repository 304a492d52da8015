"""The standard error of a mean over questions that come in clusters, as those of one template do."""

from collections.abc import Iterable
from math import fsum, sqrt
from statistics import mean


def clustered_standard_error(clusters: Iterable[Iterable[float]]) -> float | None:
    """Give the standard error of the mean over all values, where values of one cluster resemble each other.

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
