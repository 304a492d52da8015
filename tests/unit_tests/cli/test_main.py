import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.cli import main
from graphrag_eval_lc.errors import DatasetError

DATASET = """\
- template_id: t
  questions:
  - id: q1
    question_text: Where is OSLO?
    reference_steps:
    - - {name: lookup, output: "urn:oslo"}
"""
AGENT = """
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


def answer(state):
    return {"messages": [AIMessage("In NO1.")]}


def fail(state):
    raise RuntimeError("away")


def compiled(node):
    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile()


graph = compiled(answer)


def make_failing():
    return compiled(fail)
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "qa.yaml").write_text(DATASET)
    (tmp_path / "agent.py").write_text(AGENT)
    step = {"name": "lookup", "args": {}, "id": "c", "status": "success", "output": "urn:oslo"}
    (tmp_path / "responses.jsonl").write_text(json.dumps({"question_id": "q1", "actual_steps": [step]}))
    return tmp_path


def exit_code(*arguments: Any) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def test_score_prints_the_table_and_writes_the_folder(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("score", files / "qa.yaml", files / "responses.jsonl", "--output", files / "run") == 0
    assert "1.000" in capsys.readouterr().out
    assert json.loads((files / "run" / "results.jsonl").read_text())["steps_score"] == 1.0


def test_run_asks_the_agent(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", files / "qa.yaml", "-a", f"{files / 'agent.py'}:graph", "-o", files / "run") == 0
    assert "the agent did not call lookup nor any other tool" in " ".join(capsys.readouterr().out.split())
    assert json.loads((files / "run" / "responses.jsonl").read_text())["actual_answer"] == "In NO1."


def test_run_in_which_no_question_is_answered_is_a_finding(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", files / "qa.yaml", "-a", f"{files / 'agent.py'}:make_failing", "-o", files / "run") == 1
    assert "Not one question was answered" in capsys.readouterr().err
    assert json.loads((files / "run" / "results.jsonl").read_text())["error"] == "RuntimeError: away"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["score", "absent.yaml", "responses.jsonl", "-o", "run"], "Error: absent.yaml: the reference dataset cannot"),
        (["score", "qa.yaml", "absent.jsonl", "-o", "run"], "Error: absent.jsonl: the file of responses cannot"),
        (["score", "agent.py", "responses.jsonl", "-o", "run"], "Error: agent.py"),
        (["score", "qa.yaml", "responses.jsonl", "-o", "run", "-c", "absent.yaml"], "the config cannot be read"),
        (
            ["run", "qa.yaml", "-a", "agent.py:absent", "-o", "run"],
            "It has: answer, fail, compiled, graph, make_failing.",
        ),
        (["run", "qa.yaml", "-a", "agent", "-o", "run"], "'agent' is no spec of an agent"),
    ],
)
def test_wrong_input_is_one_sentence_and_code_2(
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    complaint: str,
) -> None:
    monkeypatch.chdir(files)
    assert exit_code(*arguments) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert "Traceback" not in error
    assert not (files / "run" / "results.jsonl").exists()


def test_folder_of_an_earlier_run_is_replaced_only_on_demand(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("score", files / "qa.yaml", files / "responses.jsonl", "-o", files / "run")
    assert exit_code(*arguments) == 0
    assert exit_code(*arguments) == 2
    assert "pass --overwrite" in capsys.readouterr().err
    assert exit_code(*arguments, "--overwrite") == 0


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(DatasetError):
        main(["score", "absent.yaml", "responses.jsonl", "-o", "run", "--debug"])


def test_wrong_usage_is_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("score") == 2
    assert exit_code("absent") == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["demo"], ["run"], ["score"]])
def test_help_has_an_example_of_each_command(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*command, "--help") == 0
    text = capsys.readouterr().out
    assert not command or f"graphrag-eval-lc {command[0]}" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out.startswith("graphrag-eval-lc 0.")


def test_command_is_installed_and_help_loads_no_agent_framework() -> None:
    code = (
        "import sys, contextlib\nfrom graphrag_eval_lc.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['run', '--help'])\n"
        "print('LOADED', *sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "langchain_core" not in output.partition("LOADED")[2].split()
    command = Path(sys.executable).with_name("graphrag-eval-lc")
    assert subprocess.run([command, "--version"], capture_output=True, check=False).returncode == 0
