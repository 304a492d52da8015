"""Results go in, one at a time; aggregates, each question's values, means and sentences on them come out."""

from graphrag_eval_lc.aggregation.aggregator import Aggregator, compute_aggregates
from graphrag_eval_lc.aggregation.question_values import QuestionValues, RunValues
from graphrag_eval_lc.aggregation.sample_values import reason_of
from graphrag_eval_lc.aggregation.statistics import JudgeCosts
from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.records import is_error

__all__ = [
    "Aggregator",
    "JudgeCosts",
    "QuestionValues",
    "RunValues",
    "compute_aggregates",
    "is_error",
    "reason_of",
]

__dir__ = only_public(globals())
