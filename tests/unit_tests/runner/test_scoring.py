import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import load_responses, score_responses
from graphrag_eval_lc.errors import RunFolderError

DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {"id": "q1", "question_text": "x", "reference_steps": [[{"name": "s", "output": "1"}]]},
            {"id": "q2", "question_text": "y"},
        ],
    }
]
STEP = {"name": "s", "args": {}, "id": "c", "status": "success", "output": "1"}


def test_recorded_responses_are_scored_into_the_same_folder_as_a_runs(tmp_path: Path) -> None:
    responses: list[Any] = [{"question_id": "q1", "actual_steps": [STEP]}]
    run = score_responses(DATASET, responses, output_dir=tmp_path / "run")
    assert [result.get("steps_score") for result in run.results] == [1.0, None]
    assert [result["status"] for result in run.results] == ["success", "error"]
    assert list(run.responses) == ["q1"]
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {"run.json", "responses.jsonl", "results.jsonl", "aggregates.yaml"}
    assert "agent" not in json.loads((tmp_path / "run" / "run.json").read_text())


def test_responses_by_id_are_written_with_their_ids(tmp_path: Path) -> None:
    responses: dict[str, Any] = {"q1": {"actual_answer": "x"}}
    score_responses(DATASET, responses, output_dir=tmp_path / "run")
    assert load_responses(tmp_path / "run" / "responses.jsonl") == {"q1": {"question_id": "q1", "actual_answer": "x"}}


def test_run_is_not_replaced_by_the_scores_of_its_own_responses(tmp_path: Path) -> None:
    score_responses(DATASET, {}, output_dir=tmp_path)
    before = (tmp_path / "run.json").read_text()
    with pytest.raises(RunFolderError, match="the responses lie in the folder itself"):
        score_responses(DATASET, tmp_path / "responses.jsonl", output_dir=tmp_path, overwrite=True)
    assert (tmp_path / "run.json").read_text() == before


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert score_responses(DATASET, {}).output_dir is None
    assert not list(tmp_path.iterdir())
