"""Runs beside each other: which agent is better, by how much, and where."""

from graphrag_eval_lc.compare.compare_runs import compare_runs
from graphrag_eval_lc.compare.flips import QuestionSide, ShownStep, StepPair, TurnedQuestion
from graphrag_eval_lc.compare.gates import (
    DEFAULT_MAX_DROP,
    GateResult,
    RegressionGate,
    allowed_drop,
    gate_requirements,
    gate_results,
)
from graphrag_eval_lc.compare.metric_comparison import MetricComparison
from graphrag_eval_lc.compare.run_comparison import ComparedQuestion, Comparison, PairComparison, RunSummary

__all__ = [
    "DEFAULT_MAX_DROP",
    "ComparedQuestion",
    "Comparison",
    "GateResult",
    "MetricComparison",
    "PairComparison",
    "QuestionSide",
    "RegressionGate",
    "RunSummary",
    "ShownStep",
    "StepPair",
    "TurnedQuestion",
    "allowed_drop",
    "compare_runs",
    "gate_requirements",
    "gate_results",
]
