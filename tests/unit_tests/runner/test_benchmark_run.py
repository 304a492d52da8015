"""What a run gave, from memory or from its folder."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.runner.benchmark_run import BenchmarkRun

DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {"id": "q0", "question_text": "good", "reference_steps": [[{"name": "s", "output": "1"}]]},
            {"id": "q1", "question_text": "bad"},
        ],
    }
]


async def agent(question: str) -> str:
    if question == "bad":
        raise ValueError("no")
    return "yes"


@pytest.fixture(params=["memory", "folder"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> BenchmarkRun:
    output_dir = tmp_path / "run" if request.param == "folder" else None
    return run_benchmark(agent, DATASET, output_dir=output_dir, repeats=2, progress="off")


def test_results_and_responses_are_by_question_then_repeat(run: BenchmarkRun) -> None:
    expected = [("q0", 1), ("q0", 2), ("q1", 1), ("q1", 2)]
    assert [(result["question_id"], dict(result)["repeat"]) for result in run.results] == expected
    assert [(response["question_id"], dict(response)["repeat"]) for response in run.responses] == expected
    assert list(run.iter_results()) == run.results


def test_one_result_or_response_is_found_by_its_question(run: BenchmarkRun) -> None:
    assert dict(run.result("q0"))["repeat"] == 1
    assert dict(run.response("q1", 2))["repeat"] == 2
    assert run.response("q0")["actual_answer"] == "yes"


@pytest.mark.parametrize(("question_id", "repeat"), [("absent", 1), ("q0", 3)])
def test_what_is_not_there_is_told(run: BenchmarkRun, question_id: str, repeat: int) -> None:
    with pytest.raises(RunFolderError, match=f"question {question_id}: .*no result for repeat {repeat}.*The ids are"):
        run.result(question_id, repeat)
    with pytest.raises(RunFolderError, match="no response for repeat"):
        run.response(question_id, repeat)


def test_run_shows_what_matters(run: BenchmarkRun) -> None:
    text = repr(run)
    assert text.startswith("<BenchmarkRun 2 answered, 2 failed, steps_score 0.000")
    assert str(run.output_dir or "0.000") in text


def test_stopped_run_shows_why() -> None:
    run = run_benchmark(agent, DATASET, question_ids=["q1"], repeats=3, max_failures=0, max_concurrency=1)
    assert run.stopped == {
        "reason": "max_failures",
        "message": "1 question failed in this session, and no more than 0 may",
        "left_out": 2,
    }
    assert "stopped: max_failures" in repr(run)


def test_folder_that_went_is_told(tmp_path: Path) -> None:
    run = run_benchmark(agent, DATASET, output_dir=tmp_path / "run", progress="off")
    (tmp_path / "run").rename(tmp_path / "moved")
    with pytest.raises(RunFolderError, match=r"results\.jsonl"):
        run.results  # noqa: B018


def test_run_without_files_has_none() -> None:
    run = BenchmarkRun({"micro": {"number_of_success_samples": 0, "number_of_error_samples": 0}})
    assert (run.results, run.responses, run.output_dir) == ([], [], None)
