"""By which ids other tracers know the run that is under way: of LangSmith, OpenTelemetry, Langfuse and MLflow.

No tracer is imported for it: only those that the agent's own process has loaded are asked.
"""

import sys
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

MOST_LOOKS: Final = 8
"""How many events of a run are looked at: a tracer may begin its span after this handler hears of the run."""
_OPENINFERENCE = "openinference.instrumentation.langchain"


def trace_ids_now(run_id: UUID) -> dict[str, str]:
    """Return the ids of the traces that the current thread or task writes; empty without tracers.

    Args:
        run_id: LangChain's id of the root run, by which LangSmith and OpenInference know its span.

    Returns:
        ``langsmith`` (the run), ``opentelemetry`` and ``opentelemetry_span`` (the trace and a span, in hexadecimal
        digits), ``langfuse`` and ``mlflow`` (the traces), those that are known.

    Example:
        >>> trace_ids_now(UUID(int=1)).keys() <= {"langsmith"}
        True
    """
    found: dict[str, str] = {}
    with suppress(Exception):
        langsmith = sys.modules.get("langsmith.utils")
        if langsmith is not None and langsmith.tracing_is_enabled() is True:
            found["langsmith"] = str(run_id)
    with suppress(Exception):
        if (span := _open_span(run_id)) is not None:
            context = span.get_span_context()
            found |= {"opentelemetry": f"{context.trace_id:032x}", "opentelemetry_span": f"{context.span_id:016x}"}
            scope = getattr(span, "instrumentation_scope", None)
            if "langfuse" in str(getattr(scope, "name", "")):
                found["langfuse"] = found["opentelemetry"]
    with suppress(Exception):
        mlflow = sys.modules.get("mlflow.tracing.fluent")
        if mlflow is not None and (span := mlflow.get_current_active_span()) is not None:
            found["mlflow"] = str(span.trace_id)
    return found


def _open_span(run_id: UUID) -> Any | None:
    """Return the span of a run, which OpenInference keeps out of the context, else the current one."""
    instrumentor = getattr(sys.modules.get(_OPENINFERENCE), "LangChainInstrumentor", None)
    if instrumentor is not None and (span := instrumentor().get_span(run_id)) is not None:
        return span
    trace = sys.modules.get("opentelemetry.trace")
    span = None if trace is None else trace.get_current_span()
    return span if span is not None and span.get_span_context().is_valid else None
