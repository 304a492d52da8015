"""Addresses of deployed agents are parsed, and obstacles are reported before any question is sent."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.benchmark import deployed_agents
from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.deployed_agents import api_key, read_address
from graphrag_eval_lc.benchmark.ready_agents import Agent
from graphrag_eval_lc.errors import AgentError, OptionError
from graphrag_eval_lc.masking import masked_text

DATASET: list[Any] = [{"template_id": "t", "questions": [{"id": "q", "question_text": "x"}]}]
KEY = "right-key-7fd2"
FAST, TWIN, OTHER_TWIN = (f"cf99dc38-aee3-4b84-ae93-b8ed0713f23{n}" for n in "abc")


def assistant(identifier: str, graph: str, name: str, by: str = "user") -> dict[str, Any]:
    return {"assistant_id": identifier, "graph_id": graph, "name": name, "version": 3, "metadata": {"created_by": by}}


ASSISTANTS = [
    assistant("fe096781-5601-53d2-b2f6-0d3403f7e9ca", "agent", "agent", "system"),
    assistant("8d2fdf5d-7331-5702-b419-c34f4de91ad4", "keyed", "keyed", "system"),
    assistant(FAST, "agent", "Fast agent"),
    assistant(TWIN, "agent", "twin"),
    assistant(OTHER_TWIN, "agent", "twin"),
]
SCHEMAS = {"agent": {"properties": {"messages": {}}}, "keyed": {"properties": {"question": {}}}}


class Stub(ThreadingHTTPServer):
    """A server with LangGraph's assistants API, or with the responses that a test defines."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.always: tuple[int, dict[str, str], bytes] | None = None
        self.streams: list[bytes] = []
        self.key: str | None = None
        self.state: dict[str, Any] | None = None
        self.keys_seen: set[str | None] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Stub

    def log_message(self, *arguments: object) -> None: ...

    def answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def handle_request(self, wanted: dict[str, Any]) -> None:
        server = self.server
        server.keys_seen.add(self.headers.get("x-api-key"))
        if server.always is not None:
            status, headers, body = server.always
            return self.answer(status, body, headers)
        if server.key is not None and self.headers.get("x-api-key") != server.key:
            return self.answer(401, {"detail": "Invalid key"})
        parts = self.path.strip("/").split("/")
        if parts == ["assistants", "search"]:
            if wanted.get("graph_id", "agent") not in ("agent", "keyed"):
                return self.answer(404, {"detail": "Graph not found"})
            keys = [key for key in ("graph_id", "name", "metadata") if key in wanted]
            return self.answer(200, [each for each in ASSISTANTS if all(each[key] == wanted[key] for key in keys)])
        if parts[0] == "threads" and parts[2:] == ["runs", "stream"]:
            failure = b'event: error\ndata: {"error": "ValueError", "message": "no such thing"}\n\n'
            stream = server.streams.pop(0) if server.streams else failure
            return self.answer(200, stream, {"content-type": "text/event-stream"})
        if parts[0] == "threads":
            return self.answer(404 if server.state is None else 200, server.state or {"detail": "Not found"})
        known = next((each for each in ASSISTANTS if each["assistant_id"] == parts[1]), None)
        if known is None:
            return self.answer(404, {"detail": "Not found"})
        return self.answer(200, {"input_schema": SCHEMAS[known["graph_id"]]} if parts[2:] == ["schemas"] else known)

    def do_GET(self) -> None:
        self.handle_request({})

    def do_POST(self) -> None:
        self.handle_request(json.loads(self.rfile.read(int(self.headers["content-length"]))))


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    for name in ("LANGGRAPH_API_KEY", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    server = Stub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def loaded(spec: str, **options: Any) -> Agent:
    agent = await aload_agent(spec, **options)
    await agent.aclose()
    return agent


async def error_of(spec: str, **options: Any) -> str:
    with pytest.raises((AgentError, OptionError)) as caught:
        await aload_agent(spec, **options)
    return str(caught.value)


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "server", "assistant"),
    [
        ("http://127.0.0.1:2024/agent", "http://127.0.0.1:2024", "agent"),
        ("HTTPS://Graphs.Example/agent/", "https://graphs.example", "agent"),
        ("https://graphs.example/eu/v1/My%20agent", "https://graphs.example/eu/v1", "My agent"),
        ("http://[::1]:2024/agent", "http://[::1]:2024", "agent"),
        ("http://127.0.0.1:2024/", "http://127.0.0.1:2024", ""),
    ],
)
def test_address_is_a_server_and_an_assistant(spec: str, server: str, assistant: str) -> None:
    assert read_address(spec) == (server, assistant)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("http://user:pa55word@graphs.example/agent", "has a user or password in it, which would be written down"),
        ("https://lsv2-t0ken@graphs.example/agent", "has a user or password in it"),
        ("https://graphs.example/agent?api_key=t0ken", "has more than the server and the assistant"),
        ("https://graphs.example/agent#t0ken", "has more than the server and the assistant"),
        ("ftp://graphs.example/agent", "is not one of http or https"),
        ("http:///agent", "is not one of http or https"),
        ("http://graphs.example:port/agent", "cannot be read"),
    ],
)
def test_invalid_addresses_are_rejected_without_their_secrets(spec: str, complaint: str) -> None:
    with pytest.raises(AgentError) as caught:
        read_address(spec)
    assert complaint in str(caught.value)
    assert "pa55word" not in str(caught.value)
    assert "t0ken" not in str(caught.value)


