"""OpenTelemetry: publish scores as log records ``gen_ai.evaluation.result`` on the spans of questions."""

import os
import time
from collections.abc import Mapping, Sequence

from graphrag_eval_lc.errors import PublishError
from graphrag_eval_lc.integrations.scores import Score, ScoredRun, ScoredSample
from graphrag_eval_lc.traces.export import OTLPSender, exported_trace_id, otlp_attributes

_INFO = 9


class Publisher:
    """Sends a log record for each score; a receiver does not say whether it has the trace.

    Args:
        project: None, as OpenTelemetry has no projects.
        endpoint: The receiver's address for logs; None: OTEL_EXPORTER_OTLP_LOGS_ENDPOINT, or
            OTEL_EXPORTER_OTLP_ENDPOINT, else this machine. Keys are in OTEL_EXPORTER_OTLP_HEADERS.
    """

    def __init__(self, project: str | None, endpoint: str | None) -> None:
        if project is not None:
            raise PublishError("OpenTelemetry has no projects", hint="Leave --project (project=...) out.")
        base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or "http://localhost:4318"
        whole = os.environ.get("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
        self._url = endpoint or whole or f"{base.rstrip('/')}/v1/logs"
        self._sender = OTLPSender(self._url, "logs")

    def open(self, run: ScoredRun) -> str:
        """Send an empty request to check that the receiver is reachable and accepts the key."""
        self._run = run
        self._sender.send({"resourceLogs": []}, retries=False)
        return self._url

    def place(self, sample: ScoredSample) -> tuple[str, str | None]:
        """Return the trace and the span of a sample: those captured, else the trace exported from the run's folder."""
        if (captured := sample.trace_ids.get("opentelemetry")) is not None:
            return captured, sample.trace_ids.get("opentelemetry_span")
        return exported_trace_id(self._run.run_id, sample.question_id, sample.repeat), None

    def send(self, sample: ScoredSample, place: tuple[str, str | None], scores: Sequence[Score]) -> Mapping[str, str]:
        """Send a record for each score."""
        trace_id, span_id = place
        now = str(time.time_ns())
        records = [
            {
                "timeUnixNano": now,
                "observedTimeUnixNano": now,
                "severityNumber": _INFO,
                "eventName": "gen_ai.evaluation.result",
                "traceId": trace_id,
                **({} if span_id is None else {"spanId": span_id}),
                "attributes": otlp_attributes(
                    {
                        "gen_ai.evaluation.name": score.metric,
                        "gen_ai.evaluation.score.value": float(score.value),
                        **({"gen_ai.evaluation.explanation": score.comment} if score.comment else {}),
                        "graphrag_eval_lc.score_id": score.id,
                        "graphrag_eval_lc.run_id": self._run.run_id,
                        "graphrag_eval_lc.question_id": sample.question_id,
                    }
                ),
            }
            for score in scores
        ]
        scoped = {"scope": {"name": "graphrag_eval_lc"}, "logRecords": records}
        resource = {"attributes": otlp_attributes({"service.name": "graphrag-eval-lc"})}
        why = self._sender.send({"resourceLogs": [{"resource": resource, "scopeLogs": [scoped]}]}, retries=False)
        return {} if why is None else dict.fromkeys((score.id for score in scores), why)

    def close(self, run: ScoredRun) -> Sequence[str]:
        """Return what the user should know."""
        return ()
