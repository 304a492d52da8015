"""How callbacks record the runs of real agents."""

import time
from datetime import datetime
from typing import Any

from langchain_core.tools import tool

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler

HI = {"messages": [("user", "hi")]}


# --- tools ---


def test_one_tool_call_is_one_step(make_agent, ai, ask, search) -> None:
    response = ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("The answer.")], [search]))
    (step,) = response["actual_steps"]
    assert list(response) == [
        "question_id", "question_text", "status", "actual_answer", "actual_steps", "input_tokens", "output_tokens",
        "total_tokens", "elapsed_sec", "started_at", "run_id", "tags", "metadata", "llm_calls",
    ]  # fmt: skip
    assert {key: step[key] for key in ("name", "args", "id", "status", "output")} == {
        "name": "search", "args": {"query": "a"}, "id": "call_1", "status": "success", "output": "found a",
    }  # fmt: skip
    assert step["execution_timestamp"].endswith("Z")
    assert 0 <= step["elapsed_sec"] <= response["elapsed_sec"]
    assert (response["status"], response["actual_answer"]) == ("success", "The answer.")
    assert (response["input_tokens"], response["output_tokens"], response["total_tokens"]) == (20, 4, 24)


# --- ways of running ---


async def stream(agent, config) -> None:
    for _ in agent.stream(HI, config, stream_mode="messages"):
        pass


async def astream(agent, config) -> None:
    async for _ in agent.astream(HI, config, stream_mode=["updates", "messages"]):
        pass


async def astream_events(agent, config, version="v2") -> None:
    async for _ in agent.astream_events(HI, config, version=version):
        pass


async def invoke(agent, config) -> None:
    agent.invoke(HI, config)


async def ainvoke(agent, config) -> None:
    await agent.ainvoke(HI, config)


# --- no interference with the agent ---


def test_handler_failure_never_reaches_the_agent(ask, handler, monkeypatch, make_agent, ai, search, caplog) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("broken record")

    monkeypatch.setattr("graphrag_eval_lc.capture.values.tool_message_of", broken)
    response = ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search]))
    assert response["actual_answer"] == "done"
    assert response["capture_warnings"] == [
        "capture failed in on_tool_end: RuntimeError: broken record",
        "had not ended when the run did, and were closed as errors: search (call_1)",
    ]
    assert caplog.records == []


def test_hostile_outputs_become_their_type_name(handler) -> None:
    class Thing:
        def __str__(self) -> str:
            raise RuntimeError("hostile")

    @tool
    def give() -> Any:
        """Give."""
        return Thing()

    give.invoke({}, config={"callbacks": [handler]})
    assert handler.response()["actual_steps"][0]["output"] == '"<Thing>"'


def test_timestamps_are_start_times(make_agent, ai, ask, search) -> None:
    before = time.time()
    response = ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search]))
    stamp = datetime.fromisoformat(response["actual_steps"][0]["execution_timestamp"]).timestamp()
    assert before - 0.01 <= stamp <= time.time()


def test_handlers_have_the_public_class(handler) -> None:
    assert isinstance(handler, GraphRAGEvalCallbackHandler)
    assert type(handler).__name__ == "GraphRAGEvalCallbackHandler"
