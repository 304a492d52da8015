"""Agents recorded by `record.py` for cases that no other test covers. pytest runs this file only by name."""

import asyncio
import contextlib
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolEmulator,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, RetryPolicy, Send, interrupt

from graphrag_eval_lc import GraphRAGEvalCallbackHandler

HI: Any = {"messages": [("user", "hi")]}
USAGE: Any = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}


class Model(BaseChatModel):
    """Returns the messages of its script in turn. Exceptions are raised."""

    script: list[Any]
    calls: int = 0
    stuck: Any = None  # set when the second call begins, which then never ends

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        entry = self.script[min(self.calls, len(self.script) - 1)]
        self.calls += 1
        if isinstance(entry, BaseException):
            raise entry
        return ChatResult(generations=[ChatGeneration(message=entry.model_copy(deep=True))])

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        if self.stuck is not None and self.calls == 1:
            self.stuck.set()
            await asyncio.Event().wait()
        return self._generate(messages)


def ai(content: Any = "", *calls: tuple[str, dict[str, Any], str], provider: str = "", **fields: Any) -> AIMessage:
    asked = [{"name": name, "args": args, "id": call_id} for name, args, call_id in calls]
    metadata = {"model_provider": provider} if provider else {}
    return AIMessage(content, tool_calls=asked, usage_metadata=USAGE, response_metadata=metadata, **fields)


def search_for(*words: str) -> AIMessage:
    return ai("", *(("search", {"query": word}, f"call_{word}") for word in words))


@tool
def search(query: str) -> str:
    """Search."""
    if query == "broken":
        raise ToolException("no such index")
    return f"found {query}"


search.handle_tool_error = True


@tool
def send(text: str) -> str:
    """Send a text."""
    return f"sent {text}"


def run(handler: GraphRAGEvalCallbackHandler, thread: str = "1", question_id: str = "q1") -> Any:
    return {
        "callbacks": [handler],
        "metadata": {"question_id": question_id},
        "configurable": {"thread_id": thread},
    }


def ask(agent: Any, inputs: Any = HI, **more: Any) -> GraphRAGEvalCallbackHandler:
    handler = GraphRAGEvalCallbackHandler()
    with contextlib.suppress(Exception):
        agent.invoke(inputs, {**run(handler), **more})
    return handler


# --- middleware ---


@pytest.mark.parametrize(
    "middleware",
    [
        ToolCallLimitMiddleware(run_limit=1),
        ModelCallLimitMiddleware(run_limit=1),
        ToolRetryMiddleware(max_retries=2, initial_delay=0),
        PIIMiddleware("email"),
        TodoListMiddleware(),
        ContextEditingMiddleware(),
        LLMToolEmulator(tools=["search"], model=Model(script=[ai("emulated")])),
        SummarizationMiddleware(model=Model(script=[ai("summary")]), trigger=("messages", 3), keep=("messages", 1)),
        ModelFallbackMiddleware(Model(script=[search_for("b"), ai("fallback")])),
    ],
    ids=lambda middleware: type(middleware).__name__,
)
def test_middleware(middleware: Any) -> None:
    script = [search_for("a", "broken"), search_for("c"), ai("done")]
    if isinstance(middleware, ModelFallbackMiddleware):
        script = [ValueError("overloaded")]
    ask(create_agent(Model(script=script), [search], middleware=[middleware]), {"messages": [("user", "me@x.org")]})


# --- humans ---

DECISIONS: list[list[Any]] = [
    [{"type": "approve"}, {"type": "reject", "message": "not this"}],
    [{"type": "edit", "edited_action": {"name": "send", "args": {"text": "edited"}}}, {"type": "approve"}],
    [{"type": "edit", "edited_action": {"name": "search", "args": {"query": "instead"}}}, {"type": "approve"}],
    [{"type": "respond", "message": "sent by hand"}, {"type": "approve"}],
]


@pytest.mark.parametrize("decisions", DECISIONS, ids=lambda each: "-".join(one["type"] for one in each))
def test_two_calls_are_decided(decisions: Any) -> None:
    allowed: Any = {"allowed_decisions": ["approve", "edit", "reject", "respond"]}
    agent = create_agent(
        Model(script=[ai("", ("send", {"text": "a"}, "call_a"), ("send", {"text": "b"}, "call_b")), ai("done")]),
        [send, search],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"send": allowed})],
        checkpointer=InMemorySaver(),
    )
    handler = GraphRAGEvalCallbackHandler()
    agent.invoke(HI, run(handler))
    agent.invoke(Command(resume={"decisions": decisions}), run(handler))


