"""What asking gives: the result as a dict, and its numbers for reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.pytest_plugin.asking import AskResult, failure_lines

QUESTION = {"template_id": "t", "question_id": "q", "question_text": "Why?", "status": "success"}
FAILED = {**QUESTION, "status": "error", "error": "TimeoutError: no answer within 5 s"}


def test_of_a_failed_question_every_score_is_0_also_where_some_steps_fitted() -> None:
    result = AskResult({**FAILED, "steps_score": 0.5, "elapsed_sec": 5.0})
    assert (result["steps_score"], result["answer_f1"], result["elapsed_sec"]) == (0.0, 0.0, 5.0)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("step_score", "the result has no step_score. Did you mean steps_score?"),
        ("answer_f1", "answer_f1 was not measured for this question; it needs a model, `reference_answer`"),
    ],
)
def test_a_key_that_is_not_there_is_told_with_what_helps(key: str, message: str) -> None:
    with pytest.raises(KeyError, match=r"was not measured|has no") as raised:
        AskResult({**QUESTION, "steps_score": 1.0})[key]
    assert raised.value.args == (message,)


def test_the_numbers_are_the_scores_then_what_was_spent_and_no_number_of_the_dataset() -> None:
    result = AskResult({**QUESTION, "total_tokens": 7, "year": 2020, "steps_score": 1.0, "tone": True}, own=["tone"])
    assert result.scores_and_spent() == {"steps_score": 1.0, "tone": 1.0, "total_tokens": 7}


@given(st.floats(), st.floats() | st.text() | st.none())
def test_every_number_for_reports_is_finite(score: float, tokens: object) -> None:
    numbers = AskResult({**QUESTION, "steps_score": score, "total_tokens": tokens}).scores_and_spent()
    assert all(type(value) in (int, float) and abs(value) < float("inf") for value in numbers.values())


def test_a_failure_tells_the_reasons_of_judges_and_masks_secrets() -> None:
    judged = {**QUESTION, "actual_answer": "api_key=5f2a99c1", "answer_f1": 0.25, "answer_correctness_reason": "vague"}
    assert list(failure_lines(AskResult(judged))) == ["t/q: Why?", "answer: api_key=***", "answer_f1: 0.25 (vague)"]


def test_a_failure_with_many_steps_stays_short() -> None:
    steps = [{"name": "lookup", "output": "x"}] * 14
    found = [{"outcome": "mismatch", "reason": "x" * 9000}] * 14
    lines = list(failure_lines(AskResult({**QUESTION, "reference_steps": [steps], "steps_diagnosis": [found]})))
    assert len(lines) == 12
    assert lines[-1] == "and 4 more steps"
    assert max(map(len, lines)) < 600
