"""Questions that block the event loop, on the command line and in a notebook, and false alarms."""

import signal
import time
from typing import Any

import nbclient
import nbformat
import pytest

pytestmark = pytest.mark.full

BLOCKING = """
SECONDS = {seconds}

async def answer(state, config: RunnableConfig):
    note(config)
    if config["metadata"]["question_id"] == "q003":
        time.sleep(SECONDS)
    await asyncio.sleep(0.5)
    return {{"messages": [AIMessage("yes")]}}

graph = graph_of(answer)
"""

NOTEBOOK = """
import asyncio, threading, time
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from graphrag_eval_lc import arun_benchmark, run_benchmark

async def answer(state):
    if state["messages"][-1].content == "q1":
        time.sleep(0.9)
    await asyncio.sleep(0.1)
    return {"messages": [AIMessage("yes")]}

builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
agent = builder.compile()
dataset = [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": f"q{n}"} for n in range(4)]}]
options = {"progress": "off"}

def tell(run):
    print(len(run.responses), len(run.warnings))
    print([thread.name for thread in threading.enumerate() if "stalls" in thread.name])
"""


def test_command_names_the_blocking_question_and_answers_all(run_on_disk: Any) -> None:
    run = run_on_disk(BLOCKING.format(seconds=3), 16)
    process = run.start(run.command("-j", "8"))
    _, stderr = process.communicate(timeout=60)
    assert stderr.count("blocks the event loop") == 1
    assert "answer (" in stderr
    assert [record["status"] for record in run.responses().values()] == ["success"] * 16


def test_suspended_process_is_not_reported(run_on_disk: Any) -> None:
    run = run_on_disk(BLOCKING.format(seconds=0), 4)
    process = run.start(run.command("-j", "4"))
    run.wait(process, lambda: run.attempt_count >= 4)
    process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    process.send_signal(signal.SIGCONT)
    _, stderr = process.communicate(timeout=60)
    assert "event loop" not in stderr
    assert [record["status"] for record in run.responses().values()] == ["success"] * 4


def test_first_signal_in_a_stall_stops_cleanly(run_on_disk: Any) -> None:
    run = run_on_disk(BLOCKING.format(seconds=2), 16)
    process = run.start(run.command("-j", "4"))
    run.wait(process, lambda: run.attempt_count >= 4)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert len(run.answered()) == 4


def test_second_signal_in_a_stall_ends_immediately(run_on_disk: Any) -> None:
    run = run_on_disk(BLOCKING.format(seconds=60), 16)
    process = run.start([each for each in run.command("-j", "4") if each != "--quiet"])
    run.wait(process, lambda: run.attempt_count >= 4)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, stderr
    assert "blocks the event loop" in stderr


def test_notebooks_watch_their_event_loop_and_clean_up() -> None:
    cells = [NOTEBOOK, *["tell(run_benchmark(agent, dataset, **options))"] * 2]
    cells += ["tell(await arun_benchmark(agent, dataset, **options))"] * 2
    notebook: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    outputs = ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells[1:]]
    assert outputs == ["4 1\n[]\n"] * 4
