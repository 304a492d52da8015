"""The registry: every metric, judge, step kind, evaluator and exporter is declared here once, also those of users."""

from graphrag_eval_lc.registry.evaluators import register_evaluator
from graphrag_eval_lc.registry.metric_spec import MetricSpec
from graphrag_eval_lc.registry.metrics import metric_spec
from graphrag_eval_lc.registry.own_metrics import register_metric
from graphrag_eval_lc.registry.registrations import registered_only_here

__all__ = ["MetricSpec", "metric_spec", "register_evaluator", "register_metric", "registered_only_here"]
