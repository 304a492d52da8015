"""The command `run` with `--shard`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]


@pytest.mark.full
def test_shard_without_questions_is_not_a_failure(exit_code: Command, files: Path, capsys: Output) -> None:
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
