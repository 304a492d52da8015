"""Benchmarks of agents given by address: a real ``langgraph dev`` server, with and without keys."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from support.langgraph_server import Server, serving

from graphrag_eval_lc import arun_benchmark, run_benchmark
from graphrag_eval_lc.errors import AgentError, RunFolderError

pytestmark = pytest.mark.full

KEY = "right-key-7fd2c1"

PROJECT = """
import asyncio, os
from contextlib import asynccontextmanager
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_store
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_sdk.runtime import ServerRuntime
from helper_of_the_test import shout


def saying(text):
    async def node(state):
        if "slowly" in state["messages"][-1].content:
            await asyncio.sleep(60)
        said = text()
        return {"messages": [AIMessage(await said if asyncio.iscoroutine(said) else said)]}

    return StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")


async def remembered():
    await get_store().aput(("notes",), "key", {"text": "kept"})
    return (await get_store().aget(("notes",), "key")).value["text"]


compiled = saying(lambda: shout("compiled")).compile()
uncompiled = saying(lambda: os.environ["MODEL_OF_THE_TEST"])
storing = saying(remembered)


def of_config(config: RunnableConfig):
    return saying(lambda: config["configurable"]["model"])


def of_runtime(runtime: ServerRuntime):
    return saying(lambda: str(type(runtime.store).__name__ != "NoneType"))


async def of_both(config, runtime: ServerRuntime):
    return saying(lambda: config["configurable"]["model"] + runtime.access_context)


@asynccontextmanager
async def opening(config: RunnableConfig):
    yield saying(lambda: "opened")


def search(state):
    call = {"name": "search", "args": {"query": "oslo"}, "id": "call_1", "type": "tool_call"}
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    asked = AIMessage("Let me see.", tool_calls=[call], usage_metadata=usage)
    return {"messages": [asked, ToolMessage("found oslo", tool_call_id="call_1", name="search")]}


async def end_badly(state):
    if "slowly" in state["messages"][0].content:
        await asyncio.sleep(60)
    raise ValueError("no such thing")


failing = StateGraph(MessagesState).add_sequence([search, end_badly]).add_edge(START, "search")
"""
GRAPHS = ("compiled", "uncompiled", "storing", "of_config", "of_runtime", "of_both", "opening")
CONFIG: dict[str, Any] = {
    "dependencies": [".", "./lib"],
    "env": ".env",
    "graphs": {
        **{name: f"./agents.py:{name}" for name in GRAPHS},
        "compiled": {"path": "./agents.py:compiled", "description": "Says what it is."},
        "failing": "./agents.py:failing",
    },
}
AUTH = f"""
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def check(headers: dict):
    if headers.get(b"x-api-key") != b"{KEY}":
        raise Auth.exceptions.HTTPException(status_code=401, detail="Invalid key")
    return {{"identity": "tester"}}
