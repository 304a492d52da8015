"""The command `merge`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]
SHARDS = ("night-1-of-2", "night-2-of-2")


@pytest.fixture
def shards(files: Path, exit_code: Command, capsys: Output) -> None:
    """Run both shards of a run in which one question fails."""
    for number, folder in enumerate(SHARDS, start=1):
        run = ("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", folder, "--shard", f"{number}/2", "--no-report")
        exit_code(*run, "--quiet")
    capsys.readouterr()


@pytest.mark.usefixtures("shards")
def test_unjudged_results_are_left_to_score(exit_code: Command, capsys: Output) -> None:
    for folder in SHARDS:
        path = Path(folder, "run.json")
        record = {**json.loads(path.read_text()), "evaluators": [{"name": "rate", "function": "checks:rate"}]}
        del record["totals"]
        path.write_text(json.dumps(record))
    assert exit_code("merge", *SHARDS, "-o", "night") == 1
    output = capsys.readouterr()
    assert "Merged into night, and not scored yet: 3 responses were not scored by the parts" in output.err
    assert output.out == ""
    assert exit_code("merge", *SHARDS, "-o", "night", "--overwrite", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["passed"], document["stopped"]["reason"]) == (False, "not scored")
