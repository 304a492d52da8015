"""By which ids other tracers know the run that is under way: of LangSmith, OpenTelemetry, Langfuse and MLflow.

No tracer is imported for it: only those that the agent's own process has loaded are asked.
"""

import sys
from typing import Final
from uuid import UUID

MOST_LOOKS: Final = 8
"""How many events of a run are looked at: a tracer may begin its span after this handler hears of the run."""
_LANGSMITH, _OPENTELEMETRY, _MLFLOW = "langsmith.utils", "opentelemetry.trace", "mlflow.tracing.fluent"
_OPENINFERENCE = "openinference.instrumentation.langchain"


def trace_ids_now(run_id: UUID, *, is_begin: bool = True) -> dict[str, str]:
    """Return the ids of the traces that the current thread or task writes; empty without tracers.

    Args:
        run_id: LangChain's id of the root run, by which LangSmith and OpenInference know its span.
        is_begin: Whether the run begins; whether LangSmith traces it is decided then.

    Returns:
        ``langsmith`` (the run), ``opentelemetry`` and ``opentelemetry_span`` (the trace and a span, in hexadecimal
        digits), ``langfuse`` and ``mlflow`` (the traces), those that are known.

    Example:
        >>> trace_ids_now(UUID(int=1)).keys() <= {"langsmith"}
        True
    """
    found: dict[str, str] = {}
    for name, ids_in in _TRACERS.items():
        if name in sys.modules and (is_begin or name != _LANGSMITH):
            try:
                found |= ids_in(run_id)
            except Exception:
                continue  # faster than contextlib.suppress, and each event of a short run comes here
    return found


def _langsmith(run_id: UUID) -> dict[str, str]:
    return {"langsmith": str(run_id)} if sys.modules[_LANGSMITH].tracing_is_enabled() is True else {}


def _opentelemetry(run_id: UUID) -> dict[str, str]:
    """Return the ids of a run's span, which OpenInference keeps out of the context, else of the current one."""
    instrumentor = getattr(sys.modules.get(_OPENINFERENCE), "LangChainInstrumentor", None)
    span = None if instrumentor is None else instrumentor().get_span(run_id)
    span = sys.modules[_OPENTELEMETRY].get_current_span() if span is None else span
    context = span.get_span_context()
    if not context.is_valid:
        return {}
    found = {"opentelemetry": f"{context.trace_id:032x}", "opentelemetry_span": f"{context.span_id:016x}"}
    scope = getattr(span, "instrumentation_scope", None)
    return {**found, "langfuse": found["opentelemetry"]} if "langfuse" in str(getattr(scope, "name", "")) else found


def _mlflow(_: UUID) -> dict[str, str]:
    span = sys.modules[_MLFLOW].get_current_active_span()
    return {} if span is None else {"mlflow": str(span.trace_id)}


_TRACERS = {_LANGSMITH: _langsmith, _OPENTELEMETRY: _opentelemetry, _MLFLOW: _mlflow}  # by the module that is loaded
