"""What changed since the run before, in the first line of everything that shows a run."""

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
    """Score a run into a folder next to others; the questions that are named are right."""

    def run(folder: str, right: str, dataset: list[Any] = DATASET, **options: Any) -> Any:
        where = tmp_path / "runs" / folder
        responses = [response(name, name in right) for name in NAMES]
        return score_responses(dataset, responses, output_dir=where, **{"progress": "off", **options})

    return run


def said(run: Any) -> str:
    """Return what the first line of a run says of the run before."""
    line = str(run.view().headline).rpartition(" · ")[2]
    return line if "since" in line else ""


def test_first_line_counts_what_broke_and_what_is_fixed_since_the_run_before(run: Run) -> None:
    assert said(run("monday", right="abc")) == ""
    assert said(run("tuesday", right="cd")) == "2 broken, 1 fixed since monday"
    assert said(run("wednesday", right="cd")) == "nothing broken or fixed since tuesday"


def test_every_form_of_a_run_begins_with_it(run: Run, tmp_path: Path) -> None:
    run("monday", right="abc")
    now = run("tuesday", right="cd")
    told = "2 broken, 1 fixed since monday"
    html = report_html(now)
    assert told in html
    assert page_data(html)["sets"]["broken"] == {"label": "Broken since monday", "keys": ["a", "b"]}
    assert page_data(html)["sets"]["fixed"]["keys"] == ["d"]
    assert told in summary_text(now)
    assert told in now._repr_html_()
    assert told in write_junit(now, tmp_path / "junit.xml").read_text()
    document = run_document(now, [])
    assert told in document["headline"]
    assert document["changes"] == {"run": "monday", "broken": ("a", "b"), "fixed": ("d",)}
    assert said(load_run(now.output_dir)) == told  # whenever it is shown


def test_run_before_is_the_last_finished_one_with_the_same_dataset_and_questions(run: Run, tmp_path: Path) -> None:
    run("whole", right="abcd")
    run("of another dataset", right="", dataset=[{**DATASET[0], "template_id": "other"}])
    run("of one question", right="", question_ids=["a"])
    for name, change in {"killed": {"totals": None}, "a shard": {"shard": {"number": 1, "of": 2, "run": "x"}}}.items():
        run(name, right="")
        record(tmp_path / "runs" / name, **change)
    assert said(run("now", right="abc")) == "1 broken, 0 fixed since whole"
    assert said(run("of two questions", right="b", question_ids=["a", "b"])) == "1 broken, 0 fixed since now"


def record(folder: Path, **changes: Any) -> None:
    """Change keys of a run.json; None removes one."""
    file = folder / "run.json"
    changed = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({key: value for key, value in changed.items() if value is not None}))


def test_baseline_overrides_the_run_before(run: Run, tmp_path: Path) -> None:
    monday = run("monday", right="abc")
    run("tuesday", right="d")
    now = run("wednesday", right="abc")
    record(now.output_dir, baseline=str(monday.output_dir))
    assert said(load_run(now.output_dir)) == "nothing broken or fixed since monday"
    (tmp_path / "runs" / "monday").rename(tmp_path / "gone")
    assert said(load_run(now.output_dir)) == "1 broken, 3 fixed since tuesday"


def test_run_with_a_baseline_says_so_in_its_record(run: Run, tmp_path: Path) -> None:
    monday = run("monday", right="abc")
    now = run_benchmark(
        lambda question: "yes", DATASET, output_dir=tmp_path / "now", baseline=monday.output_dir, progress="off"
    )
    assert said(now) == "3 broken, 0 fixed since monday"


def test_question_asked_several_times_is_right_if_each_sample_is(tmp_path: Path) -> None:
    folders = [tmp_path / "runs" / name for name in ("monday", "tuesday")]
    for folder, first in zip(folders, (True, False), strict=True):
        responses = [response("a", first), {**response("a", True), "repeat": 2}]
        score_responses(DATASET, responses, output_dir=folder, question_ids=["a"], progress="off")
    now = load_run(folders[1])
    assert said(now) == "1 broken, 0 fixed since monday"
    assert page_data(report_html(now))["sets"]["broken"]["keys"] == ["a", "a #2"]


@pytest.mark.parametrize("text", ["{", '{"format_version": 1}', "[]"])
def test_neighbour_that_cannot_be_read_is_passed_over(text: str, run: Run, tmp_path: Path) -> None:
    run("monday", right="abcd")
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.json").write_text(text)
    assert said(run("tuesday", right="abc")) == "1 broken, 0 fixed since monday"


def test_run_before_that_cannot_be_read_is_none(run: Run, tmp_path: Path) -> None:
    run("monday", right="abcd")
    (tmp_path / "runs" / "monday" / "results.jsonl").unlink()
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.json").write_text("{")
    assert said(run("tuesday", right="abc")) == ""


def test_label_names_the_run_before_unless_both_have_it(run: Run) -> None:
    run("1", right="a", label="nightly")
    assert said(run("2", right="a", label="nightly")) == "nothing broken or fixed since 1"
    assert said(run("3", right="a", label="mine")) == "nothing broken or fixed since nightly"


def test_run_in_memory_is_compared_with_nothing() -> None:
    assert said(run_benchmark(lambda question: "yes", DATASET, progress="off")) == ""


def test_threshold_of_the_config_says_what_is_right_in_both_runs(run: Run) -> None:
    lenient = {"repeats": {"metric": "steps_score", "threshold": 0}}
    run("monday", right="a", config=lenient)
    now = run("tuesday", right="", config=lenient)
    assert str(now.view().headline).startswith("4 of 4 right")
    assert said(now) == "nothing broken or fixed since monday"


def test_the_command_that_shows_what_changed_is_printed(
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
