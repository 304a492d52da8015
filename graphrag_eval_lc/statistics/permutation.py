"""Whether a mean difference is more than chance: the permutation test for pairs in clusters."""

from math import fsum
from typing import Any

from graphrag_eval_lc.statistics.clusters import Clusters, batch_size, drawn_clusters, sums_and_sizes
from graphrag_eval_lc.statistics.scipy_import import scipy_stats

_ROUNDING = 1e-9


def permutation_p_value(differences_by_cluster: Clusters, *, resamples: int = 9999, seed: int = 0) -> float:
    """Give how often chance alone gives a mean difference at least as large as this one, in either direction.

    Where two runs do not differ it is chance which of them is called A and which B, so that the sign of each
    difference may as well be the other one (Fisher's paired permutation test). As the differences of one cluster
    resemble each other, signs are flipped for whole clusters. All combinations of signs are counted where there are
    no more of them than ``resamples``, so that the p-value is exact; else as many are drawn, and the observed one
    counts as one of them (Phipson and Smyth 2010, "Permutation P-values Should Never Be Zero").

    Args:
        differences_by_cluster: The differences B − A by cluster, in any order. Of one cluster each value counts as a
            cluster of its own.
        resamples: How many combinations of signs are drawn at most, at least 1.
        seed: Makes the same draws each time.

    Returns:
        Above 0 and at most 1; 1 where nothing differs. With G clusters that differ it is never below 2 / 2^G: with
        5 or fewer nothing is below 0.05.

    Raises:
        MissingExtraError: scipy is not installed.

    Example:
        >>> permutation_p_value([[0.5, 0.5], [1.0], [0.25, 0.0]])
        0.25
        >>> permutation_p_value([[0.0], [0.0]])
        1.0
    """
    stats = scipy_stats()
    sums = differing_sums(differences_by_cluster)
    if len(sums) < 2:
        return 1.0
    test = stats.permutation_test(
        (sums,),
        _sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=batch_size(len(sums)),
        alternative="two-sided",
        rng=seed,
    )
    return float(test.pvalue)


def lowest_p_value(differences_by_cluster: Clusters, *, resamples: int = 9999) -> float:
    """Give the p-value below which ``permutation_p_value`` cannot fall, however large the differences are.

    With G clusters that differ that is 2 / 2^G. Where those that go against the mean difference do not, all together,
    make up for even the smallest of the L that go its way, it is 2 / 2^L: that is then the p-value itself, and larger
    differences of these clusters would not change it.

    Args:
        differences_by_cluster: As for ``permutation_p_value``.
        resamples: Likewise.

    Returns:
        Above 0 and at most 1.

    Example:
        >>> lowest_p_value([[1.0], [2.0], [1.0], [-1.0]])
        0.125
        >>> lowest_p_value([[1.0], [2.0], [1.0], [-0.1]])
        0.25
    """
    sums = differing_sums(differences_by_cluster)
    total = fsum(sums)
    with_it = [abs(each) for each in sums if each * total > 0]
    against_it = fsum(abs(each) for each in sums if each * total < 0)
    is_at_its_lowest = bool(with_it) and against_it < min(with_it) * (1 - _ROUNDING)
    number = len(with_it) if is_at_its_lowest else len(sums)
    return min(1.0, 2 / min(1 << number, resamples + 1))


def differing_sums(differences_by_cluster: Clusters) -> list[float]:
    """Give the sums of the clusters that differ; a cluster without a difference stays as it is whatever its sign.

    Example:
        >>> differing_sums([[0.5, 0.25], [0.0], [0.8 - 0.7, -0.1]])
        [0.75]
    """
    groups = drawn_clusters(differences_by_cluster)
    # What rounding leaves of differences that cancel out is none.
    kept = [values for values in groups if abs(fsum(values)) > _ROUNDING * fsum(map(abs, values))]
    return [total for total, _ in sums_and_sizes(kept)]


def _sum(differences: Any, axis: int) -> Any:
    return differences.sum(axis=axis)
