"""The registry: declarations of metrics, judges, step kinds, evaluators, exporters and plugins, for all other code."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.registry.exporters import exporter, register_exporter
from graphrag_eval_lc.registry.metric_spec import MetricSpec
from graphrag_eval_lc.registry.metrics import metric_spec
from graphrag_eval_lc.registry.plugins import registered_only_here

if TYPE_CHECKING:
    from graphrag_eval_lc.registry.custom_metrics import register_evaluator, register_metric
    from graphrag_eval_lc.registry.step_kinds import StepKind

__all__ = [
    "MetricSpec",
    "StepKind",
    "exporter",
    "metric_spec",
    "register_evaluator",
    "register_exporter",
    "register_metric",
    "registered_only_here",
]

# Loaded on first use: these names need the records, and so pydantic, which would slow down an import of a metric's key.
_FILE_OF = {
    "StepKind": "step_kinds",
    "register_evaluator": "custom_metrics",
    "register_metric": "custom_metrics",
}


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
    globals()[name] = value
    return value


__dir__ = only_public(globals())
