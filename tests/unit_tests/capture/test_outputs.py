import enum
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langgraph.types import Command
from pydantic import BaseModel

from graphrag_eval_lc.capture.values import mcp_text, output_text, to_plain, tool_message_of
from graphrag_eval_lc.json_values import json_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.datetimes()
    | st.decimals()
    | st.uuids()
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.floats() | st.booleans() | st.none() | st.binary(), inner)
        | st.builds(lambda value: ToolMessage(content="x", tool_call_id="1", artifact=value), inner)
        | st.builds(lambda value: Command(update={"value": value}), inner)
    ),
    max_leaves=20,
)


class Colour(enum.StrEnum):
    RED = "red"


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class HostileModel(BaseModel):
    x: int = 1

    def __getattribute__(self, name: str) -> Any:
        if name == "x":
            raise RuntimeError("no field")
        return super().__getattribute__(name)

    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.full
@given(JSON)
def test_json_values_are_unchanged(value: Any) -> None:
    assert to_plain(value) == value
    assert json.loads(json_text(value, to_plain=to_plain)) == value


@given(ANYTHING)
def test_anything_becomes_strict_json(value: Any) -> None:
    json.dumps(to_plain(value), allow_nan=False)
    text = output_text(value)
    assert isinstance(text, str)
    json.dumps(text)
    json.loads(json_text(value, to_plain=to_plain), parse_constant=lambda name: pytest.fail(name))


@given(JSON)
def test_snapshot_shares_nothing_with_the_value(value: Any) -> None:
    inner = [value]
    copy = to_plain({"list": inner})
    inner.append("changed")
    assert copy == {"list": [value]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"c": Colour.RED}, '{"c": "red"}'),
        (Hostile(), '"<Hostile>"'),
        (HostileModel(), '"<HostileModel>"'),
        ({"n": 10**5000}, f'{{"n": "{hex(10**5000)}"}}'),
    ],
    ids=lambda value: None,
)
def test_output_is_always_a_string(value: Any, expected: str) -> None:
    assert output_text(value) == expected


def test_circular_value_terminates() -> None:
    value: dict[str, Any] = {}
    value["self"] = [value, value]
    assert json.loads(json_text(value, to_plain=to_plain)) == {"self": ["<dict inside itself>"] * 2}


def test_deep_nesting_terminates() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    assert isinstance(json_text(value, to_plain=to_plain), str)


def test_tool_message_in_nested_lists_is_found() -> None:
    message = ToolMessage("found", tool_call_id="call_1")
    deep: Any = [[message]]
    endless: list[Any] = [ToolMessage("other", tool_call_id="call_2")]
    endless.append(endless)
    assert tool_message_of([deep, endless], "call_1") is message
    assert tool_message_of(endless, "call_1") is None


# --- results of MCP servers ---


def blocks(*texts: str, prefix: str = "lc_") -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "id": f"{prefix}{place}"} for place, text in enumerate(texts)]


def structured(content: Any) -> dict[str, Any]:
    return {"structured_content": content}


def fastmcp_blocks(value: Any) -> list[str]:
    """Return FastMCP's text blocks for a value: one per element of a list, at any depth."""
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
def test_list_wrapped_by_fastmcp_is_its_json(value: list[Any]) -> None:
    text = mcp_text(blocks(*fastmcp_blocks(value)), structured({"result": value}))
    assert text is not None
    assert json.loads(text) == value


@pytest.mark.full
@settings(max_examples=50)
@given(st.dictionaries(st.text(), VALUES))
def test_object_is_its_json(value: dict[str, Any]) -> None:
    text = mcp_text(blocks(json.dumps(value, indent=2)), structured(value))
    assert text is not None
    assert json.loads(text) == value


@settings(max_examples=50)
@given(st.text())
def test_text_is_unchanged(value: str) -> None:
    assert mcp_text(blocks(value), structured({"result": value})) == value
    assert mcp_text(blocks(value)) == value
