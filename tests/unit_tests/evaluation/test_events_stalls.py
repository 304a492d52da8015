"""A run warns when a question, a judge or the caller blocks its event loop, and names the code."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from graphrag_eval_lc import arun_benchmark, run_benchmark, run_evaluation, score_responses
from graphrag_eval_lc.errors import GraphRAGEvalWarning

ANSWER = {"messages": [AIMessage("yes")]}


def graph_of(node: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile()


def dataset_of(questions: int) -> list[Any]:
    return [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": f"q{n}"} for n in range(questions)]}]


def agent_blocking(*questions: str, seconds: float = 0.9, work: float = 0.1) -> Any:
    async def node(state: MessagesState) -> Any:
        if state["messages"][-1].content in questions:
            time.sleep(seconds)  # noqa: ASYNC251
        await asyncio.sleep(work)
        return ANSWER

    return graph_of(node)


def run_of(agent: Any, questions: int = 4, **options: Any) -> Any:
    return run_benchmark(agent, dataset_of(questions), **{"progress": "off", "timeout": 5, **options})


def test_warning_names_the_blocking_code_while_it_blocks(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    run = run_of(agent_blocking("q1", "q2"), log_file=log)
    (warning,) = run.warnings
    assert warning.startswith("node (")
    assert "test_events_stalls.py:" in warning
    assert "blocks the event loop" in warning
    assert "asyncio.to_thread" in warning
    events = [json.loads(line) for line in log.read_text().splitlines()]
    (warned,) = [event for event in events if event["event"] == "warning"]
    assert warned["message"] == warning
    assert warned["time"] < next(event["time"] for event in events if event["event"] == "response_ended")


def test_timeouts_still_fire_and_sync_code_in_threads_does_not_block() -> None:
    run = run_of(agent_blocking("q1", seconds=1.2, work=0.3), timeout=1)
    assert len(run.warnings) == 1
    assert {response["status"] for response in run.responses} == {"error"}

    def node(state: MessagesState) -> Any:
        time.sleep(1.2 if state["messages"][-1].content == "q1" else 0.01)
        return ANSWER

    run = run_of(graph_of(node), timeout=1)
    assert [response["question_id"] for response in run.responses if response["status"] == "error"] == ["q1"]
    assert run.warnings == []


def test_two_runs_in_a_process_leave_no_threads_behind() -> None:
    for _ in range(2):
        run_of(agent_blocking())
        assert "graphrag-eval-lc-stalls" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.full
async def test_caller_that_blocks_its_own_loop_is_reported() -> None:
    async def callers_code() -> None:
        await asyncio.sleep(0.1)
        time.sleep(0.9)  # noqa: ASYNC251

    task = asyncio.create_task(callers_code())
    run = await arun_benchmark(agent_blocking(work=0.3), dataset_of(3), progress="off")
    await task
    (warning,) = run.warnings
    assert warning.startswith("callers_code (")


async def blocking_evaluator(question: Any, response: Any) -> float:
    if question["id"] == "q1":
        time.sleep(0.9)  # noqa: ASYNC251
    return 1.0


@pytest.mark.full
def test_blocking_judge_is_reported() -> None:
    run = run_of(agent_blocking(), evaluators=[blocking_evaluator])
    (warning,) = run.warnings
    assert warning.startswith("blocking_evaluator (")
    responses = {response["question_id"]: response for response in run.responses}
    scored = score_responses(dataset_of(4), responses, evaluators=[blocking_evaluator])
    assert [text.split()[0] for text in scored.warnings] == ["blocking_evaluator"]
    with pytest.warns(GraphRAGEvalWarning, match=r"blocking_evaluator .* blocks the event loop"):
        run_evaluation(dataset_of(4), responses, evaluators=[blocking_evaluator])


@pytest.mark.full
def test_run_in_another_thread_uses_a_new_loop_if_the_loop_is_blocked() -> None:
    with ThreadPoolExecutor(2) as threads:
        blocking = threads.submit(run_of, agent_blocking("q1", seconds=4))
        time.sleep(1)
        began = time.monotonic()
        other = threads.submit(run_of, agent_blocking()).result()
        assert time.monotonic() - began < 3
        assert other.warnings == []
        assert len(blocking.result().warnings) == 1


@pytest.mark.full
def test_nested_run_blocks_only_the_outer_loop() -> None:
    inner: list[Any] = []

    async def node(state: MessagesState) -> Any:
        if state["messages"][-1].content == "q1":
            inner.append(run_of(agent_blocking("q0"), questions=2))
        return ANSWER

    outer = run_of(graph_of(node))
    assert [len(run.warnings) for run in (outer, *inner)] == [1, 1]
