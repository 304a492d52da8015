"""The command `merge`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
def test_merged_run_is_shown_with_its_report(exit_code: Command, capsys: Output) -> None:
    assert exit_code("merge", *SHARDS, "-o", "night", "--label", "night") == 0
    output = capsys.readouterr()
    assert "merged of 2 runs: 3 of 3 questions answered." in output.out
    assert "Written to night: run.json, responses.jsonl, results.jsonl, aggregates.yaml, report.html" in output.out
    assert output.err == ""
    assert exit_code("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "night", "--no-report") == 0
    assert json.loads(Path("night/run.json").read_text())["label"] == "night"
    assert exit_code("score", "night", "--no-report") == 0
    assert exit_code("compare", "night", "night-1-of-2") == 0


@pytest.mark.usefixtures("shards")
def test_what_is_missing_is_told_and_the_exit_code_is_1(exit_code: Command, capsys: Output) -> None:
    message = "2 samples of 3 are not answered: shard 2/2 is missing"
    first = SHARDS[0] if len(Path(SHARDS[0], "responses.jsonl").read_text().splitlines()) == 1 else SHARDS[1]
    message = message.replace("2/2", "2/2" if first == SHARDS[0] else "1/2")
    assert exit_code("merge", first, "-o", "night", "--dry-run") == 1
    assert f"The run would not be complete: {message}." in capsys.readouterr().err
    assert not Path("night").exists()
    assert exit_code("merge", first, "-o", "night", "--no-report") == 1
    assert f"The run is not complete: {message}. Merge again with --overwrite" in capsys.readouterr().err


@pytest.mark.usefixtures("shards")
def test_gates_are_of_the_merged_run(exit_code: Command, capsys: Output) -> None:
    assert exit_code("merge", *SHARDS, "-o", "night", "--no-report", "--fail-under", "steps_score=0.9") == 1
    assert "Gate failed: steps_score" in capsys.readouterr().err


@pytest.mark.usefixtures("shards")
def test_json_and_files_for_continuous_integration_are_those_of_a_run(exit_code: Command, capsys: Output) -> None:
    assert exit_code("merge", *SHARDS, "-o", "night", "--json", "--no-report", "--junit", "junit.xml") == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["questions"], document["passed"]) == ("run", 3, True)
    assert document["notes"] == ["merged of 2 runs: 3 of 3 questions answered"]
    assert Path("junit.xml").exists()


@pytest.mark.usefixtures("shards")
def test_what_is_to_be_judged_first_is_left_to_score(exit_code: Command, capsys: Output) -> None:
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


@pytest.mark.usefixtures("shards")
def test_strangers_are_an_error_of_one_sentence(exit_code: Command, capsys: Output) -> None:
    exit_code("run", "qa.yaml", "-a", "agent.py:graph", "-o", "other", "--no-report", "--quiet")
    capsys.readouterr()
    assert exit_code("merge", *SHARDS, "other", "-o", "night") == 2
    error = capsys.readouterr().err
    assert error.startswith("Error: these are no parts of one run: other differs from night-1-of-2: agent is agent.py:")
    assert "--force (force=True) merges them nevertheless." in error
    assert len(error.splitlines()) == 1


@pytest.mark.usefixtures("shards")
def test_shards_are_listed_as_such_and_are_no_baseline(exit_code: Command, capsys: Output) -> None:
    assert exit_code("runs", ".") == 0
    assert "shard 1/2" in capsys.readouterr().out
    assert exit_code("runs", ".", "--json") == 0
    assert sorted(row["shard"] for row in json.loads(capsys.readouterr().out)) == ["1/2", "2/2"]
    assert exit_code("compare", "--baseline", ".", SHARDS[0]) == 2
    assert exit_code("runs", "--trend", ".") == 2
    exit_code("merge", *SHARDS, "-o", "night", "--no-report")
    capsys.readouterr()
    assert exit_code("runs", "--trend", ".") == 0
    assert "2 shards left out, as merge has to put them together first" in capsys.readouterr().err
    assert exit_code("compare", "--baseline", ".", SHARDS[0]) == 0
    assert "The baseline is night" in capsys.readouterr().out
