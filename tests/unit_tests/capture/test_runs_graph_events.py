import subprocess
import sys
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.callbacks import GraphCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from graphrag_eval_lc.capture.handler import with_graph_events
from graphrag_eval_lc.capture.outputs import is_handoff, is_interrupt


def test_handlers_hear_graph_events(handler) -> None:
    assert isinstance(handler, GraphCallbackHandler)


def test_the_subclass_is_made_once() -> None:
    class Handler(BaseCallbackHandler):
        pass

    made = with_graph_events(Handler)
    assert issubclass(made, Handler)
    assert with_graph_events(Handler) is made


def test_interrupts_and_handoffs_are_known_by_their_class() -> None:
    class GraphInterrupt2(GraphInterrupt):
        pass

    assert is_interrupt(GraphInterrupt2())
    assert is_handoff(ParentCommand(Command()))
    assert not is_interrupt(ParentCommand(Command()))
    assert not is_handoff(type("ParentCommand", (Exception,), {})())


@pytest.mark.full
def test_the_import_leaves_langgraph_alone() -> None:
    program = "import sys, graphrag_eval_lc.capture; print('langgraph' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(("is_created", "name"), [(True, None), (False, None), (False, "NightlyUpdateState")])
def test_only_an_update_of_the_state_is_not_a_run(
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
