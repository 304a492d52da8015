"""Scoring shows its progress as a run does: on a terminal a bar, with the warnings as they come."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.terminals import on_terminal, plain

from graphrag_eval_lc import score_responses, score_run

DATASET: Any = [
    {"template_id": "t", "questions": [{"id": f"q{number}", "question_text": "1 + 1?"} for number in range(3)]}
]
RESPONSES: Any = [{"question_id": f"q{number}", "actual_answer": "2"} for number in (0, 1, 9)]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "qa.json").write_text(json.dumps(DATASET))
    (tmp_path / "responses.json").write_text(json.dumps(RESPONSES))
    (tmp_path / "slow.py").write_text(
        "import time\ndef slow(question, response):\n    time.sleep(0.4)\n    return 1.0\n"
    )
    return tmp_path


@pytest.mark.full
def test_score_shows_a_bar_on_a_terminal_unless_it_is_quiet(files: Path) -> None:
    command = ["-m", "graphrag_eval_lc", "score"]
    new = ["qa.json", "responses.json", "-o", "run", "--evaluator", "slow.py:slow", "--no-report"]
    code, written = on_terminal([*command, *new], files)
    shown = plain(written)
    assert code == 0
    assert "1 of 3 done" in shown
    assert shown.index("Warning: 1 response is to a question") < shown.index("Written to run")
    assert shown.count("1 response is to a question") == 1
    code, written = on_terminal([*command, "run", "--evaluator", "slow.py:slow", "--no-report"], files)
    assert "of 3 done" in plain(written)
    code, written = on_terminal([*command, *new, "--overwrite", "-q"], files)
    quiet = plain(written)
    assert code == 0
    assert "of 3 done" not in quiet
    assert quiet.index("Written to run") < quiet.index("Warning: 1 response is to a question")


def test_python_shows_nothing_unless_it_is_asked_for(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = score_responses(DATASET, RESPONSES, output_dir=files / "run")
    assert capsys.readouterr().err == ""
    assert len(run.warnings) > 0
    score_responses(DATASET, RESPONSES, progress="lines")
    assert "Warning: 1 response is to a question" in capsys.readouterr().err
    score_run(files / "run", dataset=DATASET, progress="lines")
    assert "Warning: 1 response is to a question" in capsys.readouterr().err
