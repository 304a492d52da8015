"""Metrics on ids, numbers and texts: pure functions that read nothing and ask no model."""

from graphrag_eval_lc.metrics.agreement import cohens_kappa, kappa_interval, kappa_standard_error, wilson_interval
from graphrag_eval_lc.metrics.clusters import clustered_standard_error
from graphrag_eval_lc.metrics.pass_at_k import pass_at_k, pass_hat_k
from graphrag_eval_lc.metrics.ranking import recall_at_k

__all__ = [
    "clustered_standard_error",
    "cohens_kappa",
    "kappa_interval",
    "kappa_standard_error",
    "pass_at_k",
    "pass_hat_k",
    "recall_at_k",
    "wilson_interval",
]
