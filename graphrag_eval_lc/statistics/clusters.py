"""Values in clusters, as those of the questions of one template: what is drawn and flipped as a whole."""

from collections.abc import Mapping, Sequence
from math import fsum

# With fewer, intervals and p-values that are clustered say little; a caller warns.
FEWEST_CLUSTERS = 10

# So many numbers are held at a time while samples are drawn: some 30 MB.
_NUMBERS_AT_A_TIME = 4_000_000

Clusters = Mapping[str, Sequence[float]] | Sequence[Sequence[float]]


def drawn_clusters(clusters: Clusters) -> list[Sequence[float]]:
    """Give what is drawn as a whole: the clusters that have values, or where there is but one, its values.

    Example:
        >>> drawn_clusters({"t1": [1.0, 0.5], "t2": [], "t3": [0.0]})
        [[1.0, 0.5], [0.0]]
        >>> drawn_clusters([[1.0, 0.5]])
        [[1.0], [0.5]]
    """
    groups = [values for values in (clusters.values() if isinstance(clusters, Mapping) else clusters) if len(values)]
    return [[value] for value in groups[0]] if len(groups) == 1 else groups


def sums_and_sizes(groups: Sequence[Sequence[float]]) -> list[tuple[float, int]]:
    """Give the sum and the number of each group's values, in an order that depends neither on theirs nor on signs."""
    return sorted(((fsum(values), len(values)) for values in groups), key=lambda each: (abs(each[0]), *each))


def batch_size(number_of_clusters: int) -> int:
    """Give how many samples of so many clusters are drawn at a time."""
    return max(1, _NUMBERS_AT_A_TIME // number_of_clusters)
