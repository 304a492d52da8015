from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue
from langgraph.types import Command
from pydantic import BaseModel

from graphrag_eval_lc.capture.messages import answer_in, message_lists, question_in, unanswered_calls, whole_answer

CALL = {"name": "search", "args": {}, "id": "call_1", "type": "tool_call"}
ASKING = AIMessage("", tool_calls=[CALL], id="m1")
ANSWER = AIMessage("done", id="m2")
GIVEN = ToolMessage("given", tool_call_id="call_1")
HANDOFF = ToolMessage("gone", tool_call_id="call_1", response_metadata={"__handoff_destination": "a"})


class State(BaseModel):
    messages: list[Any]
    structured_response: Any = None


class Verdict(BaseModel):
    value: float


@dataclass
class Fact:
    name: str
    day: date


@dataclass
class Output:
    answer: Fact


@pytest.mark.parametrize(
    "value",
    [
        ANSWER,
        [ANSWER],
        {"messages": [ANSWER], "other": "x"},
        {"other": [1, 2], "answer": ANSWER},
        Command(update={"messages": [ANSWER]}),
        [Command(update={"messages": [ANSWER]}), {"messages": []}],
        State(messages=[ANSWER]),
        {"__type": "tool_call_with_context", "tool_call": CALL, "state": {"messages": [ANSWER]}},
        (([ANSWER],), {}),
        Command(update=[("messages", [ANSWER])]),
    ],
)
def test_messages_are_found_in_all_that_nodes_give(value: Any) -> None:
    assert [message for messages in message_lists(value) for message in messages] == [ANSWER]


@pytest.mark.parametrize("value", [None, "text", 1, [], {}, [1, 2], {"rows": [{"content": "x"}]}, Command()])
def test_what_holds_no_messages_gives_none(value: Any) -> None:
    assert list(message_lists(value)) == []


def test_unanswered_calls_are_those_of_the_last_message() -> None:
    assert unanswered_calls([ASKING]) == (ASKING, [CALL])
    assert unanswered_calls([ASKING, ToolMessage("x", tool_call_id="call_1")]) is None
    assert unanswered_calls([ASKING, ANSWER]) is None


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("text", "text"),
        ({"messages": [ANSWER]}, "done"),
        ({"messages": [ANSWER, ASKING]}, "done"),
        ({"messages": [ASKING]}, None),
        (State(messages=[ANSWER]), "done"),
        (State(messages=[ASKING], structured_response={"a": 1}), '{"a": 1}'),
        ({"messages": [AIMessage("")], "structured_response": {"a": 1}}, '{"a": 1}'),
        ({"messages": [AIMessage("")]}, ""),
        ({"answer": "x", "context": ["y"]}, "x"),
        ({"output": "x"}, "x"),
        (42, "42"),
        (True, "True"),
        ({"answer": 0}, "0"),
        ({"result": {"total": 3, "names": ["ä"]}}, '{"total": 3, "names": ["ä"]}'),
        ({"response": Verdict(value=1.5)}, '{"value": 1.5}'),
        (Output(Fact("a", date(2026, 1, 2))), '{"name": "a", "day": "2026-01-02"}'),
        ({"generation": ANSWER, "documents": []}, "done"),
        ({"answer": None, "output": Decimal("1.50")}, "1.50"),
        ({"raw": ASKING, "parsed": Verdict(value=2), "parsing_error": None}, '{"value": 2.0}'),
        ({"messages": [ANSWER], "answer": {"a": 1}}, "done"),
        ({"messages": [ASKING, GIVEN]}, "given"),
        ({"messages": [ANSWER, ASKING, GIVEN, GIVEN]}, "given\ngiven"),
        ({"messages": [ASKING, GIVEN], "structured_response": {"a": 1}}, '{"a": 1}'),
        ({"messages": [ASKING, ToolMessage("failed", tool_call_id="call_1", status="error")]}, None),
        ({"messages": [ASKING, HANDOFF]}, None),
        ({"log": [GIVEN], "messages": [ANSWER]}, "done"),
        ({"messages": [ANSWER], "log": [ASKING, GIVEN]}, "done"),
        ({"messages": [("user", "?"), ("ai", "pair")]}, "pair"),
        ({"count": 1}, None),
        (None, None),
    ],
)
def test_the_answer_is_the_last_text_that_asks_for_no_tool(output: Any, answer: str | None) -> None:
    assert answer_in(output) == answer


def test_an_answer_from_before_the_run_is_none() -> None:
    assert answer_in({"messages": [ANSWER, HumanMessage("and?")]}, lambda message: message is ANSWER) is None


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ({"total": 3}, '{"total": 3}'),
        (["a", 1], '["a", 1]'),
        (Verdict(value=1), '{"value": 1.0}'),
        (Fact("a", date(2026, 1, 2)), '{"name": "a", "day": "2026-01-02"}'),
        (b"yes", "yes"),
        (Decimal("1.50"), "1.50"),
        ({"messages": []}, None),
        ({"total": 3, "__interrupt__": ["?"]}, None),
        ([Document("x")], None),
        ([HumanMessage("x")], None),
        (ChatPromptValue(messages=[]), None),
        (Command(update={}), None),
        (object(), None),
        (None, None),
    ],
)
def test_a_value_is_an_answer_as_a_whole(output: Any, answer: str | None) -> None:
    assert whole_answer(output) == answer


BLOCKS = [{"type": "text", "text": "What"}, {"type": "image", "url": "x"}, {"type": "text", "text": "is it?"}]


@pytest.mark.parametrize(
    ("inputs", "question"),
    [
        ("why?", "why?"),
        ({"question": "why?"}, "why?"),
        ({"input": "why?", "chat_history": [HumanMessage("old")]}, "why?"),
        ({"query": "why?", "k": 3}, "why?"),
        ({"input": {"question": "why?"}}, "why?"),
        ({"question": HumanMessage("why?")}, "why?"),
        ({"messages": [HumanMessage("why?"), ANSWER]}, "why?"),
        ({"messages": HumanMessage("why?")}, "why?"),
        ({"messages": "why?"}, "why?"),
        ({"messages": [], "question": "why?"}, "why?"),
        ({"messages": [("user", "why?")], "question": "other"}, "why?"),
        (HumanMessage("why?"), "why?"),
        (State(messages=[("user", "why?")]), "why?"),
        (StringPromptValue(text="why?"), "why?"),
        (ChatPromptValue(messages=[HumanMessage("why?")]), "why?"),
        ({"messages": [{"role": "user", "content": BLOCKS}]}, "What\nis it?"),
        ([HumanMessage(BLOCKS)], "What\nis it?"),
        ({"input": BLOCKS}, "What\nis it?"),
        ({"messages": [HumanMessage(BLOCKS[1:2])]}, None),
        ({"question": 3}, None),
        ({"other": "x"}, None),
        ([], None),
        (None, None),
    ],
)
def test_the_question_is_what_the_user_asked_last(inputs: Any, question: str | None) -> None:
    assert question_in(inputs) == question
