from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.onboarding.project import Proposal, repository_of, spec_from, workflow
from graphrag_eval_lc.onboarding.tool_findings import ToolFinding

ROWS = ToolFinding("ask_graph", 2, "rows", "SPARQL", "sparql_query", form="W3C CSV", declared={"path": "data.rows"})
SQL = ToolFinding("ask_tables", 1, "rows", "SQL")
NOTES = ToolFinding("search_notes", 1, "documents", None, "retrieval", form="JSON with ids")
CLOCK = ToolFinding("clock", 1, "text")


def test_file_contains_the_proposed_sections() -> None:
    proposal = Proposal("agent.py:agent", [ROWS, SQL, NOTES, CLOCK])
    values = yaml.safe_load(proposal.text())
    assert values["run"] == {"agent": "agent.py:agent", "dataset": "questions.yaml", "output": "runs"}
    assert values["steps"] == {
        "names": {"ask_graph": "sparql_query"},
        "outputs": {"ask_graph": {"path": "data.rows"}},
        "kinds": {"ask_tables": "rows"},
    }
    assert values["retrieval"] == {"steps": ["search_notes"]}
    assert values["capture"] == {"retrieval_documents": ["search_notes"]}
    assert {key: values[key] for key in proposal.sections()} == proposal.sections()


def test_lines_are_commented_with_reasons() -> None:
    text = Proposal("agent.py:agent", [ROWS]).text()
    assert "    ask_graph: sparql_query  # 2 calls: SPARQL, rows as W3C CSV\n" in text


def test_unknown_agent_has_no_steps_section() -> None:
    assert set(yaml.safe_load(Proposal("agent.py:agent").text())) == {"run", "gates"}


@given(st.lists(st.text(min_size=1, max_size=100), unique=True, max_size=4), st.text(min_size=1))
def test_every_proposal_can_be_loaded(tools: list[str], agent: str) -> None:
    findings = [ToolFinding(tool, 1, "rows", "SPARQL", "sparql_query", form="a\n# b: {") for tool in tools]
    proposal = Proposal(agent, findings)
    values = yaml.safe_load(proposal.text())
    assert values["run"]["agent"] == agent
    assert load_config(values).steps.names == dict.fromkeys(tools, "sparql_query")


def test_file_specs_are_relative_to_the_projects_folder(tmp_path: Path) -> None:
    below = tmp_path / "eval"
    assert spec_from(str(tmp_path / "agent.py") + ":agent", below) == f"{tmp_path}/agent.py:agent"
    assert spec_from("agent.py:agent", Path()) == "agent.py:agent"
    assert spec_from("src/agent.py:agent", Path("src/eval")) == "../agent.py:agent"
    assert spec_from("langgraph.json:agent", Path("eval")) == "../langgraph.json:agent"
    for other in ("package.module:agent", "http://127.0.0.1:2024/agent", "agent"):
        assert spec_from(other, Path("eval")) == other


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_github_workflow_is_at_the_root_and_runs_in_the_projects_folder(repository: Path) -> None:
    folder = repository / "tests" / "agent"
    folder.mkdir(parents=True)
    (repository / "requirements.txt").write_text("langchain\n")
    path, text, _ = workflow("github", folder)
    assert path == repository / ".github" / "workflows" / "evaluation.yml"
    [job] = yaml.safe_load(text)["jobs"].values()
    assert job["defaults"]["run"]["working-directory"] == "tests/agent"
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0].startswith("pip install -r ../../requirements.txt ")
    assert commands[1].startswith("graphrag-eval-lc run --output runs/branch ")
    assert job["steps"][-1]["with"]["path"] == "tests/agent/runs/branch"


def test_workflow_at_the_root_needs_no_folder(repository: Path) -> None:
    (repository / "pyproject.toml").write_text("")
    _, text, _ = workflow("github", repository)
    [job] = yaml.safe_load(text)["jobs"].values()
    assert "defaults" not in job
    assert "pip install . 'graphrag-eval-lc[" in text


def test_gitlab_workflow_is_included_in_an_existing_one(repository: Path) -> None:
    path, text, _ = workflow("gitlab", repository)
    assert path == repository / ".gitlab-ci.yml"
    assert yaml.safe_load(text)["evaluate"]["artifacts"]["reports"] == {"junit": "junit.xml"}
    path.write_text("test: {script: [make]}\n")
    path, _, to_do = workflow("gitlab", repository)
    assert path == repository / ".gitlab" / "evaluation.yml"
    assert "include: [{local: .gitlab/evaluation.yml}]" in to_do


def test_folder_outside_a_repository_is_its_own_root(tmp_path: Path) -> None:
    assert repository_of(tmp_path) == tmp_path.resolve()
