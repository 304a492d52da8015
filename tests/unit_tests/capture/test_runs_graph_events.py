from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import ParentCommand
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command


@pytest.mark.parametrize(("is_created", "name"), [(True, None), (False, None), (False, "NightlyUpdateState")])
def test_state_update_is_not_a_run(
    handler: Any, ai: Any, chat_model: Any, search: Any, is_created: bool, name: str | None
) -> None:
    script = [ai("", ("search", {"query": "a"}, "call_1")), ai("done")]
    model = chat_model(script=script)
    if is_created:
        agent = create_agent(model, [search], name=name, checkpointer=InMemorySaver())
    else:
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
        graph.add_node("tools", ToolNode([search]))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        agent = graph.compile(checkpointer=InMemorySaver(), name=name)
    config = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "hi")]}, config)
    agent.update_state(config, {"messages": [("user", "a note")]}, as_node="model")
    (response,) = handler.responses()
    assert [step["output"] for step in response["actual_steps"]] == ["found a"]


def test_handoff_to_an_outer_graph_is_neither_an_error_nor_an_answer(handler: Any, ai: Any) -> None:
    command = Command(graph=Command.PARENT, goto="other", update={"messages": [ai("for the graph outside")]})
    graph = StateGraph(MessagesState).add_node("leave", lambda state: command)
    with pytest.raises(ParentCommand):
        graph.add_edge(START, "leave").compile().invoke({"messages": [("user", "hi")]}, {"callbacks": [handler]})
    response = handler.response()
    assert [response.get(key) for key in ("status", "error", "actual_answer")] == ["success", None, None]


@pytest.mark.parametrize("user", [("user", "hi"), HumanMessage("hi", id="question")])
def test_handoff_payload_is_the_answer_if_nothing_follows(handler: Any, ai: Any, user: Any) -> None:
    command = Command(graph=Command.PARENT, goto="log", update={"messages": [ai("done")]})
    inner = StateGraph(MessagesState).add_node("leave", lambda state: command).add_edge(START, "leave")
    outer = StateGraph(MessagesState).add_node("inner", inner.compile()).add_node("log", lambda state: {})
    outer.add_edge(START, "inner").compile().invoke({"messages": [user]}, {"callbacks": [handler]})
    assert handler.response()["actual_answer"] == "done"
