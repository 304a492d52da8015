"""Graphs of a `langgraph.json` are loaded like the `langgraph` command does, and errors are reported."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.benchmark import langgraph_config
from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
from graphrag_eval_lc.errors import AgentError

DATASET: list[Any] = [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": "x"} for n in range(3)]}]

GRAPHS = """
import asyncio, os
from contextlib import asynccontextmanager, contextmanager
from typing import TypedDict
from langchain_core.messages import AIMessage
from langgraph.config import get_store
from langgraph.graph import START, MessagesState, StateGraph

log = []


def saying(text):
    builder = StateGraph(MessagesState).add_node("node", lambda state: {"messages": [AIMessage(text())]})
    return builder.add_edge(START, "node")


def remembered():
    get_store().put(("notes",), "key", {"text": "kept"})
    return get_store().get(("notes",), "key").value["text"]


uncompiled = saying(lambda: "uncompiled")
agent = saying(lambda: "compiled").compile()
model = saying(lambda: str(os.environ.get("MODEL_OF_THE_TEST"))).compile()
storing = saying(remembered).compile()


def of_config(config):
    return saying(lambda: config["configurable"]["model"])


async def of_coroutine():
    return agent


@asynccontextmanager
async def opening(config):
    loop = asyncio.get_running_loop()
    log.append("opened")
    yield saying(lambda: f"{log.count('opened') - log.count('closed')} open")
    assert loop is asyncio.get_running_loop()
    log.append("closed")


@contextmanager
def opening_sync():
    log.append("opened")
    yield saying(lambda: f"{log.count('opened') - log.count('closed')} open")
    log.append("closed")


@asynccontextmanager
async def failing_at_its_end():
    yield agent
    raise ConnectionError("the store hung up")


def fails():
    raise ConnectionError("no store")


async def generator():
    yield agent


def of_three(a, b, c): ...


class Keyed(TypedDict):
    question: str


keyed = StateGraph(Keyed).add_node("node", lambda state: state).add_edge(START, "node")
number = 3
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Change to a folder with graphs in a file, and return it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(langgraph_config, "_added", [])  # folders with graphs that other tests loaded
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graphs.py").write_text(GRAPHS, encoding="utf-8")
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def write(folder: Path, graphs: Any, name: str = "langgraph.json", **more: Any) -> None:
    (folder / name).write_text(json.dumps({"dependencies": ["."], "graphs": graphs, **more}), encoding="utf-8")


def answer(spec: str, **options: Any) -> str:
    (response,) = run_benchmark(spec, DATASET, limit=1, progress="off", **options).responses
    return str(response["actual_answer"])


# --- the graph's spec ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("agent", "compiled"),
        ("uncompiled", "uncompiled"),
        ("storing", "kept"),
        ("of_config", "m1"),
        ("of_coroutine", "compiled"),
        ("opening", "1 open"),
        ("opening_sync", "1 open"),
    ],
)
def test_graph_is_loaded_in_every_form(project: Path, variable: str, text: str) -> None:
    write(project, {"g": f"./graphs.py:{variable}"})
    assert answer("langgraph.json:g", agent_config={"configurable": {"model": "m1"}}) == text


@pytest.mark.parametrize("entry", ["./graphs.py:agent", {"path": "./graphs.py:agent", "description": "An agent."}])
@pytest.mark.parametrize("spec", ["g", "langgraph.json:g", "{folder}/langgraph.json:g"])
def test_entry_and_spec_have_several_forms(project: Path, entry: Any, spec: str) -> None:
    write(project, {"g": entry})
    assert answer(spec.format(folder=project)) == "compiled"


def test_local_dependencies_are_added_to_sys_path_and_nothing_is_installed(project: Path) -> None:
    (project / "src" / "package_of_the_test").mkdir(parents=True)
    (project / "src" / "package_of_the_test" / "made.py").write_text("from graphs import agent as graph")
    write(project, {"g": "package_of_the_test.made:graph"}, dependencies=["./src", "no-such-package>=1", "."])
    before = list(sys.path)
    assert answer("g") == "compiled"
    assert sys.path == [*before, str(project), str(project / "src")]  # after all others, as in langgraph


# --- env -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_file", [False, True])
def test_env_overrides_the_environment_during_the_run(
    project: Path, monkeypatch: pytest.MonkeyPatch, is_file: bool
) -> None:
    if is_file:
        pytest.importorskip("dotenv")
    monkeypatch.setenv("MODEL_OF_THE_TEST", "of the process")
    (project / ".env").write_text("# the model\nexport MODEL_OF_THE_TEST='of env'\n", encoding="utf-8")
    write(project, {"g": "./graphs.py:model"}, env=".env" if is_file else {"MODEL_OF_THE_TEST": "of env"})
    assert answer("g") == "of env"
    assert os.environ["MODEL_OF_THE_TEST"] == "of the process"


def test_missing_env_file_has_a_warning(project: Path) -> None:
    write(project, {"g": "./graphs.py:agent"}, env=".env")
    run = run_benchmark("g", DATASET, progress="off")
    assert "langgraph.json: the file .env is missing, so that env sets nothing" in run.warnings


# --- context managers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["opening", "opening_sync"])
def test_context_manager_is_opened_once_and_closed_at_the_end(project: Path, variable: str) -> None:
    (project / "opening_of_the_test.py").write_text("from graphs import *", encoding="utf-8")
    write(project, {"g": f"opening_of_the_test:{variable}"})
    for count in (1, 2):  # twice in the same process
        run = run_benchmark("g", DATASET, progress="off")
        assert [response["actual_answer"] for response in run.responses] == ["1 open"] * 3
        assert sys.modules["graphs"].log == ["opened", "closed"] * count
    plan_benchmark("g", DATASET)
    assert sys.modules["graphs"].log == ["opened", "closed"] * 3


