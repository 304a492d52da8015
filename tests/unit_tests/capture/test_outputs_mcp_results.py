import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage

from graphrag_eval_lc.capture.outputs import mcp_text, message_outcome

IMAGE = {"type": "image", "id": "lc_i", "base64": "eA==", "mime_type": "image/png"}


def blocks(*texts: str, prefix: str = "lc_") -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "id": f"{prefix}{place}"} for place, text in enumerate(texts)]


def structured(content: Any) -> dict[str, Any]:
    return {"structured_content": content}


def fastmcp_blocks(value: Any) -> list[str]:
    """Give the texts that FastMCP makes of a value: one for each element of a list, however deep."""
    if isinstance(value, list):
        return [text for item in value for text in fastmcp_blocks(item)]
    if value is None:
        return []
    return [value if isinstance(value, str) else json.dumps(value, indent=2)]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.full
@settings(max_examples=50)
@given(st.lists(VALUES))
def test_a_list_that_fastmcp_wrapped_is_its_json(value: list[Any]) -> None:
    text = mcp_text(blocks(*fastmcp_blocks(value)), structured({"result": value}))
    assert text is not None
    assert json.loads(text) == value


@pytest.mark.full
@settings(max_examples=50)
@given(st.dictionaries(st.text(), VALUES))
def test_an_object_is_its_own_json(value: dict[str, Any]) -> None:
    text = mcp_text(blocks(json.dumps(value, indent=2)), structured(value))
    assert text is not None
    assert json.loads(text) == value


@settings(max_examples=50)
@given(st.text())
def test_a_text_stays_as_it_is(value: str) -> None:
    assert mcp_text(blocks(value), structured({"result": value})) == value
    assert mcp_text(blocks(value)) == value


@pytest.mark.parametrize(
    ("texts", "content", "expected"),
    [
        (["a", "b"], {"result": ["a", "b"]}, '["a", "b"]'),
        (["a"], {"result": ["a"]}, '["a"]'),
        ([], {"result": []}, "[]"),
        ([], {"result": None}, "null"),
        (["3"], {"result": 3}, "3"),
        (['[{"a": 1}]'], {"result": [{"a": 1}]}, '[{"a": 1}]'),  # servers that give a list as one block
        (['{"result": [1]}'], {"result": [1]}, '{"result": [1]}'),  # the tool's own key
        (["1 row", '{"rows": [1]}'], {"rows": [1]}, '{"rows": [1]}'),
        (["2 rows"], {"result": [1, 2]}, "2 rows"),  # words of the server about what it gives
        (['{"name": "æ"}'], {"result": [{"name": "æ", "note": None}]}, '[{"name": "æ", "note": null}]'),
    ],
)
def test_structured_content_and_blocks_together_say_what_the_value_is(
    texts: list[str], content: Any, expected: str
) -> None:
    assert mcp_text(blocks(*texts), structured(content)) == expected


def test_blocks_that_are_each_json_are_a_list_without_structured_content() -> None:
    assert mcp_text(blocks('{"id": 1}', ' {"id": 2.50}\n')) == '[{"id": 1}, {"id": 2.50}]'
    assert mcp_text(blocks('{"id": 1}', "and more")) == '{"id": 1}and more'
    assert mcp_text(blocks('{"id": 1}')) == '{"id": 1}'
    assert mcp_text(blocks("NaN", "1")) == "NaN1"


@pytest.mark.parametrize("content", ["text", ["a", "b"], blocks("1", "2", prefix=""), [*blocks("a"), IMAGE], [], None])
def test_other_content_is_read_as_ever(content: Any) -> None:
    assert mcp_text(content) is None


def test_a_tool_of_ones_own_with_blocks_keeps_its_output() -> None:
    own = [{"type": "text", "text": '{"a": 1}'}, {"type": "text", "text": '{"b": 2}'}]
    assert message_outcome(ToolMessage(own, tool_call_id="c1")).text == '{"a": 1}{"b": 2}'
    mixed = [*blocks("a"), IMAGE]
    message = ToolMessage(mixed, tool_call_id="c1", artifact=structured({"result": ["a"]}))
    assert json.loads(message_outcome(message).text) == mixed


def test_an_error_stays_the_text_of_its_blocks() -> None:
    message = ToolMessage(blocks('{"code": 1}', '{"code": 2}'), tool_call_id="c1", status="error")
    assert message_outcome(message)[:2] == ("error", '{"code": 1}{"code": 2}')


@pytest.mark.full
@pytest.mark.parametrize("depth", [500, 5_000, 100_000])
def test_deep_lists_of_a_server_leave_the_text_as_it_is(depth: int) -> None:
    tower: Any = ["a"]
    for _ in range(depth):
        tower = [tower]
    text = "[" * (depth + 1) + '"a"' + "]" * (depth + 1)
    assert mcp_text(blocks(text), structured({"result": tower})) in (text, '["a"]')
    assert mcp_text(blocks("[1]"), structured({"result": tower, "more": 1})) == "[1]"
