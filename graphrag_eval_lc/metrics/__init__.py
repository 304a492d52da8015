"""Ids, numbers and texts go in; measures, and intervals and tests of their means come out: pure functions."""

from graphrag_eval_lc.metrics.agreement import (
    cohens_kappa,
    kappa_interval,
    kappa_standard_error,
    krippendorffs_alpha,
    pass_at_k,
    pass_hat_k,
    wilson_interval,
)
from graphrag_eval_lc.metrics.contexts import (
    Distance,
    id_context_precision,
    id_context_recall,
    text_context_precision,
    text_context_recall,
    text_context_scores,
)
from graphrag_eval_lc.metrics.difference import MeanDifference
from graphrag_eval_lc.metrics.intervals import MeanInterval, clustered_standard_error, mean_interval
from graphrag_eval_lc.metrics.measures import DEFAULT_MEASURES, Measure, parse_measure, ranking_scores
from graphrag_eval_lc.metrics.ranking import (
    Relevant,
    average_precision,
    f1,
    hit_rate,
    ndcg,
    precision,
    r_precision,
    recall,
    recall_at_k,
    reciprocal_rank,
)
from graphrag_eval_lc.public_names import only_public

__all__ = [
    "DEFAULT_MEASURES",
    "Distance",
    "MeanDifference",
    "MeanInterval",
    "Measure",
    "Relevant",
    "average_precision",
    "clustered_standard_error",
    "cohens_kappa",
    "f1",
    "hit_rate",
    "id_context_precision",
    "id_context_recall",
    "kappa_interval",
    "kappa_standard_error",
    "krippendorffs_alpha",
    "mean_interval",
    "ndcg",
    "parse_measure",
    "pass_at_k",
    "pass_hat_k",
    "precision",
    "r_precision",
    "ranking_scores",
    "recall",
    "recall_at_k",
    "reciprocal_rank",
    "text_context_precision",
    "text_context_recall",
    "text_context_scores",
    "wilson_interval",
]

__dir__ = only_public(globals())
