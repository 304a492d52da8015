"""The command `validate`."""

from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]


def test_good_files_have_no_problems(files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("validate", "qa.yaml") == 0
    assert capsys.readouterr().out == "No problems found.\n"


def test_problems_are_findings(files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    Path("qa.yaml").write_text(Path("qa.yaml").read_text().replace("question_text: Who runs OSLO?", "text: x"))
    assert exit_code("validate", "qa.yaml") == 1
    output = capsys.readouterr().out
    assert "qa.yaml" in output
    assert "question_text" in output
    assert output.endswith("problem found.\n")


def test_responses_are_checked_against_the_dataset(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("validate", "qa.yaml", "--responses", "responses.jsonl") == 1
    output = capsys.readouterr().out
    assert "question q2" in output
    assert output.endswith("2 problems found.\n")


def test_folder_of_a_run_that_asked_again_has_no_problems(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run", "--repeats", "2", "-q") == 0
    command = (
        "run",
        "qa.yaml",
        "-a",
        "agent.py:graph",
        "-o",
        "run",
        "--repeats",
        "2",
        "-q",
        "--retry-errors",
        "--force",
    )
    assert exit_code(*command) == 0
    capsys.readouterr()
    for responses in ("run", "run/responses.jsonl"):
        assert exit_code("validate", "qa.yaml", "-r", responses) == 0
        assert capsys.readouterr().out == "No problems found.\n"


def test_config_says_which_steps_are_checked_as_retrieval(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("config.yaml").write_text("retrieval: {steps: [lookup]}")
    assert exit_code("validate", "qa.yaml") == 0
    assert exit_code("validate", "qa.yaml", "--config", "config.yaml") == 1
    assert "cannot be read as documents" in capsys.readouterr().out


def test_file_that_cannot_be_read_is_wrong_input(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("validate", "absent.yaml") == 2
    assert "Error: absent.yaml" in capsys.readouterr().err
