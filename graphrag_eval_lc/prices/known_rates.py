"""The prices of the models that ``genai-prices`` knows, from the data in that package."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from graphrag_eval_lc.prices.rates import Rate, Rates, flat_rate

# LangChain's names of providers that the data has under another one.
_PROVIDERS = {"azure_openai": "azure", "azure_ai": "azure"}
# What an OpenAI-compatible endpoint of anybody may be called.
_ANY_PROVIDER = {None, "openai", "litellm"}
# Ollama's names of models that run on one's own machine: deepseek-r1:8b, mistral:latest.
_LOCAL = re.compile(r".+:(latest|\d[\d.x]*b\b.*)", re.IGNORECASE)
_BEDROCK = re.compile(r"(?:arn:.*/)?((?:[a-z-]+\.)?[a-z0-9]+\.[a-z].*)")


def known_rates(model: str, provider: str | None = None) -> Rates | None:
    """Give the price of a model as it is now; None where it is not known, or ``genai-prices`` is not installed.

    Args:
        model: Its name as a provider reports it or as LangChain and LiteLLM write it: ``gpt-4o-mini-2024-07-18``,
            ``openai:gpt-4o-mini``, ``azure/gpt-4o``, ``us.anthropic.claude-3-haiku-20240307-v1:0``.
        provider: Who runs it. ``openai`` may be any endpoint that speaks its language, so that there the name alone
            decides where OpenAI has no such model.
    """
    if _LOCAL.fullmatch(model):
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    for name, provider_id in _candidates(model, provider):
        try:
            found = calc_price(Usage(input_tokens=1, output_tokens=1), name, provider_id=provider_id)
        except LookupError:
            continue
        return _rates(found.model_price)
    return None


def _candidates(model: str, provider: str | None) -> Iterator[tuple[str, str | None]]:
    """Give the names and providers under which a model may be found, the likeliest first."""
    if provider is not None:
        yield model, _PROVIDERS.get(provider, provider)
    if provider not in _ANY_PROVIDER:
        return
    yield model, None
    for sign in ":/":
        prefix, found, name = model.partition(sign)
        if found and prefix and name:
            yield name, _PROVIDERS.get(prefix, prefix)
    if bedrock := _BEDROCK.fullmatch(model):
        yield bedrock[1], "aws"
    if model.startswith("text-embedding-"):
        yield model, "openai"


def _rates(price: Any) -> Rates | None:
    """Give a price of genai-prices; None where tokens have none, as with models that are paid by the minute."""
    if price.input_mtok is None:
        return None
    of_input = _rate(price.input_mtok)
    return Rates(
        input=of_input,
        output=None if price.output_mtok is None else _rate(price.output_mtok),
        cached_input=of_input if price.cache_read_mtok is None else _rate(price.cache_read_mtok),
        request=float(price.requests_kcount or 0) / 1000,
        cache_write_input=_rate_or_none(price, "cache_write_mtok"),
        cache_write_1h_input=_rate_or_none(price, "cache_write_1h_mtok"),
    )


def _rate_or_none(price: Any, name: str) -> Rate | None:
    """Give a rate that older data does not have for any model."""
    found = getattr(price, name, None)
    return None if found is None else _rate(found)


def _rate(price: Any) -> Rate:
    if isinstance(price, Decimal):
        return flat_rate(float(price))
    return (*flat_rate(float(price.base)), *((tier.start, float(tier.price)) for tier in price.tiers))
