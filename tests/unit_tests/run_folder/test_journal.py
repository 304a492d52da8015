import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import Journal, Summary
from graphrag_eval_lc.run_folder import journal as journals


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "responses.jsonl"


def test_record_is_in_the_file_as_soon_as_it_is_added(path: Path) -> None:
    with Journal(path) as journal:
        journal.add({"question_id": "q1"})
        assert path.read_text() == '{"question_id": "q1"}\n'


def test_last_record_of_a_key_wins(path: Path) -> None:
    with Journal(path) as journal:
        journal.add({"question_id": "q1", "n": 1})
        journal.add({"question_id": "q2", "n": 2})
        journal.add({"question_id": "q1", "n": 3})
        journal.add({"question_id": "q1", "repeat": 2, "n": 4})
    for opened in (journal, Journal(path)):
        assert list(opened) == [("q1", 1), ("q2", 1), ("q1", 2)]
        assert opened.read(("q1", 1)) == {"question_id": "q1", "n": 3}
        assert [record["n"] for record in opened.records(opened)] == [2, 3, 4]
        assert ("q1", 2) in opened
        assert ("q2", 2) not in opened
        assert opened.read(("q2", 2)) is None
        assert opened.summary(("q2", 2)) is None
        opened.close()
    assert len(path.read_bytes().splitlines()) == 4


def test_summary_has_errors_and_interruptions(path: Path) -> None:
    with Journal(path) as journal:
        journal.add({"question_id": "good", "status": "success"})
        journal.add({"question_id": "failed", "status": "error", "error": "E"})
        journal.add({"question_id": "foreign", "error": "E"})
        journal.add({"question_id": "stopped", "status": "error", "interrupted": True})
    with Journal(path) as reopened:
        assert reopened.summary(("good", 1)) == Summary(is_error=False, is_interrupted=False)
        assert reopened.summary(("failed", 1)) == Summary(is_error=True, is_interrupted=False)
        assert reopened.summary(("foreign", 1)) == Summary(is_error=True, is_interrupted=False)
        assert reopened.summary(("stopped", 1)) == Summary(is_error=True, is_interrupted=True)


def test_empty_journal_is_truthy(path: Path) -> None:
    with Journal(path) as journal:
        assert journal  # `if journal:` checks for None
        assert list(journal) == []
        assert list(journal.records([])) == []


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        (None, None),
        ("\ud800 lone", "\ud800 lone"),
        ("line\u2028and\x00\nline\r", "line\u2028and\x00\nline\r"),
        (float("nan"), "NaN"),
        (b"\xff\x00", "b'\\xff\\x00'"),
        (10**4200, 10**4200),
    ],
)
def test_any_answer_round_trips(path: Path, answer: Any, read: Any) -> None:
    with Journal(path) as journal:
        journal.add({"question_id": "q\ud800", "actual_answer": answer})
        assert journal.read(("q\ud800", 1)) == {"question_id": "q\ud800", "actual_answer": read}
    with Journal(path) as reopened:
        assert reopened.unreadable == []
        assert reopened.read(("q\ud800", 1)) == {"question_id": "q\ud800", "actual_answer": read}


def test_answer_of_10_mb_round_trips(path: Path) -> None:
    answer = "é" * 5_000_000
    with Journal(path) as journal:
        journal.add({"question_id": "before"})
        journal.add({"question_id": "long", "actual_answer": answer})
        journal.add({"question_id": "after"})
    with Journal(path) as reopened:
        assert [len(record.get("actual_answer", "")) for record in reopened.records(reopened)] == [0, 5_000_000, 0]
        record = reopened.read(("long", 1))
    assert record is not None
    assert record["actual_answer"] == answer


@pytest.mark.parametrize("depth", [150, 400, 2_000, 50_000])
def test_nested_values_of_any_depth_can_be_read_back(path: Path, depth: int) -> None:
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    with Journal(path) as journal:
        journal.add({"question_id": "q1", "actual_answer": value})
    with Journal(path) as reopened:
        assert reopened.unreadable == []
        assert list(reopened) == [("q1", 1)]


@pytest.mark.parametrize("record", [{}, {"question_id": None}, {"question_id": "q", "repeat": 0}])
def test_record_without_a_key_is_rejected(path: Path, record: dict[str, Any]) -> None:
    with Journal(path) as journal, pytest.raises(ValueError, match="question_id"):
        journal.add(record)
    assert path.read_bytes() == b""


