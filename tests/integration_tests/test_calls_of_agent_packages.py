"""Agents of langgraph-supervisor, langgraph-swarm and deepagents: every model call counts once."""

import json
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler

pytestmark = pytest.mark.full
USAGE: Any = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
SEARCH = ("search", {"query": "a"})


class Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def model(*turns: Any) -> Model:
    """Return a model that returns texts and tool calls, each at the same cost."""
    replies = [
        AIMessage("", tool_calls=[{"name": turn[0], "args": turn[1], "id": str(uuid4())}], usage_metadata=USAGE)
        if isinstance(turn, tuple)
        else AIMessage(turn, usage_metadata=USAGE)
        for turn in turns
    ]
    return Model(messages=iter(replies))


@tool
def search(query: str) -> str:
    """Search."""
    return f"found {query}"


def supervisor(output_mode: Any = "full_history", *, forwards: bool = False) -> Any:
    from langgraph_supervisor import create_supervisor
    from langgraph_supervisor.handoff import create_forward_message_tool

    expert = create_agent(model(SEARCH, "It is a."), [search], name="expert")
    end = ("forward_message", {"from_agent": "expert"}) if forwards else "a"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create_supervisor(
            [expert],
            model=model(("transfer_to_expert", {}), end),
            tools=[create_forward_message_tool("supervisor")] * forwards,
            output_mode=output_mode,
        ).compile(checkpointer=InMemorySaver())


def swarm() -> Any:
    from langgraph_swarm import create_handoff_tool, create_swarm

    alice = create_agent(model(("transfer_to_bob", {})), [create_handoff_tool(agent_name="bob")], name="alice")
    bob = create_agent(model(SEARCH, "It is a.", "Still a."), [search], name="bob")
    return create_swarm([alice, bob], default_active_agent="alice").compile(checkpointer=InMemorySaver())


def deep_agent() -> Any:
    from deepagents import create_deep_agent

    expert: Any = {"name": "expert", "description": "Knows.", "system_prompt": "Know.", "tools": [search]}
    task = ("task", {"description": "find a", "subagent_type": "expert"})
    return create_deep_agent(
        model=model(task, "a", "Still a."), subagents=[{**expert, "model": model(SEARCH, "It is a.")}]
    )


def record(agent: Any, **config: Any) -> dict[str, Any]:
    handler = GraphRAGEvalCallbackHandler()
    config = {"callbacks": [handler], "configurable": {"thread_id": str(uuid4())}, **config}
    agent.invoke({"messages": [("user", "hi")]}, config=config)
    return dict(handler.response())


def cost(response: dict[str, Any]) -> tuple[int, int | None]:
    return len(response["llm_calls"]), response.get("input_tokens")


@pytest.mark.parametrize("forwards", [False, True])
@pytest.mark.parametrize("output_mode", ["full_history", "last_message"])
def test_handoffs_and_forwarded_messages_of_a_supervisor_are_not_calls(output_mode: str, forwards: bool) -> None:
    response = record(supervisor(output_mode, forwards=forwards))
    assert cost(response) == (4, 40)
    assert response["actual_answer"] == ("It is a." if forwards else "a")


@pytest.mark.parametrize(("make_agent", "calls"), [(swarm, 3), (deep_agent, 4)])
def test_calls_of_other_packages_count_once(make_agent: Callable[[], Any], calls: int) -> None:
    agent = make_agent()
    assert cost(record(agent)) == (calls, 10 * calls)


def test_second_turn_of_a_swarm_has_its_own_call() -> None:
    agent, thread = swarm(), {"configurable": {"thread_id": "1"}}
    assert cost(record(agent, **thread)) == (3, 30)
    assert cost(record(agent, **thread)) == (1, 10)


def test_supervisor_without_callbacks_is_counted_by_its_messages() -> None:
    agent = supervisor()

    def node(state: MessagesState) -> Any:
        with ThreadPoolExecutor(1) as pool:
            config: Any = {"configurable": {"thread_id": "1"}}
            return pool.submit(agent.invoke, {"messages": list(state["messages"])}, config).result()

    response = record(StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile())
    assert cost(response) == (4, 40)
    assert json.dumps(response["capture_warnings"]).count("4 of 4 model calls are taken from messages only") == 1
