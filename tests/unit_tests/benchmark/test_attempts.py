"""A single attempt: the agent receives its input and config, and its steps are kept whatever happens."""

import asyncio
import json
import threading
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.attempts import AgentCall, Attempt, QuestionTimeoutError, RunInterruptedError
from graphrag_eval_lc.event_loop.loop import run_sync, use_daemon_threads

QUESTION: Any = {"id": "q1", "question_text": "Where?", "language": "en"}


async def call_of(agent: Any, **options: Any) -> AgentCall:
    return AgentCall(await aload_agent(agent, has_input_fn="input_fn" in options), **options)


def never() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


async def attempt(agent: Any, **options: Any) -> Attempt:
    return await (await call_of(agent, **options)).aattempt(QUESTION, "run/1/q1/1/1", never())


async def response(agent: Any, **options: Any) -> dict[str, Any]:
    return dict((await attempt(agent, **options)).response)


def graph_of(node: Any, **options: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(**options)


@tool
def lookup(name: str) -> str:
    """Look a name up."""
    return f"urn:{name}"


# --- answers ---------------------------------------------------------------------------------------------------------


async def test_response_has_the_question_the_steps_and_the_answer() -> None:
    async def node(state: MessagesState) -> dict[str, Any]:
        await lookup.ainvoke({"name": "oslo"})
        return {"messages": [AIMessage("In NO1.")]}

    kept = await response(graph_of(node))
    assert (kept["question_id"], kept["question_text"], kept["status"]) == ("q1", "Where?", "success")
    assert [(step["name"], step["output"]) for step in kept["actual_steps"]] == [("lookup", "urn:oslo")]
    assert kept["actual_answer"] == "In NO1."
    assert kept["elapsed_sec"] >= 0
    json.dumps(kept, allow_nan=False)


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("yes", "yes"),
        (42, "42"),
        (True, "True"),
        (b"yes", "yes"),
        ({"answer": "yes"}, "yes"),
        ({"output": "yes"}, "yes"),
        ({"structured_response": {"town": "Oslo"}}, '{"town": "Oslo"}'),
        (AIMessage("yes"), "yes"),
    ],
)
async def test_answer_is_found_in_the_output_of_a_function(output: Any, answer: str) -> None:
    assert (await response(lambda question: output))["actual_answer"] == answer


async def test_missing_answer_is_a_success_without_an_answer() -> None:
    kept = await response(lambda question: None)
    assert kept["status"] == "success"
    assert kept.get("actual_answer") is None
    (warning,) = kept["capture_warnings"]
    assert warning.startswith("no answer was found in what the agent returned (NoneType); answer_fn (--answer-fn)")


async def test_output_without_an_answer_has_a_warning_with_its_keys() -> None:
    kept = await response(RunnableLambda(lambda _: {"query": 1, "messages": []}), input_fn=lambda question: "x")
    assert "actual_answer" not in kept
    assert "(dict with query, messages)" in kept["capture_warnings"][0]


async def test_factory_used_as_agent_is_an_error() -> None:
    kept = await response(lambda config: graph_of(lambda state: {}))
    assert "actual_answer" not in kept
    assert "gave CompiledStateGraph: it makes an agent and is none" in kept["error"]
    assert "config: RunnableConfig" in kept["error"]


async def test_answer_fn_extracts_the_answer_from_the_output() -> None:
    kept = await response(lambda question: {"rows": [1, 2]}, answer_fn=lambda output: len(output["rows"]))
    assert kept["actual_answer"] == "2"


@pytest.mark.parametrize("options", [{}, {"answer_fn": str}])
async def test_answers_without_callbacks_are_masked(options: dict[str, Any]) -> None:
    kept = await response(lambda question: "password=pa55word", capture={"redact": "secrets"}, **options)
    assert kept["actual_answer"] == "password=***"