def test_modules_of_two_graphs_in_one_process_do_not_mix(project: Path) -> None:
    for name in ("first", "second"):
        folder = project / name
        folder.mkdir()
        (folder / f"only_of_{name}_in_the_test.py").write_text(f"TEXT = '{name}'", encoding="utf-8")
        (folder / "late_in_the_test.py").write_text(f"TEXT = '{name}'", encoding="utf-8")
        code = f"from only_of_{name}_in_the_test import TEXT\n" + GRAPHS
        code += "\nplain = saying(lambda: TEXT)\ndef late():\n    import late_in_the_test as late\n"
        code += "    return saying(lambda: late.TEXT)\n"
        (folder / "graphs.py").write_text(code, encoding="utf-8")
        write(folder, {"plain": "./graphs.py:plain", "late": "./graphs.py:late"})
    assert answer("first/langgraph.json:plain") == "first"
    assert answer("second/langgraph.json:plain") == "second"
    assert answer("second/langgraph.json:late") == "second"
    assert error_of("first/langgraph.json:late") == (
        "first/langgraph.json, key graphs.late: the module late_in_the_test is already loaded from "
        f"{project}/second/late_in_the_test.py, so that {project}/first/late_in_the_test.py would not be. Run each of "
        "the two in a separate process."
    )


# --- errors ----------------------------------------------------------------------------------------------------------


def error_of(spec: str) -> str:
    with pytest.raises(AgentError) as caught:
        asyncio.run(aload_agent(spec))
    return str(caught.value)


def test_unknown_name_is_reported_with_the_nearest_first(project: Path) -> None:
    write(project, {"router": "./graphs.py:agent", "agent": "./graphs.py:agent"})
    complaint = "langgraph.json: the file has no graph agnt. It has agent, router; write langgraph.json:agent."
    assert error_of("agnt") == error_of("langgraph.json:agnt") == complaint
    assert error_of("langgraph.json") == (
        "langgraph.json does not say which graph. It has router, agent; write langgraph.json:router."
    )


def test_name_without_the_file_is_not_a_spec(project: Path) -> None:
    assert error_of("agent").startswith(
        "'agent' is not the spec of an agent, and the current folder has no langgraph.json. Write "
    )
    assert error_of("langgraph.json:agent") == (
        "langgraph.json: the LangGraph configuration cannot be read (the file does not exist). Fix the path."
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"graphs":\n}', "langgraph does not take it: invalid JSON: expected value at line 2 column 1"),
        ("[]", "langgraph.json: langgraph does not take it: "),
        ("{}", 'key graphs: langgraph does not take it: field required. Write "graphs": {'),
        ('{"graphs": {}}', "key graphs: langgraph does not take it: dictionary should have at least 1 item"),
        ('{"graphs": {"g": 3}}', "key graphs.g: langgraph does not take it: input should be a valid string"),
        ('{"graphs": {"g": "agent"}}', "key graphs.g: langgraph does not take it: string should match"),
        ('{"graphs": {"g": "./g.ts:g"}}', "key graphs.g: ./g.ts:g is JavaScript"),
        ('{"graphs": {"g": "./graphs.py:agent"}, "dependencies": "."}', "key dependencies: langgraph does not"),
        ('{"graphs": {"g": "./graphs.py:agent"}, "env": {"A": 1}}', "env is a file, such as"),
        ('{"graphs": {"g": "./graphs.py:agent"}, "env": {"A=B": "c"}}', "env is a file, such as"),
        ('{"graphs": {"g": "./graphs.py:agnt"}}', "./graphs.py has no variable agnt. It has agent, "),
        (
            '{"graphs": {"g": "./absent.py:g"}}',
            "key graphs.g: the file absent.py was not found. Files start from the folder",
        ),
        (
            '{"graphs": {"g": "absent_of_the_test:g"}}',
            "key graphs.g: the module absent_of_the_test was not found. Files",
        ),
        ('{"graphs": {"g": "./graphs.py:number"}}', "./graphs.py:number gives int, which langgraph does not take"),
        ('{"graphs": {"g": "./graphs.py:keyed"}}', "langgraph.json:g takes question, but no messages. Pass input_fn"),
        ('{"graphs": {"g": "./graphs.py:fails"}}', "./graphs.py:fails failed with ConnectionError: no store"),
        ('{"graphs": {"g": "./graphs.py:generator"}}', "Decorate it with contextlib.asynccontextmanager."),
        ('{"graphs": {"g": "./graphs.py:of_three"}}', "./graphs.py:of_three takes a, b, c"),
    ],
)
def test_invalid_config_is_reported(project: Path, text: str, complaint: str) -> None:
    (project / "langgraph.json").write_text(text, encoding="utf-8")
    assert complaint in error_of("langgraph.json:g")


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("def g(): raise ExceptionGroup('2 failed', [OSError('no server')])", "(1 sub-exception): OSError: no server."),
        ("def g(): raise ValueError('401: api_key=5f2a99c1')", "failed with ValueError: 401: api_key=***."),
        ("def g(): raise SystemExit('set a key')", "./failing.py:g failed with SystemExit: set a key."),
        ("raise SystemExit('set a key')", "loading failing.py failed with SystemExit: set a key."),
    ],
)
def test_failure_to_create_a_graph_is_reported(project: Path, code: str, complaint: str) -> None:
    (project / "failing.py").write_text(code, encoding="utf-8")
    write(project, {"g": "./failing.py:g"})
    assert complaint in error_of("g")