def asking_graph(nodes: int = 2) -> Any:
    builder = StateGraph(MessagesState)
    for number in range(nodes):
        builder.add_node(f"ask{number}", lambda state, n=number: {"messages": [AIMessage(f"{n}: {interrupt(n)}")]})
        builder.add_edge(START, f"ask{number}")
    return builder.compile(checkpointer=InMemorySaver())


def test_parallel_interrupts_are_resumed_by_their_ids() -> None:
    graph, handler = asking_graph(), GraphRAGEvalCallbackHandler()
    paused = graph.invoke(HI, run(handler))
    answers = {each.id: f"answer {each.value}" for each in paused["__interrupt__"]}
    graph.invoke(Command(resume=answers), run(handler))


def test_parallel_interrupts_are_resumed_one_after_the_other() -> None:
    graph, handler = asking_graph(), GraphRAGEvalCallbackHandler()
    first, second = graph.invoke(HI, run(handler))["__interrupt__"]
    graph.invoke(Command(resume={first.id: "one"}), run(handler))
    graph.invoke(Command(resume={second.id: "two"}), run(handler))


def test_an_entrypoint_is_resumed() -> None:
    @task
    def look(query: str) -> str:
        return str(search.invoke({"query": query}))

    @entrypoint(checkpointer=InMemorySaver())
    def agent(inputs: Any) -> str:
        return f"{look('a').result()} {interrupt('sure?')}"

    handler = GraphRAGEvalCallbackHandler()
    agent.invoke("hi", run(handler))
    agent.invoke(Command(resume="yes"), run(handler))


# --- threads ---


def test_time_travel_and_a_fork() -> None:
    model = Model(script=[search_for("a"), ai("first"), ai("second"), search_for("b"), ai("third")])
    agent = create_agent(model, [search], checkpointer=InMemorySaver())
    handler = GraphRAGEvalCallbackHandler()
    agent.invoke(HI, run(handler))
    states = list(agent.get_state_history({"configurable": {"thread_id": "1"}}))
    before_answer = next(state for state in states if state.next == ("model",) and len(state.values["messages"]) > 2)
    agent.invoke(None, {**run(handler, question_id="again"), "configurable": before_answer.config["configurable"]})
    forked = agent.update_state(before_answer.config, {"messages": [HumanMessage("or else")]}, as_node="tools")
    agent.invoke(None, {**run(handler, question_id="fork"), "configurable": forked["configurable"]})


def test_two_threads_of_one_handler_take_turns() -> None:
    agent = create_agent(Model(script=[ai("done")]), [], checkpointer=InMemorySaver())
    handler = GraphRAGEvalCallbackHandler()
    for turn in ("1", "2"):
        for thread in ("a", "b"):
            agent.invoke({"messages": [("user", turn + thread)]}, run(handler, thread, turn + thread))


def test_a_subgraph_keeps_its_own_thread() -> None:
    inner = create_agent(
        Model(script=[search_for("a"), ai("first"), search_for("b"), ai("second")]), [search], checkpointer=True
    )
    builder = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")
    graph, handler = builder.compile(checkpointer=InMemorySaver()), GraphRAGEvalCallbackHandler()
    for turn in ("one", "two"):
        graph.invoke({"messages": [("user", turn)]}, run(handler, question_id=turn))


# --- concurrency ---


@pytest.mark.parametrize("way", ["batch", "abatch", "abatch_as_completed"])
async def test_a_batch_with_one_handler(way: str) -> None:
    agent: Any = RunnableLambda(lambda word: search.invoke({"query": word}))
    handler = GraphRAGEvalCallbackHandler()
    configs = [run(handler, question_id=word) for word in "abc"]
    if way == "batch":
        agent.batch(list("abc"), configs)
    elif way == "abatch":
        await agent.abatch(list("abc"), configs)
    else:
        [done async for done in agent.abatch_as_completed(list("abc"), configs)]


def test_parallel_branches_of_a_chain() -> None:
    model = Model(script=[ai("left"), ai("right")])
    ask(RunnableParallel(one=model, two=model) | (lambda both: both["one"].content), "hi", max_concurrency=1)


def test_workers_that_are_sent_and_a_node_that_waits_for_all() -> None:
    def worker(state: Any) -> Any:
        return {"messages": [AIMessage(search.invoke({"query": state["word"]}))]}

    builder = StateGraph(MessagesState)
    builder.add_node("worker", worker)
    builder.add_node("end", lambda state: {"messages": [AIMessage("all found")]}, defer=True)
    builder.add_conditional_edges(START, lambda _: [Send("worker", {"word": word}) for word in "abc"], ["worker"])
    builder.add_edge("worker", "end")
    ask(builder.compile(), max_concurrency=1)


# --- streams that end early, and errors ---


async def consumed(stream: Any) -> None:
    async for _ in stream:
        pass