async def test_answer_fn_error_is_a_sample_error_and_keeps_steps() -> None:
    async def agent(question: str) -> str:
        return await lookup.ainvoke({"name": "oslo"})

    made = await attempt(agent, answer_fn=lambda output: output["absent"])
    assert isinstance(made.error, TypeError)
    assert dict(made.response)["status"] == "error"
    assert dict(made.response)["error"].startswith("TypeError: ")
    assert len(dict(made.response)["actual_steps"]) == 1


async def test_agent_without_callbacks_has_an_answer() -> None:
    class Silent(Runnable[Any, Any]):
        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            return "yes"

    kept = await response(Silent())
    assert (kept["status"], kept["actual_answer"], kept["actual_steps"]) == ("success", "yes", [])
    assert "reported no run" in kept["capture_warnings"][0]
    assert kept["started_at"].endswith("Z")


def deployed_state(question: str) -> dict[str, Any]:
    """Return the state that ``RemoteGraph.invoke`` returned for an agent with one tool on a LangGraph server."""
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    made = {"response_metadata": {"model_name": "fake-1", "finish_reason": "stop"}, "usage_metadata": usage}
    call = {"name": "search", "args": {"query": "oslo"}, "id": "call_1", "type": "tool_call"}
    model = {"type": "ai", "name": None, "additional_kwargs": {}, **made}
    run = "lc_run--01a201c8-1939-7758-b607-a17384cb652f"
    return {
        "messages": [
            {"type": "human", "content": question, "id": "0d1f6007-2478-4cc9-ba38-241093cd0877", "name": None},
            {**model, "content": "", "id": f"{run}-0", "tool_calls": [call], "invalid_tool_calls": []},
            {
                "type": "tool",
                "content": "urn:oslo",
                "name": "search",
                "id": "c88815a4-fa6d-48d6-9317-a8f77bbdc939",
                "tool_call_id": "call_1",
                "artifact": {"rows": 1},
                "status": "success",
            },
            {**model, "content": "In NO1.", "id": f"{run}-1", "tool_calls": [], "invalid_tool_calls": []},
        ]
    }


