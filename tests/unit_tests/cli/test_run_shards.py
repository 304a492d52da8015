"""The command `run` with `--shard`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]


def test_shard_is_asked_into_its_folder_and_told(exit_code: Command, files: Path, capsys: Output) -> None:
    arguments = ("run", "qa.yaml", "-a", "agent.py:graph", "-o", "part", "--no-report", "--shard", "1/1")
    assert exit_code(*arguments, "--dry-run", "--max-tokens", "50") == 0
    assert "this is shard 1/1 of a run: 3 questions of 3, with 50 of its 50 tokens." in capsys.readouterr().out
    assert exit_code(*arguments) == 0
    assert exit_code(*arguments[:-1], "2/3") == 2
    assert "the folder holds shard 1/1 of a run, and shard 2/3 was to be asked into it" in capsys.readouterr().err
    assert exit_code(*arguments, "--fail-under", "steps_score=1") == 2
    assert "--shard and --fail-under exclude each other" in capsys.readouterr().err


@pytest.mark.full
def test_shard_without_a_question_is_no_failure(exit_code: Command, files: Path, capsys: Output) -> None:
    outcomes = [
        exit_code("run", "qa.yaml", "-a", "agent.py:graph", "-o", f"p{number}", "--no-report", "--shard", f"{number}/9")
        for number in range(1, 10)
    ]
    assert outcomes == [0] * 9
    output = capsys.readouterr().out
    assert output.count("No question belongs to this shard.") >= 6
    empty = next(n for n in range(1, 10) if not Path(f"p{n}/responses.jsonl").read_text())
    again = ("run", "qa.yaml", "-a", "agent.py:graph", "-o", f"p{empty}", "--no-report", "--shard", f"{empty}/9")
    assert exit_code(*again, "--json") == 0
    assert json.loads(capsys.readouterr().out)["questions"] == 0
