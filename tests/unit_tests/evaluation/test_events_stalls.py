"""A question that blocks the event loop: it is told, and its neighbours do not pay for it."""

import asyncio
import json
import re
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


def agent_blocking(*questions: str, seconds: float, work: float = 0.1) -> Any:
    async def node(state: MessagesState) -> Any:
        if state["messages"][-1].content in questions:
            time.sleep(seconds)  # noqa: ASYNC251
        await asyncio.sleep(work)
        return ANSWER

    return graph_of(node)


def run_of(agent: Any, questions: int = 4, **options: Any) -> Any:
    return run_benchmark(agent, dataset_of(questions), **{"progress": "off", "timeout": 0.5, **options})


def errors(run: Any) -> list[str]:
    return [response["question_id"] for response in run.responses if response["status"] == "error"]


@pytest.fixture(scope="module")
def stalled_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """Give a run of which one question blocks the event loop for longer than the timeout, and its log."""
    log = tmp_path_factory.mktemp("stalled") / "events.jsonl"
    return run_of(agent_blocking("q2", seconds=0.9), questions=6, log_file=log), log


def test_neighbours_of_a_question_that_blocks_have_their_time(stalled_run: tuple[Any, Path]) -> None:
    run, _ = stalled_run
    assert errors(run) == ["q2"]
    for response in run.responses:
        is_neighbour = response["question_id"] != "q2"
        assert response["elapsed_sec"] >= 0.9
        assert ("stalled_sec" in response) is is_neighbour
        if is_neighbour:
            assert 0.7 < response["stalled_sec"] < response["elapsed_sec"]
            assert "capture_warnings" not in response


def test_who_blocks_is_told_once_with_the_place_and_what_helps(stalled_run: tuple[Any, Path]) -> None:
    run, log = stalled_run
    (warning,) = run.warnings
    assert warning.startswith("question q2 blocks the event loop, for 0.")
    assert "in node (" in warning
    assert "asyncio.to_thread" in warning
    events = [json.loads(line) for line in log.read_text().splitlines()]
    (stalled,) = [event for event in events if event["event"] == "loop_stalled"]
    assert (stalled["question_id"], stalled["repeat"], stalled["message"]) == ("q2", None, warning)
    assert stalled["time"] < next(event["time"] for event in events if event["event"] == "response_ended")
    assert [event["message"] for event in events if event["event"] == "warning"] == [warning]


def test_response_of_who_blocks_says_so_and_its_timeout_counts_its_own_time(stalled_run: tuple[Any, Path]) -> None:
    response = stalled_run[0].response("q2")
    assert response["error"] == "QuestionTimeoutError: no answer within 0.5 s, the run's timeout"
    (warning,) = response["capture_warnings"]
    assert re.match(r"it blocked the event loop for 0\.[789] s in node \(", warning)


@pytest.mark.full
def test_who_blocks_within_its_timeout_is_answered() -> None:
    run = run_of(agent_blocking("q2", seconds=0.8), timeout=2)
    assert (errors(run), len(run.response("q2")["capture_warnings"])) == ([], 1)


@pytest.mark.full
def test_functions_of_the_caller_that_block_are_told_with_the_question() -> None:
    def block(given: Any) -> str:
        time.sleep(0.7)
        return "yes"

    run = run_of(agent_blocking(seconds=0), questions=1, answer_fn=block)
    (warning,) = run.response("q0")["capture_warnings"]
    assert warning.startswith("it blocked the event loop for 0.")
    assert "in block (" in warning


@pytest.mark.full
def test_questions_that_begin_in_the_moment_of_a_stall_are_stalled_too() -> None:
    run = run_of(agent_blocking("q0", seconds=0.9))
    assert errors(run) == ["q0"]
    assert all(response["elapsed_sec"] >= 0.9 for response in run.responses)


@pytest.mark.full
def test_several_stalls_add_up() -> None:
    run = run_of(agent_blocking("q0", "q1", "q2", seconds=0.8, work=0.05), timeout=2)
    assert errors(run) == []
    assert run.response("q3")["stalled_sec"] == pytest.approx(2.4, abs=0.3)
    assert run.response("q0")["stalled_sec"] == pytest.approx(1.6, abs=0.3)
    assert run.aggregates["totals"]["stalled_sec"] == pytest.approx(
        sum(response["stalled_sec"] for response in run.responses)
    )


@pytest.mark.full
def test_what_hangs_still_ends_at_its_timeout_and_the_stalls() -> None:
    run = run_of(agent_blocking("q1", seconds=0.6, work=60), questions=2)
    assert errors(run) == ["q0", "q1"]
    assert ", the run's timeout, and 0." in run.response("q0")["error"]
    assert run.response("q0")["elapsed_sec"] < 1.5


@pytest.mark.full
def test_three_are_told_at_once_and_the_others_in_one_sentence() -> None:
    run = run_of(agent_blocking(*(f"q{n}" for n in range(5)), seconds=0.8), questions=5, timeout=5)
    assert [warning[:11] for warning in run.warnings] == ["question q0", "question q1", "question q2", "the event l"]
    assert "blocked for 3." in run.warnings[-1] or "blocked for 4." in run.warnings[-1]
    assert "by question q0, question q1, question q2, question q3, question q4:" in run.warnings[-1]
    assert all(response["capture_warnings"] for response in run.responses)


