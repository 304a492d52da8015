"""What the callbacks make of the runs of real agents."""

import threading
import time
from datetime import datetime
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime
from langgraph.store.memory import InMemoryStore
from langgraph.types import RetryPolicy, Send

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler

HI = {"messages": [("user", "hi")]}


# --- tools ---


def test_one_tool_call_is_one_step(make_agent, ai, ask, search) -> None:
    response = ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("The answer.")], [search]))
    (step,) = response["actual_steps"]
    assert list(response) == [
        "question_id", "question_text", "status", "actual_answer", "actual_steps", "input_tokens", "output_tokens",
        "total_tokens", "elapsed_sec", "started_at", "run_id", "tags", "metadata", "llm_calls",
    ]  # fmt: skip
    assert {key: step[key] for key in ("name", "args", "id", "status", "output")} == {
        "name": "search", "args": {"query": "a"}, "id": "call_1", "status": "success", "output": "found a",
    }  # fmt: skip
    assert step["execution_timestamp"].endswith("Z")
    assert 0 <= step["elapsed_sec"] <= response["elapsed_sec"]
    assert (response["status"], response["actual_answer"]) == ("success", "The answer.")
    assert (response["input_tokens"], response["output_tokens"], response["total_tokens"]) == (20, 4, 24)


def test_args_are_those_at_the_start(make_agent, ai, ask) -> None:
    @tool
    def change(filters: dict[str, Any]) -> str:
        """Change."""
        filters["inner"].append("changed")
        filters.clear()
        return "ok"

    args = {"filters": {"inner": ["a"]}}
    (step,) = ask(make_agent([ai("", ("change", args, "call_1")), ai("done")], [change]))["actual_steps"]
    assert step["args"] == {"filters": {"inner": ["a"]}}


