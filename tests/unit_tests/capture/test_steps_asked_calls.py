from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

from graphrag_eval_lc.capture.steps import AskedCall, AskedCalls, Step

GRAPH, OTHER_GRAPH = uuid4(), uuid4()


def call(query: str, call_id: str = "call_1") -> ToolCall:
    return {"name": "search", "args": {"query": query}, "id": call_id, "type": "tool_call"}


def taken(asked: AskedCall | None, status: Any = "success") -> AskedCall:
    assert asked is not None
    asked.step = Step(asked.name, asked.args, uuid4(), None, asked.order, status=status)
    asked.is_settled = True
    return asked


def query_of(asked: AskedCall | None) -> str | None:
    return None if asked is None else asked.args["query"]


def run(calls: AskedCalls, query: str, scope: UUID = GRAPH) -> AskedCall | None:
    return calls.call_to_run("call_1", {"query": query}, scope, None)


def test_an_id_means_the_newest_message_that_asked_for_it() -> None:
    calls = AskedCalls()
    calls.ask("m1", [call("a")], GRAPH, None)
    first = taken(run(calls, "a"))
    calls.ask("m2", [call("b")], GRAPH, None)
    second = taken(run(calls, "b"))
    assert (first.message_id, second.message_id) == ("m1", "m2")
    assert run(calls, "b") is second


def test_changed_arguments_still_find_their_call() -> None:
    calls = AskedCalls()
    calls.ask("m1", [call("a")], GRAPH, None)
    assert query_of(run(calls, "changed")) == "a"


def test_two_graphs_at_once_keep_their_calls_apart() -> None:
    calls = AskedCalls()
    calls.ask("m1", [call("a")], GRAPH, None)
    calls.ask("m2", [call("a")], OTHER_GRAPH, None)
    found = run(calls, "a")
    assert found is not None
    assert found.message_id == "m1"


def test_a_call_of_a_graph_around_this_one_is_found() -> None:
    calls = AskedCalls()
    calls.ask("m1", [call("a")], GRAPH, None)
    assert query_of(run(calls, "a", OTHER_GRAPH)) == "a"


def test_a_call_that_is_told_of_twice_is_one() -> None:
    calls = AskedCalls()
    calls.ask("m1", [call("a")], GRAPH, None)
    calls.ask(None, [call("a")], GRAPH, None)
    taken(run(calls, "a"))
    found = run(calls, "a")
    assert found is not None
    assert found.is_settled


def test_without_an_id_name_and_arguments_decide() -> None:
    calls = AskedCalls()
    calls.ask("m1", [call("a", "call_1"), call("b", "call_2"), call("b", "call_3")], GRAPH, None)
    found = [taken(calls.call_like("search", {"query": query}, GRAPH)).call_id for query in ("b", "a", "b")]
    assert found == ["call_2", "call_1", "call_3"]
    assert calls.call_like("search", {"query": "b"}, GRAPH) is None
    assert calls.call_like("other", {"query": "a"}, GRAPH) is None


def test_without_an_id_a_failed_call_is_tried_again() -> None:
    calls = AskedCalls()
    calls.ask("m1", [call("a")], GRAPH, None)
    failed = taken(calls.call_like("search", {"query": "a"}, GRAPH), "error")
    assert calls.call_like("search", {"query": "a"}, GRAPH) is failed


class Watched(list[Any]):
    """A prompt that counts how many of its messages are looked at."""

    looked_at = 0

    def __reversed__(self) -> Iterator[Any]:
        for message in super().__reversed__():
            self.looked_at += 1
            yield message


def asking(*queries: str, message_id: str | None = "m1") -> AIMessage:
    return AIMessage("", tool_calls=[call(query, f"call_{query}") for query in queries], id=message_id)


def answer(query: str) -> ToolMessage:
    return ToolMessage(f"found {query}", tool_call_id=f"call_{query}")


def answers(calls: AskedCalls, prompt: list[Any]) -> list[tuple[str, str]]:
    return [(asked.args["query"], str(message.content)) for asked, message in calls.answers_in(prompt)]


def asked_by(*messages: AIMessage) -> AskedCalls:
    calls = AskedCalls()
    for message in messages:
        calls.ask(message.id, message.tool_calls, GRAPH, None, is_told=True)
    return calls


@pytest.mark.parametrize("message_id", ["m1", "other", None])
def test_a_prompt_answers_the_calls_of_its_messages_and_of_copies(message_id: str | None) -> None:
    calls = asked_by(asking("a", "b"))
    prompt = [HumanMessage("hi"), asking("a", "b", message_id=message_id), answer("b"), answer("a")]
    assert answers(calls, prompt) == [("a", "found a"), ("b", "found b")]


def test_a_tool_message_of_another_message_answers_nothing() -> None:
    calls = asked_by(asking("a"))
    example = AIMessage("", tool_calls=[call("example", "call_a")])
    assert answers(calls, [example, answer("a"), HumanMessage("hi")]) == []
    assert answers(calls, [HumanMessage("hi"), answer("a")]) == []


def test_a_copy_of_a_message_answers_only_one_of_equal_calls() -> None:
    calls = asked_by(asking("a"), asking("a", message_id="m2"))
    copies = [asking("a", message_id=None), answer("a"), asking("a", message_id=None)]
    assert answers(calls, [HumanMessage("hi"), *copies]) == [("a", "found a")]
    ((asked, _),) = calls.answers_in([HumanMessage("hi"), *copies])
    assert asked.message_id == "m1"


def test_a_prompt_is_not_searched_through_for_calls_that_nothing_answers() -> None:
    calls = asked_by(asking("a"))
    old = [AIMessage("old", tool_calls=[call("old", "call_old")]), answer("old")]
    for history in ([HumanMessage("hi")] * 400, old * 200):
        prompt = Watched(history)
        assert calls.answers_in(prompt) == []
        assert prompt.looked_at <= 40
