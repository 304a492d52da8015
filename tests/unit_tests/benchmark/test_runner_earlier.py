"""Which earlier answers of a folder count, and what is saved before a failure."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark, score_run
from graphrag_eval_lc.run_folder import iter_responses


def dataset_of(*texts: str) -> list[Any]:
    return [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": text} for n, text in enumerate(texts)]}]


def echo(question: str) -> str:
    return f"answer to {question}"


def answers(run: Any) -> list[str]:
    return [result["actual_answer"] for result in run.results]


def fails_at_start(event: Any) -> None:
    if event.kind == "run_started":
        raise LookupError("mine")


def test_answer_to_another_text_is_never_scored_even_after_a_stopped_session(
    tmp_path: Path,
) -> None:
    options: Any = {"output_dir": tmp_path, "progress": "off"}
    run_benchmark(echo, dataset_of("a", "b"), **options)
    with pytest.raises(LookupError):
        run_benchmark(echo, dataset_of("a", "new"), force=True, on_event=fails_at_start, **options)
    assert answers(score_run(tmp_path, dataset=dataset_of("a", "new"))) == ["answer to a"]
    assert answers(run_benchmark(echo, dataset_of("a", "new"), **options)) == ["answer to a", "answer to new"]


def test_changed_text_of_a_deselected_question_is_detected(tmp_path: Path) -> None:
    options: Any = {"output_dir": tmp_path, "progress": "off", "force": True}
    run_benchmark(echo, dataset_of("a", "b"), **options)
    run_benchmark(echo, dataset_of("a", "b"), limit=1, **options)
    assert answers(run_benchmark(echo, dataset_of("a", "new"), **options)) == ["answer to a", "answer to new"]


def test_response_is_on_disk_before_observers_are_notified(tmp_path: Path) -> None:
    def fails(event: Any) -> None:
        if event.kind == "response_ended":
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run_benchmark(echo, dataset_of("a"), output_dir=tmp_path, on_event=fails, progress="off")
    assert [response["question_id"] for response in iter_responses(tmp_path / "responses.jsonl")] == ["q0"]


def test_failed_answers_still_count_if_the_session_with_their_retry_was_stopped(tmp_path: Path) -> None:
    def fails(question: str) -> str:
        raise ValueError(question)

    options: Any = {"output_dir": tmp_path, "progress": "off"}
    run_benchmark(fails, dataset_of("a", "b"), **options)
    run = run_benchmark(fails, dataset_of("a", "b"), retry_errors=True, max_failures=0, max_concurrency=1, **options)
    assert run.stopped is not None
    assert [result["status"] for result in run.results] == ["error", "error"]


def test_budget_reports_uncountable_usage() -> None:
    run = run_benchmark(echo, dataset_of("a", "b"), max_tokens=10, progress="off")
    assert [warning for warning in run.warnings if "no model call of the agent was seen" in warning]


def test_attempts_of_earlier_sessions_are_kept_and_counted_once(tmp_path: Path) -> None:
    answers = iter([ValueError("first"), "yes"])

    def agent(question: str) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    options: Any = {"output_dir": tmp_path, "progress": "off", "retry_errors": True}
    run_benchmark(agent, dataset_of("a"), **options)
    [response] = run_benchmark(agent, dataset_of("a"), **options).responses
    assert [attempt["error"] for attempt in response["failed_attempts"]] == ["ValueError: first"]
