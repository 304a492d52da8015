"""Assignment of runs to responses, and the order of parallel branches."""

import asyncio
import contextvars
import operator
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import numpy as np
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.record import Tree
from graphrag_eval_lc.capture.values import CaptureOptions

HI = {"messages": [("user", "hi")]}
USAGE: Any = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}


def config(handler: GraphRAGEvalCallbackHandler, question_id: Any = None, thread_id: Any = None) -> dict[str, Any]:
    parts: dict[str, Any] = {"callbacks": [handler]}
    if question_id is not None:
        parts["metadata"] = {"question_id": question_id}
    if thread_id is not None:
        parts["configurable"] = {"thread_id": thread_id}
    return parts


# --- repeated questions ---


def test_repeated_question_returns_the_last_response(handler, make_agent, ai, ask, search) -> None:
    agent = make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search])
    ask(agent)
    again = ask(agent)
    assert ([step["id"] for step in again["actual_steps"]], again["input_tokens"]) == (["call_1"], 20)
    assert handler.responses()[1] == again
    assert [len(response["actual_steps"]) for response in handler.responses()] == [1, 1]


# --- interrupt and resume ---


@pytest.fixture
def person() -> Any:
    """Return an agent that asks a person and answers with their reply."""
    graph = StateGraph(MessagesState)
    graph.add_node("ask", lambda state: {"messages": [AIMessage(f"{state['messages'][0].content} {interrupt('?')}")]})
    return graph.add_edge(START, "ask").compile(checkpointer=InMemorySaver())


def answers(handler: GraphRAGEvalCallbackHandler) -> list[tuple[Any, Any]]:
    return [(response.get("question_id"), response.get("actual_answer")) for response in handler.responses()]


def question(text: str) -> dict[str, Any]:
    return {"messages": [("user", text)]}


def test_many_interrupted_runs_are_resumed_independently(handler, person) -> None:
    for number in range(20):
        person.invoke(question(str(number)), config(handler, None, str(number)))
    for number in range(20):
        person.invoke(Command(resume="yes"), config(handler, None, str(number)))
    assert answers(handler) == [(None, f"{number} yes") for number in range(20)]


def test_record_of_a_repeatedly_interrupted_thread_is_bounded(handler) -> None:
    def ask(state: Any) -> Any:
        given = interrupt("?")
        return {"messages": [AIMessage(f"{given} {number}", usage_metadata=USAGE) for number in range(10)]}

    graph = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
    agent = graph.add_conditional_edges("ask", lambda state: "ask").compile(checkpointer=InMemorySaver())
    agent.invoke(question("0"), config(handler, "q", "1"))
    for turn in range(1, 31):
        agent.invoke(Command(resume=str(turn)), config(handler, "q", "1"))
        assert len(handler.response()["llm_calls"]) == 10 * turn
    assert 150 < max(len(tree.thread.message_ids) for tree in handler._records.trees) <= 200


@pytest.fixture
def asking(chat_model, ai, search) -> Any:
    """``asking(question)``: an agent that searches and asks a person in parallel, with the same call ids every time."""

    @tool
    def ask_person(query: str) -> str:
        """Ask."""
        return f"{interrupt(query)} {query}"

    def make(question: str) -> Any:
        calls = [("search", {"query": question}, "call_0"), ("ask_person", {"query": question}, "call_1")]
        return create_agent(chat_model(script=[ai("", *calls), ai(f"done {question}")]), [search, ask_person])

    return make


def resumed(graph: Any, inputs: Any, handler: GraphRAGEvalCallbackHandler) -> dict[str, Any]:
    """Return the response of a run after answering all interrupts with "yes" at once."""
    again = config(handler, "q1", "t1")
    graph.invoke(inputs, again)
    waiting = graph.get_state({"configurable": {"thread_id": "t1"}}).interrupts
    graph.invoke(Command(resume={each.id: "yes" for each in waiting}), again)
    (response,) = handler.responses()
    return dict(response)


def outputs(response: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(step["name"], step["output"]) for step in response["actual_steps"]]


def test_parallel_agents_with_the_same_call_ids_are_resumed(handler, asking) -> None:
    class State(TypedDict):
        queries: list[str]
        found: Annotated[list[str], operator.add]

    def work(state: Any) -> dict[str, Any]:
        return {"found": [asking(state["query"]).invoke(question(state["query"]))["messages"][-1].content]}

    graph = StateGraph(State).add_node("work", work)
    graph.add_conditional_edges(START, lambda state: [Send("work", {"query": query}) for query in state["queries"]])
    inputs = {"queries": list("abcd"), "found": []}
    response = resumed(graph.compile(checkpointer=InMemorySaver()), inputs, handler)
    assert outputs(response) == [
        each for q in "abcd" for each in (("search", f"found {q}"), ("ask_person", f"yes {q}"))
    ]
    assert all("attempts" not in step for step in response["actual_steps"])


# --- a handler that is passed again ---


