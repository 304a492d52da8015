"""The mean difference of two runs: its test, and the interval and the power of this same test."""

from graphrag_eval_lc.stats.cluster_robust import cluster_robust_mean
from graphrag_eval_lc.stats.intervals import Clusters, drawn_clusters, scipy_stats


def power_of_a_drop(differences_by_cluster: Clusters, drop: float, significance: float = 0.05) -> float | None:
    """Return the chance that a test at a level finds a drop, given how much the differences vary.

    Args:
        differences_by_cluster: The differences B − A by cluster, in any order. If there is only one cluster, each
            value counts as a cluster.
        drop: Its size, above 0.
        significance: The level of the two-sided test.

    Returns:
        0 to 1; None with fewer than 2 values.
    """
    groups = drawn_clusters(differences_by_cluster)
    if len(groups) < 2:
        return None
    robust = cluster_robust_mean(groups)
    if not robust.standard_error:
        return 1.0
    stats = scipy_stats()
    quantile = stats.t.ppf(1 - significance / 2, robust.degrees_of_freedom)
    return float(stats.nct.sf(quantile, robust.degrees_of_freedom, drop / robust.standard_error))
