"""The registry: every metric, judge, step kind, evaluator and exporter is declared here once, also those of users."""

from graphrag_eval_lc.registry.metric_spec import MetricSpec
from graphrag_eval_lc.registry.metrics import metric_spec
from graphrag_eval_lc.registry.step_kinds import StepKind

__all__ = ["MetricSpec", "StepKind", "metric_spec"]
