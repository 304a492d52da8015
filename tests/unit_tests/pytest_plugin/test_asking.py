"""The result of asking as a dict, and its numbers for reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.pytest_plugin.asking import AskResult, failure_lines

QUESTION = {"template_id": "t", "question_id": "q", "question_text": "Why?", "status": "success"}
FAILED = {**QUESTION, "status": "error", "error": "TimeoutError: no answer within 5 s"}


def test_failed_question_scores_0_even_if_steps_matched() -> None:
    result = AskResult({**FAILED, "steps_score": 0.5, "elapsed_sec": 5.0})
    assert (result["steps_score"], result["answer_f1"], result["elapsed_sec"]) == (0.0, 0.0, 5.0)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("step_score", "the result has no step_score. Did you mean steps_score?"),
        ("answer_f1", "answer_f1 was not measured for this question; it needs a model, `reference_answer`"),
    ],
)
def test_missing_key_is_an_error_with_the_fix(key: str, message: str) -> None:
    with pytest.raises(KeyError, match=r"was not measured|has no") as raised:
        AskResult({**QUESTION, "steps_score": 1.0})[key]
    assert raised.value.args == (message,)


def test_numbers_are_scores_then_costs_but_not_the_datasets() -> None:
    result = AskResult({**QUESTION, "total_tokens": 7, "year": 2020, "steps_score": 1.0, "tone": True}, own=["tone"])
    assert result.scores_and_spent() == {"steps_score": 1.0, "tone": 1.0, "total_tokens": 7}


@given(st.floats(), st.floats() | st.text() | st.none())
def test_reported_numbers_are_finite(score: float, tokens: object) -> None:
    numbers = AskResult({**QUESTION, "steps_score": score, "total_tokens": tokens}).scores_and_spent()
    assert all(type(value) in (int, float) and abs(value) < float("inf") for value in numbers.values())


def test_failure_shows_judges_reasons_and_masks_secrets() -> None:
    judged = {**QUESTION, "actual_answer": "api_key=5f2a99c1", "answer_f1": 0.25, "answer_correctness_reason": "vague"}
    assert list(failure_lines(AskResult(judged))) == ["t/q: Why?", "answer: api_key=***", "answer_f1: 0.25 (vague)"]


def test_failure_with_many_steps_is_short() -> None:
    steps = [{"name": "lookup", "output": "x"}] * 14
    found = [{"outcome": "mismatch", "reason": "x" * 9000}] * 14
    lines = list(failure_lines(AskResult({**QUESTION, "reference_steps": [steps], "steps_diagnosis": [found]})))
    assert len(lines) == 12
    assert lines[-1] == "and 4 more steps"
    assert max(map(len, lines)) < 600
