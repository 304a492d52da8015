import asyncio
import contextlib
import copy
import gc
import json
import multiprocessing
import pickle
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.errors import CaptureError

UPPER = RunnableLambda(lambda text: text.upper())


def config(handler: GraphRAGEvalCallbackHandler, question_id: Any = None) -> dict[str, Any]:
    metadata = {} if question_id is None else {"metadata": {"question_id": question_id}}
    return {"callbacks": [handler], **metadata}


def test_single_run_without_an_id_is_read_without_one(handler) -> None:
    UPPER.invoke("a", config(handler))
    assert "question_id" not in handler.response()
    with pytest.raises(CaptureError, match=r"question nope: .*recorded ids: none.*use response\(\)"):
        handler.response("nope")


@pytest.mark.parametrize(
    ("recorded", "asked", "words"),
    [
        ([], None, "No run was recorded"),
        ([], "q1", "question q1: No run was recorded"),
        ([None, None], None, "2 runs were recorded"),
        (["q1", "q2"], None, "2 runs were recorded"),
        (["q1", "q2"], "q3", "recorded ids: q1, q2"),
        (["q1"], "q3", "recorded ids: q1"),
        ([None, None], "q3", "recorded ids: none"),
    ],
)
def test_ambiguous_question_is_an_error(recorded, asked, words, handler) -> None:
    for question_id in recorded:
        UPPER.invoke("a", config(handler, question_id))
    with pytest.raises(CaptureError, match=words):
        handler.response(asked)


def test_responses_are_deep_copies_of_plain_json(handler, make_agent, ai, ask, search) -> None:
    response = ask(make_agent([ai("", ("search", {"query": "\ud800"}, "call_1")), ai("done")], [search]))
    before = copy.deepcopy(response)
    assert json.loads(json.dumps(response, allow_nan=False)) == response
    response["actual_steps"][0]["args"]["query"] = "changed"
    response["llm_calls"].clear()
    assert handler.response("q1") == before


def test_clear_forgets_everything(handler) -> None:
    UPPER.invoke("a", config(handler))
    handler.clear()
    assert handler.responses() == []
    assert handler._records.open == {}


def test_active_run_is_not_recorded_after_clear(handler, search) -> None:
    def agent(text: str) -> str:
        handler.clear()
        return str(search.invoke({"query": text}))

    RunnableLambda(agent).invoke("a", config(handler))
    assert handler.responses() == []
    assert handler._records.open == {}


def test_finished_run_leaves_no_record(handler, make_agent, ai, ask, search) -> None:
    ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search]))
    assert handler._records.open == {}
    (tree,) = handler._records.trees
    assert (tree.events, tree.known) == ([], {})


def word_agent(make_agent, ai, chat_model, search) -> Any:
    """Return an agent that searches for the question's word, twice in parallel."""

    class Echo(chat_model):
        def _next(self, messages):
            word = messages[0].content
            if len(messages) == 1:
                return ai("", ("search", {"query": word}, "call_1"), ("search", {"query": word * 2}, "call_2"))
            return ai(word)

    return make_agent([], [search], model=Echo(script=[]))


def check(responses: list[dict[str, Any]], words: list[str]) -> None:
    assert sorted(response["actual_answer"] for response in responses) == words
    for response in responses:
        word = response["actual_answer"]
        assert [step["output"] for step in response["actual_steps"]] == [f"found {word}", f"found {word * 2}"]
        assert response["input_tokens"] == 20


WORDS = [f"w{number:02}" for number in range(20)]


@pytest.mark.parametrize("way", ["batch", "abatch", "gather", "threads"])
async def test_many_runs_at_once_do_not_mix(way, make_agent, ai, chat_model, search, handler) -> None:
    agent = word_agent(make_agent, ai, chat_model, search)
    inputs = [{"messages": [("user", word)]} for word in WORDS]
    configs = [config(handler, word) for word in WORDS]
    if way == "batch":
        agent.batch(inputs, configs)
    elif way == "abatch":
        await agent.abatch(inputs, configs)
    elif way == "gather":
        await asyncio.gather(*(agent.ainvoke(*pair) for pair in zip(inputs, configs, strict=True)))
    else:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(agent.invoke, inputs, configs))
    check(handler.responses(), WORDS)
    assert all(handler.response(word)["actual_answer"] == word for word in WORDS)


def test_run_with_an_unknown_parent_is_a_root(handler, make_agent, ai, search) -> None:
    manager = CallbackManager(handlers=[handler], inheritable_handlers=[handler], parent_run_id=uuid.uuid4())
    agent = make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search])
    agent.invoke({"messages": [("user", "hi")]}, {"callbacks": manager})
    assert [step["id"] for step in handler.response()["actual_steps"]] == ["call_1"]


