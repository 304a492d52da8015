"""Complete runs: questions through an agent into a folder, resumed after any kind of end."""

import asyncio
import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from support.scored_runs import record_in
from support.signalling import send_signal

from graphrag_eval_lc import arun_benchmark, run_benchmark
from graphrag_eval_lc.errors import AgentError, DatasetError, OptionError, RunFolderError
from graphrag_eval_lc.evaluation.events import RunEvent
from graphrag_eval_lc.run_folder import RunFolder


def dataset_of(*texts: str) -> list[Any]:
    return [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": text} for n, text in enumerate(texts)]}]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Agent:
    """An agent that answers, fails on questions that start with `fail`, and records what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_well = False
        self.during: Callable[[str], None] = lambda question: None

    async def __call__(self, question: str) -> str:
        self.asked.append(question)
        await asyncio.sleep(0)
        self.during(question)
        if question.startswith("fail") and not self.is_well:
            raise ValueError("no")
        return f"echo: {question}"


@pytest.fixture
def agent() -> Agent:
    return Agent()


# --- a run -----------------------------------------------------------------------------------------------------------


def test_each_question_is_run_and_scored(agent: Agent) -> None:
    run = run_benchmark(agent, dataset_of("a", "b"))
    assert [result["actual_answer"] for result in run.results] == ["echo: a", "echo: b"]
    assert [response["question_id"] for response in run.responses] == ["q0", "q1"]
    assert run.response("q1")["actual_answer"] == "echo: b"
    assert run.aggregates["micro"]["number_of_success_samples"] == 2
    assert run.output_dir is run.stopped is None
    assert run.warnings == []


async def test_sync_and_async_work_inside_a_running_loop(agent: Agent) -> None:
    dataset = dataset_of("a")
    assert (await arun_benchmark(agent, dataset)).results[0]["actual_answer"] == "echo: a"
    assert run_benchmark(agent, dataset).results[0]["actual_answer"] == "echo: a"


def test_folder_contains_the_run(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "qa.yaml"
    path.write_text(yaml.safe_dump(dataset_of("a", "b", "c")))
    folder = tmp_path / "run"
    run = run_benchmark(agent, path, output_dir=folder, label="first")
    assert run.output_dir == folder
    assert sorted(line["question_id"] for line in lines_of(folder / "responses.jsonl")) == ["q0", "q1", "q2"]
    assert [line["question_id"] for line in lines_of(folder / "results.jsonl")] == ["q0", "q1", "q2"]
    assert yaml.safe_load((folder / "aggregates.yaml").read_text()) == run.aggregates
    record = record_in(folder)
    assert record["label"] == "first"
    assert record["dataset"]["path"] == str(path)
    assert (record["dataset"]["templates"], record["dataset"]["questions"]) == (1, 3)
    assert record["config"]["steps"]["scoring"] == "last_group"
    assert record["times"]["elapsed_sec"] >= 0
    assert record["totals"]["number_of_samples"] == 3
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert names == {"run.json", "responses.jsonl", "results.jsonl", "aggregates.yaml", "report.html"}


def test_run_record_exists_before_the_first_answer(agent: Agent, tmp_path: Path) -> None:
    seen: list[bool] = []
    agent.during = lambda question: seen.append((tmp_path / "run.json").exists())
    run_benchmark(agent, dataset_of("a"), output_dir=tmp_path)
    assert seen == [True]


def test_response_is_in_the_journal_when_it_is_reported(agent: Agent, tmp_path: Path) -> None:
    reported: list[tuple[str, int]] = []

    def note(response: Any) -> None:
        reported.append((response["question_id"], len(lines_of(tmp_path / "responses.jsonl"))))

    run_benchmark(agent, dataset_of("a", "b", "fail"), output_dir=tmp_path, on_response=note, max_concurrency=1)
    assert reported == [("q0", 1), ("q1", 2), ("q2", 3)]


def test_failure_of_a_question_does_not_end_the_run(agent: Agent, tmp_path: Path) -> None:
    run = run_benchmark(agent, dataset_of("fail 1", "good", "fail 2"), output_dir=tmp_path)
    assert [result["status"] for result in run.results] == ["error", "success", "error"]
    assert run.results[0]["error"] == "ValueError: no"
    assert run.response("q0")["elapsed_sec"] >= 0
    assert len(lines_of(tmp_path / "responses.jsonl")) == 3
    assert run.stopped is None


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError(), RecursionError()])
def test_system_exceptions_do_not_end_the_run(error: BaseException) -> None:
    def node(state: MessagesState) -> Any:
        if state["messages"][-1].content == "bad":
            raise error
        return {"messages": [AIMessage("yes")]}

    async def async_node(state: MessagesState) -> Any:
        return node(state)

    for each in (node, async_node):
        builder = StateGraph(MessagesState)
        builder.add_node("node", each)
        builder.add_edge(START, "node")
        run = run_benchmark(builder.compile(), dataset_of("bad", "good", "bad"), max_retries=0)
        assert [result["status"] for result in run.results] == ["error", "success", "error"]


@pytest.mark.full
def test_hanging_agent_blocks_neither_other_questions_nor_the_end() -> None:
    release = threading.Event()

    def agent(question: str) -> str:
        if question == "hang":
            release.wait(120)
        return question

    run = run_benchmark(agent, dataset_of("hang", *"abcdef"), max_concurrency=2, timeout=2)
    release.set()
    assert [result["status"] for result in run.results] == ["error", *["success"] * 6]
    assert run.results[0]["error"] == "QuestionTimeoutError: no answer within 2 s, the run's timeout"


# --- rejected before the agent is called -----------------------------------------------------------------------------


def test_invalid_input_is_reported_before_the_agent_is_called(agent: Agent, tmp_path: Path) -> None:
    bad: list[tuple[type[Exception], Any, Any, dict[str, Any]]] = [
        (AgentError, "absent.py:graph", dataset_of("a"), {}),
        (DatasetError, agent, dataset_of("a") * 2, {}),
        (DatasetError, agent, "absent.yaml", {}),
        (DatasetError, agent, dataset_of("a"), {"question_ids": ["absent"]}),
        (OptionError, agent, dataset_of("a"), {"max_concurrency": 0}),
        (OptionError, agent, dataset_of("a"), {"max_retrys": 0}),
    ]
    for error, candidate, dataset, options in bad:
        with pytest.raises(error):
            run_benchmark(candidate, dataset, output_dir=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()
    assert not agent.asked


def test_error_of_a_callback_is_raised_unchanged(agent: Agent, tmp_path: Path) -> None:
    def broken(response: Any) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run_benchmark(agent, dataset_of("a", "b"), on_response=broken, output_dir=tmp_path)
    run = run_benchmark(agent, dataset_of("a", "b"), output_dir=tmp_path)  # no lock remains and no data is lost
    assert len(run.results) == 2


# --- resuming --------------------------------------------------------------------------------------------------------


def test_answered_questions_are_not_run_again(agent: Agent, tmp_path: Path) -> None:
    dataset = dataset_of("a", "fail", "c")
    first = run_benchmark(agent, dataset, output_dir=tmp_path, max_concurrency=1)
    again = run_benchmark(agent, dataset, output_dir=tmp_path)
    assert agent.asked == ["a", "fail", "c"]
    assert again.results == first.results
    assert again.aggregates == first.aggregates
    record = record_in(tmp_path)
    assert len(record["times"]["sessions"]) == 2
    assert len(lines_of(tmp_path / "responses.jsonl")) == 3


def test_run_that_ended_early_is_resumed(agent: Agent, tmp_path: Path) -> None:
    dataset = dataset_of("fail", *"bcdef")
    first = run_benchmark(agent, dataset, output_dir=tmp_path, max_failures=0, max_concurrency=1)
    assert first.stopped == {
        "reason": "max_failures",
        "message": "1 question failed in this session, and no more than 0 may",
        "left_out": 5,
    }
    assert [result["question_id"] for result in first.results] == ["q0"]
    assert record_in(tmp_path)["stopped"] == first.stopped
    second = run_benchmark(agent, dataset, output_dir=tmp_path)
    assert agent.asked == ["fail", *"bcdef"]
    assert [result["question_id"] for result in second.results] == [f"q{n}" for n in range(6)]
    assert second.stopped is None
    assert "stopped" not in record_in(tmp_path)
    assert record_in(tmp_path)["times"]["sessions"][0]["stopped"] == first.stopped


def test_failed_questions_are_retried_on_request_and_their_usage_is_kept(agent: Agent, tmp_path: Path) -> None:
    dataset = dataset_of("a", "fail")
    run_benchmark(agent, dataset, output_dir=tmp_path, max_concurrency=1)
    agent.is_well = True
    run = run_benchmark(agent, dataset, output_dir=tmp_path, retry_errors=True)
    assert agent.asked == ["a", "fail", "fail"]
    assert [result["status"] for result in run.results] == ["success", "success"]
    [attempt] = dict(run.response("q1"))["failed_attempts"]
    assert attempt["error"] == "ValueError: no"
    assert len(lines_of(tmp_path / "responses.jsonl")) == 3


def test_interrupted_questions_are_rerun_and_their_usage_is_kept(agent: Agent, tmp_path: Path) -> None:
    async def slow(question: str) -> str:
        agent.asked.append(question)
        if len(agent.asked) == 2:
            send_signal(signal.SIGINT)
            await asyncio.Event().wait()
        return "yes"

    dataset = dataset_of(*"abcd")
    first = run_benchmark(slow, dataset, output_dir=tmp_path, max_concurrency=1, grace=0.1)
    assert first.stopped == {"reason": "interrupted", "message": "Ctrl-C", "left_out": 2}
    assert [result["status"] for result in first.results] == ["success", "error"]
    assert dict(first.response("q1"))["interrupted"] is True
    second = run_benchmark(slow, dataset, output_dir=tmp_path, max_concurrency=1)
    assert agent.asked == [*"ab", *"bcd"]
    assert [result["status"] for result in second.results] == ["success"] * 4
    response = dict(second.response("q1"))
    assert "interrupted" not in response
    assert response["failed_attempts"][0]["error"].startswith("RunInterruptedError")
    assert response["failed_attempts"][0]["elapsed_sec"] > 0


def test_questions_in_flight_may_finish_in_the_grace_period(agent: Agent) -> None:
    agent.during = lambda question: send_signal(signal.SIGTERM) if question == "a" else None
    run = run_benchmark(agent, dataset_of(*"abcd"), max_concurrency=1)
    assert run.stopped == {"reason": "interrupted", "message": "SIGTERM", "left_out": 3}
    assert [result["actual_answer"] for result in run.results] == ["echo: a"]


def test_second_signal_stops_immediately_and_keeps_finished_questions(agent: Agent, tmp_path: Path) -> None:
    async def interrupted_twice(question: str) -> str:
        agent.asked.append(question)
        if question == "b":
            for _ in range(2):
                send_signal(signal.SIGINT)
            await asyncio.Event().wait()
        return "yes"

    dataset = dataset_of(*"abcd")
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(interrupted_twice, dataset, output_dir=tmp_path, max_concurrency=1)
    assert [line["question_id"] for line in lines_of(tmp_path / "responses.jsonl")] == ["q0"]
    run = run_benchmark(agent, dataset, output_dir=tmp_path, force=True)
    assert [result["status"] for result in run.results] == ["success"] * 4
    assert agent.asked == [*"ab", *"bcd"]


async def test_cancelled_run_is_resumed(agent: Agent, tmp_path: Path) -> None:
    dataset, second = dataset_of(*"abc"), asyncio.Event()

    async def hanging(question: str) -> str:
        if question == "b":
            second.set()
            await asyncio.Event().wait()
        return await agent(question)

    running = asyncio.create_task(arun_benchmark(hanging, dataset, output_dir=tmp_path, max_concurrency=1))
    await asyncio.wait_for(second.wait(), 60)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    run = await arun_benchmark(agent, dataset, output_dir=tmp_path, force=True, max_concurrency=1)
    assert agent.asked == [*"abc"]
    assert [result["status"] for result in run.results] == ["success"] * 3


def test_fixed_reference_and_changed_config_are_rescored(agent: Agent, tmp_path: Path) -> None:
    dataset = dataset_of("a", "b")
    run_benchmark(agent, dataset, output_dir=tmp_path)
    dataset[0]["questions"][0]["reference_steps"] = [[{"name": "s", "output": "1"}]]
    run = run_benchmark(agent, dataset, output_dir=tmp_path, config={"aggregates": {"errors": "include"}})
    assert [result.get("steps_score") for result in run.results] == [0.0, None]
    assert record_in(tmp_path)["config"]["aggregates"]["errors"] == "include"
    assert len(agent.asked) == 2


def test_changed_run_is_rejected_with_the_differences(agent: Agent, tmp_path: Path) -> None:
    run_benchmark(agent, dataset_of("a", "b"), output_dir=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(RunFolderError, match="1 question with another text: q1; 1 question added: q2"):
        run_benchmark(agent, dataset_of("a", "changed", "c"), output_dir=tmp_path)
    with pytest.raises(RunFolderError, match=r"the agent was .*:Agent and is builtins:str"):
        run_benchmark(str, dataset_of("a", "b"), output_dir=tmp_path)
    with pytest.raises(RunFolderError, match=r"the agent's config was none and is {'recursion_limit': 5}"):
        run_benchmark(agent, dataset_of("a", "b"), output_dir=tmp_path, agent_config={"recursion_limit": 5})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_overwriting_starts_from_scratch(agent: Agent, tmp_path: Path) -> None:
    run_benchmark(agent, dataset_of("a", "b"), output_dir=tmp_path, max_concurrency=1)
    first = record_in(tmp_path)["run_id"]
    run = run_benchmark(agent, dataset_of("c"), output_dir=tmp_path, overwrite=True)
    assert agent.asked == ["a", "b", "c"]
    assert len(run.results) == len(lines_of(tmp_path / "responses.jsonl")) == 1
    assert record_in(tmp_path)["run_id"] != first


def test_torn_last_line_is_removed_reported_and_rerun(agent: Agent, tmp_path: Path) -> None:
    run_benchmark(agent, dataset_of("a", "b"), output_dir=tmp_path, max_concurrency=1)
    journal = tmp_path / "responses.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])
    run = run_benchmark(agent, dataset_of("a", "b"), output_dir=tmp_path)
    assert agent.asked == ["a", "b", "b"]
    assert len(run.results) == 2
    assert "was cut off while it was written" in run.warnings[0]


def test_concurrent_run_in_the_same_folder_is_rejected(agent: Agent, tmp_path: Path) -> None:
    refused: list[str] = []

    def again(question: str) -> None:
        try:
            run_benchmark(str, dataset_of("x"), output_dir=tmp_path, overwrite=True)
        except RunFolderError as problem:
            refused.append(str(problem))

    agent.during = again
    run = run_benchmark(agent, dataset_of("a"), output_dir=tmp_path)
    assert "works in this folder" in refused[0]
    assert run.results[0]["status"] == "success"
    with RunFolder(tmp_path).lock(), pytest.raises(RunFolderError, match="works in this folder"):
        run_benchmark(agent, dataset_of("a"), output_dir=tmp_path)


# --- repeats and selection -------------------------------------------------------------------------------------------


def test_repeats_are_interleaved_and_aggregated_by_question(agent: Agent, tmp_path: Path) -> None:
    asked: list[str] = []

    async def sometimes(question: str) -> str:
        asked.append(question)
        if question == "b" and asked.count("b") == 2:
            raise ValueError("no")
        return question

    dataset = dataset_of("a", "b")
    for question in dataset[0]["questions"]:
        question["reference_answer"] = "x"
    config = {"repeats": {"metric": "answer_f1", "threshold": 0.5}}
    run = run_benchmark(sometimes, dataset, output_dir=tmp_path, repeats=3, max_concurrency=1, config=config)
    assert asked == ["a", "b"] * 3
    keys = [(result["question_id"], dict(result)["repeat"], result["status"]) for result in run.results]
    assert keys == [
        *(("q0", repeat, "success") for repeat in (1, 2, 3)),
        ("q1", 1, "success"),
        ("q1", 2, "error"),
        ("q1", 3, "success"),
    ]
    assert [line["repeat"] for line in lines_of(tmp_path / "responses.jsonl")] == [1, 1, 2, 2, 3, 3]
    assert run.aggregates["repeats"]["count"] == 3
    assert run.aggregates["repeats"]["number_of_questions"] == 2
    assert record_in(tmp_path)["repeats"] == 3


def test_only_selected_questions_are_run_scored_and_counted(agent: Agent, tmp_path: Path) -> None:
    run = run_benchmark(agent, dataset_of(*"abcdef"), output_dir=tmp_path, question_ids=["q4", "q1"], limit=1)
    assert agent.asked == ["b"]
    assert [result["question_id"] for result in run.results] == ["q1"]
    assert run.aggregates["micro"]["number_of_success_samples"] == 1
    record = record_in(tmp_path)
    assert record["selection"] == {"question_ids": ["q4", "q1"], "limit": 1}
    assert list(record["questions"]) == ["q1"]
    assert record["dataset"]["questions"] == 6


def spending_agent() -> Any:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    async def agent(question: str) -> str:
        usage: Any = {"input_tokens": 29, "output_tokens": 1, "total_tokens": 30}
        model = GenericFakeChatModel(messages=iter([AIMessage("yes", usage_metadata=usage)]))
        answer = str((await model.ainvoke(question)).content)
        if question == "fail":
            raise ValueError("no")
        return answer

    return agent


def test_token_budget_covers_all_sessions(tmp_path: Path) -> None:
    dataset, agent = dataset_of("fail", *"bcdef"), spending_agent()
    first = run_benchmark(agent, dataset, output_dir=tmp_path, max_tokens=50, max_concurrency=1)
    assert first.stopped is not None
    assert (first.stopped["reason"], first.stopped["left_out"]) == ("max_tokens", 4)
    second = run_benchmark(agent, dataset, output_dir=tmp_path, max_tokens=140, retry_errors=True, max_concurrency=1)
    assert second.stopped is not None
    assert second.stopped["left_out"] == 2
    assert second.aggregates["totals"]["total_tokens"] == 150


# --- events and messages ---------------------------------------------------------------------------------------------


def test_events_arrive_in_order(agent: Agent, tmp_path: Path) -> None:
    events: list[RunEvent] = []
    dataset = dataset_of("a", "fail")
    run_benchmark(
        agent, dataset, output_dir=tmp_path, label="x", max_concurrency=1, on_event=events.append, progress="off"
    )
    in_order = [event.kind for event in events if event.kind != "result_scored"]
    assert in_order == [
        "run_started",
        "attempt_started",
        "response_ended",
        "attempt_started",
        "attempt_failed",
        "response_ended",
        "run_ended",
    ]
    assert sorted(event.fields["question_id"] for event in events if event.kind == "result_scored") == ["q0", "q1"]
    started, ended = events[0].fields, events[-1].fields
    assert started["run_id"] == record_in(tmp_path)["run_id"]
    assert {key: started[key] for key in ("total", "done", "errors", "max_concurrency", "label", "output_dir")} == {
        "total": 2,
        "done": 0,
        "errors": 0,
        "max_concurrency": 1,
        "label": "x",
        "output_dir": str(tmp_path),
    }
    assert {key: ended[key] for key in ("total", "done", "errors", "left_out")} == {
        "total": 2,
        "done": 2,
        "errors": 1,
        "left_out": 0,
    }


def test_resumed_run_reports_finished_questions(agent: Agent, tmp_path: Path) -> None:
    events: list[RunEvent] = []
    dataset = dataset_of("fail", "b", "c")
    run_benchmark(agent, dataset, output_dir=tmp_path, max_failures=0, max_concurrency=1)
    run_benchmark(agent, dataset, output_dir=tmp_path, on_event=events.append)
    assert [events[0].fields[key] for key in ("total", "done", "errors")] == [3, 1, 1]
    assert [events[-1].fields[key] for key in ("total", "done", "errors")] == [3, 3, 1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_unwritable_log_file_is_reported_and_does_not_end_the_run(agent: Agent) -> None:
    run = run_benchmark(agent, dataset_of("a"), log_file="/dev/full")
    assert len(run.results) == 1
    assert "is not complete" in run.warnings[0]


def test_progress_goes_to_standard_error_unless_it_is_off(agent: Agent, capfd: pytest.CaptureFixture[str]) -> None:
    for progress, reported in (("off", []), ("lines", ["✗ ", "Stopping (1 question failed"])):
        run_benchmark(agent, dataset_of("fail", "b"), max_failures=0, max_concurrency=1, progress=progress)  # type: ignore[arg-type]
        output = capfd.readouterr()
        assert output.out == ""
        lines = output.err.splitlines()
        assert all(any(line.startswith(begin) for line in lines) for begin in reported)
        assert bool(lines) == bool(reported)