"""


def dataset(count: int, text: str = "please") -> list[Any]:
    questions = [{"id": f"q{number}", "question_text": text, "reference_steps": []} for number in range(count)]
    return [{"template_id": "t", "questions": questions}]


def write_project(folder: Path, **more: Any) -> Path:
    (folder / "lib").mkdir()
    (folder / "lib" / "helper_of_the_test.py").write_text("def shout(text): return text.upper()", encoding="utf-8")
    (folder / "agents.py").write_text(PROJECT, encoding="utf-8")
    (folder / ".env").write_text("MODEL_OF_THE_TEST=of env\n", encoding="utf-8")
    (folder / "auth.py").write_text(AUTH, encoding="utf-8")
    (folder / "langgraph.json").write_text(json.dumps({**CONFIG, **more}), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def url(project: Path) -> Iterator[str]:
    before = os.environ.get("MODEL_OF_THE_TEST")
    os.environ["MODEL_OF_THE_TEST"] = "of the process"  # `env` overrides it on the server, too
    try:
        with serving(project) as server:
            yield server.url
    finally:
        os.environ.pop("MODEL_OF_THE_TEST") if before is None else os.environ.update(MODEL_OF_THE_TEST=before)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server that requires a key."""
    folder = write_project(tmp_path_factory.mktemp("guarded"), auth={"path": "./auth.py:auth"})
    with serving(folder) as server:
        yield server


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("LANGGRAPH_API_KEY", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def answers(spec: str, **options: Any) -> list[Any]:
    run = run_benchmark(spec, dataset(2), progress="off", **options)
    return [response.get("actual_answer", response.get("error")) for response in run.responses]


# --- the same graphs, local and remote -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
def test_local_graph_answers_like_the_one_on_the_server(name: str, project: Path, url: str) -> None:
    config = {"configurable": {"model": "m1"}}
    deployed = answers(f"{url}/{name}", agent_config=config)
    assert answers(f"{project}/langgraph.json:{name}", agent_config=config) == deployed
    expected = {
        "compiled": "COMPILED",
        "uncompiled": "of env",
        "storing": "kept",
        "of_config": "m1",
        "of_runtime": "True",
        "of_both": "m1threads.create_run",
        "opening": "opened",
    }
    assert deployed == [expected[name]] * 2


async def test_benchmark_works_repeatedly_in_a_running_loop(url: str) -> None:
    for _ in range(2):
        run = await arun_benchmark(f"{url}/compiled", dataset(2), progress="off")
        assert [response["actual_answer"] for response in run.responses] == ["COMPILED"] * 2
    assert answers(f"{url}/compiled") == ["COMPILED"] * 2


def test_assistant_has_a_name_an_id_and_versions(url: str, tmp_path: Path) -> None:
    client = get_sync_client(url=url, api_key=None)
    made = client.assistants.create("of_config", {"configurable": {"model": "of the assistant"}}, name="Fast agent")
    identifier = made["assistant_id"]
    assert answers(f"{url}/Fast%20agent", output_dir=tmp_path / "run") == ["of the assistant"] * 2
    assert answers(f"{url}/{identifier}") == ["of the assistant"] * 2
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert record["agent"] == f"{url}/Fast%20agent"
    assert record["agent_source"] == f"graph of_config, assistant {identifier}, version 1"
    client.assistants.update(identifier, config={"configurable": {"model": "another"}})
    with pytest.raises(RunFolderError, match=r"what it resolves to was .*version 1 and is .*version 2"):
        answers(f"{url}/Fast%20agent", output_dir=tmp_path / "run")


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ("/compild", "has no assistant compild. It has compiled, "),
        ("/00000000-0000-0000-0000-000000000000", "has no assistant 00000000-"),
        ("", "names no assistant. It has "),
    ],
)
def test_unknown_assistant_is_reported(url: str, named: str, complaint: str) -> None:
    with pytest.raises(AgentError, match=complaint):
        answers(f"{url}{named}")


def test_server_does_not_speak_https(url: str) -> None:
    with pytest.raises(AgentError, match=r"no LangGraph server answers at https:.*SSL"):
        answers(f"{url}/compiled".replace("http:", "https:"))


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate for 127.0.0.1, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    encoding = serialization.Encoding.PEM
    form, lock = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(encoding))
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, form, lock))
    return folder / "certificate.pem", folder / "key.pem"


def test_server_with_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography", reason="langgraph-api brings it")
    certificate, key = self_signed(tmp_path)
    with serving(write_project(tmp_path), certificate=certificate, key=key) as server:
        with pytest.raises(AgentError, match=r"CERTIFICATE_VERIFY_FAILED.*SSL_CERT_FILE"):
            answers(f"{server.url}/compiled")
        with pytest.raises(AgentError, match=r"no LangGraph server answers at http:.*http or https"):
            answers(f"{server.url}/compiled".replace("https:", "http:"))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert answers(f"{server.url}/compiled") == ["COMPILED"] * 2


# --- context managers of factories -----------------------------------------------------------------------------------

MCP_SERVER = """
import os
from mcp.server.fastmcp import FastMCP

server = FastMCP("test")


@server.tool()
def process_of(name: str) -> str:
    return f"{name} {os.getpid()}"


server.run()
"""
MCP_AGENT = """
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langgraph.graph import START, MessagesState, StateGraph
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig


@asynccontextmanager
async def agent(config: RunnableConfig):
    script = str(Path(__file__).with_name("mcp_server.py"))
    client = MultiServerMCPClient({"test": {"transport": "stdio", "command": sys.executable, "args": [script]}})
    async with client.session("test") as session:
        (tool,) = await load_mcp_tools(session)

        async def ask(state):
            (block,) = await tool.ainvoke({"name": "process"})
            return {"messages": [AIMessage(block["text"])]}

        yield StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
"""


