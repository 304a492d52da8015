"""Start and end are the same for runs, dry runs, recorded responses and re-scoring."""

import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark, score_responses, score_run

STEPS = [[{"name": "lookup", "output": "1"}]]
DATASET: list[Any] = [{"template_id": "t", "questions": [{"id": "q", "question_text": "?", "reference_steps": STEPS}]}]


def answer(question: str) -> str:
    return "1"


def length(question: Any, response: Any) -> int:
    return len(response["actual_answer"])


def test_report_is_written_and_replaced_unless_disabled(tmp_path: Path) -> None:
    page = tmp_path / "run" / "report.html"
    run_benchmark(answer, DATASET, output_dir=tmp_path / "run", progress="off", report=False)
    assert not page.exists()
    run_benchmark(answer, DATASET, output_dir=tmp_path / "run", progress="off")
    first = page.read_bytes()
    score_run(tmp_path / "run", dataset=DATASET, evaluators=[length])
    assert page.read_bytes() != first
    score_responses(DATASET, [{"question_id": "q", "actual_answer": "1"}], output_dir=tmp_path / "new")
    assert (tmp_path / "new" / "report.html").exists()


def test_unwritable_report_is_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for module in ("page", "run_report"):
        monkeypatch.delitem(sys.modules, f"graphrag_eval_lc.report.{module}", raising=False)
        monkeypatch.delattr(f"graphrag_eval_lc.report.{module}", raising=False)  # because an import sets it again
    run = run_benchmark(answer, DATASET, output_dir=tmp_path, progress="off")
    [note] = run.notes
    assert note.startswith("No report was written: ")
    assert note.endswith("Run: pip install 'graphrag-eval-lc[report]'")
    assert run.results[0]["status"] == "success"
