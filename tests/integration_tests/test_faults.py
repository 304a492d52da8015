"""Whatever an agent, server or disk does, a run is either complete or ends with one clear error and no data loss."""

import asyncio
import email.utils
import itertools
import json
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.evaluation.events import RunEvent


def dataset_of(ids: Sequence[str]) -> list[dict[str, Any]]:
    return [{"template_id": "t", "questions": [{"id": each, "question_text": each} for each in ids]}]


def graph_of(node: Callable[..., Any], tools: Sequence[Any] = (), **options: Any) -> Runnable[Any, Any]:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", node)
    builder.add_edge(START, "answer")
    if tools:
        builder.add_node("tools", ToolNode(tools, handle_tool_errors=False))
        builder.add_edge("answer", "tools")
        builder.add_edge("tools", END)
    return builder.compile(**options)


# --- exceptions ------------------------------------------------------------------------------------------------------


class OddError(BaseException):
    """Neither an Exception nor one of Python's own."""


class TextlessError(Exception):
    """An exception whose text cannot be read."""

    def __str__(self) -> str:
        raise ValueError("no text")


# How to raise each, and how its error text begins. Python and LangGraph convert some of them.
EXCEPTIONS: dict[str, tuple[Callable[[], BaseException], tuple[str, ...]]] = {
    "exception": (lambda: Exception("broken"), ("Exception: broken",)),
    "base": (lambda: OddError("odd"), ("OddError: odd",)),
    "exit": (lambda: SystemExit(3), ("SystemExit: 3",)),
    "keyboard": (lambda: KeyboardInterrupt("keys"), ("KeyboardInterrupt: keys",)),
    "cancelled": (lambda: asyncio.CancelledError("cancelled"), ("CancelledError", "NodeCancelledError")),
    "generator": (lambda: GeneratorExit("closed"), ("GeneratorExit: closed", "RuntimeError: coroutine ignored")),
    "group": (lambda: ExceptionGroup("two", [ValueError("a"), KeyError("b")]), ("ExceptionGroup: two",)),
    "base group": (lambda: BaseExceptionGroup("odd ones", [OddError("o")]), ("BaseExceptionGroup: odd ones",)),
    "textless": (TextlessError, ("TextlessError",)),
    "recursion": (lambda: RecursionError("too deep"), ("RecursionError: too deep",)),
    "memory": (lambda: MemoryError("none left"), ("MemoryError: none left",)),
    "stop": (lambda: StopIteration("end"), ("RuntimeError", "StopIteration: end")),
    "async stop": (lambda: StopAsyncIteration("end"), ("RuntimeError", "StopAsyncIteration: end")),
    "not implemented": (lambda: NotImplementedError("not yet"), ("NotImplementedError: not yet",)),
}


def act(text: str) -> str:
    if text in EXCEPTIONS:
        raise EXCEPTIONS[text][0]()
    return "fine"


async def raise_in_async_node(state: MessagesState) -> Any:
    return {"messages": [AIMessage(act(str(state["messages"][-1].content)))]}


def raise_in_sync_node(state: MessagesState) -> Any:
    return {"messages": [AIMessage(act(str(state["messages"][-1].content)))]}


def call_tool(state: MessagesState) -> Any:
    call = {"name": "act_in_tool", "args": {"text": state["messages"][-1].content}, "id": "call-1"}
    return {"messages": [AIMessage("I look it up", tool_calls=[call])]}


def tool_agent(*, is_async: bool) -> Runnable[Any, Any]:
    if is_async:

        @tool
        async def act_in_tool(text: str) -> str:
            """Do something."""
            return act(text)

    else:

        @tool
        def act_in_tool(text: str) -> str:
            """Do something."""
            return act(text)

    return graph_of(call_tool, [act_in_tool])


async def async_function(question: str) -> str:
    return act(question)


