"""Data about the run and its model calls in a response: ids, times, first token, and the agent of each model call."""

import time
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from support.openai_stub import OpenAIStub

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler

HI: Any = {"messages": [("user", "hi")]}


def moment(text: str) -> datetime:
    assert text.endswith("Z")
    return datetime.fromisoformat(text)


# --- the run ---


def test_run_has_its_start_and_langsmith_id(make_agent, ai, handler) -> None:
    run_id, before = uuid.uuid4(), datetime.now(UTC)
    make_agent([ai("done")], []).invoke(HI, {"callbacks": [handler], "run_id": run_id})
    response = handler.response()
    assert response["run_id"] == str(run_id)
    assert "run_ids" not in response
    (call,) = response["llm_calls"]
    assert before <= moment(response["started_at"]) <= moment(call["started_at"]) <= datetime.now(UTC)


def test_added_run_has_no_id_and_started_elapsed_sec_ago(handler) -> None:
    handler.add_run(HI, {"messages": [AIMessage("so")]}, question_id="q1", elapsed_sec=3600.0)
    response = handler.response("q1")
    assert "run_id" not in response
    assert 3590 < (datetime.now(UTC) - moment(response["started_at"])).total_seconds() < 3700
    assert (response["tags"], response["metadata"]) == ([], {})


# --- which agent called a model ---


def places(response: Any) -> list[tuple[Any, ...]]:
    return [
        (call.get("agent"), call.get("node"), call.get("node_path"), call.get("parent_id"))
        for call in response["llm_calls"]
    ]


@pytest.fixture
def researcher(chat_model: Any, ai: Any, search: Any) -> Any:
    """Return an agent that searches once."""
    script = [ai("", ("search", {"query": "y"}, "search_1")), ai("It is y.")]
    return create_agent(chat_model(script=script), [search], name="researcher", system_prompt="You search.")


@pytest.fixture
def supervisor(chat_model: Any, ai: Any, researcher: Any) -> Any:
    """Return an agent with the researcher as a tool."""

    @tool
    def research(question: str) -> str:
        """Research."""
        return str(researcher.invoke({"messages": [("user", question)]})["messages"][-1].content)

    script = [ai("", ("research", {"question": "y?"}, "research_1")), ai("Found.")]
    return create_agent(chat_model(script=script), [research], name="supervisor")


# --- the first token ---


class SlowStream:
    """A provider's stream: an opening without content, then text."""

    opening = AIMessageChunk("")
    chunks: tuple[AIMessageChunk, ...] = (AIMessageChunk("A"), AIMessageChunk("B"))


@pytest.fixture
def slow_model(chat_model: Any) -> Any:
    class Slow(chat_model):
        chunks: Any = SlowStream.chunks

        def _stream(
            self, messages: Any, stop: Any = None, run_manager: CallbackManagerForLLMRun | None = None, **_: Any
        ):
            for chunk in (SlowStream.opening, *self.chunks):
                yield ChatGenerationChunk(message=chunk.model_copy())
                time.sleep(0.02)

        async def _astream(self, *args: Any, **kwargs: Any):
            for chunk in self._stream(*args, **kwargs):
                yield chunk

    return Slow


@pytest.mark.parametrize("way", ["stream", "astream", "messages", "v2", "v3"])
async def test_streamed_call_has_the_time_to_first_token(way, slow_model, handler) -> None:
    model = slow_model(script=[])
    agent = create_agent(model, [])
    config: Any = {"callbacks": [handler]}
    if way == "stream":
        list(model.stream("hi", config))
    elif way == "astream":
        [_ async for _ in model.astream("hi", config)]
    elif way == "messages":
        list(agent.stream(HI, config, stream_mode="messages"))
    elif way == "v2":
        [_ async for _ in agent.astream_events(HI, config, version="v2")]
    else:
        [_ async for _ in await agent.astream_events(HI, config, version="v3")]
    (call,) = handler.response()["llm_calls"]
    # The opening arrived immediately, the last chunk after 0.04 s.
    assert 0.02 <= call["first_token_sec"] < call["elapsed_sec"] - 0.015


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_stream_over_http_has_the_time_to_first_token(way: str, handler) -> None:
    with OpenAIStub() as stub:
        stub.answers.append("first second third")
        agent = create_agent(ChatOpenAI(model="m", base_url=stub.base_url, api_key=SecretStr("x")), [], name="writer")
        config: Any = {"callbacks": [handler]}
        if way == "stream":
            chunks = list(agent.stream(HI, config, stream_mode="messages"))
        else:
            chunks = [chunk async for chunk in agent.astream(HI, config, stream_mode="messages")]
    assert "".join(chunk.content for chunk, _ in chunks) == "first second third"
    (call,) = handler.response()["llm_calls"]
    assert 0 < call["first_token_sec"] <= call["elapsed_sec"]
    assert (call["agent"], call["node"]) == ("writer", "model")


