"""Files of a pytest session may come from somebody else: each defect in them is one error, and no data is lost."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.pytest_runs import PARTS, PLAN, recover_killed_session
from graphrag_eval_lc.errors import RunFolderError

RUN: dict[str, Any] = {"key": "a", "name": "a", "test": "test_a.py::test_a", "dataset": "pipe", "selected": ["q"]}
STARTED: dict[str, Any] = {"run_id": "r", "times": {"started": "2026-01-01T00:00:00+00:00"}, "questions": {}}


@pytest.mark.parametrize(
    ("runs", "started", "what"),
    [
        ([RUN | {"questions": 1, "selection": {}, "is_named": False}], STARTED, "names a named pipe as its dataset"),
        ([RUN], STARTED, r"cannot be read \(KeyError: 'is_named'\). Nothing was removed"),
        ([{"x": 1}], STARTED, r"cannot be read \(KeyError: 'key'\)"),
        (5, STARTED, r"cannot be read \(TypeError: "),
        ([RUN], {"run_id": "r"}, r"cannot be read \(KeyError: 'times'\)"),
    ],
)
def test_planted_session_is_one_error(tmp_path: Path, runs: Any, started: Any, what: str) -> None:
    part = tmp_path / PARTS / "main"
    part.mkdir(parents=True)
    os.mkfifo(part / "pipe")
    (part / PLAN).write_text(json.dumps({"runs": runs}))
    (part / "a.run.json").write_text(json.dumps(started))
    answer = {"question_id": "q", "at": 1, "response": {"question_id": "q", "actual_answer": "x"}}
    (part / "a.jsonl").write_text(json.dumps(answer) + "\n")
    with pytest.raises(RunFolderError, match=what):
        recover_killed_session(tmp_path)
    assert (part / "a.jsonl").exists()