def test_subclasses_keep_their_class() -> None:
    class Mine(GraphRAGEvalCallbackHandler):
        def __init__(self, label: str) -> None:
            super().__init__()
            self.label = label

    assert isinstance(Mine("x"), Mine)
    assert Mine("x").label == "x"


def test_unreadable_parts_of_an_added_run_are_ignored(handler) -> None:
    class Hostile(dict):
        def get(self, *args: Any) -> Any:
            raise RuntimeError("hostile")

    handler.add_run(None, Hostile(messages=[]), question_id="q1")
    response = handler.response("q1")
    assert response["status"] == "success"
    assert response["capture_warnings"] == ["capture failed in on_chain_end: RuntimeError: hostile"]


# --- many threads: these tests fail if the handler has no lock ---


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Make Python switch threads as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("hasty_threads")
def test_equal_calls_in_many_threads_have_one_step_each(ai, ask, search) -> None:
    """The tools run without a call id, so each start looks for an unclaimed call."""
    size = 300

    def run_tools(state: MessagesState) -> dict[str, Any]:
        calls = state["messages"][-1].tool_calls
        with ContextThreadPoolExecutor(16) as pool:
            outputs = list(pool.map(search.invoke, [call["args"] for call in calls]))
        return {
            "messages": [
                ToolMessage(output, tool_call_id=call["id"]) for call, output in zip(calls, outputs, strict=True)
            ]
        }

    graph = StateGraph(MessagesState).add_node("tools", run_tools)
    calls = [("search", {"query": "a"}, f"call_{number}") for number in range(size)]
    graph.add_node("model", lambda state: {"messages": [ai("", *calls)]})
    response = ask(graph.add_edge(START, "model").add_edge("model", "tools").compile())
    steps = response["actual_steps"]
    assert [step["id"] for step in steps] == [f"call_{number}" for number in range(size)]
    assert {step["status"] for step in steps} == {"success"}
    assert not any("attempts" in step for step in steps)
    assert "capture_warnings" not in response


@pytest.mark.full
@pytest.mark.usefixtures("hasty_threads")
def test_reading_and_clearing_with_many_threads(handler, search) -> None:
    """Responses are complete whenever they are read, and nothing remains at the end."""
    is_over = threading.Event()

    def work(name: str) -> None:
        while not is_over.is_set():
            search.invoke({"query": name}, config(handler, name))

    def watch() -> int:
        seen = 0
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            for response in handler.responses():
                (step,) = response["actual_steps"]
                assert step["args"] == {"query": response["question_id"]}
                assert "capture_warnings" not in response
                seen += 1
            handler.clear()
        return seen

    with ThreadPoolExecutor(9) as pool:
        workers = [pool.submit(work, f"w{number}") for number in range(8)]
        try:
            assert pool.submit(watch).result() > 100
        finally:
            is_over.set()
    for worker in workers:
        worker.result()
    handler.clear()
    assert (handler.responses(), handler._records.open) == ([], {})


# --- memory ---


def allocated_blocks() -> int:
    """Return the number of memory blocks that Python has allocated."""
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.full
def test_clear_releases_the_memory_of_10000_runs(search, chat_model, ai) -> None:
    """Short runs of an agent with a tool, some of which fail, recorded with all options."""
    handler = GraphRAGEvalCallbackHandler(
        step_names={"search": "find"},
        retrieval_documents=True,
        max_output_chars=50,
        redact=lambda value: value,
        keep_messages=True,
    )
    model = chat_model(script=[ai("done")])

    def answer(word: str) -> str:
        if word.endswith("7"):
            raise ValueError(word)
        model.invoke(word)
        return str(search.invoke({"query": word * 20}))

    def run(first: int, last: int) -> None:
        for number in range(first, last):
            with contextlib.suppress(ValueError):
                agent.invoke(f"word {number}", config(handler, number))

    agent = RunnableLambda(answer)
    run(0, 200)  # memory that LangChain itself never releases
    handler.clear()
    before = allocated_blocks()
    run(0, 10_000)
    recorded = allocated_blocks() - before
    assert len(handler.responses()) == 10_000
    handler.clear()
    assert recorded > 200_000  # more than 20 blocks per run
    assert allocated_blocks() - before < 2_000  # less than one block per five runs


# --- no interference with the agent ---


