"""Responses and their questions go in; priced, scored and judged results come out."""

from graphrag_eval_lc.evaluation.evaluate import arun_evaluation, run_evaluation
from graphrag_eval_lc.public_names import only_public

__all__ = ["arun_evaluation", "run_evaluation"]

__dir__ = only_public(globals())
