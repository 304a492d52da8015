"""Several runs of one question become one response."""

import time

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

HI = {"messages": [("user", "hi")]}
THREAD = {"configurable": {"thread_id": "1"}}


@pytest.mark.full
def test_time_between_interrupt_and_resume_does_not_count(ai, ask) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("ask", lambda state: {"messages": [AIMessage(interrupt("sure?"))]})
    agent = graph.add_edge(START, "ask").compile(checkpointer=InMemorySaver())
    ask(agent, HI, **THREAD)
    time.sleep(1.0)
    response = ask(agent, Command(resume="yes"), **THREAD)
    assert response["elapsed_sec"] < 1.0
    assert response["actual_answer"] == "yes"
