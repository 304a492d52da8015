"""LangGraph's node cache: a cached answer is not a model call, has no cost, and is marked in its step."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import CachePolicy, Command, Send, interrupt

from graphrag_eval_lc import GraphRAGEvalCallbackHandler, run_benchmark
from graphrag_eval_lc.capture import llm_calls

HI: Any = {"messages": [("user", "hi")]}
PARTS = [("model", "tools"), ("tools",), ("model",)]


@tool
def search(query: str) -> str:
    """Search."""
    return f"found {query}"


def key(given: Any, *_: Any, **__: Any) -> str:
    messages = given["messages"] if isinstance(given, dict) and "messages" in given else given
    return str([getattr(each, "content", each) for each in messages])


def policy(is_cached: bool) -> Any:
    return {"cache_policy": CachePolicy(key_func=key)} if is_cached else {}


def wants_tools(state: Any) -> str:
    return "tools" if state["messages"][-1].tool_calls else END


class Make:
    """Creates agents with one scripted model that requests a search and then answers."""

    def __init__(self, chat_model: Any, ai: Callable[..., AIMessage]) -> None:
        self.models: list[Any] = []
        self._model = lambda: chat_model(script=[ai("", ("search", {"query": "hi"}, "k1")), ai("done")] * 2)

    def model(self) -> Any:
        self.models.append(self._model())
        return self.models[-1]

    def graph(self, cached: tuple[str, ...], tools: Any = "tools", **compiled: Any) -> Any:
        model = self.model()
        graph = StateGraph(MessagesState)
        graph.add_node(
            "model", lambda state: {"messages": [model.invoke(state["messages"])]}, **policy("model" in cached)
        )
        graph.add_node("tools", ToolNode([search]), **policy("tools" in cached))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", wants_tools if tools == "tools" else tools, ["tools", END])
        graph.add_edge("tools", "model")
        return graph.compile(cache=InMemoryCache(), **compiled)

    def around(self, node: Any, **compiled: Any) -> Any:
        graph = StateGraph(MessagesState)
        graph.add_node("agent", node)
        graph.add_edge(START, "agent")
        return graph.compile(**compiled)

    def nested(self, cached: tuple[str, ...]) -> Any:
        return self.around(self.graph(cached))

    def called_in_a_node(self, cached: tuple[str, ...]) -> Any:
        inner = self.graph(cached)
        return self.around(lambda state: {"messages": [inner.invoke(state)["messages"][-1]]})

    def sent(self, cached: tuple[str, ...]) -> Any:
        return self.graph(
            cached, lambda state: [Send("tools", [call]) for call in state["messages"][-1].tool_calls] or END
        )

    def paused(self, cached: tuple[str, ...], *, is_nested: bool = False, **pause: Any) -> Any:
        inner = self.graph(cached, checkpointer=None if is_nested else InMemorySaver(), **pause)
        return self.around(inner, checkpointer=InMemorySaver()) if is_nested else inner

    def entrypoint(self, cached: tuple[str, ...]) -> Any:
        model = self.model()
        call_model = task(**policy("model" in cached))(lambda messages: model.invoke(messages))
        call_tool = task(**policy("tools" in cached))(lambda calls: search.invoke(calls[0]))

        @entrypoint(cache=InMemoryCache())
        def agent(inputs: Any) -> Any:
            messages = convert_to_messages(inputs["messages"])
            while (answer := call_model(messages).result()).tool_calls:
                messages = [*messages, answer, call_tool(answer.tool_calls).result()]
            return {"messages": [*messages, answer]}

        return agent


@pytest.fixture
def make(chat_model: Any, ai: Callable[..., AIMessage]) -> Make:
    return Make(chat_model, ai)


KINDS: dict[str, Callable[[Make, tuple[str, ...]], Any]] = {
    "nested": Make.nested,
    "called in a node": Make.called_in_a_node,
    "sent": Make.sent,
    "entrypoint": Make.entrypoint,
    "before tools": lambda make, cached: make.paused(cached, interrupt_before=["tools"]),
    "after tools": lambda make, cached: make.paused(cached, interrupt_after=["tools"]),
    "before the model": lambda make, cached: make.paused(cached, interrupt_before=["model"]),
    "nested, before tools": lambda make, cached: make.paused(cached, is_nested=True, interrupt_before=["tools"]),
    "nested, after tools": lambda make, cached: make.paused(cached, is_nested=True, interrupt_after=["tools"]),
}


def run(agent: Any, handler: Any, question_id: str) -> None:
    """Run an agent to its end, resuming after each interrupt."""
    thread: Any = {"configurable": {"thread_id": question_id}}
    config = {**thread, "callbacks": [handler], "metadata": {"question_id": question_id}}
    agent.invoke(HI, config)
    while agent.checkpointer and agent.get_state(thread).next:
        agent.invoke(None, config)


async def arun(agent: Any, handler: Any, question_id: str) -> None:
    thread: Any = {"configurable": {"thread_id": question_id}}
    config = {**thread, "callbacks": [handler], "metadata": {"question_id": question_id}}
    await agent.ainvoke(HI, config)
    while agent.checkpointer and (await agent.aget_state(thread)).next:
        await agent.ainvoke(None, config)


def check(response: Any, cached: tuple[str, ...], kind: str = "") -> None:
    assert [(step["name"], step["args"], step["output"]) for step in response["actual_steps"]] == [
        ("search", {"query": "hi"}, "found hi")
    ]
    # Whether the cache of a task or plain function answered a call from an entrypoint cannot be observed.
    is_known = "tools" in cached and kind != "entrypoint"
    assert response["actual_steps"][0].get("cached", False) is is_known
    calls = 0 if "model" in cached else 2
    assert (len(response["llm_calls"]), response["total_tokens"]) == (calls, 12 * calls)
    assert response["actual_answer"] == "done"
    warnings = " ".join(response.get("capture_warnings", ()))
    assert ("node cache answered" in warnings) is ("model" in cached)
    assert ("as no callback reported" in warnings) is (is_known is False and "tools" in cached)


@pytest.mark.parametrize("cached", PARTS, ids="-".join)
@pytest.mark.parametrize("kind", KINDS)
def test_cached_answer_has_no_cost(
    make: Make, kind: str, cached: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, handler, fresh = KINDS[kind](make, cached), GraphRAGEvalCallbackHandler(), GraphRAGEvalCallbackHandler()
    run(agent, handler, "first")
    check(handler.response("first"), ())
    run(agent, handler, "second")
    check(handler.response("second"), cached, kind)
    monkeypatch.setattr(llm_calls, "_CLOCK_SKEW_SEC", 0)  # as if minutes had passed
    run(agent, fresh, "third")
    check(fresh.response(), cached, kind)


@pytest.mark.parametrize("kind", ["called in a node", "nested, before tools", "before tools"])
async def test_async(make: Make, kind: str) -> None:
    agent, handler = KINDS[kind](make, ("tools",)), GraphRAGEvalCallbackHandler()
    await arun(agent, handler, "first")
    await arun(agent, handler, "second")
    check(handler.response("second"), ("tools",))


def test_benchmark_with_repeats(make: Make) -> None:
    dataset: Any = [
        {"template_id": "t", "questions": [{"id": "q1", "question_text": "hi", "reference_answer": "done"}]}
    ]
    responses = run_benchmark(
        make.nested(("model", "tools")), dataset, repeats=3, max_concurrency=1, progress="off"
    ).responses
    assert sum(len(response["llm_calls"]) for response in responses) == make.models[0].calls == 2
    assert [response["actual_steps"][0].get("cached", False) for response in responses] == [False, True, True]


def test_earlier_turns_of_a_nested_thread_do_not_count(make: Make) -> None:
    inner, threads = make.graph(("model", "tools"), checkpointer=InMemorySaver()), ["1", "2"]

    def ask_inner(state: MessagesState) -> Any:
        config: Any = {"configurable": {"thread_id": threads.pop(0)}}
        return {"messages": [inner.invoke({"messages": [("user", text)]}, config)["messages"][-1] for text in "ab"]}

    agent, handler = make.around(ask_inner), GraphRAGEvalCallbackHandler()
    run(agent, handler, "first")
    run(agent, handler, "second")
    assert make.models[0].calls == 4
    first, second = handler.response("first"), handler.response("second")
    assert [step.get("cached") for step in first["actual_steps"]] == [None, None]
    assert [step.get("cached") for step in second["actual_steps"]] == [True, True]
    assert (first["total_tokens"], second["total_tokens"]) == (48, 0)


def test_human_answer_to_an_interrupt_is_not_from_the_cache(make: Make) -> None:
    agent, handler = make.paused(("tools",), interrupt_before=["tools"]), GraphRAGEvalCallbackHandler()
    config: Any = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
    agent.invoke(HI, config)
    agent.update_state(
        config, {"messages": [ToolMessage("by hand", tool_call_id="k1", name="search")]}, as_node="tools"
    )
    agent.invoke(None, config)
    (step,) = handler.response()["actual_steps"]
    assert (step["output"], "cached" in step) == ("by hand", False)


def test_steps_of_a_branch_before_an_interrupt_are_not_from_the_cache(make: Make) -> None:
    model = make.model()
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("review", lambda state: {"messages": [("user", str(interrupt("go on?")))]})
    graph.add_node("tools", ToolNode([search]))
    graph.add_edge(START, "model")
    graph.add_edge(START, "review")
    graph.add_edge(["model", "review"], "tools")
    agent, handler = graph.compile(checkpointer=InMemorySaver()), GraphRAGEvalCallbackHandler()
    run_config: Any = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
    agent.invoke(HI, run_config)
    agent.invoke(Command(resume={"messages": []}), run_config)
    response = handler.response()
    assert len(response["llm_calls"]) == 1
    assert "cache" not in str(response.get("capture_warnings"))


def test_agents_own_question_does_not_turn_a_cached_answer_into_history(ai: Callable[..., AIMessage]) -> None:
    model = GenericFakeChatModel(messages=iter([ai("one"), ai("two"), ai("three")]))
    first = task(**policy(True))(lambda messages: model.invoke(messages))
    second = task(lambda messages: model.invoke(messages))

    @entrypoint(cache=InMemoryCache())
    def agent(inputs: Any) -> Any:
        messages = convert_to_messages(inputs["messages"])
        messages = [*messages, first(messages).result(), *convert_to_messages([("user", "sure?")])]
        return {"messages": [*messages, second(messages).result()]}

    handler = GraphRAGEvalCallbackHandler()
    run(agent, handler, "first")
    run(agent, handler, "second")
    response = handler.response("second")
    assert (response["actual_answer"], len(response["llm_calls"])) == ("three", 1)
    assert "node cache answered 1 model call" in str(response["capture_warnings"])


class Remote(Runnable[Any, Any]):
    """Answers without callbacks, like a graph on a server, whose clock may be behind."""

    def __init__(self, answer: AIMessage) -> None:
        self.answer = answer

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return {"messages": [*input["messages"], self.answer]}


@pytest.mark.parametrize("is_entrypoint", [False, True])
def test_remote_model_is_not_a_cached_one(ai: Callable[..., AIMessage], is_entrypoint: bool) -> None:
    two_seconds_ago = f"{int(time.time() * 1000) - 2_000:012x}"
    answer = ai("done").model_copy(
        update={"id": f"lc_run--{two_seconds_ago[:8]}-{two_seconds_ago[8:]}-7000-8000-000000000000-0"}
    )
    remote = Remote(answer).with_fallbacks([Remote(answer)])

    def ask(state: Any) -> Any:
        return remote.invoke({"messages": convert_to_messages(state["messages"])})

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    agent, handler = entrypoint()(ask) if is_entrypoint else graph.compile(), GraphRAGEvalCallbackHandler()
    agent.invoke(HI, {"callbacks": [handler]})
    response = handler.response()
    assert response["total_tokens"] == 12
    assert "cache" not in str(response["capture_warnings"])
