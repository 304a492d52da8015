import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.runnables import Runnable

from graphrag_eval_lc import arun_benchmark, run_benchmark
from graphrag_eval_lc.errors import AgentError, DatasetError, RunFolderError
from graphrag_eval_lc.runner.benchmark import Progress


def dataset_of(*texts: str) -> list[Any]:
    return [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": text} for n, text in enumerate(texts)]}]


def test_each_question_is_asked_and_scored(echo_agent: Runnable[Any, Any]) -> None:
    run = run_benchmark(echo_agent, dataset_of("a", "b"))
    assert [result["actual_answer"] for result in run.results] == ["echo: a", "echo: b"]
    assert list(run.responses) == ["q0", "q1"]
    assert run.aggregates["micro"]["number_of_success_samples"] == 2
    assert run.output_dir is None


async def test_sync_and_async_work_inside_a_running_loop(echo_agent: Runnable[Any, Any]) -> None:
    dataset = dataset_of("a")
    assert (await arun_benchmark(echo_agent, dataset)).results[0]["actual_answer"] == "echo: a"
    assert run_benchmark(echo_agent, dataset).results[0]["actual_answer"] == "echo: a"


def test_folder_holds_the_run(echo_agent: Runnable[Any, Any], tmp_path: Path) -> None:
    path = tmp_path / "qa.yaml"
    path.write_text(yaml.safe_dump(dataset_of("a", "b", "c")))
    run = run_benchmark(echo_agent, path, output_dir=tmp_path / "run", label="first")
    assert run.output_dir == tmp_path / "run"
    lines = {name: (tmp_path / "run" / name).read_text().splitlines() for name in ("responses.jsonl", "results.jsonl")}
    assert sorted(json.loads(line)["question_id"] for line in lines["responses.jsonl"]) == ["q0", "q1", "q2"]
    assert [json.loads(line)["question_id"] for line in lines["results.jsonl"]] == ["q0", "q1", "q2"]
    assert yaml.safe_load((tmp_path / "run" / "aggregates.yaml").read_text()) == run.aggregates
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["label"] == "first"
    assert record["dataset"]["path"] == str(path)
    assert (record["dataset"]["templates"], record["dataset"]["questions"]) == (1, 3)
    assert record["config"]["steps"]["scoring"] == "last_group"
    assert record["times"]["elapsed_sec"] >= 0
    assert record["totals"]["number_of_samples"] == 3


def test_failure_of_a_question_does_not_end_the_run(failing_agent: Runnable[Any, Any], tmp_path: Path) -> None:
    run = run_benchmark(failing_agent, dataset_of("fail 1", "good", "fail 2"), output_dir=tmp_path / "run")
    assert [result["status"] for result in run.results] == ["error", "success", "error"]
    assert run.results[0]["error"] == "RuntimeError: the model is away"
    assert run.responses["q0"]["elapsed_sec"] > 0
    assert len((tmp_path / "run" / "responses.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("max_concurrency", [1, 3])
def test_no_more_questions_at_the_same_time_than_allowed(counting_agent: Any, max_concurrency: int) -> None:
    run_benchmark(counting_agent.agent, dataset_of(*"abcdef"), max_concurrency=max_concurrency)
    assert counting_agent.most == max_concurrency


def test_progress_is_told_as_each_response_ends(failing_agent: Runnable[Any, Any]) -> None:
    told: list[Progress] = []
    run_benchmark(failing_agent, dataset_of("fail", "good"), on_response=told.append, max_concurrency=1)
    assert [(progress.done, progress.errors, progress.total) for progress in told] == [(1, 1, 2), (2, 1, 2)]


def test_agent_that_cannot_even_start_gives_error_samples() -> None:
    class Broken(Runnable[Any, Any]):
        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            raise TimeoutError

    result = run_benchmark(Broken(), dataset_of("a")).results[0]
    assert (result["status"], result["error"]) == ("error", "TimeoutError")
    assert result["elapsed_sec"] >= 0


def test_error_of_the_callers_own_function_comes_out_as_it_is(echo_agent: Runnable[Any, Any]) -> None:
    def broken(progress: Progress) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run_benchmark(echo_agent, dataset_of("a", "b"), on_response=broken)


def test_question_ids_must_be_unique(echo_agent: Runnable[Any, Any]) -> None:
    dataset = dataset_of("a") + dataset_of("b")
    with pytest.raises(DatasetError, match="question q0: two questions have this id"):
        run_benchmark(echo_agent, dataset)


def test_bad_agent_or_folder_is_told_before_anything_is_asked(counting_agent: Any, tmp_path: Path) -> None:
    with pytest.raises(AgentError):
        run_benchmark("absent.py:graph", dataset_of("a"), output_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(RunFolderError):
        run_benchmark(counting_agent.agent, dataset_of("a"), output_dir=tmp_path)
    assert counting_agent.most == 0


def test_max_concurrency_is_at_least_1(echo_agent: Runnable[Any, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        run_benchmark(echo_agent, dataset_of("a"), max_concurrency=0)


def test_empty_dataset_is_an_empty_run(echo_agent: Runnable[Any, Any]) -> None:
    assert run_benchmark(echo_agent, []).results == []
