"""Summing results up: per template, over all questions (micro), over the templates (macro), and over repeats."""

from graphrag_eval_lc.aggregation.aggregator import Aggregator, compute_aggregates
from graphrag_eval_lc.aggregation.measurements import is_error, reason_of
from graphrag_eval_lc.aggregation.question_numbers import QuestionNumbers, RunNumbers
from graphrag_eval_lc.aggregation.totals import JudgeCosts

__all__ = [
    "Aggregator",
    "JudgeCosts",
    "QuestionNumbers",
    "RunNumbers",
    "compute_aggregates",
    "is_error",
    "reason_of",
]
