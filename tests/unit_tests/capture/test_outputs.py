import dataclasses
import datetime
import decimal
import enum
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END
from langgraph.types import Command, Send
from pydantic import BaseModel

from graphrag_eval_lc.capture.outputs import args_snapshot, output_text, to_plain, tool_message_of
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


class Model(BaseModel):
    size: int
    inner: Any = None


@dataclasses.dataclass
class Point:
    x: int


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
def test_json_values_stay_as_they_are(value: Any) -> None:
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
def test_a_snapshot_shares_nothing_with_the_value(value: Any) -> None:
    inner = [value]
    copy = to_plain({"list": inner})
    inner.append("changed")
    assert copy == {"list": [value]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ({"é": [1, None]}, '{"é": [1, null]}'),
        ({1: {"a"}}, '{"1": ["a"]}'),
        ([math.nan, math.inf], '["NaN", "Infinity"]'),
        ("é".encode(), "é"),
        (b"\xff\x00", "/wA="),
        (Model(size=2, inner=Point(3)), '{"size": 2, "inner": {"x": 3}}'),
        (datetime.date(2026, 1, 2), '"2026-01-02"'),
        ({"d": decimal.Decimal("1.10")}, '{"d": "1.10"}'),
        ({"c": Colour.RED}, '{"c": "red"}'),
        (
            [Document("t", id="u"), Document("v", metadata={"id": 7})],
            '[{"id": "u", "text": "t"}, {"id": 7, "text": "v"}]',
        ),
        (AIMessage("a"), "a"),
        (ToolMessage([{"type": "text", "text": "a"}, "b"], tool_call_id="1"), "ab"),
        (
            ToolMessage([{"type": "text", "text": "a"}, {"type": "image", "url": "u"}], tool_call_id="1"),
            '[{"type": "text", "text": "a"}, {"type": "image", "url": "u"}]',
        ),
        (Command(update={"a": 1}, goto="x"), '{"a": 1}'),
        (Hostile(), '"<Hostile>"'),
        (HostileModel(), '"<HostileModel>"'),
        ({"n": 10**5000}, f'{{"n": "{hex(10**5000)}"}}'),
    ],
    ids=lambda value: None,
)
def test_output_is_always_a_string(value: Any, expected: str) -> None:
    assert output_text(value) == expected


def test_a_value_inside_itself_ends() -> None:
    value: dict[str, Any] = {}
    value["self"] = [value, value]
    assert json.loads(json_text(value, to_plain=to_plain)) == {"self": ["<dict inside itself>"] * 2}


def test_deep_nesting_ends() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    assert isinstance(json_text(value, to_plain=to_plain), str)


def test_tool_runtime_is_no_argument() -> None:
    runtime = type("ToolRuntime", (), {})()
    assert args_snapshot({"query": "a", "runtime": runtime}, "") == {"query": "a"}


def test_a_bare_string_is_the_argument_input() -> None:
    assert args_snapshot(None, "a") == {"input": "a"}


def test_commands_answer_with_the_message_of_the_same_call() -> None:
    messages = [ToolMessage("other", tool_call_id="2"), ToolMessage("mine", tool_call_id="1")]
    found = tool_message_of(
        [Command(update={"messages": messages[:1]}), Command(update={"messages": messages[1:]})], "1"
    )
    assert found is messages[1]


def test_a_handover_answers_with_its_own_message_and_not_with_one_of_the_history() -> None:
    history = [ToolMessage("earlier", tool_call_id="1"), AIMessage("", id="m")]
    messages = [*history, ToolMessage("handed over", tool_call_id="1")]
    for command in (
        Command(graph=Command.PARENT, goto="a", update={"messages": messages}),
        Command(graph=Command.PARENT, goto="a", update=[("messages", messages)]),
        Command(graph=Command.PARENT, goto=[Send("a", {"messages": messages})]),
    ):
        assert tool_message_of(command, "1") is messages[-1]
        assert tool_message_of([command, Command(update={"messages": history[1:]})], "1") is messages[-1]


def test_a_list_of_handovers_holds_a_message_for_each_call() -> None:
    sent = {name: ToolMessage(f"to {name}", tool_call_id=name) for name in "ab"}
    command = Command(graph=Command.PARENT, goto=[Send(name, {"messages": [each]}) for name, each in sent.items()])
    assert [tool_message_of(command, name) for name in "ab"] == [sent["a"], sent["b"]]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (Command(graph=Command.PARENT, goto="a", update={"messages": [HumanMessage("history")]}), '{"goto": "a"}'),
        (Command(graph=Command.PARENT, goto=[Send("a", {}), Send("b", {})]), '{"goto": ["a", "b"]}'),
        (Command(goto="a"), '{"goto": "a"}'),
        (Command(goto="a", update={"x": 1}), '{"x": 1}'),
        (Command(graph=Command.PARENT, goto=END, update={"x": 1}), '{"x": 1}'),
    ],
)
def test_a_handover_without_a_message_tells_where_it_goes(command: Command, text: str) -> None:
    assert tool_message_of(command, "1") is None
    assert output_text(command) == text


def test_tool_message_in_deep_lists_is_found() -> None:
    message = ToolMessage("found", tool_call_id="call_1")
    deep: Any = [message]
    for _ in range(5_000):
        deep = [deep]
    endless: list[Any] = [ToolMessage("other", tool_call_id="call_2")]
    endless.append(endless)
    assert tool_message_of([deep, endless], "call_1") is message
    assert tool_message_of(endless, "call_1") is None
