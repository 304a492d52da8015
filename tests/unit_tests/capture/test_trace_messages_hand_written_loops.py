"""Recording of hand-written loops: a model and plain functions, whose calls emit no events."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableLambda
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from pydantic import BaseModel

from graphrag_eval_lc.capture.steps import History

HI = HumanMessage("hi")


def lookup(query: str) -> str:
    """Search without callbacks."""
    return f"found {query}"


def answer_to(call: dict[str, Any]) -> ToolMessage:
    return ToolMessage(lookup(**call["args"]), tool_call_id=call["id"])


def conversation(model: Any, messages: list[Any]) -> list[Any]:
    """A typical loop: call the model, call plain functions, call the model again."""
    messages = list(messages)
    while (answer := model.invoke(messages)).tool_calls:
        messages += [answer, *map(answer_to, answer.tool_calls)]
    return [*messages, answer]


def node_with_all(model: Any) -> Any:
    return one_node(lambda state: {"messages": conversation(model, state["messages"])[len(state["messages"]) :]})


def one_node(function: Callable[[Any], Any]) -> Any:
    return StateGraph(MessagesState).add_node("agent", function).add_edge(START, "agent").compile()


def lambda_with_all(model: Any) -> Any:
    return RunnableLambda(lambda state: {"messages": conversation(model, state["messages"])})


def tasks_with_all(model: Any) -> Any:
    @task
    def call_llm(messages: list[BaseMessage]) -> Any:
        return model.invoke(messages)

    @task
    def call_tool(call: dict[str, Any]) -> Any:
        return answer_to(call)

    @entrypoint()
    def agent(state: dict[str, Any]) -> Any:
        messages = state["messages"]
        answer = call_llm(messages).result()
        while answer.tool_calls:
            futures = [call_tool(call) for call in answer.tool_calls]
            messages = add_messages(messages, [answer, *(future.result() for future in futures)])
            answer = call_llm(messages).result()
        return add_messages(messages, answer)

    return agent


def brief(response: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return id, query, and output or error of each step."""
    return [
        (step["id"], step["args"]["query"], step.get("output") or step["error"]) for step in response["actual_steps"]
    ]


def earlier_turns(count: int = 1, *, with_ids: bool = True) -> list[BaseMessage]:
    """Return turns with the same ids, arguments and texts as the recorded run."""
    call = {"name": "lookup", "args": {"query": "a"}, "id": "call_1"}
    messages: list[BaseMessage] = []
    for number in range(count):
        turn = HI.model_copy(), AIMessage("", tool_calls=[call]), ToolMessage("old", tool_call_id="call_1")
        messages += [*turn, AIMessage("earlier answer")]
        if with_ids:
            for place, message in enumerate(messages[-4:]):
                message.id = f"old_{number}_{place}"
    return messages


def test_history_among_role_and_text_pairs_is_not_a_step(ai, ask, search, chat_model) -> None:
    model = chat_model(script=[ai("", ("search", {"query": "b"}, "call_1")), ai("done")], by_turn=False)
    history = [("user", "?"), *earlier_turns(with_ids=False)[1:], ("user", "and now?")]
    response = ask(create_agent(model, [search]), {"messages": history})
    assert [step["args"] for step in response["actual_steps"]] == [{"query": "b"}]
    assert "capture_warnings" not in response


def test_history_loaded_by_a_function_is_not_a_step(ai, ask, chat_model) -> None:
    model = chat_model(script=[ai("", ("lookup", {"query": "b"}, "call_1")), ai("done")], by_turn=False)
    agent = RunnableLambda(lambda text: conversation(model, [*earlier_turns(3, with_ids=False), HumanMessage(text)]))
    response = ask(agent, "and now?")
    assert (brief(response), response["actual_answer"]) == ([("call_1", "b", "found b")], "done")


@pytest.mark.parametrize("shape", [node_with_all, lambda_with_all, tasks_with_all, "agent"])
def test_cost_of_a_turn_does_not_depend_on_the_history(
    shape, ai, ask, chat_model, search, make_agent, monkeypatch
) -> None:
    looked_at = 0
    find = History.known

    def counting_find(self: History, item: Any) -> Any:
        nonlocal looked_at
        looked_at += 1
        return find(self, item)

    def cost(length: int) -> int:
        nonlocal looked_at
        looked_at = 0
        turns = [ai("", ("search", {"query": "a"}, "call_1")), ai("", ("search", {"query": "b"}, "call_1")), ai("done")]
        model = chat_model(script=turns, by_turn=False)
        agent = make_agent([], [search], model=model) if shape == "agent" else shape(model)
        response = ask(agent, {"messages": [*earlier_turns(length), HI.model_copy()]}, question_id=str(length))
        assert len(response["actual_steps"]) == 2
        return looked_at

    monkeypatch.setattr(History, "known", counting_find)
    monkeypatch.setitem(globals(), "answer_to", lambda call: ToolMessage("found", tool_call_id=call["id"]))
    assert cost(100) == cost(1) < 60


# --- loops that change messages ---


def test_last_of_several_results_of_a_call_counts(ai, ask, chat_model) -> None:
    model = chat_model(script=[ai("", ("lookup", {"query": "a"}, "call_1")), ai("done")])

    def agent(text: str) -> str:
        answer = model.invoke(text)
        messages = [ToolMessage("wait", tool_call_id="call_1"), ToolMessage("found", tool_call_id="call_1")]
        return model.invoke([HumanMessage(text), answer, *messages]).content

    assert brief(ask(RunnableLambda(agent), "hi")) == [("call_1", "a", "found")]


# --- calls without a result ---

UNANSWERED = "requested by a model and never answered, so their outputs are not known: "


class Route(BaseModel):
    """Where to go."""

    to: str


def by_choice(choice: Any) -> Callable[[Any], Any]:
    def bind(model: Any) -> Any:
        bound = model.bind(tools=[Route], tool_choice=choice)
        return RunnableLambda(lambda text: Route(**bound.invoke(text).tool_calls[0]["args"]))

    return bind


@pytest.mark.parametrize("choice", ["auto", None, {"type": "auto"}])
def test_calls_that_the_model_chose_need_a_result(choice, ai, ask, chat_model) -> None:
    model = chat_model(script=[ai("", ("route", {"to": "oslo"}, "call_1"))])
    assert ask(by_choice(choice)(model), "hi")["capture_warnings"] == [UNANSWERED + "route (call_1)"]
