"""A team's extensions to graphrag-eval-lc: a metric, a step kind and an evaluator, registered on import."""

from acme_checks import evaluators, metrics, step_kinds

__all__ = ["evaluators", "metrics", "step_kinds"]
