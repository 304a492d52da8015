"""Tools that are called otherwise than the reference steps: told by run, score, validate and the report."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]

AGENT = '''
import pyoxigraph
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

STORE = pyoxigraph.Store()
for number in range(3):
    line = pyoxigraph.NamedNode(f"urn:line{number}")
    STORE.add(pyoxigraph.Quad(line, pyoxigraph.NamedNode("urn:kv"), pyoxigraph.Literal(100 + number)))


@tool
def run_sparql(query: str) -> str:
    """Run a query."""
    return STORE.query(query).serialize(format=pyoxigraph.QueryResultsFormat.JSON).decode()


@tool
def think(thought: str) -> str:
    """Think."""
    return "ok"


class Model(BaseChatModel):
    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options):
        line = next(message.text for message in messages if message.type == "human").split()[-1]
        query = f"SELECT ?volts {{ <urn:{line}> <urn:kv> ?volts }}"
        calls = [("think", {"thought": "?"}), ("run_sparql", {"query": query})]
        done = sum(isinstance(message, ToolMessage) for message in messages)
        name, args = calls[done] if done < 2 else (None, None)
        asked = [{"name": name, "args": args, "id": f"c{done}"}] if name else []
        return ChatResult(generations=[ChatGeneration(message=AIMessage("" if name else "done", tool_calls=asked))])


graph = create_agent(Model(), [run_sparql, think])
'''
TOLD = (
    "run_sparql is called in 3 of 3 responses and no reference step has that name; "
    "perhaps `steps: {names: {run_sparql: sparql_query}}` in the config"
)
RUN = ("run", "qa.json", "-a", "agent.py:graph", "-o", "run", "--quiet")


def question(number: int) -> dict[str, object]:
    cell = {"type": "literal", "value": str(100 + number), "datatype": "http://www.w3.org/2001/XMLSchema#integer"}
    step = {
        "name": "sparql_query",
        "output": json.dumps({"head": {"vars": ["v"]}, "results": {"bindings": [{"v": cell}]}}),
        "output_media_type": "application/sparql-results+json",
    }
    return {"id": f"q{number}", "question_text": f"How many kV has line{number}", "reference_steps": [[step]]}


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text(AGENT)
    Path("qa.json").write_text(json.dumps([{"template_id": "t", "questions": [question(i) for i in range(3)]}]))
    Path("config.yaml").write_text("steps: {names: {run_sparql: sparql_query}}")


def steps_score() -> float:
    results = [json.loads(line) for line in Path("run/results.jsonl").read_text().splitlines()]
    return sum(result["steps_score"] for result in results) / len(results)


@pytest.mark.full
def test_run_and_score_tell_it_until_the_config_names_the_tool(
    agent: None, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*RUN) == 0
    assert capsys.readouterr().err.count(f"Warning: {TOLD}\n") == 1
    report = Path("run/report.html").read_text()
    assert report.count(f"<li><bdi>{TOLD}</bdi></li>") == 1
    assert "run_sparql: no reference step has that name" in report
    assert exit_code("score", "run") == 0
    assert f"Warning: {TOLD}\n" in capsys.readouterr().err
    assert steps_score() == 0.0
    assert exit_code("score", "run", "--config", "config.yaml") == 0
    assert "Warning" not in capsys.readouterr().err
    assert steps_score() == 1.0
    assert "no reference step has that name" not in Path("run/report.html").read_text()


def test_recorded_responses_tell_it_too(agent: None, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*RUN) == 0
    capsys.readouterr()
    assert exit_code("score", "qa.json", "run/responses.jsonl", "-o", "scored") == 0
    assert f"Warning: {TOLD}\n" in capsys.readouterr().err


def test_validate_finds_it_until_the_config_names_the_tool(
    agent: None, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*RUN) == 0
    capsys.readouterr()
    assert exit_code("validate", "qa.json", "--responses", "run/responses.jsonl") == 1
    output = capsys.readouterr().out
    assert output.startswith("run/responses.jsonl, line 1, question q")
    what, _, hint = TOLD.partition("; ")
    assert f"key [0].actual_steps[1].name: {what}. P{hint[1:]}.\n\n1 problem found.\n" in output
    assert exit_code("validate", "qa.json", "-r", "run/responses.jsonl", "-c", "config.yaml") == 0
    assert exit_code("validate", "qa.json", "--config", "absent.yaml") == 2
