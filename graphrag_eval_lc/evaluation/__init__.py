"""Evaluation: turns responses and their questions into priced, scored and judged results."""

from graphrag_eval_lc.evaluation.evaluate import arun_evaluation, run_evaluation
from graphrag_eval_lc.public_names import only_public

__all__ = ["arun_evaluation", "run_evaluation"]

__dir__ = only_public(globals())
