import json
from pathlib import Path

import pytest
import yaml

from graphrag_eval_lc.cli import main

AGENT = '''
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
import pyoxigraph

store = pyoxigraph.Store()
store.load(b'<urn:a> <urn:name> "Oslo" .', format=pyoxigraph.RdfFormat.TURTLE)


@tool
def ask_graph(query: str) -> str:
    """Run a SPARQL query."""
    return store.query(query).serialize(format=pyoxigraph.QueryResultsFormat.CSV).decode()


class Rules(BaseChatModel):
    """Asks for the name of urn:a, whatever the question."""

    @property
    def _llm_type(self):
        return "rules"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options):
        if "fail" in messages[0].content:
            raise ValueError("the model is out")
        if isinstance(messages[-1], ToolMessage):
            answer = AIMessage("It is Oslo.")
        else:
            call = {"name": "ask_graph", "args": {"query": "SELECT ?n { <urn:a> <urn:name> ?n }"}, "id": "c"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


agent = create_agent(Rules(), [ask_graph])
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "grid_agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ending:
        main(arguments)
    code = ending.value.code
    assert code is None or isinstance(code, int)
    return code or 0


def test_project_of_an_agent_that_was_asked_is_run_and_passes_its_gate(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("init", "-a", "grid_agent.py:agent", "-o", "eval", "--ask", "What is a called?", "--yes") == 0
    told = capsys.readouterr().out
    assert "  ask_graph: 1 call: SPARQL, rows as W3C CSV, compared as sparql_query\n" in told
    assert "The dataset has 1 question drafted" in told
    monkeypatch.chdir(folder / "eval")
    assert yaml.safe_load(Path("graphrag_eval.yaml").read_text())["run"]["agent"] == "../grid_agent.py:agent"
    [template] = yaml.safe_load(Path("questions.yaml").read_text())
    [question] = template["questions"]
    assert question["id"] == "what_is_a_called"
    assert question["reference_answer"] == "It is Oslo."
    assert exit_code("validate") == 0
    assert exit_code("run") == 0
    assert "Gate passed: steps_score 1.000 reaches 0.8" in capsys.readouterr().out


def test_recorded_responses_stand_in_for_asking(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {"head": {"vars": ["n"]}, "results": {"bindings": [{"n": {"type": "literal", "value": "1"}}]}}
    step = {"name": "ask_graph", "args": {"query": "SELECT ?n {}"}, "status": "success", "output": json.dumps(rows)}
    response = {"question_id": "q", "question_text": "1?", "actual_answer": "1", "actual_steps": [step]}
    Path("responses.jsonl").write_text(json.dumps(response) + "\n")
    assert exit_code("init", "-a", "grid_agent.py:agent", "--responses", "responses.jsonl", "-y") == 0
    [template] = yaml.safe_load(Path("questions.yaml").read_text())
    assert [question["id"] for question in template["questions"]] == ["q"]


def test_without_question_and_responses_the_dataset_waits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("init", "-a", "grid_agent.py:agent", "--yes") == 0
    told = capsys.readouterr().out
    assert "ask_graph: not called yet; its description mentions SPARQL, compared as sparql_query" in told
    assert "The dataset waits for your first question." in told
    assert exit_code("validate") == 0


def test_files_that_are_there_are_not_replaced_and_the_agent_is_not_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("questions.yaml").write_text("mine")
    assert exit_code("init", "-a", "grid_agent.py:agent", "--ask", "fail", "--yes") == 2
    assert "questions.yaml: the file exists already" in capsys.readouterr().err
    assert not Path("graphrag_eval.yaml").exists()
    assert Path("questions.yaml").read_text() == "mine"
    assert exit_code("init", "-a", "grid_agent.py:agent", "--yes", "--overwrite") == 0


def test_agent_that_fails_is_a_finding_and_the_files_are_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("init", "-a", "grid_agent.py:agent", "--ask", "fail", "--yes") == 1
    assert "Warning: fail failed: ValueError: the model is out." in capsys.readouterr().err
    assert Path("graphrag_eval.yaml").exists()


def test_graph_of_langgraph_json_is_taken_by_itself(folder: Path) -> None:
    Path("langgraph.json").write_text('{"dependencies": ["."], "graphs": {"grid": "./grid_agent.py:agent"}}')
    assert exit_code("init", "--yes") == 0
    assert yaml.safe_load(Path("graphrag_eval.yaml").read_text())["run"]["agent"] == "langgraph.json:grid"


def test_without_an_agent_the_hint_names_the_option(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("init", "--yes") == 2
    assert "there is no agent. Add --agent my_agent.py:agent." in capsys.readouterr().err
    Path("langgraph.json").write_text('{"graphs": {"a": "./x.py:a", "b": "./x.py:b"}}')
    assert exit_code("init", "--yes") == 2
    assert "langgraph.json has several graphs: a, b. Add --agent langgraph.json:a." in capsys.readouterr().err


def test_question_and_responses_exclude_each_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("init", "-a", "grid_agent.py:agent", "--ask", "a?", "--responses", "x.jsonl", "--yes") == 2
    assert "--ask and --responses exclude each other" in capsys.readouterr().err


def test_workflow_is_written_on_request(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".git").mkdir()
    assert exit_code("init", "-a", "grid_agent.py:agent", "-o", "eval", "--ci", "github", "--yes") == 0
    assert "working-directory: eval" in (folder / ".github/workflows/evaluation.yml").read_text()
    assert "Note: Add the agent's keys to the repository's secrets" in capsys.readouterr().out


def test_answer_without_tools_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("plain.py").write_text("def agent(question):\n    return 'Oslo'\n")
    assert exit_code("init", "-a", "plain.py:agent", "--ask", "Who?", "--yes") == 1
    assert "no tool was called for who, so that there are no steps to compare" in capsys.readouterr().err
