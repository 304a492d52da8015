"""Compares runs (which agent is better, by how much, and in which questions), and checks gates."""

from graphrag_eval_lc.compare.compare_runs import compare_runs
from graphrag_eval_lc.compare.comparison_view import ComparedQuestion, PairComparison, RunSummary
from graphrag_eval_lc.compare.flips import Flip, QuestionSide, ShownStep, StepPair
from graphrag_eval_lc.compare.gate_checks import Gate, GateResult
from graphrag_eval_lc.compare.gates import gate_results, read_gates
from graphrag_eval_lc.compare.metric_comparison import MetricComparison
from graphrag_eval_lc.compare.run_comparison import RunComparison
from graphrag_eval_lc.public_names import only_public

__all__ = [
    "ComparedQuestion",
    "Flip",
    "Gate",
    "GateResult",
    "MetricComparison",
    "PairComparison",
    "QuestionSide",
    "RunComparison",
    "RunSummary",
    "ShownStep",
    "StepPair",
    "compare_runs",
    "gate_results",
    "read_gates",
]

__dir__ = only_public(globals())