# --- keys ------------------------------------------------------------------------------------------------------------


def test_key_is_read_from_the_environment_and_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("OTHER", "plain-words")
    assert (api_key(None), api_key("OTHER")) == (KEY, "plain-words")
    assert masked_text(f"refused {KEY} and plain-words") == "refused *** and ***"


def test_no_key_without_the_default_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGSMITH_API_KEY", raising=False)
    monkeypatch.setenv("LANGCHAIN_API_KEY", KEY)  # which the SDK would use
    assert api_key(None) is None


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("ABSENT_OF_THE_TEST", "key agent_key_env: the environment variable ABSENT_OF_THE_TEST is not set"),
        ("lsv2_sk_5ecret", "the environment variable that agent_key_env names is not set"),
        ("sk-5ecret", "it is not the name of an environment variable. Give the variable's name, not the key itself."),
        ("NO_ASCII_OF_THE_TEST", "the environment variable NO_ASCII_OF_THE_TEST holds no key"),
    ],
)
def test_missing_key_is_reported_without_revealing_a_pasted_key(
    given: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_ASCII_OF_THE_TEST", "schlüssel")
    with pytest.raises(OptionError) as caught:
        api_key(given)
    assert complaint in str(caught.value)
    assert "5ecret" not in str(caught.value)


@pytest.mark.parametrize(
    ("server", "is_open"),
    [
        ("http://graphs.example", True),
        ("http://10.0.0.3:2024", True),
        ("https://graphs.example", False),
        ("http://127.0.0.1:2024", False),
        ("http://[::1]:2024", False),
        ("http://localhost:2024", False),
    ],
)
def test_unencrypted_key_has_a_warning(server: str, is_open: bool) -> None:
    assert deployed_agents._is_open(server) == is_open


# --- assistants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "asked", "identifier"),
    [("agent", "agent", ASSISTANTS[0]["assistant_id"]), (FAST, FAST, FAST), ("Fast%20agent", FAST, FAST)],
)
async def test_assistant_is_found_by_graph_id_and_name(stub: Stub, named: str, asked: str, identifier: str) -> None:
    agent = await loaded(f"{stub.url}/{named}/")
    assert agent.runnable.assistant_id == asked  # type: ignore[attr-defined]
    assert (agent.takes, agent.name, agent.spec) == ("messages", f"{stub.url}/{named}", f"{stub.url}/{named}")
    assert agent.source == f"graph agent, assistant {identifier}, version 3"


async def test_key_is_sent_only_to_the_server(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.key = KEY
    monkeypatch.setenv("LANGCHAIN_API_KEY", "another")
    assert await error_of(f"{stub.url}/agent") == (
        f"the server {stub.url} asks for a key (401), and LANGSMITH_API_KEY is not set. "
        "Set the right key, or name its variable with --agent-key-env (agent_key_env)."
    )
    assert stub.keys_seen == {None}
    monkeypatch.setenv("MY_KEY", "wr0ng-key")
    assert await error_of(f"{stub.url}/agent", key_variable="MY_KEY") == (
        f"the server {stub.url} refuses the key in MY_KEY (401). "
        "Set the right key, or name its variable with --agent-key-env (agent_key_env)."
    )
    monkeypatch.setenv("LANGSMITH_API_KEY", KEY)
    agent = await loaded(f"{stub.url}/agent")
    assert agent.runnable.client.http.client.headers["x-api-key"] == KEY  # type: ignore[attr-defined]
    assert KEY not in f"{agent}"


async def test_input_without_messages_needs_an_input_function(stub: Stub) -> None:
    complaint = f"{stub.url}/keyed takes question, but no messages. Pass input_fn"
    assert (await error_of(f"{stub.url}/keyed")).startswith(complaint)
    assert (await loaded(f"{stub.url}/keyed", has_input_fn=True)).takes == "messages"


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ("agnt", "the server {url} has no assistant agnt. It has agent, Fast agent, twin, keyed; write {url}/agent."),
        (FAST[:-1] + "f", "has no assistant cf99dc38-"),
        ("", "{url} names no assistant. It has agent, keyed, Fast agent, twin; write {url}/agent."),
        ("twin", f"the server {{url}} has 2 assistants with the name twin. Give the id of one: {TWIN}, {OTHER_TWIN}."),
    ],
)
async def test_unknown_assistant_is_reported_with_the_existing_ones(stub: Stub, named: str, complaint: str) -> None:
    assert complaint.format(url=stub.url) in await error_of(f"{stub.url}/{named}")


