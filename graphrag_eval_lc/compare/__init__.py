"""Runs beside each other: which agent is better, by how much, and where."""

from graphrag_eval_lc.compare.baseline_gates import (
    DropGate,
    IncreaseGate,
    LostGate,
    LostQuestion,
    NotComparable,
    RunGate,
    TemplatesGate,
)
from graphrag_eval_lc.compare.compare_runs import compare_runs
from graphrag_eval_lc.compare.flips import Flip, QuestionSide, ShownStep, StepPair
from graphrag_eval_lc.compare.gates import Gate, GateResult, gate_requirements, gate_results, read_gates
from graphrag_eval_lc.compare.metric_comparison import MetricComparison
from graphrag_eval_lc.compare.pair_comparison import ComparedQuestion, PairComparison, RunSummary
from graphrag_eval_lc.compare.regression import DEFAULT_MAX_DROP, RegressionGate, allowed_drop
from graphrag_eval_lc.compare.run_comparison import RunComparison
from graphrag_eval_lc.public_names import only_public

__all__ = [
    "DEFAULT_MAX_DROP",
    "ComparedQuestion",
    "DropGate",
    "Flip",
    "Gate",
    "GateResult",
    "IncreaseGate",
    "LostGate",
    "LostQuestion",
    "MetricComparison",
    "NotComparable",
    "PairComparison",
    "QuestionSide",
    "RegressionGate",
    "RunComparison",
    "RunGate",
    "RunSummary",
    "ShownStep",
    "StepPair",
    "TemplatesGate",
    "allowed_drop",
    "compare_runs",
    "gate_requirements",
    "gate_results",
    "read_gates",
]

__dir__ = only_public(globals())
