"""The command `report`, and the report that other commands write at the end."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]
SCORE = ("score", "qa.yaml", "responses.jsonl", "-o", "run")


def test_report_is_written_to_the_run_folder_or_elsewhere(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*SCORE, "--no-report") == 0
    assert "report.html" not in capsys.readouterr().out
    assert not Path("run/report.html").exists()
    assert exit_code("report", "run") == 0
    assert "Written to run/report.html (" in capsys.readouterr().out
    assert exit_code("report", "run", "-o", "other.html") == 0
    assert Path("run/report.html").stat().st_size == Path("other.html").stat().st_size > 10_000


def test_report_is_opened_on_request(files: Path, exit_code: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))
    assert exit_code(*SCORE) == 0
    assert exit_code("report", "run", "--open") == 0
    assert opened == [Path("run/report.html").resolve().as_uri()]


def test_without_a_browser_only_the_path_is_printed(
    files: Path, exit_code: Command, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(url: str) -> bool:
        os.write(2, b"xdg-open: no method available\n")
        return False

    monkeypatch.setattr("webbrowser.open", fail)
    assert exit_code(*SCORE) == 0
    capfd.readouterr()
    assert exit_code("report", "run", "--open") == 0
    address = Path("run/report.html").resolve().as_uri()
    assert capfd.readouterr().err == f"No browser could be opened. The report is at {address}\n"


@pytest.mark.parametrize("problem", [OSError("away"), RecursionError("too deep"), MemoryError()])
def test_unwritable_report_is_a_warning(
    files: Path,
    exit_code: Command,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    problem: Exception,
) -> None:
    def fail(folder: Path, path: Path | None) -> Path:
        raise problem

    monkeypatch.setattr("graphrag_eval_lc.report.run_report.write_report", fail)
    assert exit_code(*SCORE) == 0
    output = capsys.readouterr()
    assert f"Warning: the report could not be written ({type(problem).__name__}" in output.err
    assert "Written to run: run.json, responses.jsonl, results.jsonl, aggregates.yaml\n" in output.out


def test_without_jinja2_a_line_explains_the_installation(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphrag_eval_lc.report.run_report.find_spec", lambda name: None)
    assert exit_code(*SCORE) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "No report was written: A report needs the package jinja2, which is not installed. "
        "Run: pip install 'graphrag-eval-lc[report]'"
    )
