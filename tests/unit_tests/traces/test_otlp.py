"""Spans in the formats of exporters, collectors and protobuf."""

import base64
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.span_files import STARTED, TRACE, attributes, calls_in, request, span, traces_in, value

from graphrag_eval_lc.traces.reading import read_calls

TOOL = {"openinference.span.kind": "TOOL", "tool.name": "now", "input.value": '{"a": 1}', "output.value": "12:00"}
MODEL = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "m",
    "llm.token_count.prompt": 12,
    "llm.token_count.completion": 3,
}
SPANS = [
    span(0, {"openinference.span.kind": "AGENT", "input.value": "Why?", "output.value": "So."}),
    span(1, MODEL, parent=0),
    span(2, TOOL, parent=0, status={"code": 1}),
]
EXPECTED = [(TRACE, "1", None, "agent"), (TRACE, "2", "1", "model"), (TRACE, "3", "1", "tool")]


def shown(calls: list[Any]) -> list[tuple[str, str, str | None, str]]:
    return [
        (call.trace_id, call.id.lstrip("0"), call.parent_id and call.parent_id.lstrip("0"), call.kind) for call in calls
    ]


def protobuf() -> ExportTraceServiceRequest:
    """Return the request as a protobuf message, in which ids are bytes."""
    plain = copy.deepcopy(request(SPANS, "scope"))
    for each in plain["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in each:
                each[key] = base64.b64encode(bytes.fromhex(each[key])).decode()
    return ParseDict(plain, ExportTraceServiceRequest())


FORMS = {
    "a request": [request(SPANS)],
    "requests of a span each": [request([each]) for each in SPANS],
    "a list of requests": [[request([each]) for each in SPANS]],
    "protobuf's JSON": [MessageToDict(protobuf())],
    "protobuf's JSON with the names of fields": [MessageToDict(protobuf(), preserving_proto_field_name=True)],
    "older names": [{"resourceSpans": [{"instrumentationLibrarySpans": [{"spans": SPANS}]}]}],
    "another service's trace between": [
        request(SPANS[:1]),
        request([span(5, {}, traceId="ab" * 16)]),
        request(SPANS[1:]),
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_format_yields_the_same_calls(tmp_path: Path, form: str) -> None:
    (calls,) = traces_in(tmp_path, *FORMS[form])
    assert shown(calls) == EXPECTED
    assert calls[1].tokens == {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}
    assert (calls[2].args, calls[2].output) == ({"a": 1}, "12:00")
    assert (calls[0].started, calls[0].ended) == (STARTED, STARTED + 0.5)


def test_output_of_the_sdks_console_exporter_is_read(tmp_path: Path) -> None:
    printed = {
        "name": "now",
        "context": {"trace_id": f"0x{TRACE}", "span_id": "0x0000000000000003", "trace_state": "[]"},
        "kind": "SpanKind.INTERNAL",
        "parent_id": "0x0000000000000001",
        "start_time": "2026-01-31T12:00:00.000000Z",
        "end_time": "2026-01-31T12:00:01.500000Z",
        "status": {"status_code": "ERROR", "description": "boom"},
        "attributes": TOOL,
        "events": [],
        "resource": {"attributes": {}, "schema_url": ""},
    }
    path = tmp_path / "console.txt"
    path.write_text(json.dumps(printed, indent=4) + "\n" + json.dumps(printed, indent=4), encoding="utf-8")
    ((call, _),) = read_calls(path, [].append)
    assert shown([call]) == EXPECTED[2:]
    assert (call.ended, call.error) == (call.started + 1.5, "boom")


@pytest.mark.parametrize(
    "plain", ["text", 12, -3, 0.5, True, ["a", 1, ["b"]], {"a": {"b": [1, {"c": "d"}]}}, [], {}], ids=repr
)
def test_typed_value_is_unwrapped(tmp_path: Path, plain: Any) -> None:
    (call,) = calls_in(tmp_path, span(0, {**TOOL, "metadata": {"kept": plain}}))
    assert call.metadata == {"kept": plain}


def test_bytes_and_non_json_numbers_are_unwrapped(tmp_path: Path) -> None:
    typed = [
        {"key": "metadata", "value": value({})},
        {"key": "a", "value": {"bytesValue": base64.b64encode(b"abc").decode()}},
        {"key": "b", "value": {"doubleValue": "NaN"}},
        {"key": "c", "value": {}},
    ]
    typed[0]["value"] = {"kvlistValue": {"values": typed[1:]}}
    (call,) = calls_in(tmp_path, span(0, TOOL) | {"attributes": [*attributes(TOOL), typed[0]]})
    assert call.metadata == {"a": "abc", "b": "NaN", "c": None}


@pytest.mark.parametrize("code", [2, "2", "STATUS_CODE_ERROR"])
def test_error_status_is_recognised_in_any_spelling(tmp_path: Path, code: Any) -> None:
    (call,) = calls_in(tmp_path, span(0, TOOL, status={"code": code, "message": "boom"}))
    assert call.error == "boom"


def event(kind: str, text: str) -> dict[str, Any]:
    fields = attributes({"exception.type": kind, "exception.message": text, "exception.stacktrace": "Traceback …"})
    return {"name": "exception", "timeUnixNano": "1", "attributes": fields}


def test_exception_event_is_formatted_like_the_handlers_error(tmp_path: Path) -> None:
    failed = span(
        0, TOOL, status={"code": 2, "message": "x" * 9}, events=[event("my.module.BadQueryError", "no prefix")]
    )
    assert calls_in(tmp_path, failed)[0].error == "BadQueryError: no prefix"


def test_caught_exception_is_not_an_error(tmp_path: Path) -> None:
    assert calls_in(tmp_path, span(0, TOOL, events=[event("TimeoutError", "again")]))[0].error is None
    without_output = {key: item for key, item in TOOL.items() if key != "output.value"}
    assert calls_in(tmp_path, span(0, without_output, events=[event("TimeoutError", "")]))[0].error == "TimeoutError"


def test_langgraph_control_flow_exception_is_not_an_error(tmp_path: Path) -> None:
    failed = span(0, TOOL, status={"code": 2}, events=[event("langgraph.errors.ParentCommand", "Command(goto='b')")])
    assert calls_in(tmp_path, failed)[0].error is None


def test_dropped_attributes_are_a_warning_that_names_the_limit(tmp_path: Path) -> None:
    cut = span(0, TOOL, droppedAttributesCount=7)
    full = span(1, {**TOOL, **{f"k{index}": "v" for index in range(128 - len(TOOL))}})
    over = span(2, {**TOOL, **{f"k{index}": "v" for index in range(129 - len(TOOL))}})
    warnings: list[str] = []
    traces_in(tmp_path, request([cut, full, over]), warnings=warnings)
    assert [warning.split(" with")[0].split(" lost")[0] for warning in warnings] == ["1 span", "1 span"]
    assert all("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in warning for warning in warnings)
    warnings.clear()
    traces_in(tmp_path, request([span(0, TOOL), over]), warnings=warnings)
    assert warnings == []


def test_unfinished_span_has_no_end(tmp_path: Path) -> None:
    assert calls_in(tmp_path, span(0, TOOL, endTimeUnixNano="0"))[0].ended is None
    assert calls_in(tmp_path, span(0, TOOL, parentSpanId="0" * 16))[0].parent_id is None
