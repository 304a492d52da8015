import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import FORMAT_VERSION, RunFolder, iter_results, read_run
from graphrag_eval_lc.run_folder.folder import read_aggregates


def test_files_of_a_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "first")
    assert folder.earlier is None
    folder.write_run({"run_id": "r"})
    with folder.lock(), folder.journal() as journal, folder.results() as results:
        journal.add({"question_id": "q1"})
        results.add(0, {"question_id": "q1"})
        results.finish()
    folder.write_aggregates({"micro": {}})
    assert json.loads((folder.path / "responses.jsonl").read_text()) == {"question_id": "q1"}
    assert list(iter_results(folder.path / "results.jsonl")) == [{"question_id": "q1"}]
    assert yaml.safe_load((folder.path / "aggregates.yaml").read_text()) == {"micro": {}}
    assert json.loads((folder.path / "run.json").read_text()) == {"format_version": FORMAT_VERSION, "run_id": "r"}
    names = {".lock", "aggregates.yaml", "responses.jsonl", "results.jsonl", "run.json"}
    assert {path.name for path in folder.path.iterdir()} == names


@pytest.mark.parametrize("per_template", [{}, {"micro": {"n": 2}, "a\nmicro:\nb": {"m": {"mean": 0.5}, "n": 1}}])
def test_section_of_aggregates_can_be_read_alone(tmp_path: Path, per_template: dict[str, object]) -> None:
    aggregates = {"per_template": per_template, "micro": {"n": 1, "m": {"mean": 0.5}}, "macro": {"m": 1.0}}
    RunFolder(tmp_path).write_aggregates(aggregates)
    assert read_aggregates(tmp_path) == aggregates
    for section in aggregates:
        assert read_aggregates(tmp_path, section)[section] == aggregates[section]
    assert "per_template" not in read_aggregates(tmp_path, "micro")
    (tmp_path / "aggregates.yaml").write_text(json.dumps(aggregates))  # as another program may write it
    assert read_aggregates(tmp_path, "micro")["micro"] == aggregates["micro"]


def test_earlier_run_is_read_from_run_json(tmp_path: Path) -> None:
    RunFolder(tmp_path).write_run({"run_id": "old"})
    assert RunFolder(tmp_path).earlier == {"format_version": FORMAT_VERSION, "run_id": "old"}


def test_folder_with_a_run_can_be_rejected(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.refuse_earlier()
    folder.write_run({"run_id": "old"})
    with pytest.raises(RunFolderError, match=r"holds a run already\. Give another folder, or pass --overwrite"):
        RunFolder(tmp_path).refuse_earlier()
    assert json.loads((tmp_path / "run.json").read_text())["run_id"] == "old"


def test_clear_removes_only_the_files_of_a_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_run({"run_id": "old"})
    folder.write_responses([{"question_id": "q1"}])
    folder.write_aggregates({})
    run_files = ("results.jsonl", "results.jsonl.partial", "results.jsonl.new", "report.html")
    user_files = ("notes.txt", "other.html", "other.jsonl.partial")
    for name in (*run_files, *user_files):
        (tmp_path / name).write_text("x")
    assert folder.earlier is not None
    folder.clear()
    assert folder.earlier is None
    assert {path.name for path in tmp_path.iterdir()} == set(user_files)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format_version": "1"}', "\ufeff\ud800"])
def test_broken_run_json_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(RunFolderError, match=r"run\.json: the record of the run cannot be read\. Fix the file"):
        _ = RunFolder(tmp_path).earlier


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("questions", 5, "key questions: the record of the run cannot be read: input should be a valid dictionary"),
        ("questions", {"q1": 7}, "key questions.q1: "),
        ("tags", "a", "key tags: "),
        ("shard", {"number": 0, "of": 0}, "key shard.number: "),
        ("times", {"sessions": [{"elapsed_sec": "x"}]}, "key times.sessions.0.elapsed_sec: "),
        ("times", [], "key times: "),
        ("times", {"sessions": [1]}, "key times.sessions.0: "),
        ("shard", {"number": "3", "of": 16}, "key shard.number: "),
        ("config", "x", "key config: "),
        ("judges", {"metrics": [1]}, "key judges.metrics.0: "),
        ("evaluators", [{"name": "a", "metrics": "b"}], "key evaluators.0.metrics: "),
        ("repeats", 0, "key repeats: "),
    ],
)
def test_wrong_type_in_run_json_is_an_error_with_its_key(tmp_path: Path, key: str, value: Any, complaint: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format_version": 2, key: value}))
    with pytest.raises(RunFolderError, match=re.escape(complaint)):
        read_run(tmp_path)


@pytest.mark.parametrize("version", [FORMAT_VERSION - 1, FORMAT_VERSION + 1])
def test_run_of_another_format_is_rejected(tmp_path: Path, version: int) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format_version": version}))
    with pytest.raises(RunFolderError, match=rf"has format {version}, .* reads format 2 only.*\. Open it with"):
        _ = RunFolder(tmp_path).earlier


@pytest.mark.parametrize("name", ["responses.jsonl", "results.jsonl", "aggregates.yaml"])
def test_files_without_run_json_are_not_used(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}\n")
    with pytest.raises(RunFolderError, match=rf"holds {name} but no run\.json"):
        _ = RunFolder(tmp_path).earlier
    folder = RunFolder(tmp_path)
    folder.clear()
    assert folder.earlier is None


def test_empty_journal_without_run_json_is_not_a_run(tmp_path: Path) -> None:
    RunFolder(tmp_path).journal().close()
    assert RunFolder(tmp_path).earlier is None


def test_external_responses_are_written_one_at_a_time(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_responses({"question_id": f"q{number}"} for number in range(3))
    with folder.journal() as journal:
        assert list(journal) == [("q0", 1), ("q1", 1), ("q2", 1)]


def test_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match=r"file: cannot be written \(File exists\)\. A file of this name exists"):
        RunFolder(tmp_path / "file")
    with pytest.raises(RunFolderError, match=r"file/run: cannot be written \(Not a directory\)\. A file"):
        RunFolder(tmp_path / "file" / "run")


def test_removed_folder_is_an_error(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.rmdir()
    with pytest.raises(RunFolderError, match=r"run\.json: cannot be written \(No such file or directory\)"):
        folder.write_run({})


@pytest.fixture
def read_only_folder() -> Iterator[Path]:
    """Return a folder that this process may not write to, even as root."""
    if sys.platform == "win32":
        pytest.skip("needs permissions of POSIX")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o555)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        yield folder
    finally:
        if user == 0:
            os.seteuid(user)
        shutil.rmtree(folder)


def test_read_only_folder_is_an_error(read_only_folder: Path) -> None:
    for path in (read_only_folder, read_only_folder / "run"):
        with pytest.raises(
            RunFolderError, match=r"cannot be written \(Permission denied\)\. Choose a folder that you may"
        ):
            RunFolder(path)


def test_judge_cache_is_kept_when_a_run_is_cleared(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with folder.judge_cache() as cache:
        assert not (tmp_path / "judge_cache.jsonl").exists()
        cache.put("d", {"answers": ["yes"]})
    folder.clear()
    folder.refuse_earlier()
    with RunFolder(tmp_path).judge_cache() as cache:
        assert cache.get("d") == {"answers": ["yes"]}
