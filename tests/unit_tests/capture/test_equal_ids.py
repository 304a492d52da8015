"""Calls and messages with equal ids: each step has the arguments and the output of its own call."""

import operator
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

WORDS = ("a", "b", "c")


def outcomes(response: Any) -> list[tuple[str, str]]:
    return [(step["args"]["query"], step.get("output", step.get("error"))) for step in response["actual_steps"]]


def rewritten(request: Any, run: Callable[[Any], Any]) -> Any:
    message = run(request)
    return message.model_copy(update={"content": message.content.upper()})


def blocked(request: Any, run: Callable[[Any], Any]) -> Any:
    run(request)
    query = request.tool_call["args"]["query"]
    return ToolMessage(f"blocked {query}", tool_call_id=request.tool_call["id"], name="search", status="error")


def answered(request: Any, run: Callable[[Any], Any]) -> Any:
    query = request.tool_call["args"]["query"]
    return ToolMessage(f"known {query}", tool_call_id=request.tool_call["id"], name="search")


@pytest.mark.parametrize("call_id", ["search", ""])
@pytest.mark.parametrize("concurrency", [1, None])
@pytest.mark.parametrize(
    ("wrap", "text"),
    [(rewritten, "FOUND {}"), (blocked, "blocked {}"), (answered, "known {}")],
    ids=["rewritten", "blocked", "answered"],
)
def test_middleware_produces_the_results_of_calls_with_the_same_id(
    ask: Any, ai: Any, chat_model: Any, search: Any, wrap: Any, text: str, concurrency: int | None, call_id: str
) -> None:
    script = [ai("", *(("search", {"query": word}, call_id) for word in WORDS)), ai("done")]
    agent = create_agent(chat_model(script=script), [search], middleware=[wrap_tool_call(wrap)])
    expected = [(word, text.format(word.upper() if wrap is rewritten else word)) for word in WORDS]
    assert outcomes(ask(agent, max_concurrency=concurrency)) == expected


def test_middleware_runs_a_tool_twice_for_calls_with_the_same_id(
    ask: Any, ai: Any, chat_model: Any, search: Any
) -> None:
    def twice(request: Any, run: Callable[[Any], Any]) -> Any:
        call = request.tool_call
        for number in range(2):
            result = run(request.override(tool_call={**call, "args": {"query": f"{call['args']['query']}{number}"}}))
        return result

    script = [ai("", *(("search", {"query": word}, "search") for word in WORDS)), ai("done")]
    agent = create_agent(chat_model(script=script), [search], middleware=[wrap_tool_call(twice)])
    response = ask(agent, max_concurrency=1)
    ran = [f"{word}{number}" for word in WORDS for number in range(2)]
    assert outcomes(response) == [(word, f"found {word}") for word in ran]
    assert not any("tool_output" in step for step in response["actual_steps"])


def numbered(*messages: Any) -> list[Any]:
    return [message.model_copy(update={"id": f"m{number}"}) for number, message in enumerate(messages)]


def plain_tools(state: Any) -> Any:
    """Execute tools without events."""
    calls = state["messages"][-1].tool_calls
    return {"messages": [ToolMessage(f"found {call['args']['query']}", tool_call_id=call["id"]) for call in calls]}


def agent_of(model: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", plain_tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


def loop_of(model: Any) -> Any:
    def loop(state: Any) -> Any:
        messages = list(state["messages"])
        while True:
            messages.append(model.invoke(messages))
            if not messages[-1].tool_calls:
                return {"messages": messages}
            messages += plain_tools({"messages": messages})["messages"]

    return RunnableLambda(loop)


@pytest.mark.parametrize("query", ["a", "b"])
@pytest.mark.parametrize("make_inner", [agent_of, loop_of])
def test_agent_in_a_tool_has_the_same_ids_as_the_outer_agent(
    ask: Any, ai: Any, chat_model: Any, search: Any, make_inner: Any, query: str
) -> None:
    inner = make_inner(
        chat_model(script=numbered(ai("", ("search", {"query": query}, "call_1")), ai("inner")), by_turn=False)
    )

    @tool
    def expert(query: str) -> str:
        """Ask an expert."""
        return str(inner.invoke({"messages": [("user", query)]})["messages"][-1].content)

    asks = ai("", ("search", {"query": "a"}, "call_1")), ai("", ("expert", {"query": "x"}, "call_2"))
    response = ask(create_agent(chat_model(script=numbered(*asks, ai("done")), by_turn=False), [search, expert]))
    assert outcomes(response) == [("a", "found a"), ("x", "inner"), (query, f"found {query}")]
    assert len(response["llm_calls"]) == 5


def test_two_nested_agents_have_equal_ids(ask: Any, ai: Any, chat_model: Any) -> None:
    def nested(query: str) -> Any:
        model = chat_model(script=numbered(ai("", ("search", {"query": query}, "call_1")), ai(query)), by_turn=False)
        inner = agent_of(model)
        return lambda state: {"answers": [inner.invoke({"messages": [("user", "hi")]})["messages"][-1].content]}

    class State(MessagesState):
        answers: Annotated[list[str], operator.add]

    graph = StateGraph(State)
    graph.add_node("first", nested("a"))
    graph.add_node("second", nested("b"))
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    response = ask(graph.compile())
    assert outcomes(response) == [("a", "found a"), ("b", "found b")]
    assert len(response["llm_calls"]) == 4
