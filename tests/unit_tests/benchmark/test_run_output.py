"""A run's beginning and end: the same for runs, dry runs, recorded responses and those that are scored again."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark, score_responses, score_run
from graphrag_eval_lc.benchmark.run_output import RunOutput
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.evaluation.pipeline import judges_of
from graphrag_eval_lc.run_folder import RunFolder

STEPS = [[{"name": "lookup", "output": "1"}]]
DATASET: list[Any] = [
    {"template_id": "t", "questions": [{"id": "q", "question_text": "?", "reference_steps": STEPS}]},
]
LAST = ["times", "totals", "questions"]


def answer(question: str) -> str:
    return "1"


def length(question: Any, response: Any) -> int:
    return len(response["actual_answer"])


def keys_in(folder: Path) -> list[str]:
    return list(json.loads((folder / "run.json").read_text()))


def test_what_grows_with_the_run_comes_last_in_its_record(tmp_path: Path) -> None:
    run_benchmark(answer, DATASET, output_dir=tmp_path / "run", evaluators=[length], progress="off")
    assert keys_in(tmp_path / "run")[-3:] == LAST
    score_run(tmp_path / "run", dataset=DATASET, evaluators=[length])
    assert keys_in(tmp_path / "run")[-4:] == [*LAST, "scored"]
    score_responses(DATASET, {"q": {"actual_answer": "1"}}, output_dir=tmp_path / "recorded", evaluators=[length])
    assert keys_in(tmp_path / "recorded")[:3] == ["format_version", "run_id", "dataset"]


def test_lines_that_cannot_be_read_are_told_before_what_scoring_finds(tmp_path: Path) -> None:
    step = {"name": "find", "args": {}, "id": "c", "status": "success", "output": "1"}
    score_responses(DATASET, {"q": {"actual_steps": [step]}}, output_dir=tmp_path, evaluators=[length])
    with (tmp_path / "responses.jsonl").open("a") as file:
        file.write('{"question_id"')
    changed = [{**DATASET[0], "questions": [{**DATASET[0]["questions"][0], "question_text": "another"}]}]
    warnings = score_run(tmp_path, dataset=changed, drop_missing=True).warnings
    parts = ["was cut off", "find is called", "scored without the evaluator length", "another text than was"]
    assert len(warnings) == len(parts)
    assert [part in warning for part, warning in zip(parts, warnings, strict=True)] == [True] * len(parts)


def test_judges_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def note(*arguments: Any, **options: Any) -> Any:
        made.append(judges_of(*arguments, **options))
        return made[-1]

    monkeypatch.setattr("graphrag_eval_lc.benchmark.run_output.judges_of", note)
    score_responses(DATASET, {"q": {"actual_answer": "1"}}, output_dir=tmp_path, evaluators=[length])
    assert len(made) == 1


def test_folder_is_free_again_whatever_happens(tmp_path: Path) -> None:
    def work() -> None:
        with RunOutput(tmp_path):
            with pytest.raises(RunFolderError, match="works in this folder"):
                RunFolder(tmp_path).lock()
            raise KeyError

    with pytest.raises(KeyError):
        work()
    RunFolder(tmp_path).lock().release()


def test_warnings_are_told_at_once_and_kept_in_order() -> None:
    output, told = RunOutput(None), list[Any]()
    output.observers = [told.append]
    output.warn("first", "second")
    assert output.warnings == [event.fields["message"] for event in told] == ["first", "second"]


def test_report_is_written_and_replaced_unless_it_is_left_out(tmp_path: Path) -> None:
    page = tmp_path / "run" / "report.html"
    run_benchmark(answer, DATASET, output_dir=tmp_path / "run", progress="off", report=False)
    assert not page.exists()
    run_benchmark(answer, DATASET, output_dir=tmp_path / "run", progress="off")
    first = page.read_bytes()
    score_run(tmp_path / "run", dataset=DATASET, evaluators=[length])
    assert page.read_bytes() != first
    score_responses(DATASET, [{"question_id": "q", "actual_answer": "1"}], output_dir=tmp_path / "new")
    assert (tmp_path / "new" / "report.html").exists()


def test_report_that_cannot_be_written_is_one_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for module in ("page", "run_report"):
        monkeypatch.delitem(sys.modules, f"graphrag_eval_lc.report.{module}", raising=False)
        monkeypatch.delattr(f"graphrag_eval_lc.report.{module}", raising=False)  # which an import sets again
    run = run_benchmark(answer, DATASET, output_dir=tmp_path, progress="off")
    [note] = run.notes
    assert note.startswith("No report was written: ")
    assert note.endswith("Run: pip install 'graphrag-eval-lc[report]'")
    assert run.results[0]["status"] == "success"