@pytest.mark.parametrize("given", ["callbacks", "manager"])
def test_handler_passed_again_in_a_tool_creates_no_run(given, handler, make_agent, ai, search) -> None:
    inner = make_agent([ai("", ("search", {"query": "b"}, "call_1")), ai("inner")], [search])

    @tool
    def expert(query: str) -> str:
        """Ask an agent."""
        messages = inner.invoke(HI, {"callbacks": [handler]} if given == "callbacks" else config(handler, "q1"))
        return str(messages["messages"][-1].content)

    agent = make_agent([ai("", ("expert", {"query": "a"}, "call_9")), ai("done")], [expert])
    agent.invoke(HI, config(handler, "q1"))
    (response,) = handler.responses()
    assert [(step["id"], step.get("parent_id")) for step in response["actual_steps"]] == [
        ("call_9", None), ("call_1", "call_9"),
    ]  # fmt: skip
    assert (response["actual_answer"], response["input_tokens"]) == ("done", 40)


def test_handler_passed_to_a_thread_with_the_context_creates_no_run(handler, search) -> None:
    def agent(text: str) -> str:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(search.invoke, {"query": text}, {"callbacks": [handler]}))
        thread.start()
        thread.join()
        return text

    RunnableLambda(agent).invoke("a", config(handler))
    assert [step["output"] for step in handler.response()["actual_steps"]] == ["found a"]


def nested_agents(make_agent, ai, chat_model, handler, search) -> Any:
    """An agent that calls an agent in a tool and passes the handler again. All ids are the same."""

    class Echo(chat_model):
        def _next(self, messages: list[Any]) -> AIMessage:
            word = messages[0].content
            time.sleep(0.0001 * (hash(word) % 5))
            name = "expert" if self.script else "search"
            return ai(word) if len(messages) > 1 else ai("", (name, {"query": word}, "call_1"))

    inner = make_agent([], [search], model=Echo(script=[]))

    @tool
    def expert(query: str) -> str:
        """Ask an agent."""
        result = RunnableLambda(inner.invoke).invoke(question(query * 2), {"callbacks": [handler]})
        return str(result["messages"][-1].content)

    return make_agent([], [expert], model=Echo(script=["outer"]))


@pytest.mark.parametrize(
    "way",
    ["gather", pytest.param("threads", marks=pytest.mark.full), pytest.param("batch", marks=pytest.mark.full)],
)
async def test_150_concurrent_nested_runs_do_not_mix(way, make_agent, ai, chat_model, handler, search) -> None:
    agent = nested_agents(make_agent, ai, chat_model, handler, search)
    words = [f"w{number}." for number in range(150)]
    inputs, configs = [question(word) for word in words], [config(handler, word) for word in words]
    if way == "threads":
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(agent.invoke, inputs, configs))
    elif way == "gather":
        await asyncio.gather(*map(agent.ainvoke, inputs, configs))
    else:
        agent.batch(inputs, configs)
    responses = handler.responses()
    assert sorted(response["question_id"] for response in responses) == sorted(words)
    for response in responses:
        word = response["question_id"]
        assert response["actual_answer"] == word
        assert [(step["name"], step["output"]) for step in response["actual_steps"]] == [
            ("expert", word * 2), ("search", f"found {word * 2}"),
        ]  # fmt: skip
        assert (response["input_tokens"], "capture_warnings" in response) == (40, False)


# --- parallel branches ---


@pytest.fixture
def slow_search() -> BaseTool:
    """A tool that takes longer for words earlier in the alphabet."""

    def delay(query: str) -> float:
        return 0.01 * max(0, ord("f") - ord(query[0]))

    def run(query: str) -> str:
        time.sleep(delay(query))
        return f"found {query}"

    async def arun(query: str) -> str:
        await asyncio.sleep(delay(query))
        return f"found {query}"

    return StructuredTool.from_function(run, arun, name="slow_search", description="Search.")


# --- states with the same field names as messages ---


@pytest.mark.parametrize("kind", [np.array([1, 2]), "tool_call"])
def test_field_named_type_is_not_special(handler, kind: Any) -> None:
    class State(TypedDict):
        messages: list[Any]
        type: Any

    graph = StateGraph(State)
    graph.add_node("answer", lambda state: {"messages": [AIMessage("done", id="run-1")], "type": kind})
    graph.add_edge(START, "answer")
    graph.compile().invoke({"messages": [("user", "hi")], "type": kind}, config(handler))
    assert handler.response()["actual_answer"] == "done"
    assert "capture failed" not in str(handler.response()["capture_warnings"])


def test_failing_retriever_is_a_failed_step(handler) -> None:
    root, run_id = uuid4(), uuid4()
    handler.on_chain_start(None, {}, run_id=root)
    handler.on_retriever_start(None, "Oslo", run_id=run_id, parent_run_id=root, name="find")
    handler.on_retriever_error(GraphInterrupt(()), run_id=run_id, parent_run_id=root)
    handler.on_chain_end({}, run_id=root)
    assert [(step["name"], step["status"]) for step in handler.response()["actual_steps"]] == [("find", "error")]


def test_reading_a_growing_thread_is_linear_in_new_messages() -> None:
    def calls(number: int) -> int:
        tree, count = Tree(uuid4(), None, CaptureOptions()), 0
        messages: list[AIMessage] = []

        def profile(_frame: Any, event: str, _arg: Any) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(profile)
        try:
            for at in range(number):
                messages.append(AIMessage(str(at), id=str(at)))
                tree.read({"messages": messages})
        finally:
            sys.setprofile(None)
        return count

    assert calls(400) < 3 * calls(200)