def test_synchronous_code_in_a_thread_is_no_stall() -> None:
    def node(state: MessagesState) -> Any:
        time.sleep(0.8 if state["messages"][-1].content == "q1" else 0.01)
        return ANSWER

    run = run_of(graph_of(node))
    assert (errors(run), run.warnings) == (["q1"], [])
    assert not any("stalled_sec" in response for response in run.responses)


def test_results_have_what_the_responses_have(stalled_run: tuple[Any, Path]) -> None:
    run, _ = stalled_run
    result = next(result for result in run.results if result["question_id"] == "q0")
    assert result["stalled_sec"] == run.response("q0")["stalled_sec"]


@pytest.mark.full
def test_failed_attempts_keep_for_how_long_they_were_stalled() -> None:
    asked: list[str] = []

    async def node(state: MessagesState) -> Any:
        question = state["messages"][-1].content
        asked.append(question)
        if question == "q1":
            time.sleep(0.5)  # noqa: ASYNC251
        elif asked.count(question) == 1:
            await asyncio.sleep(0.05)
            raise ConnectionResetError("away")
        return ANSWER

    (attempt,) = run_of(graph_of(node), questions=2).response("q0")["failed_attempts"]
    assert attempt["stalled_sec"] == pytest.approx(0.4, abs=0.15)


def test_no_thread_is_left_behind_by_two_runs_of_a_process() -> None:
    for _ in range(2):
        run_of(agent_blocking(seconds=0))
        assert "graphrag-eval-lc-stalls" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.full
async def test_code_of_the_caller_that_blocks_its_own_loop_is_told_without_a_question() -> None:
    async def callers_code() -> None:
        await asyncio.sleep(0.1)
        time.sleep(0.9)  # noqa: ASYNC251

    task = asyncio.create_task(callers_code())
    run = await arun_benchmark(agent_blocking(seconds=0, work=0.3), dataset_of(3), timeout=0.5, progress="off")
    await task
    assert errors(run) == []
    (warning,) = run.warnings
    assert warning.startswith("code that belongs to no question blocks the event loop")
    assert "in callers_code (" in warning


async def blocking_evaluator(question: Any, response: Any) -> float:
    if question["id"] == "q1":
        time.sleep(0.8)  # noqa: ASYNC251
    return 1.0


@pytest.mark.full
def test_a_judge_that_blocks_is_told_with_what_it_judged() -> None:
    run = run_of(agent_blocking(seconds=0), evaluators=[blocking_evaluator])
    (warning,) = run.warnings
    assert warning.startswith("judging question q1 blocks the event loop")
    assert "in blocking_evaluator (" in warning
    responses = {response["question_id"]: response for response in run.responses}
    scored = score_responses(dataset_of(4), responses, evaluators=[blocking_evaluator])
    assert [text[:19] for text in scored.warnings] == ["judging question q1"]
    with pytest.warns(GraphRAGEvalWarning, match="judging question q1 blocks the event loop"):
        run_evaluation(dataset_of(4), responses, evaluators=[blocking_evaluator])


@pytest.mark.full
def test_a_budget_of_time_takes_no_stall_for_the_length_of_a_question() -> None:
    run = run_of(agent_blocking("q0", seconds=0.7, work=0.05), questions=8, max_concurrency=4, timeout=2, max_time=1.6)
    assert run.stopped is None
    assert errors(run) == []


@pytest.mark.full
def test_a_run_of_another_thread_that_finds_the_loop_blocked_goes_on_in_a_loop_of_its_own() -> None:
    with ThreadPoolExecutor(2) as threads:
        blocking = threads.submit(run_of, agent_blocking("q1", seconds=4), timeout=1)
        time.sleep(1)
        began = time.monotonic()
        other = threads.submit(run_of, agent_blocking(seconds=0)).result()
        assert time.monotonic() - began < 3
        assert (errors(other), other.warnings) == ([], [])
        assert not any("stalled_sec" in response for response in other.responses)
        assert (errors(blocking.result()), len(blocking.result().warnings)) == (["q1"], 1)


@pytest.mark.full
def test_a_run_inside_of_a_question_blocks_the_loop_of_that_question_and_not_its_own() -> None:
    def inner() -> Any:
        return run_of(agent_blocking("q0", seconds=0.8), questions=2, timeout=2)

    inner_runs: list[Any] = []

    async def node(state: MessagesState) -> Any:
        if state["messages"][-1].content == "q1":
            inner_runs.append(inner())
        return ANSWER

    told: list[list[str]] = []
    for _ in range(3):  # on a busy machine a look may come too late to tell what was before it
        run = run_of(graph_of(node), timeout=5)
        told = [[text[:11] for text in each.warnings] for each in (run, inner_runs.pop())]
        if all(told):
            break
    assert told == [["question q1"], ["question q0"]]
