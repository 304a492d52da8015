"""How the runs of one question become one response."""

import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from graphrag_eval_lc.capture import capture_run

HI = {"messages": [("user", "hi")]}
THREAD = {"configurable": {"thread_id": "1"}}


def test_a_step_that_a_resumed_run_takes_again_stands_once(ai, ask) -> None:
    ran: list[str] = []

    @tool
    def note(word: str) -> str:
        """Note a word."""
        ran.append(word)
        return f"{word} {len(ran)}"

    def run_tools(state: MessagesState) -> dict[str, Any]:
        calls = state["messages"][-1].tool_calls
        first = note.invoke({**calls[0], "type": "tool_call"})
        answer = interrupt("sure?")
        return {"messages": [first, ToolMessage(answer, tool_call_id=calls[1]["id"])]}

    graph = StateGraph(MessagesState)
    calls = ("note", {"word": "a"}, "call_1"), ("person", {}, "call_2")
    graph.add_node("model", lambda state: {"messages": [ai("", *calls)]}).add_node("tools", run_tools)
    graph.add_edge(START, "model").add_edge("model", "tools")
    agent = graph.compile(checkpointer=InMemorySaver())
    assert [step["output"] for step in ask(agent, HI, **THREAD)["actual_steps"]] == ["a 1"]
    steps = ask(agent, Command(resume="yes"), **THREAD)["actual_steps"]
    assert [(step["id"], step["output"]) for step in steps] == [("call_1", "a 2"), ("call_2", "yes")]


@pytest.mark.full
def test_time_spent_waiting_for_the_resume_does_not_count(ai, ask) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("ask", lambda state: {"messages": [AIMessage(interrupt("sure?"))]})
    agent = graph.add_edge(START, "ask").compile(checkpointer=InMemorySaver())
    ask(agent, HI, **THREAD)
    time.sleep(1.0)
    response = ask(agent, Command(resume="yes"), **THREAD)
    assert response["elapsed_sec"] < 1.0
    assert response["actual_answer"] == "yes"


@pytest.mark.parametrize("usages", [[None], [None, {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}]])
def test_sums_never_mix_known_and_unknown(usages, ai, chat_model) -> None:
    with capture_run(question_id="q1") as handler:
        for usage in usages:
            chat_model(script=[ai("done", usage=usage)]).invoke("hi")
    response = handler.response("q1")
    assert "input_tokens" not in response
    assert len(response["capture_warnings"]) == 1
    assert len(response["llm_calls"]) == len(usages)
