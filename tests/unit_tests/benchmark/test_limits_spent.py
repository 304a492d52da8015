"""The usage of failed attempts is kept and counted."""

from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from graphrag_eval_lc.benchmark.limits import (
    AgentCosts,
    attempts_in,
    cost_spent,
    failed_attempt,
    seconds_spent,
    tokens_spent,
)
from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.config import PriceConfig
from graphrag_eval_lc.prices import Pricing

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


def test_failed_attempt_keeps_its_error_steps_and_usage() -> None:
    kept = failed_attempt(RESPONSE)
    assert kept == {
        "error": "E: away",
        "elapsed_sec": 2.0,
        "total_tokens": 7,
        "agent_cost": 0.5,
        "actual_steps": [{"name": "s"}],
        "llm_calls": [],
    }


def test_earlier_response_represents_its_attempts_in_order() -> None:
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
def test_tokens_are_summed_over_all_attempts_or_unknown(response: dict[str, Any], tokens: int | None) -> None:
    assert tokens_spent(response) == tokens


def test_seconds_are_summed_over_all_attempts() -> None:
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
def test_cost_is_summed_over_all_attempts_or_unknown(response: dict[str, Any], cost: float | None) -> None:
    assert cost_spent(response) == cost


USAGE = {"input_tokens": 1_000_000, "output_tokens": 0, "total_tokens": 1_000_000}


@pytest.mark.parametrize(
    ("calls", "cost", "is_priced"),
    [
        ([("known", USAGE), ("known", USAGE)], 4.0, True),
        ([("known", USAGE), ("known", None)], 2.0, True),  # a call without reported tokens, such as a cached one
        ([("known", USAGE), ("unknown", USAGE)], 2.0, False),
    ],
)
def test_calls_of_an_attempt_are_priced_if_each_that_reports_tokens_has_a_price(
    calls: list[tuple[str, Any]], cost: float, is_priced: bool
) -> None:
    costs = AgentCosts(Budget(max_cost=9), Pricing({"known": PriceConfig(input=2.0, output=0.0)}))
    for model, usage in calls:
        run_id = uuid4()
        costs.on_llm_start({}, ["hi"], run_id=run_id, metadata={"ls_model_name": model})
        message = AIMessage("yes", usage_metadata=usage)
        costs.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]), run_id=run_id)
    assert (costs.cost, costs.is_priced) == (cost, is_priced)