def test_mcp_session_is_open_during_the_run(tmp_path: Path) -> None:
    pytest.importorskip("langchain_mcp_adapters", reason="needs langchain-mcp-adapters, as `make test-full` has it")
    (tmp_path / "mcp_server.py").write_text(MCP_SERVER, encoding="utf-8")
    (tmp_path / "agents.py").write_text(MCP_AGENT, encoding="utf-8")
    (tmp_path / "langgraph.json").write_text('{"graphs": {"agent": "./agents.py:agent"}}', encoding="utf-8")
    processes = set()
    for _ in range(2):
        run = run_benchmark(f"{tmp_path}/langgraph.json:agent", dataset(4), progress="off")
        assert [response["status"] for response in run.responses] == ["success"] * 4
        (process,) = {response["actual_answer"] for response in run.responses}
        processes.add(process)
        assert not any("closing" in warning or "closed" in warning for warning in run.warnings)
    assert len(processes) == 2


# --- keys ------------------------------------------------------------------------------------------------------------


def command(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    (folder / "qa.json").write_text(json.dumps(dataset(2)), encoding="utf-8")
    program = Path(sys.executable).with_name("graphrag-eval-lc")
    return subprocess.run(
        [program, "run", "qa.json", "-o", "run", "--log-file", "log.jsonl", *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("option", "variables", "complaint"),
    [
        ([], {}, "asks for a key (401), and LANGSMITH_API_KEY is not set."),
        ([], {"LANGSMITH_API_KEY": "wr0ng-key-9a"}, "refuses the key in LANGSMITH_API_KEY (401)."),
        (["--agent-key-env", "MINE"], {"MINE": "wr0ng-key-9a", "LANGSMITH_API_KEY": KEY}, "the key in MINE (401)."),
        (["--agent-key-env", "MINE"], {}, "the environment variable MINE is not set."),
    ],
)
def test_wrong_key_is_one_error_before_any_question(
    guarded: Server, tmp_path: Path, option: list[str], variables: dict[str, str], complaint: str
) -> None:
    ended = command(tmp_path, "--agent", f"{guarded.url}/compiled", *option, **variables)
    assert ended.returncode == 2
    assert complaint in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert "wr0ng" not in ended.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", [[], ["--agent-key-env", "MINE"]])
def test_key_is_never_written(guarded: Server, tmp_path: Path, option: list[str]) -> None:
    variable = option[-1] if option else "LANGSMITH_API_KEY"
    ended = command(tmp_path, "--agent", f"{guarded.url}/compiled", *option, **{variable: KEY})
    assert ended.returncode == 0, ended.stderr
    assert '"actual_answer": "COMPILED"' in (tmp_path / "run" / "responses.jsonl").read_text(encoding="utf-8")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"run.json", "responses.jsonl", "report.html", "log.jsonl"} <= {path.name for path in written}
    for path in written:
        assert KEY.encode() not in path.read_bytes(), path
    assert KEY not in ended.stdout + ended.stderr


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "complaint"), [("please", "no such thing"), ("slowly", "no answer within 4 s")])
def test_failed_question_keeps_earlier_steps(url: str, text: str, complaint: str) -> None:
    run = run_benchmark(f"{url}/failing", dataset(1, text), timeout=4, progress="off")
    (response,) = run.responses
    assert response["status"] == "error"
    assert complaint in response["error"]
    assert "actual_answer" not in response
    (step,) = response["actual_steps"]
    assert (step["name"], step["args"], step["output"]) == ("search", {"query": "oslo"}, "found oslo")
    assert (response["total_tokens"], len(response["llm_calls"])) == (12, 1)
    assert 0 < response["elapsed_sec"] < 10


def test_timed_out_question_is_cancelled_on_the_server(url: str) -> None:
    run_benchmark(f"{url}/failing", dataset(1, "slowly"), timeout=4, max_retries=0, progress="off")
    with get_sync_client(url=url) as server:
        (thread,) = server.threads.search(limit=1)
        statuses = [run["status"] for run in server.runs.list(thread["thread_id"])]
    assert statuses
    assert not {"pending", "running"} & set(statuses)


# --- a server that stops ---------------------------------------------------------------------------------------------


def test_server_crash_is_an_error_of_its_questions(tmp_path: Path) -> None:
    with serving(write_project(tmp_path)) as server:
        started = threading.Event()
        asked = threading.Thread(target=lambda: (started.wait(60), threading.Event().wait(3), server.kill()))
        asked.start()

        def note(event: Any) -> None:
            if event.kind == "attempt_started":
                started.set()

        run = run_benchmark(
            f"{server.url}/compiled", dataset(2, "slowly"), max_retries=0, on_event=note, progress="off"
        )
        asked.join()
        assert [response["status"] for response in run.responses] == ["error"] * 2
        assert all(re.match("(Transport|Connect|Read)Error: ", response["error"]) for response in run.responses)
        with pytest.raises(AgentError, match="no LangGraph server answers at"):
            answers(f"{server.url}/compiled")
