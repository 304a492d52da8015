"""A finished run is loaded from its folder, without its agent and dataset."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import load_run, run_benchmark, score_run
from graphrag_eval_lc.errors import RunFolderError

DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {"id": "q0", "question_text": "good", "reference_steps": [[{"name": "s", "output": "1"}]]},
            {"id": "q1", "question_text": "bad"},
        ],
    }
]


def agent(question: str) -> str:
    if question == "bad":
        raise ValueError("no")
    return "yes"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run_benchmark(
        agent, DATASET, output_dir=tmp_path / "run", config={"gates": [{"metric": "steps_score", "under": 1}]}
    )
    return tmp_path / "run"


def change(folder: Path, **values: Any) -> None:
    path = folder / "run.json"
    record = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({key: value for key, value in record.items() if value is not None}))


def test_loaded_run_equals_the_original(tmp_path: Path) -> None:
    made = run_benchmark(agent, DATASET, output_dir=tmp_path / "run", repeats=2, progress="off")
    loaded = load_run(tmp_path / "run")
    assert loaded.aggregates == made.aggregates
    assert loaded.results == made.results
    assert loaded.responses == made.responses
    assert repr(loaded) == repr(made)
    assert loaded.to_pandas("steps").equals(made.to_pandas("steps"))
    assert (loaded.judges, loaded.stopped, list(loaded.warnings)) == (made.judges, made.stopped, [])


def test_gates_of_the_config_are_checked_again(folder: Path) -> None:
    (gate,) = load_run(folder).gate_results()
    assert not gate.has_passed


def test_folder_without_a_finished_run_is_rejected(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"absent: the folder does not exist"):
        load_run(tmp_path / "absent")
    with pytest.raises(RunFolderError, match=r"this is a file"):
        load_run(folder / "run.json")
    with pytest.raises(RunFolderError, match=r"holds no run\.json.*list_runs"):
        load_run(tmp_path)
    (folder / "aggregates.yaml").unlink()
    with pytest.raises(RunFolderError, match=r"did not finish.*graphrag-eval-lc score"):
        load_run(folder)


def test_run_killed_after_resuming_says_so(folder: Path) -> None:
    change(folder, totals=None)
    assert "the scores are those from before" in load_run(folder).warnings[0]


def test_partly_rescored_run_says_so(folder: Path) -> None:
    score_run(folder, dataset=DATASET, question_ids=["q0"])
    loaded = load_run(folder)
    assert loaded.notes == ["a selection of the 2 questions of the run was scored; all numbers are of these alone"]
    assert len(loaded.results) == 1
