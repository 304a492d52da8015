"""The command `validate`."""

from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]


def test_good_files_have_no_problems(files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("validate", "qa.yaml") == 0
    assert capsys.readouterr().out == "No problems found.\n"


def test_problems_are_findings(files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    Path("qa.yaml").write_text(Path("qa.yaml").read_text().replace("question_text: Who runs OSLO?", "text: x"))
    assert exit_code("validate", "qa.yaml") == 1
    output = capsys.readouterr().out
    assert "qa.yaml" in output
    assert "question_text" in output
    assert output.endswith("problem found.\n")


def test_responses_are_checked_against_the_dataset(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("validate", "qa.yaml", "--responses", "responses.jsonl") == 1
    output = capsys.readouterr().out
    assert "question q2" in output
    assert output.endswith("2 problems found.\n")


def test_folder_of_a_run_that_asked_again_has_no_problems(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run", "--repeats", "2", "-q") == 0
    command = (
        "run",
        "qa.yaml",
        "-a",
        "agent.py:graph",
        "-o",
        "run",
        "--repeats",
        "2",
        "-q",
        "--retry-errors",
        "--force",
    )
    assert exit_code(*command) == 0
    capsys.readouterr()
    for responses in ("run", "run/responses.jsonl"):
        assert exit_code("validate", "qa.yaml", "-r", responses) == 0
        assert capsys.readouterr().out == "No problems found.\n"


def test_config_says_which_steps_are_checked_as_retrieval(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("config.yaml").write_text("retrieval: {steps: [lookup]}")
    assert exit_code("validate", "qa.yaml") == 0
    assert exit_code("validate", "qa.yaml", "--config", "config.yaml") == 1
    assert "cannot be read as documents" in capsys.readouterr().out


def test_file_that_cannot_be_read_is_wrong_input(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("validate", "absent.yaml") == 2
    assert "Error: absent.yaml" in capsys.readouterr().err


MISSPELT = """\
- template_id: t
  questions:
  - id: 0123
    question_text: Why?
    refrence_steps: []
  - id: q2
    question_text: How?
    reference_steps:
    - - name: sparql_query
        args: {query: "SELECT ?n { }"}
        output: '{"head": {"vars": ["n"]}, "results": {"bindings": []}}'
        output_media_type: application/sparql+json
        ordered: 'false'
"""


def test_problems_and_warnings_are_told_apart_with_line_and_mend(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("qa.yaml").write_text(MISSPELT)
    assert exit_code("validate", "qa.yaml") == 1
    step = "question q2, key [0].questions[1].reference_steps[0][0]"
    assert capsys.readouterr().out.splitlines() == [
        "Warning: qa.yaml, line 3, question 83, key [0].questions[0].id: YAML reads the id 0123 as 83. "
        "Put it in quotes: '0123'.",
        "qa.yaml, line 5, question 83, key [0].questions[0].refrence_steps: the key refrence_steps is read by nothing, "
        "and reference_steps is missing. Write reference_steps.",
        f"qa.yaml, line 13, {step}.ordered: ordered is 'false', which is neither true nor false. Write ordered: false, "
        "without quotes.",
        f"Warning: qa.yaml, line 12, {step}.output_media_type: the media type application/sparql+json is read as "
        "application/sparql-results+json. Write output_media_type: application/sparql-results+json.",
        f"Warning: qa.yaml, line 11, {step}.output: the output has no rows, so any query without rows "
        "fits it, and the step says little. "
        "Keep the step if that is the right answer.",
        "",
        "2 problems and 3 warnings found.",
    ]


def test_warnings_alone_are_no_findings(files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    Path("qa.yaml").write_text("- {template_id: 0x1F, questions: [{id: 1_000, question_text: Why?}]}\n")
    assert exit_code("validate", "qa.yaml") == 0
    assert capsys.readouterr().out.endswith("\n2 warnings found.\n")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (
            "responses.jsonl",
            '{"question_id": "q1", "actual_answer": "a"}\n{"question_id": "q2",\t"question_id": "q3"}',
            2,
        ),
        ("responses.json", '[{"question_id": "q1",\n"actual_answer": "a",\n"question_id": "q1"}]', 3),
        ("responses.yaml", '- question_id: q1\n  question_id: "q1"\n', 2),
        ("responses.json", '{"q1": {},\n"q1": {}}', 2),
    ],
)
def test_key_that_stands_twice_in_responses_is_a_problem_in_each_format(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str], name: str, text: str, line: int
) -> None:
    Path(name).write_text(text)
    assert exit_code("validate", "qa.yaml", "-r", name) == 1
    assert f"{name}, line {line}: the key q" in capsys.readouterr().out


def test_key_that_stands_twice_in_a_json_dataset_is_a_problem(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("qa.json").write_text('[{"template_id": "t",\n"questions": [],\n"questions": []}]')
    assert exit_code("validate", "qa.json") == 1
    assert capsys.readouterr().out.splitlines()[0] == (
        "qa.json, line 3: the key questions stands twice, and only the last counts. Remove one of them."
    )


CHANGED = "Warning: qa.yaml: YAML reads the id 0123 as 83 (line 3). To keep what is written, put it in quotes: '0123'."


@pytest.mark.full
def test_run_score_plan_and_draft_name_the_ids_that_yaml_changes(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("qa.yaml").write_text("- template_id: t\n  questions:\n  - {id: 0123, question_text: Why?}\n")
    Path("responses.jsonl").write_text('{"question_id": "83", "actual_answer": "a"}')
    assert exit_code("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run", "-q") == 0
    assert CHANGED in capsys.readouterr().err
    assert exit_code("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "plan", "--dry-run") == 0
    assert CHANGED in capsys.readouterr().err
    assert exit_code("score", "qa.yaml", "responses.jsonl", "-o", "scored") == 0
    assert CHANGED in capsys.readouterr().err
    assert exit_code("score", "scored") == 0
    assert CHANGED in capsys.readouterr().err
    assert exit_code("dataset", "draft", "responses.jsonl", "--dataset", "qa.yaml", "-o", "draft.yaml") == 0
    assert CHANGED.replace("Warning", "Note") in capsys.readouterr().err


def test_score_names_a_response_that_no_question_has(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("responses.jsonl").open("a") as file:
        file.write('\n{"question_id": "Q2", "actual_answer": "a"}\n')
    assert exit_code("score", "qa.yaml", "responses.jsonl", "-o", "scored") == 0
    assert (
        "Warning: 1 response is to a question that the dataset does not have, and is not scored: Q2 (perhaps q2)"
        in capsys.readouterr().err
    )
