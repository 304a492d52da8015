"""How sure a mean is, and whether a difference is more than chance, where questions come in templates."""

from graphrag_eval_lc.statistics.bootstrap import Interval, bootstrap_interval
from graphrag_eval_lc.statistics.clusters import FEWEST_CLUSTERS
from graphrag_eval_lc.statistics.effect_size import cohens_dz, questions_needed
from graphrag_eval_lc.statistics.multiple_tests import holm
from graphrag_eval_lc.statistics.permutation import differing_sums, lowest_p_value, permutation_p_value

__all__ = [
    "FEWEST_CLUSTERS",
    "Interval",
    "bootstrap_interval",
    "cohens_dz",
    "differing_sums",
    "holm",
    "lowest_p_value",
    "permutation_p_value",
    "questions_needed",
]
