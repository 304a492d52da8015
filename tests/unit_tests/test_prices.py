from typing import Any

import pytest

from graphrag_eval_lc import prices as pricing_module
from graphrag_eval_lc.config import PriceConfig
from graphrag_eval_lc.prices import Pricing, Rates, dollars, flat_rate

PRICES = {"gpt-x": PriceConfig(input=1.0, output=10.0, cached_input=0.5)}
MILLION = 1_000_000


@pytest.mark.parametrize(
    "name", ["gpt-x", "openai:gpt-x", "azure/gpt-x", "gpt-x-2026-01-31", "gpt-x-20260131", "openai:gpt-x-2026-01-31"]
)
def test_config_price_matches_with_and_without_provider_and_date(name: str) -> None:
    assert Pricing(PRICES).cost(name, input_tokens=MILLION, output_tokens=MILLION) == 11.0


def test_config_price_overrides_the_known_one() -> None:
    free = {"gpt-4o-mini": PriceConfig(input=0.0, output=0.0, cached_input=None)}
    assert Pricing(free).cost("gpt-4o-mini-2024-07-18", input_tokens=9, output_tokens=9) == 0.0


def test_price_of_a_model_with_the_same_prefix_is_not_used() -> None:
    assert Pricing(PRICES).cost("gpt-x-mini", input_tokens=1, output_tokens=1) is None


def test_cached_tokens_are_part_of_the_prompt() -> None:
    assert (
        Pricing(PRICES).cost("gpt-x", input_tokens=MILLION, output_tokens=0, cached_input_tokens=MILLION // 2) == 0.75
    )


def test_cached_tokens_without_a_separate_price_cost_the_same() -> None:
    prices = {"m": PriceConfig(input=1.0, output=1.0, cached_input=None)}
    assert Pricing(prices).cost("m", input_tokens=MILLION, output_tokens=0, cached_input_tokens=MILLION) == 1.0


WRITES = {"input_tokens": MILLION, "output_tokens": 0, "cache_write_input_tokens": MILLION // 2}


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        ({}, 1.0),
        ({"cache_write_input": 2.0}, 1.5),
        ({"cache_write_input": 2.0, "cache_write_1h_input": 4.0}, 2.0),
        ({"cache_write_1h_input": 5.0}, 2.0),
    ],
)
def test_cache_writes_have_a_separate_price(price: dict[str, float], expected: float) -> None:
    """Half of the prompt is written to the cache, and half of that for one hour."""
    pricing = Pricing({"m": PriceConfig(input=1.0, output=1.0, **price)})
    assert pricing.cost("m", **WRITES, cache_write_1h_input_tokens=MILLION // 4) == expected


def test_known_prices_of_cache_writes_are_those_of_genai_prices() -> None:
    def cost(**tokens: int) -> float:
        found = Pricing().cost("claude-sonnet-4-5-20250929", input_tokens=100_000, output_tokens=0, **tokens)
        assert found is not None
        return found

    written = {"cache_write_input_tokens": 100_000}
    assert cost(**written) == pytest.approx(100_000 * 3.75 / MILLION)
    # Older versions of the package have no separate price for one-hour cache writes.
    assert cost(**written, cache_write_1h_input_tokens=100_000) in (pytest.approx(0.375), pytest.approx(0.6))


@pytest.mark.parametrize(
    "tokens",
    [
        {"input_tokens": None, "output_tokens": 1},
        {"input_tokens": 1, "output_tokens": None},
        {"input_tokens": 1, "output_tokens": 1, "cached_input_tokens": 2},
        {"input_tokens": -1, "output_tokens": 1},
        {"input_tokens": 1, "output_tokens": 1, "cached_input_tokens": 1, "cache_write_input_tokens": 1},
        {"input_tokens": 1, "output_tokens": 1, "cache_write_input_tokens": -1},
        {"input_tokens": 1, "output_tokens": 1, "cache_write_1h_input_tokens": 1},
        {"input_tokens": 1, "output_tokens": -1},
        {"input_tokens": int("9" * 4_299), "output_tokens": 1},
    ],
)
def test_unknown_or_contradictory_token_counts_have_no_cost(tokens: dict[str, Any]) -> None:
    pricing = Pricing(PRICES)
    assert pricing.cost("gpt-x", **tokens) is None
    assert pricing.unpriced == set()


def test_models_without_a_price_are_remembered() -> None:
    pricing = Pricing()
    for model in ("mine", "mine", None):
        assert pricing.cost(model, input_tokens=1, output_tokens=1) is None
    assert pricing.unpriced == {"mine", "a model without a name"}


def test_model_with_an_input_price_only_has_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = Rates(input=flat_rate(1.0), output=None, cached_input=flat_rate(1.0))
    monkeypatch.setattr(pricing_module, "known_rates", lambda model, provider: rates)
    pricing = Pricing()
    assert pricing.cost("embedding", input_tokens=MILLION, output_tokens=0) == 1.0
    assert pricing.cost("embedding", input_tokens=MILLION, output_tokens=1) is None


def test_price_of_a_model_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(pricing_module, "known_rates", lambda model, provider: asked.append((model, provider)))
    pricing = Pricing()
    for provider in (None, "openai", None, "openai"):
        pricing.cost("m", input_tokens=1, output_tokens=1, provider=provider)
    assert asked == [("m", None), ("m", "openai")]


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (0.1, "$0.10"),
        (0.0999, "$0.100"),
        (0.012, "$0.012"),
        (0.000345, "$0.00034"),
        (1e-15, "$0.0000000000"),
        (12.345, "$12.35"),
        (1e6, "$1,000,000.00"),
    ],
)
def test_small_amounts_keep_two_digits(amount: float, text: str) -> None:
    assert dollars(amount) == text
