"""run_evaluation for some of the questions."""

import asyncio
from typing import Any

import pytest

from graphrag_eval_lc import arun_evaluation, run_evaluation
from graphrag_eval_lc.errors import DatasetError, OptionError

DATASET: list[Any] = [
    {"template_id": each, "questions": [{"id": f"{each}{number}", "question_text": "?"} for number in (1, 2)]}
    for each in ("a", "b")
]
RESPONSES: dict[str, Any] = {"a1": {"actual_answer": "x"}, "b2": {"actual_answer": "y"}, "z": {"actual_answer": "z"}}


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        ({}, ["a1", "a2", "b1", "b2"]),
        ({"template_ids": ["b"]}, ["b1", "b2"]),
        ({"question_ids": ["b1", "a2"]}, ["a2", "b1"]),
        ({"answered_only": True}, ["a1", "b2"]),
        ({"template_ids": "b", "answered_only": True}, ["b2"]),
    ],
)
def test_only_selected_questions_have_results(selection: dict[str, Any], ids: list[str]) -> None:
    for _ in range(2):
        assert [result["question_id"] for result in run_evaluation(DATASET, RESPONSES, **selection)] == ids
    results = asyncio.run(arun_evaluation(DATASET, RESPONSES, **selection))
    assert [result["question_id"] for result in results] == ids


def test_all_repeats_of_answered_questions_are_scored() -> None:
    responses: list[Any] = [{"question_id": "a2", "repeat": repeat} for repeat in (2, 1)]
    results = run_evaluation(DATASET, responses, answered_only=True)
    assert [(result["question_id"], result["repeat"]) for result in results] == [("a2", 1), ("a2", 2)]


def test_unknown_ids_are_an_error() -> None:
    with pytest.raises(DatasetError, match=r"unknown question a3. Did you mean a"):
        run_evaluation(DATASET, RESPONSES, question_ids=["a3"])
    with pytest.raises(DatasetError, match="none of 4 questions has a response"):
        run_evaluation(DATASET, {}, answered_only=True)
    with pytest.raises(OptionError, match="template_ids cannot be 3"):
        run_evaluation(DATASET, {}, template_ids=3)  # type: ignore[arg-type]
