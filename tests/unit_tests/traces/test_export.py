"""Exporting responses as traces: reading them back, and sending them to a receiver."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tool_stubs import tool_stub

from graphrag_eval_lc import load_responses, read_traces, run_benchmark
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.errors import PublishError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.traces.export import exported_trace_id, otlp_requests
from graphrag_eval_lc.traces.reading import read_calls
from graphrag_eval_lc.traces.responses import responses_of

KEPT = ("name", "args", "output", "status", "error", "id", "parent_id")
DATASET = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]


def exported_and_read(folder: Path, *responses: dict[str, Any]) -> list[dict[str, Any]]:
    path = folder / "traces.jsonl"
    path.write_text("".join(f"{json_text(each)}\n" for each in otlp_requests(responses, "run")), encoding="utf-8")
    return [dict(each) for calls in read_calls(path, lambda text: None) for each in responses_of(calls)]


def relevant_keys(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: step[key] for key in KEPT if key in step} for step in steps]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
STEPS = st.lists(
    st.builds(
        lambda name, args, output, error: {
            "name": f"tool_{name}",
            "args": args,
            **({"status": "success", "output": output} if error is None else {"status": "error", "error": error}),
        },
        st.integers(0, 3),
        st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(-(2**40), 2**40), st.booleans()), max_size=3),
        st.one_of(TEXTS, TEXTS.map(lambda text: json.dumps({"output": text, "tool_call_id": "a"}))),
        st.none() | TEXTS.filter(bool),
    ),
    max_size=5,
)


@given(STEPS)
def test_no_step_is_lost(tmp_path_factory: pytest.TempPathFactory, steps: list[dict[str, Any]]) -> None:
    steps = [{**step, "id": f"call {number}"} for number, step in enumerate(steps)]
    response = {"question_id": "q", "question_text": "why?", "status": "success", "actual_steps": steps}
    (restored,) = exported_and_read(tmp_path_factory.getbasetemp(), response)
    assert relevant_keys(restored["actual_steps"]) == relevant_keys(steps)


@pytest.mark.full
def test_demo_responses_round_trip(tmp_path: Path) -> None:
    from graphrag_eval_lc.demo.agent import create_demo_agent

    run = run_benchmark(create_demo_agent, DATASET_PATH, output_dir=tmp_path / "run", progress="off")
    assert run.to_otlp(tmp_path / "traces.jsonl") == 48
    restored = {response["question_id"]: response for response in read_traces(tmp_path / "traces.jsonl")}
    same = ("question_text", "status", "actual_answer", "input_tokens", "output_tokens", "total_tokens", "error")
    for response in load_responses(tmp_path / "run" / "responses.jsonl").values():
        back = restored[response["question_id"]]
        assert {key: back.get(key) for key in same} == {key: response.get(key) for key in same}
        assert relevant_keys(back["actual_steps"]) == relevant_keys(response["actual_steps"])


def test_failed_runs_and_nested_steps_round_trip(tmp_path: Path) -> None:
    outer = {"name": "agent_tool", "args": {}, "id": "a", "status": "error", "error": "Timeout: 5 s"}
    inner = {"name": "sparql", "args": {"q": "x"}, "id": "b", "status": "success", "output": "", "parent_id": "a"}
    response = {
        "question_id": "q",
        "repeat": 2,
        "status": "error",
        "error": "ValueError: no",
        "actual_steps": [outer, inner],
    }
    (restored,) = exported_and_read(tmp_path, response)
    assert (restored["status"], restored["error"]) == ("error", "ValueError: no")
    assert relevant_keys(restored["actual_steps"]) == [outer, inner]
    assert restored["trace_ids"]["opentelemetry"] == exported_trace_id("run", "q", 2)


def test_secrets_are_masked() -> None:
    step = {"name": "get", "args": {"api_key": "5f2a99c1"}, "status": "success", "output": "password=hunter22"}
    sent = str(
        list(otlp_requests([{"question_id": "q", "actual_answer": "token=abcdef12", "actual_steps": [step]}], "r"))
    )
    assert not [secret for secret in ("5f2a99c1", "hunter22", "abcdef12") if secret in sent]


def test_receiver_gets_protobuf(monkeypatch: pytest.MonkeyPatch) -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api_key=of-the-tests")
    run = run_benchmark(lambda question: "2", DATASET, progress="off")
    with tool_stub(lambda method, path, body: (200, {})) as server:
        assert run.to_otlp(f"{server.url}/v1/traces", project="p") == 1
        ((_, path, body),) = server.seen
    (resource,) = service.ExportTraceServiceRequest.FromString(body).resource_spans
    (span,) = resource.scope_spans[0].spans
    attributes = {each.key: each.value.string_value for each in (*resource.resource.attributes, *span.attributes)}
    assert (path, attributes["openinference.project.name"]) == ("/v1/traces", "p")
    assert (attributes["input.value"], attributes["output.value"]) == ("1 + 1?", "2")


def test_receiver_that_rejects_is_one_clear_error() -> None:
    pytest.importorskip("opentelemetry.proto")
    run = run_benchmark(lambda question: "2", DATASET, progress="off")
    with (
        tool_stub(lambda method, path, body: (401, {})) as server,
        pytest.raises(PublishError, match=r"does not accept.*401"),
    ):
        run.to_otlp(f"{server.url}/v1/traces")
