"""A question that blocks the event loop, on the command line and in a notebook; and what only looks like one."""

import json
import signal
import time
from typing import Any

import nbclient
import nbformat
import pytest

pytestmark = pytest.mark.full

BLOCKING = """
import gc

gc.disable()  # a full collection stands still for 0.1 s too, at any time
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
options = {"timeout": 0.5, "progress": "off"}

def tell(run):
    print([response["question_id"] for response in run.responses if response["status"] == "error"], len(run.warnings))
    print([thread.name for thread in threading.enumerate() if "stalls" in thread.name])
"""


def test_neighbours_of_a_question_that_blocks_are_answered_and_the_command_says_who_it_was(run_on_disk: Any) -> None:
    run = run_on_disk(BLOCKING.format(seconds=3), 16)
    log = run.folder / "log.jsonl"
    process = run.start(run.command("-j", "8", "--timeout", "2", "--log-file", str(log)))
    _, stderr = process.communicate(timeout=60)
    assert "question q003 blocks the event loop" in stderr
    assert "in answer (" in stderr
    journalled = {key[0]: record for key, record in run.journalled().items()}
    assert [key for key, record in journalled.items() if record["status"] == "error"] == ["q003"]
    stalled = {key for key, record in journalled.items() if "stalled_sec" in record}
    assert stalled == {f"q{number:03}" for number in range(8)} - {"q003"}
    assert all(record["elapsed_sec"] >= 3 for key, record in journalled.items() if key in stalled)
    kinds = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert kinds.count("loop_stalled") == 1


def test_a_process_that_was_suspended_is_no_alarm_and_costs_no_question_its_time(run_on_disk: Any) -> None:
    run = run_on_disk(BLOCKING.format(seconds=0), 4)
    process = run.start(run.command("-j", "4", "--timeout", "2"))
    run.wait(process, lambda: run.number_asked >= 4)
    process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    process.send_signal(signal.SIGCONT)
    _, stderr = process.communicate(timeout=60)
    assert "event loop" not in stderr
    records = run.journalled().values()
    assert [record["status"] for record in records] == ["success"] * 4
    assert all(record["stalled_sec"] > 2 for record in records)


def test_the_first_signal_in_a_stall_stops_in_order(run_on_disk: Any) -> None:
    run = run_on_disk(BLOCKING.format(seconds=2), 16)
    process = run.start(run.command("-j", "4"))
    run.wait(process, lambda: run.number_asked >= 4)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert len(run.answered()) == 4


def test_the_second_signal_in_a_stall_ends_at_once(run_on_disk: Any) -> None:
    run = run_on_disk(BLOCKING.format(seconds=60), 16)
    process = run.start([each for each in run.command("-j", "4") if each != "--quiet"])
    run.wait(process, lambda: run.number_asked >= 4)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, stderr
    assert "question q003 blocks the event loop" in stderr


def test_both_ways_of_a_notebook_watch_the_loop_that_they_run_in_and_leave_nothing_behind() -> None:
    cells = [NOTEBOOK, *["tell(run_benchmark(agent, dataset, **options))"] * 2]
    cells += ["tell(await arun_benchmark(agent, dataset, **options))"] * 2
    notebook: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    told = ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells[1:]]
    assert told == ["['q1'] 1\n[]\n"] * 4