class Deployed(Runnable[Any, Any]):
    """Triggers no callbacks, like a RemoteGraph."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return deployed_state(input["messages"][-1]["content"])


async def test_messages_of_an_agent_without_callbacks_are_read() -> None:
    kept = await response(Deployed())
    assert (kept["status"], kept["actual_answer"]) == ("success", "In NO1.")
    (step,) = kept["actual_steps"]
    assert (step["name"], step["args"], step["id"]) == ("search", {"query": "oslo"}, "call_1")
    assert (step["output"], step["artifact"], "elapsed_sec" in step) == ("urn:oslo", {"rows": 1}, False)
    tokens = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    assert kept["llm_calls"] == [{"model": "fake-1", **tokens, "finish_reason": "stop"}] * 2
    assert (kept["input_tokens"], kept["output_tokens"], kept["total_tokens"]) == (20, 4, 24)
    assert kept["elapsed_sec"] > 0
    assert kept["capture_warnings"] == [
        "the agent reported no run: what is known of it is from the messages that it returned, without times",
        "taken from messages only, as no callback reported them (they never ran, or ran out of sight): search (call_1)",
        "2 of 2 model calls are taken from messages only, as no callback reported them: their times are not known",
    ]


# --- input -----------------------------------------------------------------------------------------------------------


async def test_input_fn_receives_the_whole_question() -> None:
    kept = await response(
        RunnableLambda(lambda given: given["text"]),
        input_fn=lambda question: {"text": f"{question['question_text']} ({question['language']})"},
    )
    assert kept["actual_answer"] == "Where? (en)"
    assert kept["question_text"] == "Where?"


async def test_input_fn_error_is_a_sample_error_without_calling_the_agent() -> None:
    asked: list[str] = []
    made = await attempt(asked.append, input_fn=lambda question: question["absent"])
    assert isinstance(made.error, KeyError)
    assert dict(made.response)["error"] == "KeyError: 'absent'"
    assert not asked


# --- config ----------------------------------------------------------------------------------------------------------


async def config_seen(**agent_config: Any) -> RunnableConfig:
    seen: list[RunnableConfig] = []

    async def node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        seen.append(config)
        return {"messages": [AIMessage("yes")]}

    await attempt(graph_of(node), agent_config=agent_config)
    return seen[0]


async def test_each_attempt_has_its_thread_and_question_id() -> None:
    config = await config_seen(configurable={"thread_id": "mine"}, metadata={"question_id": "mine", "stage": "test"})
    assert str(UUID(config["configurable"]["thread_id"])) == config["configurable"]["thread_id"]
    own = {"question_id": "q1", "attempt_id": "run/1/q1/1/1"}
    assert {key: config["metadata"][key] for key in ("stage", *own)} == {"stage": "test", **own}


async def test_recursion_limit_is_applied() -> None:
    async def node(state: MessagesState) -> Any:
        return {"messages": [AIMessage("again")]}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", "node")
    kept = await response(builder.compile(), agent_config={"recursion_limit": 5})
    assert kept["error"].startswith("GraphRecursionError: Recursion limit of 5 reached")


class Counting(BaseCallbackHandler):
    def __init__(self) -> None:
        self.tools = 0

    def on_tool_start(self, *args: Any, **kwargs: Any) -> None:
        self.tools += 1


@pytest.mark.parametrize("as_manager", [False, True])
async def test_callers_callbacks_are_called_and_unchanged(as_manager: bool) -> None:
    async def agent(question: str) -> str:
        return await lookup.ainvoke({"name": "oslo"})

    own = Counting()
    callbacks: Any = CallbackManager([own], [own]) if as_manager else [own]
    for _ in range(2):
        kept = await response(agent, agent_config={"callbacks": callbacks})
        assert len(kept["actual_steps"]) == 1
    assert own.tools == 2
    assert (callbacks.handlers if as_manager else callbacks) == [own]


# --- errors ----------------------------------------------------------------------------------------------------------


async def test_error_keeps_earlier_steps_and_follows_the_status() -> None:
    async def node(state: MessagesState) -> Any:
        await lookup.ainvoke({"name": "oslo"})
        raise LookupError("the store is away")

    made = await attempt(graph_of(node))
    assert isinstance(made.error, LookupError)
    kept = dict(made.response)
    assert kept["error"] == "LookupError: the store is away"
    assert list(kept)[:4] == ["question_id", "question_text", "status", "error"]
    assert len(kept["actual_steps"]) == 1
    assert kept["elapsed_sec"] >= 0


# Python warns that langgraph's coroutine ignored a GeneratorExit.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()])
@pytest.mark.parametrize("kind", ["async", "sync", "graph"])
def test_agent_exceptions_do_not_escape_the_attempt(error: BaseException, kind: str) -> None:
    async def in_loop(question: Any) -> str:
        raise error

    def in_thread(question: str) -> str:
        raise error

    agent = {"async": in_loop, "sync": in_thread, "graph": graph_of(in_loop)}[kind]
    made = run_sync(lambda: attempt(agent), survives=lambda _: True)
    assert made.error is not None
    assert dict(made.response)["status"] == "error"
    if not isinstance(error, GeneratorExit | asyncio.CancelledError):  # wrapped by Python and langgraph
        assert type(made.error) is type(error)
        assert dict(made.response)["error"].startswith(type(error).__name__)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("key sk-abcDEF123456abcDEF123456 is wrong", "key sk-*** is wrong"),
        ("sent Bearer abcdefghijkl1234567890", "sent Bearer ***"),
        ("GET /?api_key=5f2a99c1d0&limit=1", "GET /?api_key=***&limit=1"),
        ("https://kg:pa55word@graph.example/", "https://kg:***@graph.example/"),
    ],
)
async def test_secrets_in_error_texts_are_masked(text: str, masked: str) -> None:
    async def node(state: MessagesState) -> Any:
        raise RuntimeError(text)

    assert (await response(graph_of(node)))["error"] == f"RuntimeError: {masked}"


# --- timeouts --------------------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_slow_agent_is_cancelled_and_its_steps_are_kept() -> None:
    cancelled = asyncio.Event()

    async def node(state: MessagesState) -> Any:
        await lookup.ainvoke({"name": "oslo"})
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    made = await attempt(graph_of(node), timeout=1.5)
    assert isinstance(made.error, QuestionTimeoutError)
    kept = dict(made.response)
    assert kept["error"] == "QuestionTimeoutError: no answer within 1.5 s, the run's timeout"
    assert len(kept["actual_steps"]) == 1
    assert kept["elapsed_sec"] >= 1.4
    assert cancelled.is_set()


async def test_hanging_thread_is_abandoned() -> None:
    use_daemon_threads(asyncio.get_running_loop())
    release = threading.Event()
    try:
        made = await attempt(lambda question: release.wait(60), timeout=0.2)
    finally:
        release.set()
    assert isinstance(made.error, QuestionTimeoutError)


async def test_agent_that_ignores_cancellation_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphrag_eval_lc.benchmark.attempts._CANCELLING_SEC", 0.05)
    release = asyncio.Event()

    async def stubborn(question: str) -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    made = await attempt(stubborn, timeout=0.1)
    release.set()
    assert isinstance(made.error, QuestionTimeoutError)
    assert dict(made.response)["status"] == "error"


async def test_attempt_is_cancelled_with_the_run() -> None:
    abandoned = never()

    async def agent(question: str) -> str:
        await lookup.ainvoke({"name": "oslo"})
        abandoned.set_result(None)
        return await asyncio.Event().wait() or ""

    made = await (await call_of(agent)).aattempt(QUESTION, "thread", abandoned)
    assert isinstance(made.error, RunInterruptedError)
    assert len(dict(made.response)["actual_steps"]) == 1


class Endless(Runnable[Any, Any]):
    """A graph that triggers no callbacks and never answers, as a remote one may.

    It counts how often its state is read.
    """

    states_read = 0

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        await asyncio.Event().wait()

    async def aget_state(self, config: RunnableConfig) -> Any:
        self.states_read += 1


async def test_cancelled_attempt_does_not_wait_for_the_state() -> None:
    agent, abandoned = Endless(), never()
    asyncio.get_running_loop().call_later(0.05, abandoned.set_result, None)
    made = await (await call_of(agent)).aattempt(QUESTION, "thread", abandoned)
    assert isinstance(made.error, RunInterruptedError)
    assert agent.states_read == 0


# --- agents without asynchronous methods -----------------------------------------------------------------------------


class SyncSaver(InMemorySaver):
    """A checkpointer without asynchronous methods, like langgraph's SqliteSaver."""

    async def aget_tuple(self, config: RunnableConfig) -> Any:
        await asyncio.sleep(0)
        raise NotImplementedError("use the asynchronous saver")


def answer_in_thread(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(str(threading.current_thread() is threading.main_thread()))]}


async def test_agent_with_a_synchronous_checkpointer_runs_in_threads() -> None:
    call = await call_of(graph_of(answer_in_thread, checkpointer=SyncSaver()))
    for number in range(2):
        made = await call.aattempt(QUESTION, f"thread {number}", never())
        assert made.error is None
        assert dict(made.response)["actual_answer"] == "False"
    assert call.use_threads


async def test_failing_question_does_not_move_others_to_threads() -> None:
    async def agent(question: str) -> str:
        if question == "Where?":
            raise NotImplementedError("no maps yet")
        return "yes"

    call = await call_of(agent)
    made = await call.aattempt(QUESTION, "run/1/q1/1/1", never())
    assert isinstance(made.error, NotImplementedError)
    assert dict(made.response)["error"] == "NotImplementedError: no maps yet"
    other: Any = {"id": "q2", "question_text": "Who?"}
    assert dict((await call.aattempt(other, "thread", never())).response)["actual_answer"] == "yes"