RAISING: dict[str, Callable[[], Any]] = {
    "an async node": lambda: graph_of(raise_in_async_node),
    "a sync node": lambda: graph_of(raise_in_sync_node),
    "an async tool": lambda: tool_agent(is_async=True),
    "a sync tool": lambda: tool_agent(is_async=False),
    "a sync-only graph": lambda: graph_of(raise_in_sync_node, checkpointer=SyncOnlySaver()),
    "an async function": lambda: async_function,
    "a sync function": lambda: lambda question: act(question),
}


class SyncOnlySaver(InMemorySaver):
    """A checkpointer without asynchronous methods, like SqliteSaver."""

    async def aget_tuple(self, config: RunnableConfig) -> Any:
        raise NotImplementedError("use the synchronous methods")

    async def aput(self, *arguments: Any) -> Any:
        raise NotImplementedError("use the synchronous methods")

    async def aput_writes(self, *arguments: Any) -> Any:
        raise NotImplementedError("use the synchronous methods")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # coroutines that raise GeneratorExit
@pytest.mark.parametrize("place", RAISING)
def test_every_exception_is_an_error_of_its_question_only(place: str, tmp_path: Path) -> None:
    ids = [each for kind in EXCEPTIONS for each in (kind, f"fine after {kind}")]
    run = run_benchmark(
        RAISING[place](), dataset_of(ids), output_dir=tmp_path / "run", progress="off", max_retries=0, timeout=20
    )
    assert run.stopped is None
    assert [result["question_id"] for result in run.results] == ids
    for response in run.responses:
        kind = response["question_id"]
        if kind in EXCEPTIONS:
            assert response["status"] == "error"
            assert response["error"].startswith(EXCEPTIONS[kind][1]), kind
        else:
            assert response["status"] == "success", response


# --- hangs -----------------------------------------------------------------------------------------------------------

_HANGING = """
import asyncio, inspect, sys, threading, time
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.checkpoint.memory import InMemorySaver

@tool
def slow_tool() -> str:
    "Hang."
    time.sleep(600)

class SyncOnlySaver(InMemorySaver):
    async def aget_tuple(self, config):
        raise NotImplementedError

def is_bad(state):
    return state["messages"][-1].content < "What is q004?"

def fine(state):
    return {"messages": [AIMessage("fine")]}

async def waits(state):
    await asyncio.Event().wait()

async def swallows(state):
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

async def swallows_all(state):
    while True:
        try:
            await asyncio.sleep(600)
        except BaseException:
            pass

def sleeps(state):
    time.sleep(600)

def sleeps_in_tool(state):
    slow_tool.invoke({})

async def sleeps_in_async_tool(state):
    await slow_tool.ainvoke({})

def reads(state):
    sys.stdin.read()

def graph_of(hang, checkpointer=None):
    if inspect.iscoroutinefunction(hang):
        async def node(state):
            return await hang(state) if is_bad(state) else fine(state)
    else:
        def node(state):
            return hang(state) if is_bad(state) else fine(state)
    builder = StateGraph(MessagesState)
    builder.add_node("answer", node)
    builder.add_node("beside", lambda state: {})
    builder.add_edge(START, "answer")
    builder.add_edge(START, "beside")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=checkpointer)
"""
HANGS = [
    "waits",
    "swallows",
    "swallows_all",
    "sleeps",
    "sleeps_in_tool",
    "sleeps_in_async_tool",
    "reads",
    "sleeps, checkpointer=SyncOnlySaver()",
]


@pytest.mark.parametrize(
    "hang", [pytest.param(hang, marks=[] if place < 1 else pytest.mark.full) for place, hang in enumerate(HANGS)]
)
def test_hanging_agent_blocks_neither_other_questions_nor_the_exit(run_on_disk, hang: str) -> None:
    run = run_on_disk(f"{_HANGING}\ngraph = graph_of({hang})", 12)
    started = time.monotonic()
    process = run.start(run.command("--timeout", "0.5", "-j", "4"), stdin=subprocess.PIPE)
    process.wait(timeout=60)
    assert time.monotonic() - started < 60
    assert process.returncode == 0, process.stderr.read()
    run.check_complete(errors=4)
    errors = {record["error"] for record in run.responses().values() if record["status"] == "error"}
    # A busy machine may delay the event loop, in which case the question gets more time.
    timeout = "QuestionTimeoutError: no answer within 0.5 s, the run's timeout"
    assert {error.partition(", and ")[0] for error in errors} == {timeout}


