"""What a team adds to graphrag-eval-lc: a metric, a step kind and an evaluator, each registered where it is defined."""

from acme_checks import evaluators, metrics, step_kinds

__all__ = ["evaluators", "metrics", "step_kinds"]