def result_of(agent: Any, *callbacks: Any) -> list[dict[str, Any]]:
    result = agent.invoke({"messages": [("user", "hi")]}, {"callbacks": list(callbacks)})
    return [message.model_dump(exclude={"id"}) for message in result["messages"]]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"step_names": {"change": "x"}, "retrieval_documents": True, "max_output_chars": 1, "keep_artifacts": False},
        {"redact": lambda value: value.clear() if isinstance(value, dict) else "***"},
        {"redact": lambda value: 1 / 0},
        {"keep_messages": True, "redact": lambda value: value.clear() if isinstance(value, dict) else "***"},
    ],
    ids=["defaults", "cut", "redacted", "redaction fails", "messages"],
)
def test_agent_returns_the_same_with_and_without_the_handler(options, make_agent, ai) -> None:
    given: list[Any] = []

    @tool(response_format="content_and_artifact")
    def change(filters: Any) -> Any:
        """Change the arguments."""
        given.append(copy.deepcopy(filters))
        filters["more"] = [1]
        return "ok", {"filters": filters}

    def agent() -> Any:
        calls = [("change", {"filters": {"a": [1]}}, "call_1"), ("nothing", {}, "call_2")]
        return make_agent([ai("", *calls), ai("done")], [change])

    handler = GraphRAGEvalCallbackHandler(**options)
    assert result_of(agent(), handler) == result_of(agent())
    assert given == [{"a": [1]}] * 2
    steps = handler.response()["actual_steps"]
    assert len(steps) == 2
    if "redact" not in options:
        assert steps[0]["args"] == {"filters": {"a": [1]}}  # as before the tool changed them


def test_agent_exception_is_the_same_object(handler) -> None:
    error = ValueError("broken")

    def fail(text: str) -> str:
        raise error

    with pytest.raises(ValueError, match="broken") as caught:
        RunnableLambda(fail).invoke("a", config(handler))
    assert caught.value is error
    assert handler.response()["error"] == "ValueError: broken"


# --- copies ---


def redacted(value: Any) -> Any:
    return value if isinstance(value, dict) else "***"


class Labelled(GraphRAGEvalCallbackHandler):
    """A user-defined handler."""

    label = "none"


def through_pickle(handler: Any) -> Any:
    return pickle.loads(pickle.dumps(handler))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, through_pickle])
@pytest.mark.parametrize("handler_class", [GraphRAGEvalCallbackHandler, Labelled])
def test_copy_has_the_records_and_is_independent(handler_class, duplicate, make_agent, ai, search) -> None:
    handler = handler_class(redact=redacted, step_names={"search": "find"})
    handler.label = "mine"
    agent = make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search])
    agent.invoke({"messages": [("user", "hi")]}, config(handler, "q1"))
    twin = duplicate(handler)
    assert (type(twin), twin.label) == (type(handler), "mine")
    assert twin.responses() == handler.responses()
    assert twin.response("q1")["actual_steps"][0]["output"] == "***"
    agent.invoke({"messages": [("user", "hi")]}, config(twin, "q2"))
    handler.clear()
    assert [response["question_id"] for response in twin.responses()] == ["q1", "q2"]
    assert twin.response("q2")["actual_steps"][0]["name"] == "find"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, through_pickle])
def test_clearing_a_copy_does_not_affect_active_runs(duplicate, handler, ai, chat_model) -> None:
    model = chat_model(script=[ai("done", usage={"input_tokens": 3, "output_tokens": 1, "total_tokens": 4})])

    def ask_model(state: MessagesState) -> dict[str, Any]:
        answer = model.invoke("hi")
        duplicate(handler).clear()
        return {"messages": [answer.model_copy(update={"id": "another"})]}

    graph = StateGraph(MessagesState).add_node(ask_model).add_edge(START, "ask_model").compile()
    graph.invoke({"messages": [("user", "hi")]}, config={"callbacks": [handler]})
    response = handler.response()
    assert (len(response["llm_calls"]), response["total_tokens"]) == (1, 4)


def test_interrupted_run_is_resumed_in_a_copy(handler) -> None:
    graph = StateGraph(MessagesState).add_node("ask", lambda state: {"messages": [AIMessage(interrupt("sure?"))]})
    agent = graph.add_edge(START, "ask").compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "hi")]}, {**config(handler, "q1"), **thread})
    twin = through_pickle(handler)
    agent.invoke(Command(resume="yes"), {**config(twin, "q1"), **thread})
    (response,) = twin.responses()
    assert (response["question_text"], response["actual_answer"]) == ("hi", "yes")


@pytest.mark.full
def test_handler_survives_a_round_trip_to_another_process(handler) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        back = pool.submit(run_in_process, through_pickle(handler)).result()
    assert back.response("q1")["actual_answer"] == "A"


def run_in_process(handler: GraphRAGEvalCallbackHandler) -> GraphRAGEvalCallbackHandler:
    RunnableLambda(str.upper).invoke("a", config(handler, "q1"))
    return handler


def test_handler_can_be_copied_while_threads_run(handler, search) -> None:
    is_over = threading.Event()

    def work(name: str) -> None:
        while not is_over.is_set():
            search.invoke({"query": name}, config(handler, name))

    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(work, f"w{number}") for number in range(4)]
        try:
            for _ in range(20):
                for response in copy.deepcopy(handler).responses():
                    assert response["actual_steps"][0]["args"] == {"query": response["question_id"]}
                handler.clear()
        finally:
            is_over.set()
    for worker in workers:
        worker.result()
