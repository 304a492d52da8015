"""Projects outside the repository, and pytest sessions in them as separate processes."""

import os
import subprocess
import sys
from pathlib import Path

import graphrag_eval_lc
from support.forked_commands import run_forked

DATASET = """\
- template_id: where
  questions:
  - id: oslo
    question_text: Where is OSLO?
    reference_steps: [[{name: lookup, output: "urn:OSLO"}]]
  - id: bergen
    question_text: Where is BERGEN?
    reference_steps: [[{name: lookup, output: "urn:NO5"}]]
- template_id: who
  questions:
  - id: away
    question_text: Who is AWAY?
    reference_steps: [[{name: lookup, output: "urn:nobody"}]]
"""
# A graph with a rule-based model: it looks up the capitalized word.
AGENT = """\
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph


@tool
def lookup(name: str) -> str:
    "Look a name up."
    if name == "AWAY":
        raise RuntimeError("no route to the graph")
    return f"urn:{name}"


def answer(state, config):
    word = next(word for word in state["messages"][-1].content.rstrip("?").split() if word.isupper())
    return {"messages": [AIMessage(f"In {lookup.invoke({'name': word}, config)}.")]}


def make_agent():
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile()
"""
TEST = """\
import pytest
from my_agent import make_agent


@pytest.fixture(scope="session")
def agent():
    return make_agent()


@pytest.mark.graphrag_dataset("qa.yaml")
def test_agent(graphrag_question, graphrag_ask, agent):
    assert graphrag_ask(agent)["steps_score"] >= 0.5
"""


def environment(**more: str) -> dict[str, str]:
    """Return environment variables with which pytest loads only named plugins."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    package = str(Path(graphrag_eval_lc.__file__).parents[1])
    own = {"PYTHONPATH": package, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "120"}
    return {**kept, **own, **more}


def command(*arguments: str) -> list[str]:
    """Return the pytest command with the plugin and pytest-xdist."""
    plugins = ["-p", "xdist.plugin", "-p", "graphrag_eval_lc.pytest_plugin"]
    return [sys.executable, "-m", "pytest", *plugins, "--strict-markers", *arguments]


def run_in(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a pytest session in a folder."""
    return run_forked(
        "pytest",
        command(*arguments)[3:],
        libraries=("pytest", "langchain.agents", "langgraph.graph"),
        environment=environment(**variables),
        folder=folder,
        path=[str(folder), str(Path(graphrag_eval_lc.__file__).parents[1])],
    )


def write_project(folder: Path, test: str = TEST) -> Path:
    """Write a project with a dataset, an agent and a test."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("qa.yaml", DATASET),
        ("my_agent.py", AGENT),
        ("test_agent.py", test),
        ("pytest.ini", "[pytest]\n"),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    return folder
