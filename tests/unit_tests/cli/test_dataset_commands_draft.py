"""The command `dataset draft`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_eval_lc import load_dataset

Command = Callable[..., int]
DRAFT = ("dataset", "draft", "run/responses.jsonl", "--output", "draft.yaml")


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


def test_folder_of_a_run_is_drafted_with_its_dataset(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run", "-q") == 0
    capsys.readouterr()
    assert exit_code("dataset", "draft", "run", "-o", "draft.yaml") == 0
    output = capsys.readouterr()
    assert output.out == "Wrote 2 questions to draft.yaml. Check each before you use it.\n"
    assert output.err == "Note: Failed, and left out (1 question): q3.\n"
    assert [template["template_id"] for template in load_dataset("draft.yaml")] == ["where", "who"]


def test_responses_are_drafted_with_a_dataset_and_a_config(files: Path, exit_code: Command) -> None:
    Path("config.yaml").write_text("steps: {names: {lookup: find}}")
    options = ("--dataset", "qa.yaml", "--config", "config.yaml", "--keep-references")
    assert exit_code("dataset", "draft", "responses.jsonl", "-o", "draft.yaml", *options) == 0
    templates = load_dataset("draft.yaml")
    assert [template["template_id"] for template in templates] == ["where", "who"]
    assert templates[0]["questions"][0]["reference_steps"][0][0]["name"] == "lookup"  # as the dataset has it
    assert exit_code("dataset", "draft", "responses.jsonl", "-o", "other.yaml", "-c", "config.yaml") == 0
    assert load_dataset("other.yaml")[0]["questions"][0]["reference_steps"][0][0]["name"] == "find"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (".", "the folder holds no responses.jsonl"),
        ("absent", "Error: absent: the file of responses cannot be read"),
        ("failed.jsonl", "Error: failed.jsonl: there is nothing to draft"),
    ],
)
def test_what_cannot_be_drafted_is_wrong_input(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str], source: str, text: str
) -> None:
    Path("responses.jsonl").unlink()
    Path("run.json").write_text('{"format_version": 2}')
    Path("failed.jsonl").write_text('{"question_id": "q1", "error": "away"}')
    assert exit_code("dataset", "draft", source, "-o", "draft.yaml") == 2
    assert text in capsys.readouterr().err
    assert not Path("draft.yaml").exists()