@pytest.mark.parametrize("way", ["cancelled", "timed out"])
async def test_a_stream_that_does_not_end(way: str) -> None:
    handler, stuck = GraphRAGEvalCallbackHandler(), asyncio.Event()
    agent = create_agent(Model(script=[search_for("a"), ai("done")], stuck=stuck), [search])
    stream = consumed(agent.astream(HI, run(handler)))
    running = asyncio.ensure_future(stream if way == "cancelled" else asyncio.wait_for(stream, 0.5))
    await stuck.wait()
    if way == "cancelled":
        running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_stream_is_closed_after_some_updates(number: int) -> None:
    agent = create_agent(Model(script=[search_for("a"), ai("done")]), [search])
    stream = agent.stream(HI, run(GraphRAGEvalCallbackHandler()), stream_mode="updates")
    for _ in range(number):
        next(stream)
    stream.close()


def test_a_stream_is_closed_after_a_nested_agent() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("nested", create_agent(Model(script=[search_for("a"), ai("done")]), [search]))
    builder.add_node("say", lambda state: {"messages": [AIMessage("said")]})
    builder.add_edge(START, "nested")
    builder.add_edge("nested", "say")
    stream = builder.compile().stream(HI, run(GraphRAGEvalCallbackHandler()), stream_mode="updates")
    next(stream)
    stream.close()


def test_a_node_is_tried_again_and_fails() -> None:
    def node(state: MessagesState) -> Any:
        raise ValueError(search.invoke({"query": "a"}))

    policy = RetryPolicy(max_attempts=2, initial_interval=0.001, jitter=False, retry_on=ValueError)
    ask(StateGraph(MessagesState).add_node("node", node, retry_policy=policy).add_edge(START, "node").compile())


def test_arguments_that_are_no_json() -> None:
    message = ai("", ("search", {"query": "a"}, "call_a"))
    message.invalid_tool_calls = [
        {"name": "search", "args": '{"query": ', "id": "call_b", "error": "no JSON", "type": "invalid_tool_call"}
    ]
    ask(create_agent(Model(script=[message, ai("done")]), [search]))


# --- provider tools ---

BLOCKS: dict[str, list[Any]] = {
    "anthropic": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": [{"type": "web_search_result", "url": "http://a", "title": "A", "encrypted_content": "e"}],
        },
        {"type": "text", "text": "done"},
    ],
    "openai": [
        {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {
            "type": "code_interpreter_call",
            "id": "c1",
            "status": "completed",
            "code": "1+1",
            "container_id": "k",
            "outputs": [{"type": "logs", "logs": "2"}],
        },
        {"type": "text", "text": "done"},
    ],
    "google_genai": [
        {"type": "executable_code", "executable_code": "print(2)", "language": "PYTHON", "id": "g1"},
        {"type": "code_execution_result", "code_execution_result": "2\n", "outcome": 1, "tool_call_id": "g1"},
        {"type": "text", "text": "done"},
    ],
}


@pytest.mark.parametrize("provider", BLOCKS)
def test_tools_of_a_provider(provider: str) -> None:
    ask(create_agent(Model(script=[ai(BLOCKS[provider], provider=provider)]), []))


def test_a_tool_of_the_provider_and_one_of_the_agent() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "search", "input": {"query": "a"}}
    first = ai([*BLOCKS["anthropic"][:2], call], ("search", {"query": "a"}, "t1"), provider="anthropic")
    ask(create_agent(Model(script=[first, ai("done")]), [search]))


# --- states ---


def test_a_tool_node_with_a_history_that_holds_the_same_id() -> None:
    model = Model(script=[search_for("a"), ai("done")])
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([search]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition, ["tools", END])
    builder.add_edge("tools", "model")
    old = ToolMessage("found old", tool_call_id="call_a", name="search")
    history = [HumanMessage("before"), search_for("a"), old, AIMessage("then"), HumanMessage("hi")]
    ask(builder.compile(), {"messages": history})


# --- remote agents ---


@pytest.mark.parametrize("shape", ["chain", "node"])
def test_an_agent_elsewhere_in_front_of_a_graph(shape: str) -> None:
    def ask_elsewhere(given: Any) -> Any:
        found = ToolMessage("found a", tool_call_id="call_a", name="search", id="t1")
        asked, answered = search_for("a").model_dump(), ai("from afar", id="lc_run--2").model_dump()
        return {"messages": [*given["messages"], {**asked, "id": "lc_run--1"}, found.model_dump(), answered]}

    model = Model(script=[ai("done")])
    graph = StateGraph(MessagesState).add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    agent: Any = RunnableLambda(ask_elsewhere) | graph.add_edge(START, "model").compile()
    if shape == "node":
        agent = StateGraph(MessagesState).add_node("both", agent).add_edge(START, "both").compile()
    ask(agent)
