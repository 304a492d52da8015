"""Completing spans with information from others, and removing calls recorded by two instrumentations."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.span_files import TRACE, calls_in, request, span, traces_in

from graphrag_eval_lc.traces.whole_traces import AskedCall, TracedCall, WholeTraces

OPENINFERENCE, TRACELOOP = "openinference.instrumentation.langchain", "opentelemetry.instrumentation.langchain"


def model(*requested: tuple[str, str, dict[str, Any] | None], tokens: int = 10) -> dict[str, Any]:
    span_attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        "llm.token_count.prompt": tokens,
    }
    for index, (identifier, name, args) in enumerate(requested):
        call = f"llm.output_messages.0.message.tool_calls.{index}.tool_call"
        span_attributes |= {f"{call}.id": identifier, f"{call}.function.name": name}
        if args:  # OpenInference omits empty arguments
            span_attributes[f"{call}.function.arguments"] = json.dumps(args)
    return span_attributes


def tool(name: str, raw: str | None = None, call_id: str | None = None) -> dict[str, Any]:
    output = {"type": "tool", "data": {"content": "12 lines", "type": "tool", "tool_call_id": call_id}}
    return {
        "openinference.span.kind": "TOOL",
        "tool.name": name,
        **({} if raw is None else {"input.value": raw}),
        "output.value": "12 lines" if call_id is None else json.dumps(output),
    }


def test_single_argument_without_a_name_in_openinference_is_named_by_the_models_call(
    tmp_path: Path,
) -> None:
    calls = calls_in(
        tmp_path,
        span(0, model(("c1", "query", {"text": "SELECT"}), ("c2", "query", {"text": '{"a": 1}'}), ("c3", "now", None))),
        span(1, tool("query", "SELECT", "c1")),
        span(2, tool("query", '{"a": 1}', "c2")),
        span(3, tool("now", None, "c3")),
    )
    assert [call.args for call in calls[1:]] == [{"text": "SELECT"}, {"text": '{"a": 1}'}, {}]


def test_named_arguments_of_a_span_are_kept(tmp_path: Path) -> None:
    calls = calls_in(
        tmp_path,
        span(0, model(("c1", "find", {"query": "a"}))),
        span(1, tool("find", '{"query": "a", "added_by_middleware": 1}', "c1")),
    )
    assert calls[1].args == {"query": "a", "added_by_middleware": 1}


def test_reused_call_id_refers_to_the_latest_request(tmp_path: Path) -> None:
    calls = calls_in(
        tmp_path,
        span(0, model(("c1", "query", {"text": "first"}))),
        span(1, tool("query", "1", "c1")),
        span(2, model(("c1", "query", {"text": "second"}))),
        span(3, tool("query", "2", "c1")),
    )
    assert [calls[1].args, calls[3].args] == [{"text": "first"}, {"text": "second"}]


def test_calls_without_ids_are_matched_by_name_and_arguments_then_by_order(tmp_path: Path) -> None:
    calls = calls_in(
        tmp_path,
        span(
            0, model(("c1", "find", {"q": "a"}), ("c2", "find", {"q": "b"}), ("c3", "now", None), ("c4", "now", None))
        ),
        span(1, tool("find", '{"q": "b"}')),
        span(2, tool("find", '{"q": "a"}')),
        span(3, tool("now")),
        span(4, tool("now")),
    )
    assert [call.tool_call_id for call in calls[1:]] == ["c2", "c1", "c3", "c4"]


def test_tool_without_a_models_request_keeps_a_bare_argument_as_input(tmp_path: Path) -> None:
    calls = calls_in(tmp_path, span(0, tool("query", "SELECT")), span(1, tool("now")))
    assert [call.args for call in calls] == [{"input": "SELECT"}, {}]


def traceloop(name: str, args: dict[str, Any]) -> dict[str, Any]:
    span_attributes = json.dumps({"input_str": str(args), "inputs": args, "kwargs": {"tool_call_id": "c1"}})
    return {"traceloop.span.kind": "tool", "traceloop.entity.name": name, "traceloop.entity.input": span_attributes}


def recorded_twice() -> list[dict[str, Any]]:
    """Return the spans of a model, a tool and a nested tool, recorded by two instrumentations."""
    requested = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "find", "arguments": {"q": 1}}]}
    ]
    chat = {
        "traceloop.workflow.name": "w",
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps(requested),
        "gen_ai.usage.input_tokens": 10,
    }
    return [
        request([span(0, {"traceloop.span.kind": "workflow"})], TRACELOOP),
        request([span(1, chat, parent=0), span(3, traceloop("find", {"q": 1}), parent=0)], TRACELOOP),
        request(
            [
                span(1, model(("c1", "find", {"q": 1})), parent=0, spanId="a" * 16),
                span(3, tool("find", '{"q": 1}', "c1"), parent=0, spanId="b" * 16),
                span(4, tool("inner", "x"), parentSpanId="b" * 16),
            ],
            OPENINFERENCE,
        ),
    ]


def test_calls_recorded_by_two_instrumentations_are_merged_with_their_children(tmp_path: Path) -> None:
    warnings: list[str] = []
    (calls,) = traces_in(tmp_path, *recorded_twice(), warnings=warnings)
    assert [(call.kind, call.name) for call in calls if call.kind != "agent"] == [
        ("model", "span"),
        ("tool", "find"),
        ("tool", "inner"),
    ]
    find = next(call for call in calls if call.name == "find")
    inner = next(call for call in calls if call.name == "inner")
    assert inner.parent_id == find.id
    (warning,) = warnings
    assert warning.startswith(f"1 trace (the first is {TRACE})")
    assert OPENINFERENCE in warning
    assert TRACELOOP in warning


def test_concurrent_tool_calls_with_equal_arguments_are_not_merged(tmp_path: Path) -> None:
    twice = [span(1, tool("find", '{"q": 1}')), span(1, tool("find", '{"q": 1}'), spanId="b" * 16)]
    assert len(calls_in(tmp_path, *twice, scope=OPENINFERENCE)) == 2


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=8),
    st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_second_recording_of_calls_changes_nothing(
    starts_and_args: list[tuple[int, int]], also_recorded: list[bool]
) -> None:
    def call(index: int, source: str) -> TracedCall:
        start, args = starts_and_args[index]
        return TracedCall(
            trace_id="t",
            id=f"{source}{index}",
            parent_id=None,
            kind="tool",
            name="find",
            started=start,
            ended=start + 0.5,
            args={"q": args},
            source=source,
        )

    recorded = sorted((call(index, "a") for index in range(len(starts_and_args))), key=lambda each: each.started)
    recorded_again = [call(index, "b") for index in range(len(starts_and_args)) if also_recorded[index]]
    both = sorted([*recorded, *recorded_again], key=lambda each: each.started)
    completed = WholeTraces().completed(both)
    assert len(completed) == len(recorded)
    assert sorted((each.started, str(each.args)) for each in completed) == sorted(
        (e.started, str(e.args)) for e in recorded
    )


@pytest.mark.parametrize(
    ("first", "second", "number"),
    [
        ([(0, 1.2)], [(0.1, 1.3)], 1),
        ([(0, 20.5)], [(20, 40.5)], 1),  # the machine was busy between the two callbacks
        ([(0, 1), (1.2, 2)], [(0.1, 1.1), (1.3, 2.1)], 2),
        ([(0, 1)], [(1.1, 2)], 2),
        ([(0, 5), (4, 9)], [(0.5, 5.5), (4.5, 9.5)], 2),
        ([(0, 5), (4, 9)], [(4.5, 9.5)], 2),
    ],
)
def test_overlapping_recordings_of_a_model_call_are_merged(
    first: list[tuple[float, float]], second: list[tuple[float, float]], number: int
) -> None:
    calls = [
        TracedCall(
            trace_id="t",
            id=f"{source}{start}",
            parent_id=None,
            kind="model",
            name="m",
            started=start,
            ended=end,
            tokens={"output_tokens": 5},
            source=source,
        )
        for source, spans in (("a", first), ("b", second))
        for start, end in spans
    ]
    assert len(WholeTraces().completed(sorted(calls, key=lambda each: each.started))) == number


def test_wrapper_around_the_model_call_with_tokens_is_not_counted() -> None:
    def call(identifier: str, parent: str | None, tokens: dict[str, int]) -> TracedCall:
        return TracedCall(
            trace_id="t",
            id=identifier,
            parent_id=parent,
            kind="model",
            name="m",
            started=0,
            tokens=tokens,
            asked=[AskedCall(id="c1", name="find", args={})],
        )

    calls = [call("outer", None, {}), call("inner", "outer", {"input_tokens": 1})]
    assert [each.kind for each in WholeTraces().completed(calls)] == ["other", "model"]
    calls = [call("outer", None, {"input_tokens": 1}), call("inner", "outer", {"input_tokens": 1})]
    assert [each.kind for each in WholeTraces().completed(calls)] == ["model", "model"]
