"""What failed attempts spent is kept, and counted."""

from typing import Any

import pytest

from graphrag_eval_lc.benchmark.limits import attempts_in, cost_spent, failed_attempt, seconds_spent, tokens_spent

RESPONSE: dict[str, Any] = {
    "question_id": "q",
    "question_text": "?",
    "status": "error",
    "error": "E: away",
    "elapsed_sec": 2.0,
    "total_tokens": 7,
    "agent_cost": 0.5,
    "actual_steps": [{"name": "s"}],
    "llm_calls": [],
    "actual_answer": "half",
}


def test_failed_attempt_keeps_its_error_its_steps_and_what_it_spent() -> None:
    kept = failed_attempt(RESPONSE)
    assert kept == {
        "error": "E: away",
        "elapsed_sec": 2.0,
        "total_tokens": 7,
        "agent_cost": 0.5,
        "actual_steps": [{"name": "s"}],
        "llm_calls": [],
    }


def test_earlier_response_stands_for_its_attempts_in_their_order() -> None:
    earlier = {**RESPONSE, "failed_attempts": [{"error": "first"}, {"error": "second"}]}
    assert [attempt["error"] for attempt in attempts_in(earlier)] == ["first", "second", "E: away"]
    assert "failed_attempts" not in attempts_in(earlier)[-1]


@pytest.mark.parametrize(
    ("response", "tokens"),
    [
        ({"total_tokens": 7}, 7),
        ({"total_tokens": 7, "failed_attempts": [{"total_tokens": 5}, {"total_tokens": 1}]}, 13),
        ({}, 0),
        ({"llm_calls": []}, 0),
        ({"llm_calls": [{"model": "m"}]}, None),
        ({"llm_calls": [{"error": "429"}]}, 0),
        ({"total_tokens": 7, "failed_attempts": [{"llm_calls": [{"model": "m"}]}]}, None),
        ({"llm_calls": [{"model": "m"}], "failed_attempts": [{"total_tokens": 5}]}, None),
    ],
)
def test_tokens_are_those_of_all_attempts_or_unknown(response: dict[str, Any], tokens: int | None) -> None:
    assert tokens_spent(response) == tokens


def test_seconds_are_those_of_all_attempts() -> None:
    assert seconds_spent({**RESPONSE, "failed_attempts": [{"elapsed_sec": 0.5}, {"error": "x"}]}) == 2.5


@pytest.mark.parametrize(
    ("response", "cost"),
    [
        ({"agent_cost": 0.5}, 0.5),
        ({"agent_cost": 0.5, "failed_attempts": [{"agent_cost": 0.25}, {"agent_cost": 1.0}]}, 1.75),
        ({}, 0.0),
        ({"llm_calls": []}, 0.0),
        ({"llm_calls": [{"error": "429"}]}, 0.0),
        ({"llm_calls": [], "total_tokens": 0}, 0.0),
        ({"llm_calls": [{"model": "m"}]}, None),
        ({"llm_calls": [{"error": "cut off", "input_tokens": 5}]}, None),
        ({"total_tokens": 5}, None),
        ({"agent_cost": 0.5, "failed_attempts": [{"total_tokens": 5}]}, None),
    ],
)
def test_cost_is_that_of_all_attempts_or_unknown(response: dict[str, Any], cost: float | None) -> None:
    assert cost_spent(response) == cost
