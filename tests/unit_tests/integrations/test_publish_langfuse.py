"""Publishing scores to Langfuse traces, with the real client and handler and a stub server."""

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from langchain_core.runnables import RunnableLambda
from support.tool_stubs import SUMS, Answer, tool_stub

from graphrag_eval_lc import capture_run, publish_scores, run_benchmark
from graphrag_eval_lc.errors import PublishError

langfuse = pytest.importorskip("langfuse")
trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")


class LangfuseStub:
    """Answers like Langfuse; its traces are those that Langfuse's handler exports."""

    def __init__(self) -> None:
        self.traces: dict[str, dict[str, Any]] = {}
        self.scores: dict[str, Any] = {}
        self.rejects = ""

    def answer(self, method: str, path: str, body: Any) -> Answer:
        where, query = urlsplit(path).path, parse_qs(urlsplit(path).query)
        if where.endswith("/otel/v1/traces"):
            request = trace_service.ExportTraceServiceRequest.FromString(body)
            for span in (span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans):
                if not span.parent_span_id:
                    found = {each.key: each.value.string_value for each in span.attributes}
                    self.traces[span.trace_id.hex()] = {**found, "start": span.start_time_unix_nano}
            return 200, {}
        if where.endswith("/observations"):
            assert query["isRootObservation"] == ["true"]
            return 200, {"data": [self._observation(*each) for each in self.traces.items()], "meta": {}}
        if where.endswith("/scores") and method == "POST":
            rejected = [each for each in body if each["name"] == self.rejects]
            self.scores |= {each["id"]: each for each in body if each not in rejected}
            if rejected:
                errors = [{"message": "a value of this name is a text"} for _ in rejected]
                return 207, {"accepted": len(body) - len(rejected), "rejected": len(rejected), "errors": errors}
        return 202, {"message": "Accepted"}

    def _observation(self, trace_id: str, found: dict[str, Any]) -> dict[str, Any]:
        start = "2026-01-01T00:00:00Z"
        key = "langfuse.observation.metadata."
        metadata = {name.removeprefix(key): value for name, value in found.items() if name.startswith(key)}
        record = {"id": trace_id[:16], "traceId": trace_id, "startTime": start, "projectId": "p", "type": "SPAN"}
        return {**record, "isRootObservation": True, "metadata": metadata}


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Any:
    answering = LangfuseStub()
    with tool_stub(answering.answer) as server:
        monkeypatch.setenv("LANGFUSE_BASE_URL", server.url)
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", f"pk-lf-{server.url}")  # there is one client per key
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-of-the-tests")
        yield answering


def traced_run(folder: Path) -> Any:
    from langfuse.langchain import CallbackHandler

    client = langfuse.Langfuse(flush_at=1)
    agent = RunnableLambda(lambda question: "2").with_config(
        callbacks=[CallbackHandler(public_key=os.environ["LANGFUSE_PUBLIC_KEY"])]
    )
    run = run_benchmark(agent, SUMS, output_dir=folder, progress="off")
    client.flush()
    return run


def test_each_score_is_attached_to_the_trace_of_its_question(tmp_path: Path, stub: Any) -> None:
    run = traced_run(tmp_path / "run")
    published = publish_scores(run, to="langfuse")
    assert (published.sent, published.unplaced) == (3, [])
    traces = {json.loads(found["langfuse.observation.metadata.question_id"]): id_ for id_, found in stub.traces.items()}
    assert traces.keys() == {"q1", "q2", "q3"}
    assert {each["metadata"]["question_id"]: each["traceId"] for each in stub.scores.values()} == traces
    before = dict(stub.scores)
    (tmp_path / "run" / "published.jsonl").unlink()
    assert publish_scores(run, to="langfuse").sent == 3
    assert stub.scores == before  # with the same ids and times


def test_rejected_scores_and_missing_traces_are_listed(tmp_path: Path, stub: Any) -> None:
    run = traced_run(tmp_path / "run")
    stub.rejects = "steps_score"
    del stub.traces[next(iter(stub.traces))]
    published = publish_scores(run, to="langfuse")
    assert published.sent == 0
    assert sorted(each.reason for each in published.unplaced) == [
        "a value of this name is a text",
        "a value of this name is a text",
        "the response has no trace id, and no trace names its question: was the agent traced?",
    ]


def test_response_keeps_its_trace_id(stub: Any) -> None:
    from langfuse.langchain import CallbackHandler

    client = langfuse.Langfuse()
    with capture_run(question_id="q1") as handler:
        RunnableLambda(str.upper).invoke(
            "why?", config={"callbacks": [CallbackHandler(public_key=os.environ["LANGFUSE_PUBLIC_KEY"])]}
        )
    client.flush()
    (trace_id,) = stub.traces
    found = handler.response("q1")["trace_ids"]
    assert (found["langfuse"], found["opentelemetry"]) == (trace_id, trace_id)


def test_project_is_rejected_because_keys_belong_to_one(tmp_path: Path) -> None:
    run = run_benchmark(RunnableLambda(lambda question: "2"), SUMS, output_dir=tmp_path / "run", progress="off")
    with pytest.raises(PublishError, match="keys belong to a project"):
        publish_scores(run, to="langfuse", project="p")
