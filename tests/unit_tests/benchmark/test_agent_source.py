"""A run folder rejects new answers of an agent whose source changed, and names the change."""

import json
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graphrag_eval_lc import load_run, merge_runs, run_benchmark, score_run, write_report
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
from graphrag_eval_lc.cli import main
from graphrag_eval_lc.errors import RunFolderError

DATASET: Any = [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": f"{n}?"} for n in range(3)]}]
REUSED = re.compile(r"0 asked, 3 reused from \d{4}-\d\d-\d\d \d\d:\d\d \(--overwrite asks again\)")
FILES = {
    "agent.py": "from pack.tools import (  # a comment\n    find,\n)\n\n\ndef agent(question):\n    import lazy\n"
    "    return find(question)\n\n\n"
    "def make():\n    return agent\n",
    "pack/__init__.py": "",
    "pack/tools.py": "import os, json; from . import inner as other\ndef find(question): return other.ANSWER\n",
    "pack/inner.py": 'ANSWER = "1"\n',
    "pack/agent.py": "from .tools import find as agent\n",
    # A file with the name of a standard library module, which precedes it on sys.path.
    "profile.py": "A = 1\n",
    "named.py": "from profile import A\ndef agent(question):\n    return str(A)\n",
    "lazy.py": "A = 1\n",
    "unused.py": "A = 1\n",
    "langgraph.json": '{"graphs": {"g": "./graph.py:graph"}}',
    "graph.py": "from langgraph.graph import MessagesState, StateGraph\nfrom pack.tools import find\n"
    'graph = StateGraph(MessagesState)\ngraph.add_node("n", lambda state: {"messages": [("ai", find("q"))]})\n'
    'graph.set_entry_point("n")\n',
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {**FILES, "qa.json": json.dumps(DATASET)}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    forget_modules()  # the folder of another test
    return tmp_path


def forget_modules() -> None:
    """Unload the project's modules, so that Python loads them as in a new process."""
    for name in [each for each in sys.modules if each.partition(".")[0] in ("pack", "lazy", "old_helper", "profile")]:
        del sys.modules[name]


def ask(spec: str, **options: Any) -> BenchmarkRun:
    """Run an agent whose modules are loaded as in a new process."""
    forget_modules()
    return run_benchmark(spec, DATASET, **{"output_dir": "run", "progress": "off", "report": False, **options})


# Files whose change is rejected: the agent's own, all its imports, and theirs.
@pytest.mark.parametrize(
    ("spec", "files"),
    [
        ("agent.py:agent", ("agent.py", "pack/tools.py", "pack/inner.py", "pack/__init__.py", "lazy.py")),
        ("agent.py:make", ("pack/inner.py",)),
        ("pack.agent:agent", ("pack/agent.py", "pack/inner.py")),
        ("named.py:agent", ("named.py", "profile.py")),
        ("g", ("langgraph.json", "graph.py", "pack/inner.py")),
    ],
)
def test_changed_file_is_rejected_by_name(project: Path, spec: str, files: tuple[str, ...]) -> None:
    ask(spec)
    (project / "unused.py").write_text("A = 2\n")
    for name in files:
        text = (project / name).read_text()
        (project / name).write_text(f"{text}\n")  # any change counts
        forget_modules()
        with pytest.raises(
            RunFolderError, match=rf"since it gave the 3 answers of \S+ \S+: {name} changed\. Add --over"
        ):
            plan_benchmark(spec, DATASET, output_dir="run")
        (project / name).write_text(text)
    forget_modules()
    assert plan_benchmark(spec, DATASET, output_dir="run").to_ask == []


def test_project_folder_may_be_on_pythonpath(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("agents", "evals"):
        (project / folder).mkdir()
    (project / "agents/main.py").write_text("from pack.tools import find as agent\n")
    monkeypatch.setenv("PYTHONPATH", str(project))
    monkeypatch.chdir(project / "evals")
    monkeypatch.syspath_prepend(project)
    ask("../agents/main.py:agent")
    (project / "pack/inner.py").write_text('ANSWER = "2"\n')
    with pytest.raises(RunFolderError, match=r"pack/inner.py changed\. Add --overwrite"):
        ask("../agents/main.py:agent")


@pytest.mark.parametrize("way", ["./{0}", "pack/../{0}", "{1}/{0}", "../{2}/{0}"])
@pytest.mark.parametrize("spec", ["agent.py:agent", "langgraph.json:g"])
def test_spelling_of_the_path_does_not_matter(project: Path, spec: str, way: str) -> None:
    run_benchmark(spec, DATASET, output_dir="run", progress="off")
    again = plan_benchmark(way.format(spec, project, project.name), DATASET, output_dir="run")
    assert list(again.to_ask) == []


@pytest.mark.parametrize("first", [(), pytest.param(("--isolate",), marks=pytest.mark.full)])  # starts a process
def test_overwrite_and_keep_answers_resolve_the_conflict(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], first: tuple[str, ...]
) -> None:
    def command(*options: str) -> tuple[int, str, str]:
        forget_modules()
        monkeypatch.setattr(
            "sys.argv", ["", "run", "qa.json", "-o", "run", "--no-report", "-a", "agent.py:agent", *options]
        )
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    assert command(*first)[0] == 0
    (project / "pack/inner.py").write_text('ANSWER = "2"\n')
    code, _, errors = command("--force")
    assert code == 2
    assert "pack/inner.py changed. Add --overwrite (overwrite=True) to ask everything again, or --keep-" in errors
    code, kept, errors = command("--keep-answers")
    assert (code, bool(REUSED.match(errors))) == (0, True)
    note = r"3 answers of \S+ \S+ kept although the agent changed since: pack/inner.py changed"
    assert re.search(note, kept)
    assert json.loads(Path("run/run.json").read_text())["keep_answers"][0]["answers"] == 3
    code, again, _ = command()  # the current source; the kept answers are still reported
    assert code == 0
    for text in (again, score_run("run").notes[0], load_run("run").notes[0]):
        assert re.search(note, text)
    assert re.search(note, write_report("run").read_text())
    code, output, errors = command("--overwrite")
    assert (code, "kept" in output, "reused" in errors) == (0, False, False)
    assert '"2"' in Path("run/responses.jsonl").read_text()


def test_completely_failed_agent_is_rerun_once_fixed(project: Path) -> None:
    (project / "pack/inner.py").write_text("\n")
    assert {response["status"] for response in ask("agent.py:agent").responses} == {"error"}
    (project / "pack/inner.py").write_text('ANSWER = "2"\n')
    forget_modules()
    with pytest.raises(RunFolderError, match="since it gave the 3 answers"):  # all of which are errors
        plan_benchmark("agent.py:agent", DATASET, output_dir="run")
    assert len(plan_benchmark("agent.py:agent", DATASET, output_dir="run", retry_errors=True).to_ask) == 3


def test_folder_without_digests_is_resumed(project: Path) -> None:
    run_benchmark("agent.py:agent", DATASET, output_dir="run", progress="off")
    record = json.loads(Path("run/run.json").read_text())
    assert record.pop("agent_digests")
    for digests in (None, {}, {"/dev/zero": 1, "agent.py": []}):
        changed = {} if digests is None else {"agent_digests": digests}
        Path("run/run.json").write_text(json.dumps({**record, **changed}))
        with pytest.raises(RunFolderError, match="changed since it gave the 3 answers") if digests else nullcontext():
            plan_benchmark("agent.py:agent", DATASET, output_dir="run")


def test_parts_run_from_different_folders_are_merged(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(project))
    monkeypatch.syspath_prepend(project)
    for part, folder in enumerate((project.parent, project), start=1):
        monkeypatch.chdir(folder)
        ask("pack.agent:agent", shard=f"{part}/2", output_dir=project / f"part-{part}")
    run = merge_runs(["part-1", "part-2"], output_dir="whole", dataset="qa.json")
    assert len(run.responses) == 3


def test_parts_with_different_source_are_not_merged(project: Path) -> None:
    for part in (1, 2):
        ask("agent.py:agent", shard=f"{part}/2", output_dir=f"part-{part}")
        (project / "pack/inner.py").write_text('ANSWER = "2"\n')
    with pytest.raises(RunFolderError, match=r"not parts of one run: .*agent_digests\.pack/inner\.py is "):
        merge_runs(["part-1", "part-2"], output_dir="whole")


# --- agents made in Python -------------------------------------------------------------------------------------------

# Each is defined with an answer. At a prompt there is no file; in a script, both versions are in the same file.
AGENTS = """
import functools
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import MessagesState, StateGraph
from langchain.agents import create_agent

PROMPT = ANSWER
class Model(FakeListChatModel):
    def bind_tools(self, *args, **kwargs): return self
@tool
def search(q: str) -> str:
    "Search."
    return {0}
def helper(q): return {0}
def plain(question): return {0}
def by_helper(question): return helper(question)
def by_global(question): return PROMPT
def factory():
    def agent(question): return {0}
    return agent
def two(key, question): return {0}
async def coroutine(question): return {0}
def captured(answer): return lambda question: answer
class Callable:
    def __call__(self, question): return {0}
    def ask(self, question): return {0}
def node(state): return dict(messages=[("ai", {0})])
graph = StateGraph(MessagesState)
graph.add_node("n", node)
graph.set_entry_point("n")
agents = dict(
    plain=plain, by_helper=by_helper, by_global=by_global, factory=factory, made=factory(), coroutine=coroutine,
    captured=captured({0}), partial=functools.partial(two, 1), a_lambda=lambda question: {0}, an_object=Callable(),
    bound=Callable().ask, runnable=RunnableLambda(plain), sequence=RunnableLambda(len) | RunnableLambda(plain),
    graph=graph.compile(), tools=create_agent(Model(responses=["x"]), tools=[search]),
)
"""
SCRIPT = """
import json, sys
from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.errors import RunFolderError

def outcomes(agents):
    for name, agent in agents.items():
        try:
            run_benchmark(agent, json.load(open("qa.json")), output_dir="runs/" + name, progress="off", report=False)
            yield name, "fine"
        except RunFolderError as problem:
            yield name, "refused" if "changed since it gave the 3 answers" in str(problem) else str(problem)

found = []
ANSWER = "one"
{first}
found.append(dict(outcomes(agents)))
{first}
found.append(dict(outcomes(agents)))
ANSWER = "two"
{second}
found.append(dict(outcomes(agents)))
"""


def found_by(script: str, monkeypatch: pytest.MonkeyPatch, file: Path | None = None) -> list[dict[str, str]]:
    """Run a script as the main module: from its file, or as if typed at a prompt."""
    module = ModuleType("__main__")
    if file is not None:
        file.write_text(script)
        module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "__main__", module)
    exec(compile(script, "<stdin>" if file is None else file, "exec"), module.__dict__)
    return list(module.found)


@pytest.mark.parametrize("name", [None, "script.py"])
def test_redefined_function_is_rejected(project: Path, monkeypatch: pytest.MonkeyPatch, name: str | None) -> None:
    first, second = (AGENTS.format(repr(answer)) for answer in ("one", "two"))
    script = SCRIPT.format(first=first, second=second)
    initial, resumed, changed = found_by(script, monkeypatch, None if name is None else project / name)
    assert initial == resumed == dict.fromkeys(initial, "fine")
    assert changed == dict.fromkeys(initial, "refused")


# Changes that make a different agent without changing a function, and mere changes of state.
VALUES = """
from langchain_core.prompts import ChatPromptTemplate
numbered = {}
def by_name(value):
    global top_k
    top_k = value
    return lambda question: top_k
def state(value):
    asked, count = [], 0
    def agent(question):
        nonlocal count
        count += 1
        asked.append(question)
        numbered[question] = count
        return str(count)
    return agent
made_once = state(0)
changed = dict(
    number=by_name, closure=captured,
    prompt=lambda value: ChatPromptTemplate.from_template(f"{value} {{messages}}") | Model(responses=["x"]),
    model=lambda value: create_agent(Model(responses=[str(value)]), tools=[search]),
)
for value in (1, 1, 2):
    found.append(dict(outcomes({name: make(value) for name, make in changed.items()})))
for value in (1, 1, 2):
    found.append(dict(outcomes({"state": made_once})))
"""


def test_values_in_a_notebook_count_and_state_does_not(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = SCRIPT[: SCRIPT.index("{first}")] + AGENTS.format(repr("one"))
    *values, first, second, third = found_by(start + VALUES, monkeypatch)
    assert values[0] == values[1] == dict.fromkeys(values[0], "fine")
    assert values[2] == dict.fromkeys(values[0], "refused")
    assert first == second == third == {"state": "fine"}


@pytest.mark.full
def test_digests_are_the_same_in_each_process_and_contain_no_secret(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import json\nfrom graphrag_eval_lc import run_benchmark\n"
        'API_KEY = "sk-not-for-anyone-123456"\nWORDS = {"b", "a", "c"}\n'
        'def agent(question): return "yes" if question in {"x", "y", "z"} or API_KEY in WORDS else "no"\n'
        'run_benchmark(agent, "qa.json", output_dir="run", progress="off", overwrite=True)\n'
        'found = [json.load(open("run/run.json"))["agent_digests"]]\n'
    )
    here = found_by(script.replace("123456", "654321"), monkeypatch)
    program, environment = [sys.executable, "-"], {"PYTHONHASHSEED": "1"}
    text = f"{script}print(json.dumps(found))"
    ended = subprocess.run(program, input=text, capture_output=True, text=True, check=True, env=environment)
    assert here == json.loads(ended.stdout)
    assert list(here[0]) == ["__main__:API_KEY", "__main__:agent"]


def test_module_older_than_its_file_is_reported(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: Any = {"output_dir": "run", "progress": "off"}
    monkeypatch.syspath_prepend(project)
    (project / "old_helper.py").write_text('def answer(question): return "1"\n')
    (project / "asking.py").write_text("from old_helper import answer as agent\n")
    assert run_benchmark("asking.py:agent", DATASET, **options).warnings == []
    (project / "old_helper.py").write_text('def answer(question): return "2"\n')
    run = run_benchmark("asking.py:agent", DATASET, **options)
    assert run.responses[0]["actual_answer"] == "1"
    assert "old_helper.py changed after Python loaded it" in run.warnings[0]
    with pytest.raises(RunFolderError, match=r"old_helper\.py changed"):
        ask("asking.py:agent")
