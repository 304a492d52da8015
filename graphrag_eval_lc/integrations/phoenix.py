"""Phoenix: publish scores as annotations of spans and traces."""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from graphrag_eval_lc.integrations.publishing import NotPlacedError, needed
from graphrag_eval_lc.integrations.scores import FoundTrace, Score, ScoredRun, ScoredSample, TraceIndex
from graphrag_eval_lc.traces.export import exported_trace_id
from graphrag_eval_lc.traces.values import as_mapping

_MOST_SPANS = 1_000_000
_TIMEOUT_SEC = 60


class Publisher:
    """Annotates the root span of each question, and its trace, as Phoenix shows them in different places.

    Args:
        project: The project; None: PHOENIX_PROJECT_NAME, else ``default``.
        endpoint: Phoenix's address; None: PHOENIX_COLLECTOR_ENDPOINT, else this machine. The key is PHOENIX_API_KEY.
    """

    def __init__(self, project: str | None, endpoint: str | None) -> None:
        phoenix = needed("phoenix.client", "Publishing to Phoenix", "phoenix")
        address = endpoint or os.environ.get("PHOENIX_COLLECTOR_ENDPOINT") or "http://localhost:6006"
        self._address = address.removesuffix("/v1/traces")
        self._client = phoenix.Client(base_url=self._address)
        self._project = project or os.environ.get("PHOENIX_PROJECT_NAME") or "default"
        self._roots: dict[str, str] = {}

    def open(self, run: ScoredRun) -> str:
        """List the root spans that began while the run was under way."""
        self._run = run
        found = []
        if (window := run.window) is not None:
            spans = self._client.spans.get_spans(
                project_identifier=self._project,
                start_time=window[0],
                end_time=window[1],
                parent_id="null",
                limit=_MOST_SPANS,
                timeout=_TIMEOUT_SEC,
            )
            for span in spans:
                trace_id, metadata = span["context"]["trace_id"], as_mapping(span["attributes"].get("metadata"))
                self._roots.setdefault(trace_id, span["context"]["span_id"])
                started = datetime.fromisoformat(span["start_time"]).timestamp()
                found.append(FoundTrace(trace_id, metadata if isinstance(metadata, Mapping) else {}, started))
        self._traces = TraceIndex(found)
        return f"{self._address}, project {self._project}"

    def place(self, sample: ScoredSample) -> tuple[str, str]:
        """Return the trace and the span of a sample: those captured, by their metadata, or exported from the folder."""
        exported = exported_trace_id(self._run.run_id, sample.question_id, sample.repeat)
        captured = sample.trace_ids.get("opentelemetry")
        for trace_id in (captured, self._traces.of(sample), exported):
            if trace_id in self._roots:
                return str(trace_id), self._roots[str(trace_id)]
        if captured is not None:
            raise NotPlacedError(f"the project {self._project} has no trace {captured} from the time of the run")
        raise NotPlacedError("the response has no trace id, and no trace names its question: was the agent traced?")

    def send(self, sample: ScoredSample, place: tuple[str, str], scores: Sequence[Score]) -> Mapping[str, str]:
        """Create the annotations, or replace those with the same identifiers."""
        trace_id, span_id = place
        about = {"graphrag_eval_lc_run": self._run.run_id, "question_id": sample.question_id}
        annotations: list[dict[str, Any]] = [
            {
                "name": score.metric,
                "annotator_kind": "CODE",
                "identifier": score.id,
                "result": {"score": score.value, **({"explanation": score.comment} if score.comment else {})},
                "metadata": about,
            }
            for score in scores
        ]
        self._client.spans.log_span_annotations(
            span_annotations=[{**each, "span_id": span_id} for each in annotations], sync=True
        )
        self._client.traces.log_trace_annotations(
            trace_annotations=[{**each, "trace_id": trace_id} for each in annotations], sync=True
        )
        return {}

    def close(self, run: ScoredRun) -> Sequence[str]:
        """Return what the user should know; nothing is left to send."""
        return ()
