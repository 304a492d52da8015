"""The pipeline that prices, scores and judges responses, whoever asks for it."""

from graphrag_eval_lc.evaluation.evaluate import arun_evaluation, run_evaluation

__all__ = ["arun_evaluation", "run_evaluation"]
