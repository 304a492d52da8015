"""The report of a running run: which results it shows, and which events it sends to browsers."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.page_data import page_data

from graphrag_eval_lc.evaluation.events import RunEvent
from graphrag_eval_lc.report.live_report import LiveReport

RESULT = {"template_id": "t", "status": "success", "steps_score": 1.0}


def scored(live: LiveReport, folder: Path, *names: str, rest: str = "") -> None:
    """Write results as a run does, and send an event for each."""
    lines = [json.dumps({**RESULT, "question_id": name}) + "\n" for name in names]
    with (folder / "results.jsonl.partial").open("a") as file:
        file.writelines([*lines, rest])
    for name in names:
        live(RunEvent("result_scored", {"question_id": name}))


@pytest.fixture
def live(tmp_path: Path) -> Any:
    (tmp_path / "run.json").write_text('{"format_version": 2, "run_id": "r"}')
    with LiveReport(tmp_path) as live:
        live(RunEvent("run_started", {"total": 3, "done": 0, "errors": 0}))
        yield live


def keys(live: LiveReport) -> list[str]:
    answer = httpx.get(live.address)
    assert answer.status_code == 200
    return [row["k"] for row in page_data(answer.text)["index"]]


def test_page_has_scored_results_but_no_partial_lines(live: LiveReport, tmp_path: Path) -> None:
    assert keys(live) == []
    scored(live, tmp_path, "a", "b", rest='{"question_id": "c", "template')
    assert keys(live) == ["a", "b"]


def test_after_the_end_the_page_has_the_final_results_in_order(live: LiveReport, tmp_path: Path) -> None:
    scored(live, tmp_path, "b", "a")
    assert keys(live) == ["b", "a"]
    (tmp_path / "results.jsonl.partial").unlink()
    lines = [json.dumps({**RESULT, "question_id": name}) for name in ("a", "b", "c")]
    (tmp_path / "results.jsonl").write_text("\n".join(lines))
    live(RunEvent("result_scored", {"question_id": "c"}))
    assert keys(live) == ["a", "b", "c"]


def test_events_report_the_number_of_scored_results_until_the_end(tmp_path: Path) -> None:
    with LiveReport(tmp_path) as live:
        live(RunEvent("run_started", {"total": 3, "done": 0, "errors": 0}))
        events = live.events()
        assert next(events) == b'event: more\ndata: {"scored": 0, "total": 3}\n\n'
        scored(live, tmp_path, "a")
        assert next(events) == b'event: more\ndata: {"scored": 1, "total": 3}\n\n'
    assert [*events] == [b'event: end\ndata: {"scored": 1, "total": 3}\n\n']


def test_server_survives_the_removal_of_the_folder(live: LiveReport, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    assert httpx.get(live.address).status_code == 503
    (tmp_path / "run.json").write_text('{"format_version": 2, "run_id": "r"}')
    assert keys(live) == []
