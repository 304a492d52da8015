"""Validating only the selected questions and their responses."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import score_responses, validate_dataset
from graphrag_eval_lc.errors import DatasetError, OptionError

BAD = [[{"name": "lookup"}]]


def question(identifier: str, **keys: Any) -> dict[str, Any]:
    return {"id": identifier, "question_text": f"{identifier}?", **keys}


DATASET: list[Any] = [
    {"template_id": "lines", "questions": [question("l1", reference_steps=BAD), question("l2", reference_steps=BAD)]},
    {"template_id": "nodes", "questions": [question("n1", reference_steps=BAD)]},
    {"template_id": "bare", "questions": "none"},
]


def found(dataset: Any = DATASET, responses: Any = None, **selection: Any) -> list[tuple[str | None, str | None]]:
    return [(each.question_id, each.key) for each in validate_dataset(dataset, responses, **selection)]


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        ({}, [None, "l1", "l2", "n1"]),
        ({"template_ids": ["lines"]}, ["l1", "l2"]),
        ({"question_ids": "l2"}, ["l2"]),
        ({"template_ids": ["lines"], "question_ids": ["n1", "l1"]}, ["l1"]),
        ({"template_ids": ["bare"]}, [None]),
        ({"template_ids": ["nodes"], "question_ids": ["l1"]}, []),
    ],
)
def test_only_selected_templates_and_questions_are_checked(selection: dict[str, Any], ids: list[str | None]) -> None:
    assert [identifier for identifier, _ in found(**selection)] == ids


def test_response_to_an_unselected_question_is_neither_unknown_nor_checked() -> None:
    responses: list[Any] = [
        {"question_id": "l1", "actual_steps": "no list"},
        {"question_id": "n1", "actual_steps": "no list"},
        {"question_id": "l1x"},
    ]
    problems = validate_dataset(DATASET, responses, template_ids=["nodes"])
    assert [(each.question_id, each.what) for each in problems] == [
        ("n1", "no output to compare with"),
        ("n1", "a list is needed here, not str"),
        ("l1x", "a response to a question that the dataset does not have"),
    ]


def test_unanswered_questions_can_be_skipped() -> None:
    responses: list[Any] = [{"question_id": "l2"}]
    whats = [each.what for each in validate_dataset(DATASET, responses)]
    assert whats.count("the question has no response") == 2
    assert [identifier for identifier, _ in found(DATASET, responses, answered_only=True)] == ["l2"]


def test_partially_scored_folder_is_checked_partially(tmp_path: Path) -> None:
    sound: list[Any] = [{"template_id": "t", "questions": [question("a"), question("b"), question("c")]}]
    responses: list[Any] = [{"question_id": "a"}, {"question_id": "b"}]
    score_responses(sound, responses, output_dir=tmp_path / "run", question_ids=["b"])
    assert validate_dataset(sound, tmp_path / "run") == []


def test_tools_come_from_the_selected_questions(tmp_path: Path) -> None:
    step = {"name": "lookup", "output": "1"}
    dataset: list[Any] = [
        {"template_id": each, "questions": [question(each, reference_steps=[[step]])]} for each in ("a", "b")
    ]
    path = tmp_path / "responses.jsonl"
    calls = {"a": "lookup", "b": "find"}
    lines = [
        {"question_id": key, "actual_steps": [{**step, "name": name, "id": "c", "args": {}, "status": "success"}]}
        for key, name in calls.items()
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert validate_dataset(dataset, path, template_ids=["a"]) == []
    (problem,) = validate_dataset(dataset, path, template_ids=["b"])
    assert (problem.line, problem.what[:14]) == (2, "find is called")


YAML = """\
- template_id: lines
  questions:
  - id: l1
    question_text: One?
    question_text: Two?
- template_id: nodes
  template_id: nodes
  questions:
  - {id: n1, question_text: Three?}
"""


@pytest.mark.parametrize("selection", [{}, {"template_ids": ["lines"]}, {"question_ids": ["n1"]}])
def test_duplicate_keys_are_reported_whatever_is_selected(tmp_path: Path, selection: dict[str, Any]) -> None:
    (tmp_path / "qa.yaml").write_text(YAML)
    assert [each.line for each in validate_dataset(tmp_path / "qa.yaml", **selection)] == [5, 7]


def test_unknown_ids_are_one_error_with_the_nearest() -> None:
    with pytest.raises(DatasetError, match=r"unknown template node. Did you mean nodes?"):
        validate_dataset(DATASET, template_ids=["node"])
    with pytest.raises(DatasetError, match=r"unknown question n2. Did you mean n1"):
        validate_dataset(DATASET, question_ids=["n2"])


def test_selecting_answered_questions_needs_responses() -> None:
    with pytest.raises(OptionError, match=r"answered_only needs responses. Give them too: --responses FILE"):
        validate_dataset(DATASET, answered_only=True)
