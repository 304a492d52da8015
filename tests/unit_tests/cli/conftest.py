"""Files for the commands: a dataset, agents, and recorded responses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.cli import main

DATASET = """\
- template_id: where
  questions:
  - id: q1
    question_text: Where is OSLO?
    reference_steps:
    - - {name: lookup, output: "urn:oslo"}
- template_id: who
  questions:
  - {id: q2, question_text: Who runs OSLO?}
  - {id: q3, question_text: Who fails?}
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


async def sometimes(question):
    if "fails" in question:
        raise ValueError("no")
    return "yes"


def interrupted(question):
    import os, signal, time
    os.kill(os.getpid(), signal.SIGTERM if "runs" in question else signal.SIGINT)
    time.sleep(0.2)  # until the main thread has handled it
    return "yes"


def make_input(question):
    return question["id"]


def make_answer(output):
    return f"made of {output}"
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with a dataset, agents and responses, and return it."""
    (tmp_path / "qa.yaml").write_text(DATASET)
    (tmp_path / "agent.py").write_text(AGENT)
    step = {"name": "lookup", "args": {}, "id": "c", "status": "success", "output": "urn:oslo"}
    (tmp_path / "responses.jsonl").write_text(json.dumps({"question_id": "q1", "actual_steps": [step]}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def exit_code(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return a function that runs a command and returns its exit code."""

    def command(*arguments: Any) -> int:
        monkeypatch.setattr("sys.argv", ["graphrag-eval-lc", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        return int(caught.value.code or 0)

    return command
