"""Prices from genai-prices, for its own model names and those that LangChain, LiteLLM and Bedrock report."""

import sys

import pytest

from graphrag_eval_lc.prices import known_rates

genai_prices = pytest.importorskip("genai_prices")


@pytest.mark.parametrize(
    ("name", "model", "provider"),
    [
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini", "openai"),
        ("openai:gpt-4o-mini", "gpt-4o-mini", "openai"),
        ("openai/gpt-4o-mini", "gpt-4o-mini", "openai"),
        ("azure/gpt-4o-mini", "gpt-4o-mini", "azure"),
        ("azure_openai:gpt-4o", "gpt-4o", "azure"),
        ("anthropic:claude-sonnet-4-5", "claude-sonnet-4-5", "anthropic"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", "anthropic"),
        ("google_genai:gemini-2.5-pro", "gemini-2.5-pro", "google"),
        ("us.anthropic.claude-3-haiku-20240307-v1:0", "anthropic.claude-3-haiku-20240307-v1:0", "aws"),
        ("bedrock_converse:us.amazon.nova-lite-v1:0", "amazon.nova-lite-v1:0", "aws"),
        ("arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0", "amazon.nova-lite-v1:0", "aws"),
        ("text-embedding-3-small", "text-embedding-3-small", "openai"),
    ],
)
def test_reported_and_configured_names(name: str, model: str, provider: str) -> None:
    expected = known_rates(model, provider)
    assert expected is not None
    assert known_rates(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "my-deployment",
        "",
        "ollama:mistral-small",
        "deepseek-r1:8b",
        "mistral:latest",
        "ft:gpt-4o-mini-2024-07-18:acme::abc",
        "gpt-4o-mini-of-mine",
        "whisper-1",
    ],
)
def test_other_and_local_models_have_no_price(name: str) -> None:
    assert known_rates(name) is None


def test_provider_overrides_the_name() -> None:
    assert known_rates("mistral-small", "ollama") is None
    assert known_rates("mistral-small-latest", "mistralai") == known_rates("mistral-small-latest") is not None


def test_openai_may_be_any_compatible_endpoint() -> None:
    assert known_rates("deepseek-chat", "openai") == known_rates("deepseek-chat") is not None


def test_without_genai_prices_no_price_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert known_rates("gpt-4o-mini") is None


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("gpt-4o-mini", "openai"),
        ("gpt-5", "azure"),
        ("claude-sonnet-4-5", "anthropic"),
        ("gemini-2.5-pro", "google"),
        ("sonar", "perplexity"),
        ("amazon.nova-pro-v1:0", "aws"),
        ("anthropic.claude-3-haiku-20240307-v1:0", "aws"),
    ],
)
@pytest.mark.parametrize("tokens", [(1000, 100, 0), (1000, 100, 1000), (200_000, 7, 5), (200_001, 7, 5), (0, 5, 0)])
def test_cost_is_that_of_genai_prices(model: str, provider: str, tokens: tuple[int, int, int]) -> None:
    rates = known_rates(model, provider)
    assert rates is not None
    usage = genai_prices.Usage(input_tokens=tokens[0], output_tokens=tokens[1], cache_read_tokens=tokens[2])
    expected = genai_prices.calc_price(usage, model, provider_id=provider).total_price
    assert rates.cost(*tokens) == pytest.approx(float(expected), rel=1e-12)
