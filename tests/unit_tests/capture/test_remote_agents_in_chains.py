"""A remote agent before a local graph: its messages count once, as at the end of a chain."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import CachePolicy

from graphrag_eval_lc import GraphRAGEvalCallbackHandler

HI: Any = {"messages": [("user", "hi")]}


def has(text: str, response: Any) -> bool:
    return text in " ".join(response.get("capture_warnings", ()))


class Remote(Runnable[Any, Any]):
    """Searches and answers without callbacks. A server sends its messages as dicts."""

    def __init__(self, ai: Callable[..., AIMessage], sends_dicts: bool) -> None:
        self.ai, self.sends_dicts = ai, sends_dicts

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        given = [("user", input)] if isinstance(input, str) else input["messages"]
        found = ToolMessage("found it", tool_call_id="k1", name="search", id=str(uuid4()))
        own = [self.ai("", ("search", {"query": "hi"}, "k1")), found, self.ai("from afar")]
        own = [each if each.id else each.model_copy(update={"id": f"lc_run--{uuid4()}-0"}) for each in own]
        messages = [*convert_to_messages(given), *own]
        return {"messages": [each.model_dump() for each in messages] if self.sends_dicts else messages}


def graph_of(node: Any, cache: Any = None, **compiled: Any) -> Any:
    policy: Any = {} if cache is None else {"cache_policy": CachePolicy(key_func=lambda *_, **__: "key")}
    graph = StateGraph(MessagesState).add_node("node", node, **policy).add_edge(START, "node")
    return graph.compile(cache=cache, **compiled)


@pytest.fixture
def local(chat_model: Any, ai: Callable[..., AIMessage]) -> Any:
    """Return a node with a model that has a callback."""
    model = chat_model(script=[ai("in here")] * 9, by_turn=False)
    return lambda state: {"messages": [model.invoke(state["messages"])]}


USAGE: Any = {"input_tokens": 90, "output_tokens": 9, "total_tokens": 99}
OLD = [HumanMessage("hi"), AIMessage("old", id="lc_run--0", usage_metadata=USAGE)]


def with_history(agent: Any) -> Any:
    return RunnableLambda(lambda given: {"messages": [*OLD, *given["messages"]]}) | agent


SHAPES: dict[str, Callable[[Any, Any], Any]] = {
    "a chain": lambda remote, graph: remote | graph,
    "functions": lambda remote, graph: RunnableLambda(remote.invoke) | graph | (lambda state: state["messages"][-1]),
    "one function": lambda remote, graph: RunnableLambda(lambda given: graph.invoke(remote.invoke(given))),
    "a chain in a node": lambda remote, graph: graph_of(lambda state: (remote | graph).invoke(state)),
    "a chain as a node": lambda remote, graph: graph_of(remote | graph, checkpointer=InMemorySaver()),
    "history": lambda remote, graph: with_history(remote) | graph,
}


@pytest.mark.parametrize("sends_dicts", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
async def test_messages_in_front_of_a_graph(
    shape: str, sends_dicts: bool, local: Any, ai: Callable[..., AIMessage]
) -> None:
    agent = SHAPES[shape](Remote(ai, sends_dicts), graph_of(local))
    for is_async in (False, True):
        handler = GraphRAGEvalCallbackHandler()
        config: Any = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
        await agent.ainvoke(HI, config) if is_async else agent.invoke(HI, config)
        response: Any = handler.response()
        assert [(step["output"], "cached" in step) for step in response["actual_steps"]] == [("found it", False)]
        assert (len(response["llm_calls"]), response["total_tokens"]) == (3, 36)
        assert response["actual_answer"] == "in here"
        assert has("2 of 3 model calls are taken from messages only", response)
        assert not has("cache", response)


@pytest.mark.parametrize("question", [HI, {"messages": [HumanMessage("hi", id="1")]}, "hi"])
def test_a_question_in_any_form(question: Any, local: Any, ai: Callable[..., AIMessage]) -> None:
    handler = GraphRAGEvalCallbackHandler()
    (RunnableLambda(Remote(ai, True).invoke) | graph_of(local)).invoke(question, {"callbacks": [handler]})
    assert handler.response()["total_tokens"] == 36


@pytest.mark.parametrize("given", [[*OLD, ("user", "hi")], [OLD[1], ("user", "hi")], OLD[1:]])
def test_history_in_front_of_a_graph_does_not_count(given: list[Any], local: Any) -> None:
    handler = GraphRAGEvalCallbackHandler()
    (RunnableLambda(lambda _: {"messages": given}) | graph_of(local)).invoke(HI, {"callbacks": [handler]})
    response: Any = handler.response()
    assert (response["total_tokens"], "capture_warnings" in response) == (12, False)


def test_only_the_graph_after_it_has_a_cache(local: Any, ai: Callable[..., AIMessage]) -> None:
    handler = GraphRAGEvalCallbackHandler()
    agent = Remote(ai, False) | graph_of(local, InMemoryCache())
    for question_id, tokens in (("first", 36), ("second", 24)):
        agent.invoke(HI, {"callbacks": [handler], "metadata": {"question_id": question_id}})
        response: Any = handler.response(question_id)
        assert response["total_tokens"] == tokens
        assert has("node cache answered 1 model call,", response) is (question_id == "second")
