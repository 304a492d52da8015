"""Recording of agents built with common packages: supervisors, swarms, deep agents."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]

THREAD = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def model(chat_model, ai) -> Any:
    """``model(["transfer_to_a"], [("search", {"query": "x"})], "done")``: calls per turn, all with the same ids."""

    def make(*turns: Any) -> Any:
        script = []
        for turn in turns:
            if isinstance(turn, str):
                script.append(ai(turn))
            else:
                calls = [(call, {}) if isinstance(call, str) else call for call in turn]
                script.append(ai("", *[(*call, f"call_{place}") for place, call in enumerate(calls, 1)]))
        return chat_model(script=script, by_turn=False)

    return make


@pytest.fixture
def expert(model, search) -> Any:
    """``expert("a", 2)``: an agent that searches for its name and answers, in two turns."""

    def make(name: str, turns: int = 1) -> Any:
        script = [[("search", {"query": name})], f"{name} says"] * turns
        return create_agent(model(*script), [search], name=name)

    return make


def brief(response: dict[str, Any]) -> list[tuple[str, str]]:
    return [(step["name"], step.get("output", step.get("error"))) for step in response["actual_steps"]]


def turns_of(ask: Any, agent: Any, count: int) -> list[Any]:
    """Ask the same question several times on one thread. Callbacks must report every turn."""
    responses = [ask(agent, question_id=str(number), **THREAD) for number in range(count)]
    assert not any("capture_warnings" in response for response in responses)
    assert all(response["input_tokens"] == 10 * len(response["llm_calls"]) for response in responses)
    return [(brief(response), response["actual_answer"], len(response["llm_calls"])) for response in responses]


def to(name: str) -> tuple[str, str]:
    return f"transfer_to_{name}", f"Successfully transferred to {name}"


def found(name: str) -> tuple[str, str]:
    return "search", f"found {name}"


@pytest.mark.parametrize("output_mode", ["full_history", "last_message"])
@pytest.mark.parametrize("add_handoff_back_messages", [True, False])
def test_supervisor_with_repeated_ids(output_mode, add_handoff_back_messages, expert, model, ask) -> None:
    supervisors = pytest.importorskip("langgraph_supervisor")
    script = [["transfer_to_a"], ["transfer_to_b"], "both said it", ["transfer_to_b"], "b said it"]
    agent = supervisors.create_supervisor(
        [expert("a", 2), expert("b", 2)],
        model=model(*script),
        output_mode=output_mode,
        add_handoff_back_messages=add_handoff_back_messages,
    ).compile(checkpointer=InMemorySaver())
    assert turns_of(ask, agent, 2) == [
        ([to("a"), found("a"), to("b"), found("b")], "both said it", 7),
        ([to("b"), found("b")], "b said it", 4),
    ]


def test_supervisor_that_omits_handoffs_from_the_history(expert, model, ask) -> None:
    supervisors = pytest.importorskip("langgraph_supervisor")
    script = [["transfer_to_a"], ["transfer_to_a"], "said"]
    agent = supervisors.create_supervisor([expert("a", 2)], model=model(*script), add_handoff_messages=False)
    handoff = ("transfer_to_a", '{"goto": "a"}')
    assert turns_of(ask, agent.compile(checkpointer=InMemorySaver()), 1) == [
        ([handoff, found("a"), handoff, found("a")], "said", 7)
    ]


@pytest.mark.parametrize("output_mode", ["full_history", "last_message"])
def test_supervisor_that_forwards_an_answer(output_mode, expert, model, ask) -> None:
    supervisors = pytest.importorskip("langgraph_supervisor")
    from langgraph_supervisor.handoff import create_forward_message_tool

    agent = supervisors.create_supervisor(
        [expert("a")],
        model=model(["transfer_to_a"], [("forward_message", {"from_agent": "a"})], "second"),
        tools=[create_forward_message_tool("supervisor")],
        output_mode=output_mode,
    ).compile(checkpointer=InMemorySaver())
    (steps, answer, count), second = turns_of(ask, agent, 2)
    assert (steps[:2], steps[2][0], answer, count) == ([to("a"), found("a")], "forward_message", "a says", 4)
    assert second == ([], "second", 1)


def test_parallel_handoffs_of_a_supervisor(model, ask) -> None:
    """One ToolNode combines both into one Command."""
    pytest.importorskip("langgraph_supervisor")
    from langgraph.prebuilt import ToolNode
    from langgraph_supervisor.handoff import create_handoff_tool

    chat = model(["transfer_to_a", "transfer_to_b"])
    inner = StateGraph(MessagesState).add_node("model", lambda state: {"messages": [chat.invoke(state["messages"])]})
    inner.add_node("tools", ToolNode([create_handoff_tool(agent_name=name) for name in "ab"]))
    inner.add_edge(START, "model").add_edge("model", "tools")
    graph = StateGraph(MessagesState).add_node("supervisor", inner.compile(), destinations=("a", "b"))
    for name in "ab":
        graph.add_node(name, lambda state, name=name: {"messages": [*state["messages"], AIMessage(f"{name} says")]})
    response = ask(graph.add_edge(START, "supervisor").compile())
    assert (brief(response), response["actual_answer"]) == ([to("a"), to("b")], "b says")
    assert "capture_warnings" not in response


def test_swarm_continues_with_the_last_active_agent(expert, model, search, ask) -> None:
    swarms = pytest.importorskip("langgraph_swarm")
    handoff = swarms.create_handoff_tool(agent_name="bob")
    alice = create_agent(model([("search", {"query": "alice"})], ["transfer_to_bob"]), [search, handoff], name="alice")
    agent = swarms.create_swarm([alice, expert("bob", 2)], default_active_agent="alice")
    assert turns_of(ask, agent.compile(checkpointer=InMemorySaver()), 2) == [
        ([found("alice"), to("bob"), found("bob")], "bob says", 4),
        ([found("bob")], "bob says", 2),
    ]


def test_deep_agent_with_subagents_and_files(model, search, ask) -> None:
    deepagents = pytest.importorskip("deepagents")
    from langchain.agents.middleware import TodoListMiddleware

    helper = {
        "name": "helper",
        "description": "Helps.",
        "system_prompt": "Help.",
        "tools": [search],
        "model": model([("search", {"query": "x"})], "helped", [("search", {"query": "x"})], "helped again"),
    }
    todos = {"todos": [{"content": "ask the helper", "status": "pending"}]}
    task = ("task", {"description": "help", "subagent_type": "helper"})
    agent = deepagents.create_deep_agent(
        model=model(
            [("write_todos", todos)],
            [task, ("write_file", {"file_path": "/notes.txt", "content": "helped"})],
            [("read_file", {"file_path": "/notes.txt"})],
            "done",
            [task],
            "done again",
        ),
        tools=[search],
        subagents=[helper],
        middleware=[TodoListMiddleware()],
        checkpointer=InMemorySaver(),
    )
    (steps, answer, count), second = turns_of(ask, agent, 2)
    assert [name for name, _ in steps] == ["write_todos", "task", "search", "write_file", "read_file"]
    assert (steps[1][1], answer, count) == ("helped", "done", 6)
    assert "helped" in steps[4][1]
    assert second == ([("task", "helped again"), found("x")], "done again", 4)
