"""Files for continuous integration: ``--summary``, ``--junit`` and GitHub's step summary."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.junit_schema import checked_junit

from graphrag_eval_lc.report.markdown_summary import MOST_BYTES

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]

RUN = ["run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run", "-q", "--no-report"]


@pytest.fixture
def step_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return GitHub's step summary file, which is empty at the beginning of each step."""
    path = tmp_path / "step_summary"
    path.touch()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


def test_junit_is_valid(files: Path, exit_code: Command) -> None:
    gates = ["--fail-under", "steps_score=0.99", "--fail-over", "elapsed_sec.max=100"]
    assert exit_code(*RUN, *gates, "--junit", "run/junit.xml") == 1
    questions, checked = checked_junit("run/junit.xml")
    assert [case.get("name") for case in questions.iter("testcase")] == ["q1", "q2", "q3"]
    assert checked.get("tests") == "2"


def test_full_step_summary_is_a_warning_and_stays_below_the_limit(
    files: Path, exit_code: Command, capsys: Output, step_summary: Path
) -> None:
    step_summary.write_text("x" * (MOST_BYTES - 5_000))
    assert exit_code(*RUN) == 0
    assert "Warning: the summary of the job is full" in capsys.readouterr().err
    assert step_summary.stat().st_size == MOST_BYTES - 5_000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder_is_reported_before_the_agent_is_called(
    files: Path, exit_code: Command, capsys: Output
) -> None:
    Path("locked").mkdir(mode=0o500)
    assert exit_code(*RUN, "--junit", "locked/junit.xml") == 2
    assert "locked may not be written" in capsys.readouterr().err
    assert not Path("run").exists()


@pytest.mark.full
def test_demo_writes_both_files(files: Path, exit_code: Command) -> None:
    assert exit_code("demo", "-q", "--no-report", "--summary", "summary.md", "--junit", "junit.xml") == 0
    assert len(list(checked_junit("junit.xml").iter("testcase"))) == 48
    assert "steps_score 0.660 (0.46–0.81)" in Path("summary.md").read_text(encoding="utf-8")
