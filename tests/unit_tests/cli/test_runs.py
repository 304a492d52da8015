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
            {"id": f"q{template}", "question_text": f"{template}?", "reference_steps": [[{"name": "s", "output": "1"}]]}
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
    """Create `runs/[first]`, `runs/second` and `branch`."""
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


@pytest.mark.parametrize("name", ["runs", "runs --trend"])
def test_any_labels_and_times_are_shown_without_terminal_commands(
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