def test_threads_can_add_and_read_concurrently(path: Path) -> None:
    with Journal(path) as journal:

        def work(name: str) -> None:
            for number in range(500):
                journal.add({"question_id": f"{name}{number}", "text": name * (number % 50)})
                assert journal.read((f"{name}{number}", 1)) is not None

        threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list(journal)) == 1000
        assert all(
            record["text"] == record["question_id"][0] * len(record["text"]) for record in journal.records(journal)
        )
    with Journal(path) as reopened:
        assert len(list(reopened)) == 1000
        assert reopened.unreadable == []


whole_lines = st.lists(
    st.fixed_dictionaries(
        {"question_id": st.sampled_from(["a", "b", "é", "\ud800"]), "text": st.text(max_size=5)},
        optional={"repeat": st.integers(1, 3), "status": st.sampled_from(["success", "error"])},
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.full
@settings(max_examples=2, deadline=None)  # each example syncs to disk once per byte
@given(whole_lines)
def test_file_truncated_anywhere_keeps_its_complete_lines(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = folder / "whole.jsonl"
    with Journal(whole) as journal:
        for record in records:
            journal.add(record)
    raw = whole.read_bytes()
    for length in range(len(raw) + 1):
        path = folder / "responses.jsonl"
        path.write_bytes(raw[:length])
        lines = raw[:length].splitlines(keepends=True)
        is_torn = bool(lines) and not lines[-1].endswith(b"}\n") and not _is_whole(lines[-1])
        complete = lines[:-1] if is_torn else lines
        with Journal(path) as journal:
            assert len(journal.unreadable) == is_torn
            assert set(journal) == {_key(line) for line in complete}
            journal.add({"question_id": "next"})
        assert (
            path.read_bytes()
            == b"".join(complete).rstrip(b"\n") + b"\n" * bool(complete) + b'{"question_id": "next"}\n'
        )


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _key(line: bytes) -> tuple[str, int]:
    record = json.loads(line)
    return record["question_id"], record.get("repeat", 1)


_UNTIL_FULL = """
import resource, sys
from pathlib import Path
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import Journal

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
with Journal(Path(sys.argv[1])) as journal:
    for number in range(100):
        try:
            journal.add({"question_id": f"q{number}", "text": "x" * 50})
        except RunFolderError as problem:
            print(problem)
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    journal.add({"question_id": "after"})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
def test_full_disk_is_an_error_and_leaves_no_partial_line(path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _UNTIL_FULL, str(path)], capture_output=True, text=True, check=True, timeout=120
    )
    assert f"{path}: cannot be written (File too large). Free space" in ended.stdout
    raw = path.read_bytes()
    records = [json.loads(line) for line in raw.splitlines()]
    assert [record["question_id"] for record in records] == [*(f"q{n}" for n in range(len(records) - 1)), "after"]
    assert len(raw.splitlines()) > 5
    with Journal(path) as reopened:
        assert reopened.unreadable == []


def test_removed_folder_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with Journal(folder / "responses.jsonl") as journal:
        journal.add({"question_id": "q1"})
        shutil.rmtree(folder)
        with pytest.raises(RunFolderError, match="its folder was removed while the run was writing"):
            journal.add({"question_id": "q2"})
        with pytest.raises(RunFolderError, match="cannot be read"):
            journal.read(("q1", 1))
    assert not folder.exists()


def test_file_changed_by_others_is_an_error(path: Path) -> None:
    with Journal(path) as journal:
        journal.add({"question_id": "q1"})
        path.write_bytes(b"x" * 30)
        with pytest.raises(RunFolderError, match=r"no record can be read at byte 0\. Another program changed the file"):
            journal.read(("q1", 1))


def test_journal_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"run/responses\.jsonl: cannot be written \(No such file or directory\)"):
        Journal(tmp_path / "run" / "responses.jsonl")


def test_failed_sync_is_an_error_and_keeps_the_record(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(journals, "sync", fail)
    journal = Journal(path)
    journal.add({"question_id": "q1"})
    with pytest.raises(RunFolderError, match=r"cannot be written \(Input/output error\)\. Check the disk"):
        journal.close()
    monkeypatch.undo()
    journal.close()
    with Journal(path) as reopened:
        assert list(reopened) == [("q1", 1)]
