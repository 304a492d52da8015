"""Runs beside each other: which agent is better, by how much, and where."""

from graphrag_eval_lc.comparison.compare_runs import compare_runs
from graphrag_eval_lc.comparison.comparison import ComparedQuestion, Comparison, PairComparison, RunSummary
from graphrag_eval_lc.comparison.gates import (
    DEFAULT_MAX_DROP,
    GateResult,
    RegressionGate,
    allowed_drop,
    gate_requirements,
    gate_results,
)
from graphrag_eval_lc.comparison.metric_comparison import MetricComparison
from graphrag_eval_lc.comparison.turned import QuestionSide, ShownStep, StepPair, TurnedQuestion

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
