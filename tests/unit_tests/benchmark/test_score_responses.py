"""Scoring without an agent: external responses, and re-scoring a run's folder in place."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.scored_runs import record_in

from graphrag_eval_lc import run_benchmark, score_responses, score_run
from graphrag_eval_lc.errors import ConfigError, DatasetError, ResponsesError, RunFolderError

STEP = {"name": "s", "args": {}, "id": "c", "status": "success", "output": "1"}


def dataset_of(*outputs: str) -> list[Any]:
    """Return a dataset with one question per reference output."""
    questions = [
        {"id": f"q{n}", "question_text": f"text {n}", "reference_steps": [[{"name": "s", "output": output}]]}
        for n, output in enumerate(outputs)
    ]
    return [{"template_id": "t", "questions": questions}]


def responses_to(*ids: str, **keys: Any) -> list[Any]:
    return [{"question_id": identifier, "actual_steps": [STEP], **keys} for identifier in ids]


# --- external responses ----------------------------------------------------------------------------------------------


def test_recorded_responses_produce_the_same_folder_as_a_run(tmp_path: Path) -> None:
    run = score_responses(dataset_of("1", "1"), responses_to("q0"), output_dir=tmp_path / "run", label="x", tags=["a"])
    assert [result.get("steps_score") for result in run.results] == [1.0, 0.0]
    assert [result["status"] for result in run.results] == ["success", "error"]
    assert [response["question_id"] for response in run.responses] == ["q0"]
    names = {path.name for path in (tmp_path / "run").iterdir() if not path.name.startswith(".")}
    assert names == {"run.json", "responses.jsonl", "results.jsonl", "aggregates.yaml", "report.html"}
    record = record_in(tmp_path / "run")
    assert "agent" not in record
    assert (record["label"], record["tags"]) == ("x", ["a"])
    assert record["totals"]["number_of_samples"] == 2
    assert yaml.safe_load((tmp_path / "run" / "aggregates.yaml").read_text()) == run.aggregates


def test_recorded_responses_count_whatever_their_question_text(tmp_path: Path) -> None:
    responses = responses_to("q0", question_text="Today is Monday. text 0")
    score_responses(dataset_of("1"), responses, output_dir=tmp_path / "run")
    [result] = score_run(tmp_path / "run", dataset=dataset_of("1")).results
    assert (result["status"], result["steps_score"]) == ("success", 1.0)


def test_responses_may_be_a_file_a_list_or_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_text("".join(json.dumps(response) + "\n" for response in responses_to("q0", "q1")))
    by_id = {"q0": {"actual_steps": [STEP]}, "q1": {"actual_steps": [STEP]}}
    given: list[Any] = [path, str(path), responses_to("q0", "q1"), by_id]
    for responses in given:
        run = score_responses(dataset_of("1", "2"), responses)
        assert [result["steps_score"] for result in run.results] == [1.0, 0.0]


def test_folder_of_an_earlier_run_is_replaced_only_on_request(tmp_path: Path) -> None:
    score_responses(dataset_of("1"), responses_to("q0"), output_dir=tmp_path)
    with pytest.raises(RunFolderError, match="holds a run already"):
        score_responses(dataset_of("1"), {}, output_dir=tmp_path)
    assert score_responses(dataset_of("1"), {}, output_dir=tmp_path, overwrite=True).results[0]["status"] == "error"


def test_run_cannot_be_replaced_by_scores_of_its_own_responses(tmp_path: Path) -> None:
    score_responses(dataset_of("1"), {}, output_dir=tmp_path)
    before = (tmp_path / "run.json").read_text()
    with pytest.raises(RunFolderError, match=r"the responses lie in the folder itself\. Score the run in place"):
        score_responses(dataset_of("1"), tmp_path / "responses.jsonl", output_dir=tmp_path, overwrite=True)
    assert (tmp_path / "run.json").read_text() == before


def test_invalid_input_does_not_change_an_earlier_run(tmp_path: Path) -> None:
    score_responses(dataset_of("1"), responses_to("q0"), output_dir=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    bad: list[tuple[type[Exception], tuple[Any, ...], dict[str, Any]]] = [
        (DatasetError, ("absent.yaml", {}), {}),
        (DatasetError, (dataset_of("1") + dataset_of("1"), {}), {}),
        (ResponsesError, (dataset_of("1"), [{"actual_answer": "x"}]), {}),
        (ResponsesError, (dataset_of("1"), 3), {}),
        (ConfigError, (dataset_of("1"), {}), {"config": {"absent": 1}}),
    ]
    for error, arguments, options in bad:
        with pytest.raises(error):
            score_responses(*arguments, output_dir=tmp_path, overwrite=True, **options)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# --- a run's folder, in place ----------------------------------------------------------------------------------------


async def agent(question: str) -> str:
    if question == "text 9":
        raise ValueError("no")
    return f"answer to {question}"


@pytest.fixture
def dataset_path(tmp_path: Path) -> Path:
    path = tmp_path / "qa.yaml"
    path.write_text(yaml.safe_dump(dataset_of("1", "1", "1")))
    return path


@pytest.fixture
def folder(tmp_path: Path, dataset_path: Path) -> Path:
    """Return the folder of a run whose agent has no steps."""
    run_benchmark(agent, dataset_path, output_dir=tmp_path / "run", label="night", progress="off")
    return tmp_path / "run"


def test_fixed_reference_changes_only_the_scores(folder: Path, dataset_path: Path) -> None:
    before = record_in(folder)
    responses = (folder / "responses.jsonl").read_bytes()
    fixed = dataset_of("1", "1", "1")
    del fixed[0]["questions"][0]["reference_steps"]
    dataset_path.write_text(yaml.safe_dump(fixed))
    run = score_run(folder)
    assert [result.get("steps_score") for result in run.results] == [None, 0.0, 0.0]
    assert (folder / "responses.jsonl").read_bytes() == responses
    assert yaml.safe_load((folder / "aggregates.yaml").read_text()) == run.aggregates
    record = record_in(folder)
    changed = {key for key in record if record[key] != before.get(key)}
    assert changed <= {"dataset", "scored", "totals"}
    assert record["dataset"]["sha256"] != before["dataset"]["sha256"]
    assert run.warnings == []
    assert run.stopped is None


def test_questions_without_a_response_are_error_samples(tmp_path: Path) -> None:
    score_responses(dataset_of("1", "1"), responses_to("q0"), output_dir=tmp_path)
    run = score_run(tmp_path, dataset=dataset_of("1", "1", "1"))
    assert [result["status"] for result in run.results] == ["success", "error", "error"]


def test_changed_or_removed_question_is_reported(folder: Path, dataset_path: Path) -> None:
    dataset = dataset_of("1", "1")
    dataset[0]["questions"][0]["question_text"] = "another text"
    dataset_path.write_text(yaml.safe_dump(dataset))
    run = score_run(folder)
    assert [result["question_id"] for result in run.results] == ["q0", "q1"]
    assert run.warnings == [
        "1 question with another text than was asked: q0",
        "1 question of the run no longer in the dataset: q2",
    ]


def test_missing_dataset_is_reported(folder: Path, dataset_path: Path) -> None:
    dataset_path.rename(dataset_path.with_name("moved.yaml"))
    with pytest.raises(RunFolderError, match=r"the dataset .*qa\.yaml of this run does not exist.*--dataset FILE"):
        score_run(folder)
    assert len(score_run(folder, dataset=dataset_path.with_name("moved.yaml")).results) == 3
    assert record_in(folder)["dataset"]["path"].endswith("moved.yaml")


def test_dataset_from_python_is_required(tmp_path: Path) -> None:
    run_benchmark(agent, dataset_of("1"), output_dir=tmp_path, progress="off")
    with pytest.raises(RunFolderError, match="names no file of the dataset"):
        score_run(tmp_path)


def test_folder_without_a_run_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="the folder does not exist"):
        score_run(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()
    with pytest.raises(RunFolderError, match="the folder holds no run"):
        score_run(tmp_path)


def test_rescored_run_can_be_resumed(folder: Path, dataset_path: Path) -> None:
    asked: list[Any] = []
    score_run(folder)
    run = run_benchmark(agent, dataset_path, output_dir=folder, on_response=asked.append, progress="off")
    assert len(run.results) == 3
    assert not asked


def test_killed_run_reports_the_number_of_missing_questions(folder: Path) -> None:
    journal = folder / "responses.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    assert score_run(folder).warnings == ["2 of 3 were not asked yet, and are not counted"]


def test_rescoring_may_use_different_measures(tmp_path: Path) -> None:
    dataset = tmp_path / "qa.json"
    step = {"name": "retrieval", "output": [{"id": "a"}]}
    question = {"id": "q0", "question_text": "?", "reference_steps": [[step]]}
    dataset.write_text(json.dumps([{"template_id": "t", "questions": [question]}]))
    responses = [{"question_id": "q0", "actual_steps": [{**STEP, "name": "search", "output": '[{"id": "a"}]'}]}]
    score_responses(dataset, responses, output_dir=tmp_path / "run", config={"retrieval": {"steps": ["search"]}})
    again = score_run(tmp_path / "run", measures=["P@5"])
    (result,) = again.iter_results()
    assert [key for key in result["actual_steps"][0] if key.startswith("retrieval")] == ["retrieval_ids_precision@5"]
    assert record_in(tmp_path / "run")["config"]["retrieval"]["measures"] == ["P@5"]
    assert "retrieval_ids_precision@5" in score_run(tmp_path / "run").aggregates["micro"]
    with pytest.raises(ConfigError, match="unknown measure"):
        score_run(tmp_path / "run", measures=["P@5", "many"])


# --- graded steps ----------------------------------------------------------------------------------------------------
