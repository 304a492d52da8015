"""What workers keep until the driver has it."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.workers.spool import Spool, left_behind
from graphrag_eval_lc.errors import RunFolderError


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


RESPONSE: Any = {"question_id": "q1", "question_text": "Why?", "status": "success"}


def test_what_was_not_confirmed_is_taken_once() -> None:
    spool = Spool("run-1")
    spool.add("run-1/1/q1/2/1", RESPONSE)
    spool.close(is_confirmed=False)
    assert [(each["question_id"], each["repeat"]) for each in left_behind("run-1")] == [("q1", 2)]
    assert list(left_behind("run-1")) == []


def test_what_was_confirmed_is_gone(temporary: Path) -> None:
    spool = Spool("run-1")
    spool.add("run-1/1/q1/1/1", RESPONSE)
    spool.close(is_confirmed=True)
    assert list(left_behind("run-1")) == []
    assert [path for path in temporary.rglob("*") if path.is_file()] == []


def test_runs_keep_apart_and_to_themselves(temporary: Path) -> None:
    spool = Spool("run-1")
    spool.add("run-1/1/q1/1/1", RESPONSE)
    assert list(left_behind("run-2")) == []
    assert {path.stat().st_mode & 0o777 for path in temporary.rglob("*.jsonl")} == {0o600}
    spool.close(is_confirmed=True)


def test_a_folder_of_somebody_else_is_not_used(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool("run-1")
    spool.add("run-1/1/q1/1/1", RESPONSE)
    spool.close(is_confirmed=False)
    monkeypatch.setattr("os.getuid", lambda: 4711)
    assert list(left_behind("run-1")) == []
    with pytest.raises(RunFolderError, match="belongs to somebody else"):
        Spool("run-1")


def test_a_link_in_the_place_of_the_folder_is_not_followed(temporary: Path) -> None:
    Spool("run-1").close(is_confirmed=True)
    (own,) = temporary.iterdir()
    elsewhere = temporary / "elsewhere"
    own.rename(elsewhere)
    own.symlink_to(elsewhere)
    assert list(left_behind("run-1")) == []
    with pytest.raises(RunFolderError):
        Spool("run-1")
