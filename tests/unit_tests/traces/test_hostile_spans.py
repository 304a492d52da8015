"""Whatever a span contains, reading it yields calls or one clear error."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.span_files import calls_in, request, span, traces_in

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.traces.responses import responses_of

ODD_NUMBERS = ["--5", "-", "9" * 5_000, int("9" * 4_299), "1e400", "\u00b2", "\u0663", "-0", 1e308]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(ODD_NUMBERS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "tool_calls", "args", "kwargs", "update", "messages", "id", "blocks", "key"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
FIELDS = ("traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status")
KINDS = [
    {"openinference.span.kind": "TOOL"},
    {"openinference.span.kind": "LLM"},
    {"langfuse.observation.type": "generation"},
    {"langfuse.observation.type": "retriever"},
    {"traceloop.span.kind": "workflow"},
    {"gen_ai.operation.name": "invoke_agent"},
]
KEYS = [
    "input.value",
    "output.value",
    "metadata",
    "langfuse.observation.input",
    "langfuse.observation.output",
    "langfuse.observation.usage_details",
    "traceloop.entity.input",
    "traceloop.entity.output",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.usage.input_tokens",
    "events",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments",
    "retrieval.documents.0.document.metadata",
]


def read(spans: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            traces = traces_in(Path(folder), request(spans))
        except ResponsesError:
            return
        for calls in traces:
            for response in responses_of(calls):
                json.dumps(response)


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4))
def test_any_attribute_value_is_read(kind: dict[str, str], values: dict[str, Any]) -> None:
    texts = {key: value if isinstance(value, str | int) else json.dumps(value) for key, value in values.items()}
    read([span(0, {**kind, **texts})])


@given(st.sampled_from(FIELDS), JSON)
def test_any_field_value_is_read(field: str, value: Any) -> None:
    read([{**span(0, {"openinference.span.kind": "TOOL"}), field: value}, span(1, {"openinference.span.kind": "TOOL"})])


@given(st.sampled_from(["intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue", "boolValue"]), JSON)
def test_any_value_of_an_otlp_type_is_read(kind: str, value: Any) -> None:
    typed = [{"key": "input.value", "value": {kind: value}}, {"key": "metadata", "value": {kind: value}}]
    read([span(0, {"openinference.span.kind": "TOOL"}) | {"attributes": typed}])


@pytest.mark.parametrize("number", ODD_NUMBERS, ids=lambda number: str(number)[:5])
@pytest.mark.parametrize("kind", ["intValue", "doubleValue", "stringValue"])
def test_invalid_token_count_is_ignored(tmp_path: Path, kind: str, number: Any) -> None:
    typed = [{"key": key, "value": {kind: number}} for key in ("gen_ai.usage.input_tokens", "llm.token_count.total")]
    model = span(0, {"openinference.span.kind": "LLM"})
    [call] = calls_in(tmp_path, {**model, "attributes": [*model["attributes"], *typed]})
    assert all(count == 0 or 0 < count < 10**15 for count in call.tokens.values())


@pytest.mark.parametrize("parents", [[0], [1, 0], [1, 2, 0], [1, 0, 0, 3]])
def test_cyclic_spans_are_read_from_the_first(tmp_path: Path, parents: list[int]) -> None:
    spans = [span(n, {"openinference.span.kind": "CHAIN"}, parent=parent) for n, parent in enumerate(parents)]
    [response] = responses_of(calls_in(tmp_path, span(9, {"openinference.span.kind": "TOOL"}, parent=0), *spans))
    assert [step["name"] for step in response["actual_steps"]] == ["span"]


@pytest.mark.parametrize("depth", [100, 800, 100_000])
def test_deeply_nested_arguments_are_kept(tmp_path: Path, depth: int) -> None:
    deep = '{"a": ' + "[" * depth + "]" * depth + "}"
    (call,) = calls_in(tmp_path, span(0, {"openinference.span.kind": "TOOL", "tool.name": "t", "input.value": deep}))
    assert call.args
