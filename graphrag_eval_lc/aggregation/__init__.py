"""Summing results up: per template, over all questions (micro), over the templates (macro), and over repeats."""

from graphrag_eval_lc.aggregation.aggregator import Aggregator, compute_aggregates
from graphrag_eval_lc.aggregation.judge_costs import JudgeCosts
from graphrag_eval_lc.aggregation.measurements import SAMPLE_METRICS, STEP_METRICS
from graphrag_eval_lc.aggregation.question_numbers import QuestionNumbers, RunNumbers
from graphrag_eval_lc.aggregation.reasons import reason_of
from graphrag_eval_lc.aggregation.sample_values import is_error

__all__ = [
    "SAMPLE_METRICS",
    "STEP_METRICS",
    "Aggregator",
    "JudgeCosts",
    "QuestionNumbers",
    "RunNumbers",
    "compute_aggregates",
    "is_error",
    "reason_of",
]
