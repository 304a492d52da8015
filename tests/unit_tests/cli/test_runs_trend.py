"""`runs --trend`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]
STEPS = [[{"name": "s", "output": "1"}]]
DATASET: list[Any] = [
    {
        "template_id": f"t{index}",
        "questions": [{"id": f"q{index}", "question_text": f"{index}?", "reference_steps": STEPS}],
    }
    for index in range(3)
]


def one(question: str) -> str:
    return "1"


def two(question: str) -> str:
    return "2"


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, agent in (("[a]", one), ("b", two)):
        run_benchmark(agent, DATASET, output_dir=f"runs/{name}", progress="off")


def test_table_has_a_row_for_each_run_and_tells_what_changed(exit_code: Command, capsys: Output) -> None:
    assert exit_code("runs", "--trend", "--html", "trend.html", "--csv", "trend.csv") == 0
    output = capsys.readouterr().out
    first, second = (line for line in output.splitlines() if line.lstrip().startswith(("1 ", "2 ")))
    assert "[a]" in first
    assert "0.000 the same" in second
    assert "2: the agent: " in output
    assert output.endswith("Written to trend.csv.\nWritten to trend.html.\n")
    assert Path("trend.html").is_file()
    assert len(list(Path("trend_comparisons").iterdir())) == 1


def test_runs_are_compared_with_the_one_that_against_names(exit_code: Command, capsys: Output) -> None:
    run_benchmark(two, DATASET, output_dir="runs/c", progress="off")
    assert exit_code("runs", "--trend", "--against", "first", "--html", "trend.html") == 0
    assert "Against first" in capsys.readouterr().out
    assert "each run compared with the first run, by the questions" in Path("trend.html").read_text()
    names = [path.name.partition("-")[0] for path in sorted(Path("trend_comparisons").iterdir())]
    assert names == ["_a___b", "_a___c"]
    assert exit_code("runs", "--trend", "--against", "best", "--json") == 0
    assert [row.get("against") for row in json.loads(capsys.readouterr().out)] == [None, "runs/[a]", "runs/[a]"]
    assert exit_code("runs", "--trend", "--against", "frist") == 2
    assert "there is no run frist. There are [a], b, c; or give first or best." in capsys.readouterr().err


def test_rows_are_printed_as_json(exit_code: Command, capsys: Output) -> None:
    assert exit_code("runs", "--trend", "runs", "--json", "--html", "trend.html", "--no-comparisons") == 0
    output = capsys.readouterr()
    assert [row["label"] for row in json.loads(output.out)] == ["[a]", "b"]
    assert output.err == "Written to trend.html.\n"
    assert not Path("trend_comparisons").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["absent"], "absent: there is no such folder"),
        (["--metric", "step_score"], "none of the runs has the score step_score. Did you mean steps_score?"),
        (["--html", "runs"], "runs: this is a folder, not a file."),
        (["--tag", "x"], "none of the runs has these tags"),
    ],
)
def test_wrong_usage_is_told(exit_code: Command, capsys: Output, arguments: list[str], told: str) -> None:
    assert exit_code("runs", "--trend", *arguments) == 2
    assert told in capsys.readouterr().err
