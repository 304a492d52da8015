"""Listing the runs in a folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_eval_lc import list_runs, load_run
from graphrag_eval_lc.aggregation.question_values import score_values
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_store import latest_run

Change = Callable[..., None]


def test_runs_are_listed_by_start_time_at_any_depth(runs: Path) -> None:
    assert [run.path for run in list_runs(runs)] == [runs / "killed", runs / "a", runs / "nightly/b"]
    assert [run.label for run in list_runs(runs)] == ["killed", "a", "the second"]
    assert [run.is_finished for run in list_runs(runs)] == [False, True, True]
    assert [run.path for run in list_runs(runs / "a")] == [runs / "a"]


def test_folder_without_runs_has_none(tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "run.json").write_text("{")
    assert list_runs(tmp_path) == []


def test_run_with_an_unknown_start_comes_last(runs: Path, change: Change) -> None:
    change(runs / "killed", times={"started": "yesterday"})
    assert list_runs(runs)[-1].path == runs / "killed"
    assert list_runs(runs)[-1].started is None


def test_time_without_a_zone_is_utc(runs: Path, change: Change) -> None:
    change(runs / "killed", times={"started": "2020-01-01T00:00:00"})
    assert list_runs(runs)[0].path == runs / "killed"


@pytest.mark.parametrize("name", ["a", "nightly/b"])
def test_means_agree_with_the_report_if_questions_failed(runs: Path, name: str) -> None:
    (run,) = list_runs(runs / name)
    expected = {key: each.mean() for key, each in score_values(run_results(runs / name).numbers(["right"])).items()}
    assert run.means(["right", "steps_score", "answer_f1"]) == {key: expected[key] for key in ("right", "steps_score")}
    assert expected["right"].every == 0.5
    assert expected["right"].answered == pytest.approx(2 / 3)


def test_row_has_the_columns_of_the_list(runs: Path, change: Change) -> None:
    change(runs / "nightly/b", git={"commit": "a" * 40, "clean": False})
    row = list_runs(runs)[-1].row(["right"])
    assert row["path"] == str(runs / "nightly/b")
    assert (row["label"], row["tags"], row["commit"], row["clean"]) == ("the second", ["x"], "a" * 40, False)
    assert (row["questions"], row["errors"], row["finished"]) == (4, 1, True)
    assert row["scores"] == {"right": {"mean": 0.5, "answered": pytest.approx(2 / 3)}}
    assert len(row["dataset_sha256"]) == 64
    row = list_runs(runs)[0].row()
    assert (row["finished"], row["questions"], row["scores"]) == (False, None, {})


def test_questions_with_repeats_are_counted_once(runs: Path) -> None:
    (run,) = list_runs(runs / "a")
    assert (run.row()["questions"], run.row()["errors"]) == (4, 2)


def test_record_with_wrong_types_is_rejected(runs: Path, change: Change) -> None:
    change(runs / "a", tags="x")
    with pytest.raises(RunFolderError, match=r"run\.json, key tags: the record of the run cannot be read"):
        list_runs(runs / "a")


def test_latest_run_is_the_last_finished_one(runs: Path, change: Change) -> None:
    change(runs / "killed", times={"started": "2999-01-01T00:00:00+00:00"})
    assert latest_run(runs).path == runs / "nightly/b"
    assert latest_run(runs, but=[runs / "nightly/../nightly/b"]).path == runs / "a"


def test_folder_without_a_finished_run_is_rejected(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="none of the runs in the folder finished"):
        latest_run(runs / "killed")
    (tmp_path / "none").mkdir()
    with pytest.raises(RunFolderError, match="the folder holds no run"):
        latest_run(tmp_path / "none")
    with pytest.raises(RunFolderError, match="the folder holds no other run"):
        latest_run(runs / "a", but=[runs / "a"])
    with pytest.raises(RunFolderError, match="the folder does not exist"):
        list_runs(tmp_path / "absent")


def test_broken_record_is_an_error_with_its_file(runs: Path) -> None:
    (runs / "a" / "run.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"a/run\.json: the record of the run cannot be read\. Fix the file, or"):
        list_runs(runs)


@pytest.mark.parametrize("odd", ["x", "9" * 4_000, ".nan", "[1]", "true"])
def test_non_numeric_aggregates_are_unknown(runs: Path, change: Change, odd: str) -> None:
    (runs / "a" / "aggregates.yaml").write_text(f"micro: {{steps_score: {{mean: {odd}}}, number_of_questions: {odd}}}")
    change(runs / "a", totals={"cost": 10**200, "total_tokens": "x"})
    (run,) = list_runs(runs / "a")
    row = run.row()
    assert (row["scores"], row["questions"], row["cost"], row["total_tokens"]) == ({}, None, None, None)


@pytest.mark.parametrize(
    "text", ["{", "micro: !!int x", "a: \x01", "a: " + "9" * 5_000, "a: !!binary x", "[" * 100_000]
)
def test_broken_aggregates_are_an_error_with_their_file(runs: Path, text: str) -> None:
    (runs / "a" / "aggregates.yaml").write_text(text)
    with pytest.raises(RunFolderError, match=r"aggregates\.yaml: the aggregates of the run cannot be read\. Write it"):
        list_runs(runs / "a")[0].row()
    with pytest.raises(RunFolderError, match=r"aggregates\.yaml"):
        load_run(runs / "a")


def test_linked_run_is_listed_once(runs: Path) -> None:
    (runs / "a_link").symlink_to("nightly", target_is_directory=True)
    (runs / "latest").symlink_to(runs / "a", target_is_directory=True)
    (runs / "nightly" / "up").symlink_to("..", target_is_directory=True)
    (runs / "gone").symlink_to("nowhere")
    (runs / "itself").symlink_to("itself")
    assert [run.path for run in list_runs(runs)] == [runs / "killed", runs / "a", runs / "nightly/b"]


def test_folder_of_runs_may_be_a_link(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(runs, target_is_directory=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run").symlink_to(runs / "a", target_is_directory=True)
    assert len(list_runs(tmp_path / "link")) == 3
    assert [run.path for run in list_runs(tmp_path / "other")] == [tmp_path / "other" / "run"]
