"""Values of questions that come in templates go in; intervals, tests and effect sizes of their means come out."""

from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.stats.cluster_robust import cluster_robust_mean
from graphrag_eval_lc.stats.difference import MeanDifference
from graphrag_eval_lc.stats.intervals import FEWEST_CLUSTERS, Interval
from graphrag_eval_lc.stats.mean_interval import FEWEST_TEMPLATES, MeanInterval, mean_interval
from graphrag_eval_lc.stats.significance import (
    cohens_dz,
    differing_sums,
    holm,
    lowest_p_value,
    permutation_p_value,
    questions_needed,
)

__all__ = [
    "FEWEST_CLUSTERS",
    "FEWEST_TEMPLATES",
    "Interval",
    "MeanDifference",
    "MeanInterval",
    "cluster_robust_mean",
    "cohens_dz",
    "differing_sums",
    "holm",
    "lowest_p_value",
    "mean_interval",
    "permutation_p_value",
    "questions_needed",
]

__dir__ = only_public(globals())
