"""The change since the previous run, in the first line wherever a run is shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.page_data import page_data

from graphrag_eval_lc import load_run, report_html, run_benchmark, score_responses
from graphrag_eval_lc.cli import main
from graphrag_eval_lc.report.junit import write_junit
from graphrag_eval_lc.report.machine_files import run_document
from graphrag_eval_lc.report.markdown_summary import summary_text

NAMES = ("a", "b", "c", "d")
STEP = {"name": "find", "output": "7"}
DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [{"id": name, "question_text": f"{name}?", "reference_steps": [[STEP]]} for name in NAMES],
    }
]

Run = Callable[..., Any]


def response(name: str, is_right: bool) -> dict[str, Any]:
    steps = [{**STEP, "id": "1", "status": "success", "output": "7" if is_right else "8"}]
    return {"question_id": name, "status": "success", "actual_answer": "yes", "actual_steps": steps}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that scores a run in a folder next to others; the named questions are right."""

    def run(folder: str, right: str, dataset: list[Any] = DATASET, **options: Any) -> Any:
        folder_path = tmp_path / "runs" / folder
        responses = [response(name, name in right) for name in NAMES]
        return score_responses(dataset, responses, output_dir=folder_path, **{"progress": "off", **options})

    return run


def change_since(run: Any) -> str:
    """Return what the first line of a run says about the previous run."""
    line = str(run.view().headline).rpartition(" · ")[2]
    return line if "since" in line else ""


def test_first_line_counts_broken_and_fixed_questions_since_the_previous_run(run: Run) -> None:
    assert change_since(run("monday", right="abc")) == ""
    assert change_since(run("tuesday", right="cd")) == "2 broken, 1 fixed since monday"
    assert change_since(run("wednesday", right="cd")) == "nothing broken or fixed since tuesday"


def test_every_report_of_a_run_begins_with_the_change(run: Run, tmp_path: Path) -> None:
    run("monday", right="abc")
    now = run("tuesday", right="cd")
    change = "2 broken, 1 fixed since monday"
    html = report_html(now)
    assert change in html
    assert page_data(html)["sets"]["broken"] == {"label": "Broken since monday", "keys": ["a", "b"]}
    assert page_data(html)["sets"]["fixed"]["keys"] == ["d"]
    assert change in summary_text(now)
    assert change in now._repr_html_()
    assert change in write_junit(now, tmp_path / "junit.xml").read_text()
    document = run_document(now, [])
    assert change in document["headline"]
    assert document["changes"] == {"run": "monday", "broken": ("a", "b"), "fixed": ("d",)}
    assert change_since(load_run(now.output_dir)) == change  # whenever it is shown


def test_previous_run_is_the_last_finished_one_with_the_same_dataset_and_questions(run: Run, tmp_path: Path) -> None:
    run("whole", right="abcd")
    run("of another dataset", right="", dataset=[{**DATASET[0], "template_id": "other"}])
    run("of one question", right="", question_ids=["a"])
    for name, change in {"killed": {"totals": None}, "a shard": {"shard": {"number": 1, "of": 2, "run": "x"}}}.items():
        run(name, right="")
        record(tmp_path / "runs" / name, **change)
    assert change_since(run("now", right="abc")) == "1 broken, 0 fixed since whole"
    assert change_since(run("of two questions", right="b", question_ids=["a", "b"])) == "1 broken, 0 fixed since now"


def record(folder: Path, **changes: Any) -> None:
    """Change keys of a run.json; None removes a key."""
    file = folder / "run.json"
    changed = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({key: value for key, value in changed.items() if value is not None}))


def test_baseline_overrides_the_previous_run(run: Run, tmp_path: Path) -> None:
    monday = run("monday", right="abc")
    run("tuesday", right="d")
    now = run("wednesday", right="abc")
    record(now.output_dir, baseline=str(monday.output_dir))
    assert change_since(load_run(now.output_dir)) == "nothing broken or fixed since monday"
    (tmp_path / "runs" / "monday").rename(tmp_path / "gone")
    assert change_since(load_run(now.output_dir)) == "1 broken, 3 fixed since tuesday"


def test_baseline_is_recorded_with_the_run(run: Run, tmp_path: Path) -> None:
    monday = run("monday", right="abc")
    now = run_benchmark(
        lambda question: "yes", DATASET, output_dir=tmp_path / "now", baseline=monday.output_dir, progress="off"
    )
    assert change_since(now) == "3 broken, 0 fixed since monday"


def test_question_with_repeats_is_right_if_every_repeat_is(tmp_path: Path) -> None:
    folders = [tmp_path / "runs" / name for name in ("monday", "tuesday")]
    for folder, first in zip(folders, (True, False), strict=True):
        responses = [response("a", first), {**response("a", True), "repeat": 2}]
        score_responses(DATASET, responses, output_dir=folder, question_ids=["a"], progress="off")
    now = load_run(folders[1])
    assert change_since(now) == "1 broken, 0 fixed since monday"
    assert page_data(report_html(now))["sets"]["broken"]["keys"] == ["a", "a #2"]


@pytest.mark.parametrize("text", ["{", '{"format_version": 1}', "[]"])
def test_unreadable_neighbour_is_skipped(text: str, run: Run, tmp_path: Path) -> None:
    run("monday", right="abcd")
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.json").write_text(text)
    assert change_since(run("tuesday", right="abc")) == "1 broken, 0 fixed since monday"


def test_unreadable_previous_run_is_ignored(run: Run, tmp_path: Path) -> None:
    run("monday", right="abcd")
    (tmp_path / "runs" / "monday" / "results.jsonl").unlink()
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.json").write_text("{")
    assert change_since(run("tuesday", right="abc")) == ""


def test_previous_run_is_named_by_label_unless_both_have_it(run: Run) -> None:
    run("1", right="a", label="nightly")
    assert change_since(run("2", right="a", label="nightly")) == "nothing broken or fixed since 1"
    assert change_since(run("3", right="a", label="mine")) == "nothing broken or fixed since nightly"


def test_run_in_memory_has_no_previous_run() -> None:
    assert change_since(run_benchmark(lambda question: "yes", DATASET, progress="off")) == ""


def test_configured_threshold_applies_to_both_runs(run: Run) -> None:
    lenient = {"repeats": {"metric": "steps_score", "threshold": 0}}
    run("monday", right="a", config=lenient)
    now = run("tuesday", right="", config=lenient)
    assert str(now.view().headline).startswith("4 of 4 right")
    assert change_since(now) == "nothing broken or fixed since monday"


def test_command_to_show_the_changes_is_printed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset: Any = tmp_path / "qa.json"
    dataset.write_text(json.dumps(DATASET))
    run("monday", "abcd", dataset)
    run("today", "ab", dataset)
    monkeypatch.chdir(tmp_path / "runs")
    with pytest.raises(SystemExit):
        main(["score", "today", "--no-report"])
    hint = "To see what is broken and fixed: graphrag-eval-lc compare monday today\n"
    assert hint in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["score", "monday", "--no-report"])
    assert "To see what is broken" not in capsys.readouterr().out
