import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.report_samples import result, step, table

from graphrag_eval_lc import BenchmarkRun, report_html, write_report
from graphrag_eval_lc.errors import MissingExtraError, OptionError, RunFolderError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "results.jsonl").write_text(json.dumps(result(step("sparql_query", table("T1", "T2")))))
    (tmp_path / "run.json").write_text('{"format_version": 2, "label": "monday & <tuesday>"}')
    return tmp_path


def test_report_is_written_to_the_run_folder(folder: Path) -> None:
    path = write_report(folder)
    assert path == folder / "report.html"
    assert "monday &amp; &lt;tuesday&gt;" in path.read_text(encoding="utf-8")
    assert not list(folder.glob("*.new"))


def test_report_replaces_an_earlier_one_or_is_written_elsewhere(folder: Path) -> None:
    other = folder / "other.html"
    other.write_text("earlier")
    assert write_report(str(folder), str(other)) == other
    assert other.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert not (folder / "report.html").exists()


def test_invalid_path_is_an_error_with_the_fix(folder: Path) -> None:
    with pytest.raises(OptionError, match=r"none: the report's folder is not there\. Make it first"):
        write_report(folder, folder / "none" / "report.html")
    with pytest.raises(OptionError, match=r"this is a folder\. Give a file, such as .*report\.html"):
        write_report(folder, folder)


def test_unwritable_file_is_an_error_with_its_path(folder: Path) -> None:
    (folder / "report.html").mkdir()
    with pytest.raises(RunFolderError, match=r"report\.html: cannot be written"):
        write_report(folder)


def test_run_in_memory_has_a_report_but_no_default_path(tmp_path: Path) -> None:
    run = BenchmarkRun({"micro": {}}, results=[result()])  # type: ignore[list-item]
    assert "<!doctype html>" in report_html(run)
    assert write_report(run, tmp_path / "r.html").exists()
    with pytest.raises(OptionError, match="no folder"):
        write_report(run)


def test_non_string_key_is_accepted(tmp_path: Path) -> None:
    result: Any = {"template_id": "t", "question_id": "q", "status": "success", "steps_score": 1.0, 2024: "a year"}
    assert write_report([result], tmp_path / "report.html").stat().st_size > 0


def test_empty_run_has_a_report() -> None:
    assert "The run has no results." in report_html([])


def test_missing_jinja2_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphrag_eval_lc.report.run_report.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"jinja2") as caught:
        report_html([])
    assert "graphrag-eval-lc[report]" in str(caught.value)