@pytest.mark.full
@pytest.mark.parametrize("hang", ["swallows_all", "reads", "sleeps, checkpointer=SyncOnlySaver()"])
def test_script_with_a_hanging_agent_ends(tmp_path: Path, hang: str) -> None:
    script = f"""{_HANGING}
from graphrag_eval_lc import run_benchmark
questions = [{{"id": f"q{{n}}", "question_text": f"What is q{{n:03}}?"}} for n in range(2, 6)]
run = run_benchmark(graph_of({hang}), [{{"template_id": "t", "questions": questions}}], timeout=0.5, progress="off")
print([response["status"] for response in run.responses])
"""
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        process.wait(timeout=60)
    finally:
        process.kill()
    assert process.stdout is not None
    assert process.stdout.read() == "['error', 'error', 'success', 'success']\n"
    assert process.returncode == 0


# --- answers ---------------------------------------------------------------------------------------------------------

ANSWERS: dict[str, tuple[Any, str | None]] = {
    "none": (None, None),
    "large": ("x" * 10_000_000, "x" * 10_000_000),
    "surrogate": ("half a letter: \ud83d", "half a letter: \ud83d"),
    "nan": (float("nan"), "nan"),
    "infinity": (float("-inf"), "-inf"),
    "bytes": ("na\u00efve".encode(), "na\u00efve"),
    "bad bytes": (b"\xff\xfe", None),
    "number": (42, "42"),
    "control": ("a\x00b\u2028c\r\nd", "a\x00b\u2028c\r\nd"),
    "empty": ("", ""),
}


def answering_function(question: str) -> Any:
    return ANSWERS[question][0]


async def answering_node(state: dict[str, Any]) -> dict[str, Any]:
    return {"answer": ANSWERS[state["question"]][0]}


def answering_graph() -> Runnable[Any, Any]:
    builder = StateGraph(dict)
    builder.add_node("answer", answering_node)
    builder.add_edge(START, "answer")
    return builder.compile()


@pytest.mark.parametrize("kind", ["function", "state"])
def test_answers_of_every_type_are_kept_and_scored(kind: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"output_dir": tmp_path / "run", "progress": "off"}
    if kind == "function":
        run = run_benchmark(answering_function, dataset_of(list(ANSWERS)), **options)
    else:
        options["input_fn"] = lambda question: {"question": question["question_text"]}
        run = run_benchmark(answering_graph(), dataset_of(list(ANSWERS)), **options)
    assert [result["question_id"] for result in run.results] == list(ANSWERS)
    assert {response["status"] for response in run.responses} == {"success"}
    for response in run.responses:
        name = response["question_id"]
        if name != "bad bytes" and (kind == "function" or isinstance(ANSWERS[name][0], str)):
            assert response.get("actual_answer") == ANSWERS[name][1], name
    for name in ("responses.jsonl", "results.jsonl"):
        for line in (tmp_path / "run" / name).read_bytes().split(b"\n")[:-1]:
            json.loads(line.decode("utf-8"), parse_constant=pytest.fail)


# --- rate limits -----------------------------------------------------------------------------------------------------


class LimitedServer:
    """A loopback HTTP server that rejects some requests with 429.

    Args:
        retry_after: Returns the header of a rejection.
        refused: The number of initial requests to reject.
        per_second: The number of requests per second to answer after that; None for all.
    """

    def __init__(self, retry_after: Callable[[], str], refused: int = 0, per_second: int | None = None) -> None:
        self.refusals = 0
        self._retry_after, self._refused, self._per_second = retry_after, refused, per_second
        self._second, self._answered, self._lock = 0, 0, threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:  # the standard library's name
                is_refused = outer._is_refused()
                self.send_response(429 if is_refused else 200)
                if is_refused:
                    self.send_header("Retry-After", outer._retry_after())
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _is_refused(self) -> bool:
        with self._lock:
            second = int(time.monotonic())
            if second != self._second:
                self._second, self._answered = second, 0
            is_refused = self.refusals < self._refused or (
                self._per_second is not None and self._answered >= self._per_second
            )
            self.refusals += is_refused
            self._answered += not is_refused
            return is_refused


