"""The files that commands write for continuous integration: ``--summary``, ``--junit`` and GitHub's summary."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.junit_schema import checked_junit

from graphrag_eval_lc.report.markdown_summary import MOST_BYTES

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]

RUN = ["run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run", "-q", "--no-report"]
SCORE = ["score", "qa.yaml", "responses.jsonl", "-o", "run", "--no-report"]
BOTH = pytest.mark.parametrize("command", [RUN, SCORE])


@pytest.fixture
def step_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give GitHub's file for the summary of a step, which is there and empty as each step begins."""
    path = tmp_path / "step_summary"
    path.touch()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


@BOTH
def test_run_and_score_write_both_files(files: Path, exit_code: Command, capsys: Output, command: list[str]) -> None:
    gate = ["--fail-under", "steps_score=0.99", "--fail-over", "elapsed_sec.max=100"]
    assert exit_code(*command, *gate, "--summary", "out/summary.md", "--junit", "run/junit.xml") == 1
    printed = capsys.readouterr().out
    assert "Written to out/summary.md.\n" in printed
    assert "Written to run/junit.xml.\n" in printed
    assert Path("out/summary.md").read_text(encoding="utf-8").startswith("## ❌ Failed, ")
    questions, gates = checked_junit("run/junit.xml")
    assert [case.get("name") for case in questions.iter("testcase")] == ["q1", "q2", "q3"]
    assert gates.get("tests") == "2"


@BOTH
def test_files_are_replaced(files: Path, exit_code: Command, command: list[str]) -> None:
    for name in ("summary.md", "junit.xml"):
        Path(name).write_text("old")
    exit_code(*command, "--summary", "summary.md", "--junit", "junit.xml")
    assert "old" not in Path("summary.md").read_text(encoding="utf-8")
    checked_junit("junit.xml")


def test_worst_says_how_many_questions_the_summary_shows(files: Path, exit_code: Command) -> None:
    exit_code(*RUN, "--summary", "summary.md", "--worst", "1")
    assert "Worst questions (1 of 2 questions" in Path("summary.md").read_text(encoding="utf-8")


def test_json_stays_one_document(files: Path, exit_code: Command, capsys: Output) -> None:
    assert exit_code(*RUN, "--json", "--summary", "summary.md", "--junit", "junit.xml") == 0
    assert "Written" not in capsys.readouterr().out
    assert Path("junit.xml").exists()


def test_summary_of_the_job_is_added_to_by_itself(files: Path, exit_code: Command, step_summary: Path) -> None:
    assert exit_code(*RUN) == 0
    first = step_summary.read_text(encoding="utf-8")
    assert first.startswith("## ℹ️ Scored, no gates: ")
    assert exit_code("score", "run", "--no-report", "--fail-under", "steps_score=0") == 0
    text = step_summary.read_text(encoding="utf-8")
    assert text.startswith(first)
    assert text.count("\n\n## ✅ Passed, the gate: ") == 1


def test_summary_none_switches_that_off(files: Path, exit_code: Command, step_summary: Path) -> None:
    assert exit_code(*RUN, "--summary", "none") == 0
    assert step_summary.read_text() == ""
    assert not Path("none").exists()


def test_summary_of_the_job_that_is_given_as_the_file_is_added_to_once(
    files: Path, exit_code: Command, step_summary: Path
) -> None:
    step_summary.write_text("of another command\n")
    assert exit_code(*RUN, "--summary", str(step_summary)) == 0
    text = step_summary.read_text(encoding="utf-8")
    assert text.startswith("of another command\n\n## ")
    assert text.count("## ℹ️") == 1


def test_dry_run_writes_no_summary(files: Path, exit_code: Command, step_summary: Path) -> None:
    assert exit_code(*RUN, "--dry-run", "--summary", "summary.md") == 0
    assert step_summary.read_text() == ""
    assert not Path("summary.md").exists()


def test_summary_of_the_job_that_cannot_be_written_is_a_warning(
    files: Path, exit_code: Command, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "gone/step_summary")
    assert exit_code(*RUN) == 0
    assert (
        f"Warning: the summary of the job could not be written: {Path.cwd()}/gone/step_summary: "
        in capsys.readouterr().err
    )


def test_full_summary_of_the_job_is_a_warning_and_stays_below_githubs_limit(
    files: Path, exit_code: Command, capsys: Output, step_summary: Path
) -> None:
    step_summary.write_text("x" * (MOST_BYTES - 5_000))
    assert exit_code(*RUN) == 0
    assert "Warning: the summary of the job is full" in capsys.readouterr().err
    assert step_summary.stat().st_size == MOST_BYTES - 5_000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_that_may_not_be_written_is_told_before_anything_is_asked(
    files: Path, exit_code: Command, capsys: Output
) -> None:
    Path("locked").mkdir(mode=0o500)
    assert exit_code(*RUN, "--junit", "locked/junit.xml") == 2
    assert "locked may not be written" in capsys.readouterr().err
    assert not Path("run").exists()


def test_file_that_cannot_be_written_in_the_end_leaves_the_run_and_its_tables(
    files: Path, exit_code: Command, capsys: Output
) -> None:
    agent = (
        "import pathlib\ndef sometimes(question):\n    pathlib.Path('late').mkdir(exist_ok=True)\n    return 'yes'\n"
    )
    Path("agent.py").write_text(agent)
    assert exit_code(*RUN, "--junit", "late", "--fail-under", "steps_score=0") == 2
    output = capsys.readouterr()
    assert f"Error: {Path.cwd()}/late: cannot be written" in output.err
    assert "Gate passed: steps_score" in output.out
    assert Path("run/results.jsonl").exists()


def test_compare_writes_a_summary_with_its_gates(
    files: Path, exit_code: Command, capsys: Output, step_summary: Path
) -> None:
    exit_code(*RUN)
    shutil.copytree("run", "other")
    before = step_summary.read_text(encoding="utf-8")
    assert exit_code("compare", "run", "other", "--summary", "summary.md", "--max-drop", "0.05") == 0
    assert "Written to summary.md." in capsys.readouterr().out
    text = Path("summary.md").read_text(encoding="utf-8")
    assert text.startswith("## ✅ Passed, the gate\n")
    assert step_summary.read_text(encoding="utf-8") == f"{before}\n{text}\n"


def test_compare_tells_a_file_that_cannot_be_written_before_it_compares(
    files: Path, exit_code: Command, capsys: Output
) -> None:
    exit_code(*RUN)
    capsys.readouterr()
    assert exit_code("compare", "run", "run", "--summary", ".") == 2
    output = capsys.readouterr()
    assert "this is a folder, not a file" in output.err
    assert output.out == ""


@pytest.mark.full
def test_demo_writes_both_files(files: Path, exit_code: Command) -> None:
    assert exit_code("demo", "-q", "--no-report", "--summary", "summary.md", "--junit", "junit.xml") == 0
    assert len(list(checked_junit("junit.xml").iter("testcase"))) == 48
    assert "steps_score 0.660 (0.46–0.81)" in Path("summary.md").read_text(encoding="utf-8")
