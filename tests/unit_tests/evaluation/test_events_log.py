"""The events of a run as JSON lines."""

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.evaluation.events import EventLog, RunEvent

WARNING = RunEvent("warning", {"message": "The disk is nearly full."})


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_event_is_a_line_with_its_time_in_utc(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log(RunEvent("attempt_started", {"question_id": "q1", "repeat": None, "attempt": 1}))
        [line] = lines_of(path)  # before the log is closed
    assert list(line) == ["time", "event", "question_id", "repeat", "attempt"]
    assert line["event"] == "attempt_started"
    moment = datetime.fromisoformat(line["time"])
    assert moment.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=5)
    assert log.problem is None


def test_torn_line_of_an_earlier_session_does_not_affect_new_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"time": "20')
    with EventLog(path) as log:
        log(WARNING)
        log(WARNING)
    torn, *lines = path.read_text().splitlines()
    assert torn == '{"time": "20'
    assert [json.loads(line)["event"] for line in lines] == ["warning", "warning"]


def test_control_sequences_are_escaped(tmp_path: Path) -> None:
    with EventLog(tmp_path / "events.jsonl") as log:
        log(RunEvent("warning", {"message": "a\x9b2J\x1b[2J\x7f\u202eø", "question_id": "q\x85##[error]"}))
    text = (tmp_path / "events.jsonl").read_text(encoding="utf-8")
    assert text.rstrip("\n").isprintable()
    assert "##[" not in text
    [line] = lines_of(tmp_path / "events.jsonl")
    assert (line["message"], line["question_id"]) == ("a\x9b2J\x1b[2J\x7f\u202eø", "q\x85##[error]")


def test_secrets_in_texts_are_masked(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log(RunEvent("warning", {"message": "refused: Bearer abcdefghijklmnopqrstuvwxyz0123456789"}))
    assert "abcdefghijklmnop" not in path.read_text()
    assert lines_of(path)[0]["message"].startswith("refused: ")


def test_a_question_id_stays_as_the_dataset_has_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    identifier = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
    with EventLog(path) as log:
        log(RunEvent("result_scored", {"question_id": identifier, "repeat": 2, "steps_score": 1.0}))
    assert lines_of(path)[0]["question_id"] == identifier


def test_values_that_json_lacks_are_written_as_valid_json(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log(RunEvent("run_started", {"output_dir": Path("runs/a"), "label": "lone \ud800\n", "total": float("nan")}))
    [line] = lines_of(path)
    assert (line["output_dir"], line["label"], line["total"]) == ("runs/a", "lone \ud800\n", "NaN")


def test_lines_of_several_threads_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        threads = [threading.Thread(target=lambda: [log(WARNING) for _ in range(200)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(lines_of(path)) == 800


@pytest.mark.parametrize("name", ["", "missing/events.jsonl"])
def test_a_file_that_cannot_be_opened_is_one_clear_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunFolderError, match=r"the log file cannot be opened \(.+\)\. Give the path of a file"):
        EventLog(tmp_path / name)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_ends_the_log_but_not_the_run() -> None:
    with EventLog("/dev/full") as log:
        log(WARNING)
        log(WARNING)
    assert log.problem == ("The log file /dev/full is not complete: it cannot be written (No space left on device).")
