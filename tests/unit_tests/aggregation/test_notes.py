from typing import Any

import pytest

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.aggregation import reason_of
from graphrag_eval_lc.aggregation.notes import grading_change, grading_note
from graphrag_eval_lc.config import EvaluationConfig

GROUPS = [[{"name": "find", "output": "1"}], [{"name": "lookup", "output": "2"}]]


DATASET: list[Any] = [
    {"template_id": "t", "questions": [{"id": "q", "question_text": "?", "reference_steps": GROUPS[1:]}]}
]


def result_of(**response: Any) -> Any:
    return run_evaluation(DATASET, [{"question_id": "q", **response}])[0]  # type: ignore[typeddict-item]


def test_reason_of_a_question_in_full_is_empty() -> None:
    step = {"name": "lookup", "args": {}, "status": "success", "output": "2"}
    assert reason_of(result_of(actual_steps=[step])) == ""


def test_reason_is_that_of_the_last_group_which_lacks_something() -> None:
    result = {
        "reference_steps": GROUPS,
        "steps_diagnosis": [[{"matched": False, "score": 0.0, "reason": "no"}]] * 2,
    }
    assert reason_of(result) == "lookup: no"


def test_reason_of_an_error_is_one_short_line() -> None:
    assert reason_of(result_of(error="a\nb")) == "a b"
    assert len(reason_of(result_of(error="x" * 1000))) == 271


def test_reason_is_the_step_in_vain_after_which_nothing_was_called() -> None:
    vain = {"score": 0.0, "outcome": "mismatch", "matched": False, "reason": "it found nothing", "nearest": "c1"}
    uncalled = {"score": 0.0, "outcome": "mismatch", "matched": False, "reason": "no call"}
    fitting = vain | {"score": 1.0, "outcome": "match"}
    for before, reason in {
        "vain": "search: it found nothing; query was not called",
        "fitting": "query: no call",
        "uncalled": "query: no call",
    }.items():
        diagnosis = {"vain": vain, "fitting": fitting, "uncalled": uncalled}[before]
        result = {
            "reference_steps": [[{"name": "search"}], [{"name": "query"}]],
            "steps_diagnosis": [[diagnosis], [uncalled]],
        }
        assert reason_of(result) == reason


def test_of_a_failed_run_its_last_query_is_the_reason_before_the_error() -> None:
    diagnosis = {
        "score": 0.0,
        "outcome": "mismatch",
        "matched": False,
        "reason": "x",
        "query": {"sentence": "It asks a."},
    }
    result = {
        "reference_steps": [[{"name": "query"}]],
        "steps_diagnosis": [[diagnosis]],
        "status": "error",
        "error": "E: 1",
    }
    assert reason_of(result) == "query: It asks a. The run failed: E: 1"


def test_surplus_calls_are_the_reason_where_every_reference_step_is_fulfilled() -> None:
    fulfilled = {"score": 1.0, "outcome": "match", "matched": True, "reason": "the same"}
    result = {
        "steps_score": 0.8,
        "steps_precision": 2 / 3,
        "reference_steps": [[{"name": "look"}]],
        "steps_diagnosis": [[fulfilled]],
    }
    assert reason_of(result) == "all is fulfilled, by more calls than it takes: steps_precision is 0.67"
    assert reason_of({**result, "steps_score": 1.0}) == ""
    unfulfilled = {**fulfilled, "score": 0.5, "reason": "half of it"}
    assert reason_of({**result, "steps_diagnosis": [[unfulfilled]]}) == "look: half of it"


GRADED = {"steps": {"grading": "graded"}}


def test_only_graded_steps_need_a_word() -> None:
    assert grading_note(EvaluationConfig()) is None


@pytest.mark.parametrize("unsaid", [{}, {"steps": {}}, {"steps": None}, {"steps": {"grading": "binary"}}])
def test_a_config_that_does_not_say_is_binary(unsaid: dict[str, object]) -> None:
    assert grading_change(unsaid, {"steps": {"grading": "binary"}}) is None
    assert "graded now and were binary before" in str(grading_change(unsaid, GRADED))
    assert "binary now and were graded before" in str(grading_change(GRADED, unsaid))
