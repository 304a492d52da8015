import copy
from typing import Any

import pytest

from graphrag_eval_lc.config import PriceConfig
from graphrag_eval_lc.prices import Pricing, priced_response

CALL: dict[str, Any] = {"model": "m", "input_tokens": 500_000, "output_tokens": 0}
UNPRICED: dict[str, Any] = {**CALL, "model": "mine"}
FAILED: dict[str, Any] = {"model": "m", "error": "RateLimitError"}


def priced(*calls: Any, **keys: Any) -> dict[str, Any]:
    prices = {"m": PriceConfig(input=1.0, output=1.0, cached_input=0.0)}
    response = {"question_id": "q", "llm_calls": list(calls), **keys}
    before = copy.deepcopy(response)
    found = priced_response(response, Pricing(prices))
    assert response == before
    return found


def test_calls_have_costs_and_the_response_has_their_sum() -> None:
    found = priced(CALL, {**CALL, "cached_input_tokens": 250_000})
    assert [call["cost"] for call in found["llm_calls"]] == [0.5, 0.25]
    assert found["agent_cost"] == 0.75


def test_cache_writes_are_priced() -> None:
    prices = {"m": PriceConfig(input=1.0, output=1.0, cache_write_input=1.25, cache_write_1h_input=2.0)}
    written = {"cache_write_input_tokens": 400_000, "cache_write_1h_input_tokens": 100_000}
    found = priced_response({"llm_calls": [{**CALL, **written}]}, Pricing(prices))
    assert found["agent_cost"] == pytest.approx(0.1 + 0.3 * 1.25 + 0.1 * 2.0)


@pytest.mark.parametrize(
    "unknown", [UNPRICED, {"model": "m"}, {"model": "m", "error": "cut off", "input_tokens": 5}, 7]
)
def test_call_of_unknown_cost_leaves_the_sum_undefined(unknown: Any) -> None:
    found = priced(CALL, unknown, agent_cost=99.0)
    assert found["llm_calls"] == [{**CALL, "cost": 0.5}, unknown]
    assert "agent_cost" not in found


def test_failed_call_without_tokens_is_not_counted() -> None:
    assert priced(CALL, FAILED)["agent_cost"] == 0.5


@pytest.mark.parametrize("calls", [[], [FAILED]])
def test_response_without_model_answers_has_no_cost(calls: list[Any]) -> None:
    assert priced(*calls) == {"question_id": "q", "llm_calls": calls}


def test_failed_attempts_have_separate_costs() -> None:
    found = priced(CALL, failed_attempts=[{"error": "E", "llm_calls": [CALL, CALL]}, {"llm_calls": [UNPRICED]}, "?"])
    assert found["agent_cost"] == 0.5
    assert [attempt.get("agent_cost") for attempt in found["failed_attempts"][:2]] == [1.0, None]
    assert found["failed_attempts"][2] == "?"


def test_existing_cost_is_kept_only_if_the_model_has_no_price() -> None:
    found = priced({**CALL, "cost": 9.0}, {**UNPRICED, "cost": 2.0})
    assert found["agent_cost"] == 2.5


@pytest.mark.parametrize("response", [{"agent_cost": 3.0}, {"llm_calls": None}, {"llm_calls": "two"}])
def test_response_without_calls_is_unchanged(response: dict[str, Any]) -> None:
    assert priced_response(response, Pricing()) == response
