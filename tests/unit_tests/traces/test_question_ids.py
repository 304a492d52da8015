"""Determining which question a trace answers."""

from typing import Any

import pytest

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.traces.responses import QuestionIds

DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {"id": "q1", "question_text": "How many lines?"},
            {"id": "q2", "question_text": "Which one?"},
            {"id": "q3", "question_text": "Which  one?"},
            {"id": 4, "question_text": "Straße"},
        ],
    }
]


def test_id_in_the_metadata_takes_precedence_over_the_text() -> None:
    ids = QuestionIds(DATASET)
    assert ids.named({"question_id": "q2", "question_text": "How many lines?"}) == {
        "question_id": "q2",
        "question_text": "How many lines?",
    }


@pytest.mark.parametrize(
    ("text", "question_id"),
    [("How many lines?", "q1"), ("  how\nmany LINES? ", "q1"), ("Which one?", "q2"), ("STRASSE", "4")],
)
def test_text_is_matched_regardless_of_case_and_whitespace(text: str, question_id: str) -> None:
    named = QuestionIds(DATASET).named({"question_text": text})
    assert named is not None
    assert named["question_id"] == question_id


def test_text_of_several_questions_is_an_error_with_their_ids() -> None:
    with pytest.raises(ResponsesError, match=r"2 questions have the text of a trace, “which one\?”: q2, q3\. Name"):
        QuestionIds(DATASET).named({"question_text": "which one?"})


def test_text_is_used_if_the_dataset_does_not_have_the_id() -> None:
    ids = QuestionIds(DATASET)
    assert (ids.named({"question_id": "session-7", "question_text": "How many lines?"}) or {})["question_id"] == "q1"
    assert (ids.named({"question_id": "session-7", "question_text": "Other?"}) or {})["question_id"] == "session-7"


def test_later_answers_to_a_question_are_repeats() -> None:
    ids = QuestionIds(DATASET)
    named = [ids.named({"question_id": key}) for key in ("q1", "q2", "q1", "q1")]
    assert [(dict(each or {})).get("repeat") for each in named] == [None, None, 2, 3]


def test_traces_of_other_questions_are_left_out_with_a_warning() -> None:
    ids = QuestionIds(DATASET)
    assert [ids.named({"question_text": text}) for text in ("a?", "b?", "c?", "d?", "d?")] == [None] * 5
    assert ids.named({}) is None
    assert list(ids.warnings()) == [
        "6 traces are of no question of the dataset and left out: “a?”; “b?”; “c?” and 1 more",
    ]


def test_without_a_dataset_only_ids_in_traces_are_used() -> None:
    ids = QuestionIds(None)
    assert (ids.named({"question_id": "x"}) or {})["question_id"] == "x"
    assert ids.named({"question_text": "How many lines?"}) is None
    assert "1 trace tells no question id and is left out; a dataset (--dataset)" in next(ids.warnings())
    assert list(QuestionIds(None).warnings()) == []