def date_in_a_second() -> str:
    return email.utils.formatdate(time.time() + 1, usegmt=True)


STORMS: dict[str, Callable[[], LimitedServer]] = {
    "at first, with a date": lambda: LimitedServer(date_in_a_second, refused=12),
    "at a rate": lambda: LimitedServer(lambda: "1", per_second=5),
}


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[LimitedServer]:
    server = STORMS[request.param]()
    yield server
    server.close()


@pytest.mark.parametrize(
    "server",
    STORMS,
    indirect=True,
)
@pytest.mark.full
def test_all_questions_are_answered_despite_many_rate_limits(server: LimitedServer) -> None:
    events: list[RunEvent] = []

    async def ask(state: MessagesState) -> Any:
        async with httpx.AsyncClient(trust_env=False) as client:
            (await client.get(server.url)).raise_for_status()
        return {"messages": [AIMessage("fine")]}

    run = run_benchmark(
        graph_of(ask),
        dataset_of([f"q{number}" for number in range(60)]),
        max_concurrency=8,
        max_retries=8,
        progress="off",
        on_event=events.append,
    )
    assert server.refusals > 0
    assert run.aggregates["micro"]["number_of_success_samples"] == 60
    failed = [attempt for response in run.responses for attempt in response.get("failed_attempts", ())]
    assert len(failed) == server.refusals
    assert all("429" in attempt["error"] for attempt in failed)
    limits = [event.fields["limit"] for event in events if event.kind == "limit_changed"]
    assert limits[0] == 4
    assert any(later > earlier for earlier, later in itertools.pairwise(limits))


# --- disks and folders -----------------------------------------------------------------------------------------------

_NOTING = """
async def answer(state, config: RunnableConfig):
    note(config)
    await asyncio.sleep(0.005)
    return {"messages": [AIMessage("fine " * 100)]}

graph = graph_of(answer)
"""


# The final files have 3, 54 and 73 kB; each reaches the limit on its own.
@pytest.mark.parametrize(
    ("size", "names"),
    [
        (300, "run.json"),
        (20_000, "res[a-z]*.jsonl"),
        (64_000, "results.jsonl"),
    ],
)
@pytest.mark.full
def test_full_disk_is_one_clear_error_and_the_run_can_be_resumed(run_on_disk, size: int, names: str) -> None:
    run = run_on_disk(_NOTING, 60)

    def fill_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    outcome = run.run(run.command("-j", "4"), before=fill_disk)
    assert outcome.returncode == 2
    assert outcome.stderr.startswith("Error: ")
    assert outcome.stderr.count("\n") == 1
    assert re.match(
        f"Error: {run.output}/{names}.*: cannot be written \\(File too large\\). Free space", outcome.stderr
    )
    known, attempts_before = run.answered(), run.attempt_count
    assert run.run(run.command("-j", "4")).returncode == 0
    assert not known & set(run.attempts()[attempts_before:])
    assert len(known) == {300: 0, 20_000: len(known) or 1, 64_000: 60}[size]
    run.check_complete()


@pytest.mark.full
def test_file_in_place_of_the_folder_is_a_clear_error(run_on_disk) -> None:
    run = run_on_disk(_NOTING, 3)
    run.output.write_text("a file", encoding="utf-8")
    outcome = run.run(run.command())
    assert outcome.returncode == 2
    assert "A file of this name exists, and a folder is needed" in outcome.stderr
    assert run.attempt_count == 0


@pytest.mark.full
def test_folder_in_place_of_a_file_is_a_clear_error(run_on_disk) -> None:
    run = run_on_disk(_NOTING, 3)
    run.journal.mkdir(parents=True)
    outcome = run.run(run.command())
    assert outcome.returncode == 2
    assert "the folder holds responses.jsonl but no run.json" in outcome.stderr
    assert run.attempt_count == 0


