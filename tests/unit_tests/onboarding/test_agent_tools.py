from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph

from graphrag_eval_lc.onboarding.tool_findings import tools_in


@tool
def run_query(query: str) -> str:
    """Run a SPARQL query."""
    return query


@tool
def clock() -> str:
    """Tell the time."""
    return "12:00"


class Model(FakeListChatModel):
    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        return self


def agent() -> Any:
    return create_agent(Model(responses=["42"]), [run_query, clock])


def test_tools_of_an_agent_are_found_with_their_descriptions() -> None:
    found = tools_in(agent())
    assert {name: each.description for name, each in found.items()} == {
        "run_query": "Run a SPARQL query.",
        "clock": "Tell the time.",
    }


def test_tools_of_subgraphs_and_configured_agents_are_found() -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("inner", agent())
    graph.add_edge(START, "inner")
    graph.add_edge("inner", END)
    assert set(tools_in(graph.compile())) == {"run_query", "clock"}
    assert set(tools_in(agent().with_config(recursion_limit=9))) == {"run_query", "clock"}


def test_function_shows_no_tools() -> None:
    assert tools_in(lambda question: question) == {}
    assert tools_in(None) == {}