# --- servers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ((404, {}, b"<html>"), "{url} does not list its assistants, as a LangGraph server does (404 Not Found). Start"),
        ((200, {}, b"<html>"), "{url} does not list its assistants, as a LangGraph server does. Start it"),
        (
            (500, {}, b""),
            "{url} does not list its assistants, as a LangGraph server does (500 Internal Server Error). ",
        ),
        (
            (307, {"location": "https://u:pa55@graphs.example/x"}, b""),
            "{url} redirects to another host, https://graphs.example, and",
        ),
        ((403, {}, b"{}"), "the server {url} asks for a key (403)"),
        ((200, {}, b"[" * 100_000), "{url} does not list its assistants, as a LangGraph server does. Start it"),
    ],
)
@pytest.mark.parametrize("named", ["agent", FAST, ""])
async def test_unusable_server_is_explained(stub: Stub, named: str, answer: Any, complaint: str) -> None:
    stub.always = answer
    error = await error_of(f"{stub.url}/{named}")
    assert error.startswith(complaint.format(url=stub.url))
    assert "pa55" not in error


async def test_unreachable_server_is_reported_immediately() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    error = await error_of(f"{url}/agent")
    assert error.startswith(f"no LangGraph server answers at {url} (")
    assert "Start it (langgraph dev), look at its log, or check the address (http or https)" in error


STATE = {
    "values": {
        "messages": [
            {"type": "human", "content": "x"},
            {
                "type": "ai",
                "content": "A draft.",
                "tool_calls": [{"name": "search", "args": {"query": "oslo"}, "id": "call_1"}],
                "usage_metadata": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
            },
            {"type": "tool", "content": "found oslo", "tool_call_id": "call_1", "name": "search"},
        ]
    },
    "next": ["tools"],
    "tasks": [],
    "metadata": {},
    "created_at": "2026-01-01T00:00:00Z",
    "checkpoint": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"},
    "parent_checkpoint": None,
}


@pytest.mark.parametrize("state", [None, STATE])
def test_failed_question_keeps_the_state_of_its_thread(stub: Stub, state: Any) -> None:
    stub.state = state
    (response,) = run_benchmark(f"{stub.url}/agent", DATASET, progress="off").responses
    assert response["status"] == "error"
    assert "no such thing" in response["error"]
    assert "actual_answer" not in response
    steps = [(step["name"], step["output"]) for step in response["actual_steps"]]
    assert steps == ([] if state is None else [("search", "found oslo")])
    assert response.get("total_tokens") == (None if state is None else 12)


ANSWERED = b'event: values\ndata: {"messages": [{"type": "ai", "content": "Oslo"}]}\n\n'
NO_STATE = "the server ended the stream without a state of the graph"
UNREADABLE = "the server sent an event that cannot be read: "


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        (b"", NO_STATE),
        (b": ping\n\n: ping\n\n", NO_STATE),
        (b'event: metadata\ndata: {"run_id": "r"}\n\n', NO_STATE),
        (b'event: updates\ndata: {"model": {}}\n\nevent: end\n\n', NO_STATE),
        (b"event: values\ndata: null\n\n", NO_STATE),
        (b"event: values\ndata: {}\n\n", NO_STATE),
        (b'event: values\ndata: {"messages": [\n\n', UNREADABLE),
        (b"event: values\ndata: " + b"[" * 100_000 + b"]" * 100_000 + b"\n\n", UNREADABLE),
        (b"event: command\ndata: 5\n\n", UNREADABLE),
    ],
)
def test_stream_without_a_usable_event_is_an_error_that_is_retried(stub: Stub, stream: bytes, error: str) -> None:
    stub.streams = [stream, stream, ANSWERED]
    (failed,) = run_benchmark(f"{stub.url}/agent", DATASET, progress="off", max_retries=0).responses
    assert failed["status"] == "error"
    assert failed["error"].startswith(f"ConnectionError: {error}")
    (response,) = run_benchmark(f"{stub.url}/agent", DATASET, progress="off", max_retries=1).responses
    assert (response["status"], response["actual_answer"]) == ("success", "Oslo")
    assert [attempt["error"] for attempt in response["failed_attempts"]] == [failed["error"]]