@pytest.mark.skipif("os.geteuid() == 0", reason="root may write everywhere")
def test_read_only_folder_is_a_clear_error(run_on_disk) -> None:
    run = run_on_disk(_NOTING, 3)
    run.output.mkdir(mode=0o555)
    outcome = run.run(run.command())
    assert outcome.returncode == 2
    assert "Choose a folder that you may write to" in outcome.stderr
    assert run.attempt_count == 0


@pytest.mark.parametrize("fate", ["removed", "moved"])
def test_folder_removed_during_the_run_is_a_clear_error(fate: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"

    async def answer(state: MessagesState) -> Any:
        if state["messages"][-1].content == "q20":
            if fate == "removed":
                shutil.rmtree(folder)
            else:
                folder.rename(tmp_path / "elsewhere")
        await asyncio.sleep(0.005)
        return {"messages": [AIMessage("fine")]}

    agent, dataset = graph_of(answer), dataset_of([f"q{number}" for number in range(40)])
    with pytest.raises(RunFolderError, match="removed while the run was writing"):
        run_benchmark(agent, dataset, output_dir=folder, max_concurrency=4, progress="off")
    if fate == "moved":
        run = run_benchmark(
            graph_of(lambda state: {"messages": [AIMessage("fine")]}),
            dataset,
            output_dir=tmp_path / "elsewhere",
            keep_answers=True,  # by an agent that moves the folder
            progress="off",
        )
        assert run.aggregates["micro"]["number_of_success_samples"] == 40


# --- other things that agents do -------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("saver", [InMemorySaver, SyncOnlySaver])
def test_each_attempt_has_its_own_checkpointer_thread(saver: type[InMemorySaver]) -> None:
    threads: list[str] = []
    lengths: list[int] = []

    def answer(state: MessagesState, config: RunnableConfig) -> Any:
        threads.append(config["configurable"]["thread_id"])
        lengths.append(len(state["messages"]))
        if config["metadata"]["attempt_id"].endswith("/q1/1/1"):
            raise ConnectionError("once")
        return {"messages": [AIMessage("fine")]}

    agent = graph_of(answer, checkpointer=saver())
    run = run_benchmark(agent, dataset_of(["q1", "q2", "q3"]), repeats=2, progress="off", max_retries=1)
    assert run.aggregates["micro"]["number_of_success_samples"] == 6
    assert len(set(threads)) == len(threads) == 7
    assert set(lengths) == {1}


@pytest.mark.full
def test_agent_that_uses_stdin_and_stdout_does_no_harm(run_on_disk) -> None:
    run = run_on_disk(
        """
def answer(state, config: RunnableConfig):
    note(config)
    print("a line of the agent")
    return {"messages": [AIMessage(input("Which one? "))]}

graph = graph_of(answer)
""",
        5,
    )
    outcome = run.run(run.command())
    assert outcome.returncode == 1
    assert "No question was answered" in outcome.stderr
    run.check_complete(errors=5)
    assert {record["error"] for record in run.responses().values()} == {"EOFError: EOF when reading a line"}


def test_failing_callback_ends_the_run_and_keeps_finished_questions(tmp_path: Path) -> None:
    asked: list[str] = []

    async def answer(state: MessagesState) -> Any:
        asked.append(str(state["messages"][-1].content))
        return {"messages": [AIMessage("fine")]}

    def fail(response: Any) -> None:
        if response["question_id"] == "q3":
            raise ValueError("the caller's own mistake")

    agent, dataset = graph_of(answer), dataset_of([f"q{number}" for number in range(9)])
    options: dict[str, Any] = {"output_dir": tmp_path / "run", "max_concurrency": 1, "progress": "off"}
    with pytest.raises(ValueError, match="the caller's own mistake"):
        run_benchmark(agent, dataset, on_response=fail, **options)
    assert asked == ["q0", "q1", "q2", "q3"]
    run = run_benchmark(agent, dataset, **options)
    assert asked == [f"q{number}" for number in range(9)]
    assert run.aggregates["micro"]["number_of_success_samples"] == 9