def test_injected_arguments_are_no_args(ai, ask, chat_model) -> None:
    @tool
    def look(
        query: str,
        state: Annotated[dict, InjectedState],
        store: Annotated[Any, InjectedStore()],
        runtime: ToolRuntime,
        call_id: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Look."""
        assert (store, call_id) == (runtime.store, runtime.tool_call_id)
        return f"{query} {len(state['messages'])} {call_id}"

    model = chat_model(script=[ai("", ("look", {"query": "a"}, "call_1")), ai("done")])
    (step,) = ask(create_agent(model, [look], store=InMemoryStore()))["actual_steps"]
    assert (step["args"], step["output"]) == ({"query": "a"}, "a 2 call_1")


def test_ids_that_come_again_in_every_turn_are_steps_of_their_own(make_agent, ai, ask, search) -> None:
    script = [ai("", ("search", {"query": word}, "call_1")) for word in "ab"] + [
        ai("", ("nothing", {}, "call_1")),
        ai("done"),
    ]
    steps = ask(make_agent(script, [search]))["actual_steps"]
    assert [(step["name"], step["status"]) for step in steps] == [
        ("search", "success"), ("search", "success"), ("nothing", "error"),
    ]  # fmt: skip
    assert [step["args"] for step in steps] == [{"query": "a"}, {"query": "b"}, {}]
    assert all("attempts" not in step for step in steps)


def test_a_tool_in_a_bare_thread_is_taken_from_the_messages(ai, ask, search) -> None:
    def in_thread(state: MessagesState) -> dict[str, Any]:
        outputs: list[Any] = []
        thread = threading.Thread(target=lambda: outputs.append(search.invoke(state["messages"][-1].tool_calls[0])))
        thread.start()
        thread.join()
        return {"messages": outputs}

    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [ai("", ("search", {"query": "a"}, "call_1"))]})
    graph.add_node("tools", in_thread)
    (step,) = ask(graph.add_edge(START, "model").add_edge("model", "tools").compile())["actual_steps"]
    assert (step["id"], step["output"]) == ("call_1", "found a")


def test_history_is_not_taken_for_new_steps(make_agent, ai, ask, search) -> None:
    script = [
        ai("", ("search", {"query": "a"}, "call_1")),
        ai("one"),
        ai("", ("search", {"query": "b"}, "call_1")),
        ai("two"),
    ]
    agent = make_agent(script, [search], checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    first, second = (ask(agent, question_id=question, **thread) for question in ("q1", "q2"))
    assert [step["args"]["query"] for step in first["actual_steps"]] == ["a"]
    assert [step["args"]["query"] for step in second["actual_steps"]] == ["b"]
    assert (first["actual_answer"], second["actual_answer"]) == ("one", "two")


# --- nesting ---


def test_parallel_subgraphs_with_the_same_ids_do_not_mix(make_agent, ai, ask, search) -> None:
    graph = StateGraph(MessagesState)
    for word in "ab":
        agent = make_agent(
            [ai("", ("search", {"query": word}, "call_1"), ("nothing", {"n": word}, "call_2")), ai(word)], [search]
        )
        graph.add_node(word, agent)
        graph.add_edge(START, word)
    steps = ask(graph.compile())["actual_steps"]
    assert sorted((step["name"], *step["args"].values(), step["status"]) for step in steps) == [
        ("nothing", "a", "error"), ("nothing", "b", "error"), ("search", "a", "success"), ("search", "b", "success"),
    ]  # fmt: skip


def test_tool_calls_that_are_sent_one_by_one(ai, ask, search) -> None:
    def send(state: MessagesState) -> list[Send]:
        return [Send("tools", [{**call, "type": "tool_call"}]) for call in state["messages"][-1].tool_calls]

    graph = StateGraph(MessagesState)
    calls = [("search", {"query": "a"}, "call_1"), ("nothing", {}, "call_2"), ("search", {"query": "b"}, "call_3")]
    graph.add_node("model", lambda state: {"messages": [ai("", *calls)]}).add_node("tools", ToolNode([search]))
    graph.add_edge(START, "model").add_conditional_edges("model", send, ["tools"])
    assert [step["id"] for step in ask(graph.compile())["actual_steps"]] == ["call_1", "call_2", "call_3"]


# --- retrievers ---


# --- models and tokens ---


# --- ways of running ---


async def stream(agent, config) -> None:
    for _ in agent.stream(HI, config, stream_mode="messages"):
        pass


async def astream(agent, config) -> None:
    async for _ in agent.astream(HI, config, stream_mode=["updates", "messages"]):
        pass


async def astream_events(agent, config, version="v2") -> None:
    async for _ in agent.astream_events(HI, config, version=version):
        pass


async def invoke(agent, config) -> None:
    agent.invoke(HI, config)


async def ainvoke(agent, config) -> None:
    await agent.ainvoke(HI, config)


# --- attempts ---


def test_a_node_that_is_tried_again_gives_one_step_with_attempts(make_agent, ai, ask) -> None:
    failures = [ValueError("first"), ValueError("second")]

    @tool
    def shaky(x: int) -> str:
        """Fail at first."""
        if failures:
            raise failures.pop(0)
        return "ok"

    @tool
    def steady() -> str:
        """Work."""
        return "steady"

    graph = StateGraph(MessagesState)
    policy = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=3, retry_on=ValueError)
    graph.add_node(
        "model", lambda state: {"messages": [ai("", ("shaky", {"x": 1}, "call_1"), ("steady", {}, "call_2"))]}
    )
    graph.add_node("tools", ToolNode([shaky, steady], handle_tool_errors=False), retry_policy=policy)
    graph.add_edge(START, "model").add_edge("model", "tools").add_edge("tools", END)
    shaky_step, steady_step = ask(graph.compile())["actual_steps"]
    assert (shaky_step["status"], shaky_step["output"], shaky_step["attempts"]) == ("success", "ok", 3)
    assert (steady_step["id"], steady_step["output"]) == ("call_2", "steady")


# --- never in the agent's way ---


def test_a_failure_of_the_handler_never_reaches_the_agent(
    ask, handler, monkeypatch, make_agent, ai, search, caplog
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("broken record")

    monkeypatch.setattr("graphrag_eval_lc.capture.recorder.output_outcome", broken)
    response = ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search]))
    assert response["actual_answer"] == "done"
    assert response["capture_warnings"] == [
        "capture failed in on_tool_end: RuntimeError: broken record",
        "had not ended when the run did, and were closed as errors: search (call_1)",
    ]
    assert caplog.records == []


def test_hostile_outputs_become_their_type_name(handler) -> None:
    class Thing:
        def __str__(self) -> str:
            raise RuntimeError("hostile")

    @tool
    def give() -> Any:
        """Give."""
        return Thing()

    give.invoke({}, config={"callbacks": [handler]})
    assert handler.response()["actual_steps"][0]["output"] == '"<Thing>"'


def test_timestamps_are_starts(make_agent, ai, ask, search) -> None:
    before = time.time()
    response = ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search]))
    stamp = datetime.fromisoformat(response["actual_steps"][0]["execution_timestamp"]).timestamp()
    assert before - 0.01 <= stamp <= time.time()


def test_handlers_are_of_the_public_class(handler) -> None:
    assert isinstance(handler, GraphRAGEvalCallbackHandler)
    assert type(handler).__name__ == "GraphRAGEvalCallbackHandler"
