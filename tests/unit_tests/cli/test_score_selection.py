"""The commands `score`, `validate` and `report` on some of a dataset's questions."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]
STEP = {"name": "lookup", "args": {}, "id": "c", "status": "success", "output": "1"}


def write_dev_split(templates: int, questions: int, answered: int, repeats: int = 1) -> None:
    """Write a dataset, and responses to some of its questions, spread over the templates, into the current folder."""
    dataset: list[Any] = [{"template_id": f"t{n}", "questions": []} for n in range(templates)]
    step = {"name": "lookup", "output": "1"}
    for n in range(questions):
        question = {"id": f"q{n}", "question_text": f"What of {n}?", "reference_steps": [[step]]}
        dataset[n % templates]["questions"].append(question)
    Path("qa.json").write_text(json.dumps(dataset))
    lines = [
        {"question_id": f"q{n * (questions // answered)}", "actual_steps": [STEP], "repeat": repeat}
        for n in range(answered)
        for repeat in range(1, repeats + 1)
    ]
    Path("responses.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.fixture
def dev_split(files: Path) -> None:
    """Give the current folder a dataset of 600 questions in 200 templates, of which 20 have a response."""
    write_dev_split(200, 600, 20)


def results(folder: str = "run") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(folder, "results.jsonl").read_text().splitlines()]


def record(folder: str = "run") -> dict[str, Any]:
    return dict(json.loads(Path(folder, "run.json").read_text()))


SCORE = ("score", "qa.json", "responses.jsonl", "-o", "run")


def test_only_answered_questions_are_scored_on_demand_which_is_said_first(
    dev_split: None, exit_code: Command, capsys: Output
) -> None:
    assert exit_code(*SCORE, "--answered-only", "--fail-under", "steps_score=1") == 0
    output = capsys.readouterr()
    assert output.out.splitlines()[0] == "20 of 600 questions have a response; only these are scored."
    assert output.err.strip() == ""
    assert len(results()) == 20
    assert record()["selection"] == {"answered_only": True}
    assert exit_code("score", "run", "--fail-under", "steps_score=1") == 0
    assert len(results()) == 20


def test_without_it_few_lines_say_that_most_have_no_response(
    dev_split: None, exit_code: Command, capsys: Output
) -> None:
    assert exit_code(*SCORE, "--fail-under", "steps_score=1") == 1
    output = capsys.readouterr()
    assert "180 more templates without any response (540 questions); not shown: t1, t2, t3 and" in output.out
    assert len(output.out.splitlines()) < 60
    assert (
        "Warning: 580 of 600 questions have no response and count as failed: q200, q400, q1 and 577 more; "
        "--answered-only (answered_only=True) scores only the others\n"
    ) in output.err
    assert len(results()) == 600


def test_templates_and_questions_are_selected_by_repeated_options(dev_split: None, exit_code: Command) -> None:
    assert exit_code(*SCORE, "--template", "t0", "--template", "t30", "--question", "q30", "--question", "q200") == 0
    assert [result["question_id"] for result in results()] == ["q200", "q30"]
    assert record()["selection"] == {"template_ids": ["t0", "t30"], "question_ids": ["q30", "q200"]}


@pytest.mark.parametrize("command", [SCORE, ("validate", "qa.json")])
def test_id_that_is_not_there_is_wrong_usage_with_the_nearest(
    dev_split: None, exit_code: Command, capsys: Output, command: tuple[str, ...]
) -> None:
    assert exit_code(*command, "--template", "t-30") == 2
    assert "unknown template t-30. Did you mean t30" in capsys.readouterr().err
    assert not Path("run").exists()


@pytest.mark.full
def test_part_of_a_folder_is_scored_and_the_whole_again(dev_split: None, exit_code: Command, capsys: Output) -> None:
    assert exit_code(*SCORE, "--answered-only") == 0
    capsys.readouterr()
    assert exit_code("score", "run", "--template", "t0") == 0
    assert capsys.readouterr().out.startswith("1 question is scored of the 20 of the run, and its results, ")
    assert [result["question_id"] for result in results()] == ["q0"]
    assert exit_code("score", "run") == 0
    assert len(results()) == 20


def test_all_repeats_of_answered_questions_are_scored(files: Path, exit_code: Command) -> None:
    write_dev_split(20, 60, 5, repeats=3)
    assert exit_code(*SCORE, "--answered-only") == 0
    assert [result["repeat"] for result in results()] == [1, 2, 3] * 5


def test_metrics_of_a_plugin_are_of_the_selected_questions(dev_split: None, exit_code: Command) -> None:
    Path("own.py").write_text(
        "from graphrag_eval_lc import register_metric\n\n\n"
        '@register_metric(key="steps_taken", title="steps", unit="steps")\n'
        "def steps_taken(question, response):\n    return len(response.get('actual_steps', ()))\n"
    )
    assert exit_code(*SCORE, "--answered-only", "--plugin", "own.py") == 0
    assert [result["steps_taken"] for result in results()] == [1] * 20


def test_validate_tells_of_the_selected_questions_alone(dev_split: None, exit_code: Command, capsys: Output) -> None:
    validate = ("validate", "qa.json", "--responses", "responses.jsonl")
    assert exit_code(*validate) == 1
    *first, more, _, found, hint = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[2] for line in first] == [
        "the question has no response. Ask the agent, or leave the question out."
    ] * 3
    assert (more, found, hint) == (
        "577 more questions have no response.",
        "580 problems found.",
        "580 questions without a response; --answered-only checks only the others.",
    )
    assert exit_code(*validate, "--answered-only") == 0
    assert capsys.readouterr().out == (
        "20 of 600 questions have a response; only these are checked.\nNo problems found.\n"
    )
    assert exit_code(*validate, "--template", "t1", "--question", "q201") == 1
    assert capsys.readouterr().out.startswith("qa.json, line 1, question q201, key [1].questions[1]: the question has")
    assert exit_code("validate", "qa.json", "--answered-only") == 2
    assert "answered_only needs responses. Give them too: --responses FILE" in capsys.readouterr().err


def test_report_of_a_part_needs_a_file_of_its_own(dev_split: None, exit_code: Command, capsys: Output) -> None:
    assert exit_code(*SCORE) == 0
    whole = Path("run/report.html").read_bytes()
    capsys.readouterr()
    assert exit_code("report", "run", "--answered-only") == 2
    assert "does not take the place of that of the whole run. Choose another file: --output" in (
        capsys.readouterr().err
    )
    assert exit_code("report", "run", "--answered-only", "-o", "part.html") == 0
    assert "This report is of a part of the run: 20 of its 600 questions" in Path("part.html").read_text()
    assert exit_code("report", "run", "--template", "t9999", "-o", "part.html") == 2
    assert Path("run/report.html").read_bytes() == whole


@pytest.mark.full
def test_dev_split_of_a_large_dataset_is_scored_in_a_process_of_its_own(files: Path) -> None:
    write_dev_split(1_480, 5_211, 177)
    command = [sys.executable, "-c", "from graphrag_eval_lc.cli import main; main()", *SCORE]
    shown = subprocess.run([*command, "--answered-only"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("177 of 5,211 questions have a response; only these are scored.\n")
    assert (len(results()), shown.stderr) == (177, "")
    everything = subprocess.run([*command, "--overwrite"], capture_output=True, text=True, check=True)
    assert len(results()) == 5_211
    assert len(everything.stdout.splitlines()) < 250
    assert everything.stderr.count("\n") == 1