def test_cleared_run_ignores_tokens(slow_model, handler: GraphRAGEvalCallbackHandler) -> None:
    stream = slow_model(script=[]).stream("hi", {"callbacks": [handler]})
    next(stream)
    handler.clear()
    list(stream)
    assert handler.responses() == []


# --- agents from other packages ---


@pytest.mark.full
def test_agents_of_a_supervisor_are_distinguished(chat_model, ai, search, handler) -> None:
    pytest.importorskip("langgraph_supervisor")
    from langgraph.prebuilt import create_react_agent
    from langgraph_supervisor import create_supervisor

    inner = chat_model(script=[ai("", ("search", {"query": "y"}, "s1")), ai("It is y.")], by_turn=False)
    boss = chat_model(script=[ai("", ("transfer_to_researcher", {}, "t1")), ai("Found.")], by_turn=False)
    researcher = create_react_agent(inner, [search], name="researcher")
    create_supervisor([researcher], model=boss).compile(name="company").invoke(HI, {"callbacks": [handler]})
    found = [place for place in places(handler.response()) if place[1] is not None]
    assert found == [
        ("supervisor", "agent", ["supervisor", "agent"], None),
        ("researcher", "agent", ["researcher", "agent"], None),
        ("researcher", "agent", ["researcher", "agent"], None),
        ("supervisor", "agent", ["supervisor", "agent"], None),
    ]


@pytest.mark.full
def test_agents_of_a_swarm_are_distinguished(chat_model, ai, search, handler) -> None:
    pytest.importorskip("langgraph_swarm")
    from langgraph_swarm import create_handoff_tool, create_swarm

    first = create_agent(
        chat_model(script=[ai("", ("transfer_to_bob", {}, "t1"))], by_turn=False),
        [create_handoff_tool(agent_name="bob")],
        name="alice",
    )
    second = create_agent(chat_model(script=[ai("I am Bob.")], by_turn=False), [search], name="bob")
    swarm = create_swarm([first, second], default_active_agent="alice").compile()
    swarm.invoke(HI, {"callbacks": [handler]})
    assert places(handler.response()) == [
        ("alice", "model", ["alice", "model"], None),
        ("bob", "model", ["bob", "model"], None),
    ]


@pytest.mark.full
def test_subagents_of_deepagents_are_distinguished(chat_model, ai) -> None:
    deepagents = pytest.importorskip("deepagents")
    task = ("task", {"description": "Find y.", "subagent_type": "finder"}, "task_1")
    boss = chat_model(script=[ai("", task), ai("Found.")], by_turn=False)
    finder = {
        "name": "finder",
        "description": "Finds.",
        "system_prompt": "Find.",
        "tools": [],
        "model": chat_model(script=[ai("It is y.")], by_turn=False),
    }
    agent = deepagents.create_deep_agent(model=boss, subagents=[finder], name="boss")
    handler = GraphRAGEvalCallbackHandler(keep_messages=True)
    agent.invoke(HI, {"callbacks": [handler]})
    response = handler.response()
    assert [(call["agent"], call.get("parent_id")) for call in response["llm_calls"]] == [
        ("boss", None),
        ("finder", "task_1"),
        ("boss", None),
    ]
    stop = response["llm_calls"][1]["input_messages"][-1][1]
    assert response["llm_messages"][stop - 1]["content"] == "Find y."
