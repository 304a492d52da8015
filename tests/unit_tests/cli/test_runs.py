"""The command `runs`, and `compare` with a folder of runs as the baseline."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]
DATASET: list[Any] = [
    {
        "template_id": f"t{template}",
        "questions": [
            {
                "id": f"q{template}",
                "question_text": f"{template}?",
                "reference_steps": [[{"name": "s", "output": "1"}]],
            }
        ],
    }
    for template in range(3)
]


def answer(question: str) -> str:
    if question == "0?":
        raise ValueError("away")
    return "yes"


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `runs/[first]`, `runs/second` and `branch`."""
    monkeypatch.chdir(tmp_path)
    for folder, label in (("runs/[first]", None), ("runs/second", "[bold]nightly"), ("branch", None)):
        run_benchmark(answer, DATASET, output_dir=folder, label=label, progress="off")


def test_runs_are_listed_with_scores_and_commit(exit_code: Command, capsys: Output) -> None:
    path = Path("runs/second/run.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "git": {"commit": "0123456789ab", "clean": False}}))
    assert exit_code("runs") == 0
    output = capsys.readouterr().out
    first, second = (line for line in output.splitlines() if "│" in line)
    assert [cell.strip() for cell in first.split("│")][:2] == ["[first]", ""]
    assert [cell.strip() for cell in second.split("│")][:2] == ["second", "[bold]nightly"]
    assert "│ 01234567* │" in second
    assert "scores are means over all questions, failed ones as 0" in output


def test_last_runs_are_listed_as_json(exit_code: Command, capsys: Output) -> None:
    assert exit_code("runs", "runs", "--last", "1", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["path"] == "runs/second"
    assert row["scores"] == {"steps_score": {"mean": 0.0, "answered": 0.0}}


def test_score_that_no_run_has_is_refused_with_the_nearest(exit_code: Command, capsys: Output) -> None:
    assert exit_code("runs", "runs", "--metric", "step_score") == 2
    assert "none of the runs has the score step_score. Did you mean steps_score?" in capsys.readouterr().err


def test_folder_without_runs_is_an_error(exit_code: Command, capsys: Output, tmp_path: Path) -> None:
    tmp_path.joinpath("empty").mkdir()
    assert exit_code("runs", "empty") == 2
    assert "Error: empty: the folder holds no run. Write some with run, score or demo" in capsys.readouterr().err
    assert exit_code("runs", "absent") == 2
    assert "absent: there is no such folder" in capsys.readouterr().err


def test_baseline_is_the_last_run_of_a_folder(exit_code: Command, capsys: Output) -> None:
    assert exit_code("compare", "--baseline", "runs", "branch") == 0
    output = capsys.readouterr().out
    assert output.startswith(
        "The baseline is runs/second, the last run in runs that came to its end.\nA  [bold]nightly"
    )
    assert exit_code("compare", "--baseline", "runs", "runs/second") == 0
    assert "The baseline is runs/[first], the last" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "baseline"),
    [
        (("branch", "--baseline", "runs", "--against", "first"), "runs/[first]"),
        (("runs/second", "--against", "best"), "runs/[first]"),  # of the folder that it is in
        (("runs/[first]", "--against", "[bold]nightly"), "runs/second"),
        (("branch", "runs/second", "--baseline", "runs", "--against", "previous"), "runs/[first]"),
    ],
)
def test_baseline_is_the_run_that_against_names(
    arguments: tuple[str, ...], baseline: str, exit_code: Command, capsys: Output
) -> None:
    assert exit_code("compare", *arguments) == 0
    assert Path(capsys.readouterr().out.splitlines()[0].removeprefix("The baseline is ")[:-1]).samefile(baseline)


def test_name_of_no_run_and_a_first_run_have_no_baseline(exit_code: Command, capsys: Output) -> None:
    assert exit_code("compare", "branch", "--baseline", "runs", "--against", "secnd") == 2
    assert "there is no run secnd. Did you mean second?" in capsys.readouterr().err
    assert exit_code("compare", "runs/[first]", "--against", "best") == 3
    assert "no earlier finished run with the questions and the dataset of runs/[first]" in capsys.readouterr().err


def test_baseline_may_be_one_run(exit_code: Command, capsys: Output) -> None:
    assert exit_code("compare", "branch", "--baseline", "runs/[first]") == 0
    assert capsys.readouterr().out.startswith("A  [first]: 3 questions")


def test_baseline_without_a_run_is_refused(exit_code: Command, capsys: Output, tmp_path: Path) -> None:
    tmp_path.joinpath("empty").mkdir()
    assert exit_code("compare", "branch", "--baseline", "empty") == 2
    assert "Error: empty: the folder holds no run." in capsys.readouterr().err
    assert exit_code("compare", "branch") == 2
    assert "With --baseline RUN_A or --against first one is enough" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["runs", "runs --trend"])
def test_labels_and_times_of_any_kind_are_shown_and_nothing_in_them_reaches_the_terminal(
    name: str, tmp_path: Path, exit_code: Command, capsys: Output
) -> None:
    for number, started in enumerate(("9999-12-31T23:59:59-05:00", "2026-01-31T01:30:00+02:00")):
        folder = tmp_path / f"run{number}"
        run_benchmark(answer, DATASET, output_dir=folder, progress="off")
        record = json.loads((folder / "run.json").read_text())
        record |= {"label": f"a\ud800\x1b]0;t\x07{number}", "agent": f"\x1b[31m\ud800{number}"}
        record["times"]["started"] = started
        (folder / "run.json").write_text(json.dumps(record))

    assert exit_code(*name.split(), str(tmp_path)) == 0

    shown = capsys.readouterr().out
    assert "a⟨U+D800⟩␛]0;t␇1" in shown
    assert "\x1b" not in shown
    assert "2026-01-30 23:30" in shown
