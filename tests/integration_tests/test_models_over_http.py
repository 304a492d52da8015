"""Model calls of real ChatOpenAI agents over HTTP: each counts once, by callback or message, with its finish reason."""

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from support.openai_stub import Fault, Json, OpenAIStub

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler

FROM_MESSAGES = "model calls are taken from messages only, as no callback reported them: their times are not known"
ONE_FROM_MESSAGES = "model call is taken from messages only, as no callback reported it: its times are not known"
ASKED = {"messages": [("user", "hi")]}


@pytest.fixture(scope="module")
def stub() -> Iterator[OpenAIStub]:
    with OpenAIStub() as server:
        server.answer = lambda request: "Oslo"
        yield server


@pytest.fixture(scope="module")
def model(stub: OpenAIStub) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-4o-mini", base_url=stub.base_url, api_key="k", stream_usage=True, max_retries=0)


def elsewhere(function: Callable[[], Any]) -> Any:
    """Call a function in a new thread without any callbacks."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def nodes(*functions: Callable[[Any], Any], **compiled: Any) -> Any:
    graph = StateGraph(MessagesState)
    for place, function in enumerate(functions):
        graph.add_node(f"n{place}", function).add_edge(START if place == 0 else f"n{place - 1}", f"n{place}")
    return graph.compile(**compiled)


def record(agent: Any, **config: Any) -> dict[str, Any]:
    handler = GraphRAGEvalCallbackHandler()
    agent.invoke(ASKED, config={"callbacks": [handler], **config})
    return dict(handler.response())


def streamed(model: Any) -> Any:
    whole = None
    for chunk in model.stream("?"):
        whole = chunk if whole is None else whole + chunk
    return whole


def renamed(message: AIMessage, **changed: Any) -> AIMessage:
    return message.model_copy(update={"id": str(uuid4()), "name": "expert", **changed})


def as_parts(message: AIMessage) -> dict[str, Any]:
    return {"role": "assistant", "content": message.content, "usage_metadata": message.usage_metadata}


def keep(state: Any) -> dict[str, Any]:
    return {}


def copy_last(state: Any) -> dict[str, Any]:
    return {"messages": [renamed(state["messages"][-1])]}


def no_id(message: AIMessage) -> AIMessage:
    return message.model_copy(update={"id": None})


# Each calls the model once, with or without callbacks, and passes the message on in some way.
ONE_CALL: dict[str, Callable[[Any], Any]] = {
    "reported": lambda m: nodes(lambda s: {"messages": m.invoke("?")}),
    "reported, streamed": lambda m: nodes(lambda s: {"messages": streamed(m)}, keep),
    "reported, streamed, without its id": lambda m: nodes(lambda s: {"messages": no_id(streamed(m))}, keep),
    "reported, without its id": lambda m: nodes(lambda s: {"messages": no_id(m.invoke("?"))}, keep),
    "reported, rewritten": lambda m: nodes(lambda s: {"messages": renamed(m.invoke("?"), content="It is Oslo.")}, keep),
    "reported, copied later": lambda m: nodes(lambda s: {"messages": m.invoke("?")}, copy_last),
    "reported, copied and rewritten later": lambda m: nodes(
        lambda s: {"messages": m.invoke("?")},
        lambda s: {"messages": renamed(s["messages"][-1], content="It is Oslo.")},
    ),
    "thread": lambda m: nodes(lambda s: {"messages": elsewhere(lambda: m.invoke("?"))}, keep),
    "no callbacks": lambda m: nodes(lambda s: {"messages": m.invoke("?", config={"callbacks": []})}, keep),
    "thread, streamed": lambda m: nodes(lambda s: {"messages": elsewhere(lambda: streamed(m))}, keep),
    "thread, streamed, without its id": lambda m: nodes(
        lambda s: {"messages": no_id(elsewhere(lambda: streamed(m)))}, keep
    ),
    "thread, without its id": lambda m: nodes(lambda s: {"messages": no_id(elsewhere(lambda: m.invoke("?")))}, keep),
    "thread, another id": lambda m: nodes(lambda s: {"messages": renamed(elsewhere(lambda: m.invoke("?")))}, keep),
    "thread, copied later": lambda m: nodes(lambda s: {"messages": elsewhere(lambda: m.invoke("?"))}, copy_last),
    "thread, as a dict": lambda m: nodes(lambda s: {"messages": elsewhere(lambda: m.invoke("?")).model_dump()}, keep),
    "thread, in parts": lambda m: nodes(lambda s: {"messages": as_parts(elsewhere(lambda: m.invoke("?")))}, keep),
    "thread, only its usage": lambda m: nodes(
        lambda s: {
            "messages": (lambda found: AIMessage(found.content, usage_metadata=found.usage_metadata))(
                elsewhere(lambda: m.invoke("?"))
            )
        },
        keep,
    ),
    "thread, a chain": lambda m: RunnableLambda(lambda s: elsewhere(lambda: m.invoke("?"))),
    "thread, a graph in a node": lambda m: nodes(
        lambda s: {
            "messages": elsewhere(lambda: nodes(lambda s: {"messages": m.invoke("?")}).invoke(ASKED))["messages"]
        }
    ),
}


@pytest.mark.parametrize("shape", ONE_CALL.values(), ids=ONE_CALL.keys())
def test_call_counts_once(shape: Callable[[Any], Any], model: Any, stub: OpenAIStub) -> None:
    before = len(stub.requests)
    response = record(shape(model))
    assert len(stub.requests) - before == 1
    assert [(call["input_tokens"], call["output_tokens"]) for call in response["llm_calls"]] == [(1000, 100)]
    assert (response["input_tokens"], response["output_tokens"], response["total_tokens"]) == (1000, 100, 1100)


def test_call_in_a_task_without_the_callers_context_counts_once(model: Any) -> None:
    """Like every task before Python 3.11."""

    async def node(state: Any) -> dict[str, Any]:
        task = asyncio.get_running_loop().create_task(model.ainvoke("?"), context=contextvars.Context())
        return {"messages": [await task]}

    handler = GraphRAGEvalCallbackHandler()
    asyncio.run(nodes(node, keep).ainvoke(ASKED, config={"callbacks": [handler]}))
    response = handler.response()
    assert (len(response["llm_calls"]), response["input_tokens"]) == (1, 1000)


def test_identical_calls_each_count(model: Any) -> None:
    """All have the same cost, text and provider id."""

    def node(state: Any) -> dict[str, Any]:
        model.invoke("Is it so?")  # seen only by its callback
        with ThreadPoolExecutor(3) as pool:
            return {"messages": list(pool.map(model.invoke, "???"))}

    response = record(nodes(node, lambda s: {"messages": model.invoke("?")}))
    assert (len(response["llm_calls"]), response["input_tokens"]) == (5, 5000)
    assert response["capture_warnings"] == ["3 of 5 " + FROM_MESSAGES]


def test_identical_calls_without_ids_each_count(model: Any) -> None:
    def branch(state: Any) -> dict[str, Any]:
        return {"messages": [no_id(elsewhere(lambda: model.invoke("?"))) for _ in range(2)]}

    graph = StateGraph(MessagesState).add_node("a", branch).add_node("b", branch).add_node("end", keep)
    graph.add_edge(START, "a").add_edge(START, "b").add_edge("a", "end").add_edge("b", "end")
    response = record(graph.compile())
    assert (len(response["llm_calls"]), response["input_tokens"]) == (4, 4000)


def test_second_turn_has_its_own_calls_with_any_handler(model: Any) -> None:
    chat = nodes(lambda s: {"messages": elsewhere(lambda: model.invoke("?"))}, keep, checkpointer=InMemorySaver())
    for _ in range(3):
        response = record(chat, configurable={"thread_id": "1"})
        assert (len(response["llm_calls"]), response["input_tokens"]) == (1, 1000)


def test_agent_in_a_tool_thread_is_counted_by_the_tools_state_update(model: Any) -> None:
    @tool
    def ask_expert(question: str) -> Any:
        """Ask."""
        found = elsewhere(lambda: model.invoke(question))
        return Command(update={"messages": [ToolMessage(found.content, tool_call_id="c1"), renamed(found)]})

    asking = AIMessage("", tool_calls=[{"name": "ask_expert", "args": {"question": "?"}, "id": "c1"}])
    graph = StateGraph(MessagesState).add_node("ask", lambda s: {"messages": asking})
    graph.add_node("tools", lambda s: ask_expert.invoke({**asking.tool_calls[0], "type": "tool_call"}))
    graph.add_edge(START, "ask").add_edge("ask", "tools")
    response = record(graph.compile())
    assert (len(response["llm_calls"]), response.get("input_tokens")) == (1, 1000)


# --- finish reasons ---


def answering(stub: OpenAIStub, finish_reason: str = "stop", **message: Any) -> None:
    """Set the finish reason of the next answer."""

    def change(answer: Json) -> None:
        answer["choices"][0]["message"].update(message)
        answer["choices"][0]["finish_reason"] = finish_reason

    stub.chat_faults.append(Fault(change=change))


EMPTY = {"content": ""}
CUT = '{"query": "lines of'


def invalid_call(arguments: str) -> list[Json]:
    return [{"id": "call_0", "type": "function", "function": {"name": "search", "arguments": arguments}}]


@tool
def search(query: str) -> str:
    """Search."""
    return f"found {query}"


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("reason", "message", "warning"),
    [
        ("stop", {}, None),
        ("length", {}, "was cut off at the limit of tokens (finish_reason length)"),
        (
            "length",
            EMPTY,
            "was cut off at the limit of tokens before it returned any text (finish_reason length)",
        ),
        ("stop", EMPTY, "returned no text and no tool call (finish_reason stop)"),
        ("content_filter", EMPTY, "was stopped by the provider's filter (finish_reason content_filter)"),
    ],
)
def test_unusable_answer_has_a_warning(
    reason: str, message: Json, warning: str | None, is_streamed: bool, model: Any, stub: OpenAIStub
) -> None:
    answering(stub, reason, **message)
    response = record(create_agent(model.model_copy(update={"streaming": is_streamed}), []))
    assert [call["finish_reason"] for call in response["llm_calls"]] == [reason]
    name = response["llm_calls"][0]["model"]
    assert response.get("capture_warnings") == (None if warning is None else [f"model call 1 ({name}) {warning}"])
    assert response["status"] == "success"


def test_refusal_has_a_warning_with_its_text(model: Any, stub: OpenAIStub) -> None:
    answering(stub, content=None, refusal="I will not.")
    (warning,) = record(create_agent(model, []))["capture_warnings"]
    assert warning == "model call 1 (gpt-4o-mini) refused: I will not."


def test_unreadable_call_has_a_warning_and_is_not_a_step(model: Any, stub: OpenAIStub) -> None:
    answering(stub, "tool_calls", content=None, tool_calls=invalid_call(CUT))
    response = record(create_agent(model, [search]))
    assert response["actual_steps"] == []
    (warning,) = response["capture_warnings"]
    assert warning.startswith(
        f"model call 1 (gpt-4o-mini) asked for search (call_0) with arguments that could not be read, "
        f"so that it did not run: {CUT} ("
    )
    assert "are not valid JSON" in warning
    assert "troubleshooting" not in warning


def test_message_without_callbacks_has_its_finish_reason(model: Any, stub: OpenAIStub) -> None:
    answering(stub, "length")
    response = record(nodes(lambda s: {"messages": elsewhere(lambda: model.invoke("?"))}, keep))
    assert [call["finish_reason"] for call in response["llm_calls"]] == ["length"]
    assert response["capture_warnings"] == [
        "model call 1 (gpt-4o-mini) was cut off at the limit of tokens (finish_reason length)",
        "1 of 1 " + ONE_FROM_MESSAGES,
    ]
