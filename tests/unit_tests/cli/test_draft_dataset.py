"""The command `draft-dataset`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_eval_lc import load_dataset

Command = Callable[..., int]
DRAFT = ("draft-dataset", "run/responses.jsonl", "--output", "draft.yaml")


def test_responses_of_a_run_become_a_draft(files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", "qa.yaml", "-a", "agent.py:graph", "-o", "run", "--limit", "1") == 0
    capsys.readouterr()
    assert exit_code(*DRAFT) == 0
    assert capsys.readouterr().out == "Wrote 1 question to draft.yaml. Check each before you use it.\n"
    [template] = load_dataset("draft.yaml")
    [question] = template.get("questions") or ()
    assert question["id"] == "q1"
    assert exit_code(*DRAFT) == 2
    assert "draft.yaml" in capsys.readouterr().err
    assert exit_code(*DRAFT, "--overwrite") == 0
