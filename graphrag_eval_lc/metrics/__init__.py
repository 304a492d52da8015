"""Metrics on ids, numbers and texts: pure functions that read nothing and ask no model."""

from graphrag_eval_lc.metrics.ranking import recall_at_k

__all__ = ["recall_at_k"]
