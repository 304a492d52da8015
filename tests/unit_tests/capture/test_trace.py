"""How runs end: interrupts, failures and aborts."""

import asyncio
import gc
import threading
import time
import weakref
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

HI = {"messages": [("user", "hi")]}
THREAD = {"configurable": {"thread_id": "1"}}


def ids_and_status(response: dict[str, Any]) -> list[tuple[str, str]]:
    return [(step["id"], step["status"]) for step in response["actual_steps"]]


# --- middleware ---


class City(BaseModel):
    name: str


def test_structured_response_is_the_answer_and_not_a_step(ai, ask, search, chat_model) -> None:
    model = chat_model(script=[ai("", ("search", {"query": "a"}, "c1")), ai("", ("City", {"name": "Rome"}, "c2"))])
    response = ask(create_agent(model, [search], response_format=ToolStrategy(City)))
    assert ids_and_status(response) == [("c1", "success")]
    assert response["actual_answer"] == '{"name": "Rome"}'


# --- failures ---


@pytest.mark.full
async def test_cancelled_run_closes_open_steps(make_agent, ai, handler, search) -> None:
    @tool
    async def sleep() -> str:
        """Sleep."""
        await asyncio.sleep(30)
        return "late"

    calls = ("search", {"query": "a"}, "call_1"), ("sleep", {}, "call_2")
    agent = make_agent([ai("", *calls)], [search, sleep])
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(agent.ainvoke(HI, config={"callbacks": [handler]}), 1)
    response = handler.response()
    assert (response["status"], response["error"]) == ("error", "CancelledError")
    assert ids_and_status(response) == [("call_1", "success"), ("call_2", "error")]
    assert response["actual_steps"][1]["error"] == "CancelledError"


@pytest.mark.full
async def test_cancelled_model_call_is_recorded(ai, handler, chat_model) -> None:
    model = chat_model(script=[ai("done")], delay=30)
    agent = create_agent(model, [])
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(agent.ainvoke(HI, config={"callbacks": [handler]}), 1)
    response = handler.response()
    assert "CancelledError" in response["llm_calls"][0]["error"]
    assert "input_tokens" not in response


async def test_events_after_the_end_are_ignored(make_agent, ai, handler) -> None:
    started, go_on, over = threading.Event(), threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Work on in a thread."""
        started.set()
        go_on.wait(5)
        over.set()
        return "late"

    agent = make_agent([ai("", ("slow", {}, "call_1"))], [slow])
    run = asyncio.create_task(agent.ainvoke(HI, config={"callbacks": [handler]}))
    assert await asyncio.to_thread(started.wait, 5)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    before = handler.response()
    assert before["capture_warnings"] == ["had not ended when the run did, and were closed as errors: slow (call_1)"]
    go_on.set()
    assert over.wait(5)
    await asyncio.sleep(0.05)
    assert handler.response() == before
    assert len(handler.responses()) == 1


def test_trace_keeps_no_messages_after_its_end(handler) -> None:
    kept: list[weakref.ref[Any]] = []

    def model(state: MessagesState) -> dict[str, Any]:
        message = ToolMessage("x" * 1000, tool_call_id="unknown")
        kept.append(weakref.ref(message))
        return {"messages": [message]}

    StateGraph(MessagesState).add_node("model", model).add_edge(START, "model").compile().invoke(
        HI, config={"callbacks": [handler]}
    )
    deadline = time.time() + 2
    while kept[0]() is not None and time.time() < deadline:
        gc.collect()
    assert kept[0]() is None
