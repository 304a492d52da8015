"""Computes the cost of model calls in USD, with the prices of the config, else those of genai-prices."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from math import floor, log10
from typing import Any

from graphrag_eval_lc.config import PriceConfig
from graphrag_eval_lc.registry.metrics import AGENT_COST, COST, INPUT_TOKENS, JUDGES_COST, OUTPUT_TOKENS, TOKENS

__all__ = ["Pricing", "dollars", "failed_without_tokens", "lacks_costs", "priced_response", "unpriced_warning"]


# (tokens, USD): the price per million tokens for prompts with more than so many tokens. The first has 0 tokens.
Rate = Sequence[tuple[int, float]]


def flat_rate(usd: float) -> Rate:
    """Return a rate that is the same for all prompts."""
    return ((-1, usd),)


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of a model for input and output tokens (``output`` is None for models such as embeddings).

    Input tokens that are read from the provider's cache, or written to it (possibly for an hour), may have separate
    rates; otherwise they cost as much as other input tokens. ``request`` is the USD per request.

    Example:
        >>> Rates(input=flat_rate(2.0), output=flat_rate(8.0), cached_input=flat_rate(0.5)).cost(500_000, 100_000, 0)
        1.8
    """

    input: Rate
    output: Rate | None
    cached_input: Rate
    request: float = 0.0
    cache_write_input: Rate | None = None
    cache_write_1h_input: Rate | None = None

    def cost(
        self,
        input_tokens: int,
        output_tokens: int,
        cached_input_tokens: int,
        cache_write_input_tokens: int = 0,
        cache_write_1h_input_tokens: int = 0,
    ) -> float | None:
        """Return the USD of one request; None if a rate is unknown.

        ``input_tokens`` includes the tokens that were read from or written to a cache.
        """
        of_write = self.cache_write_input or self.input
        parts = (
            (self.input, input_tokens - cached_input_tokens - cache_write_input_tokens),
            (self.cached_input, cached_input_tokens),
            (of_write, cache_write_input_tokens - cache_write_1h_input_tokens),
            (self.cache_write_1h_input or of_write, cache_write_1h_input_tokens),
        )
        micro_usd = sum(_usd(rate, input_tokens) * tokens for rate, tokens in parts if tokens)
        if output_tokens:
            if self.output is None:
                return None
            micro_usd += _usd(self.output, input_tokens) * output_tokens
        return self.request + micro_usd / 1e6

    def most(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return the most that a request with at most so many tokens can cost, in USD; None if a rate is unknown.

        For input tokens, the most expensive rate is used: new, read from a cache or written to one.
        """
        if output_tokens and self.output is None:
            return None
        of_input = [self.input, self.cached_input, self.cache_write_input, self.cache_write_1h_input]
        highest = max(_highest(rate, input_tokens) for rate in of_input if rate is not None)
        micro_usd = highest * input_tokens + (_highest(self.output, input_tokens) * output_tokens if self.output else 0)
        return self.request + micro_usd / 1e6


def _highest(rate: Rate, input_tokens: int) -> float:
    """Return the highest price in USD for prompts of up to so many tokens."""
    return max(usd for above, usd in rate if input_tokens > above)


def _usd(rate: Rate, input_tokens: int) -> float:
    return next(usd for above, usd in reversed(rate) if input_tokens > above)


_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")
_MOST_TOKENS = 10**15  # of a call; a larger number cannot be a count and may not fit into a float
_UNNAMED = "a model without a name"
_CACHE_TOKENS = ("cached_input_tokens", "cache_write_input_tokens", "cache_write_1h_input_tokens")


class Pricing:
    """Computes the cost of model calls, with the data of ``genai-prices`` if it is installed; nothing is downloaded.

    The price of a model is looked up once. Prices in the config (``overrides``) take precedence. They are found by the
    name that a provider reports, also without a provider before it (``openai:gpt-4o``) or a date after it. ``unpriced``
    has the models that used tokens and have no price.

    Example:
        >>> pricing = Pricing({"gpt-x": PriceConfig(input=0.5, output=2.0)})
        >>> pricing.cost("gpt-x-2026-01-31", input_tokens=1_000_000, output_tokens=500_000)
        1.5
        >>> pricing.cost("my-own-model", input_tokens=10, output_tokens=10) is None
        True
        >>> pricing.unpriced
        {'my-own-model'}
    """

    def __init__(self, overrides: Mapping[str, PriceConfig] | None = None) -> None:
        self.unpriced: set[str] = set()
        self._overrides: dict[str, Rates] = {}
        for name, price in (overrides or {}).items():
            rates: dict[str, Any] = {kind: flat_rate(usd) for kind, usd in price if usd is not None}
            self._overrides[name] = Rates(**{"cached_input": rates["input"], **rates})
        self._known: dict[tuple[str, str | None], Rates | None] = {}

    def cost(
        self,
        model: str | None,
        *,
        input_tokens: int | None,
        output_tokens: int | None,
        cached_input_tokens: int | None = None,
        cache_write_input_tokens: int | None = None,
        cache_write_1h_input_tokens: int | None = None,
        provider: str | None = None,
    ) -> float | None:
        """Return the cost in USD of one call to a model, by the name that the provider reports.

        ``input_tokens`` includes tokens that were read from a cache or written to one. Returns None if the model has no
        known price, or if the tokens are unknown, contradictory or too many.
        """
        cached, written = cached_input_tokens or 0, cache_write_input_tokens or 0
        hourly = cache_write_1h_input_tokens or 0
        if input_tokens is None or output_tokens is None or output_tokens < 0:
            return None
        if input_tokens + output_tokens > _MOST_TOKENS:
            return None
        if min(cached, written) < 0 or cached + written > input_tokens or not 0 <= hourly <= written:
            return None
        rates = self._rates_of(model, provider) if model else None
        cost = None if rates is None else rates.cost(input_tokens, output_tokens, cached, written, hourly)
        if cost is None:
            self.unpriced.add(model or _UNNAMED)
        return cost

    def cost_of_usage(self, usage: Mapping[str, Any], provider: str | None = None) -> float | None:
        """Return the USD of a model call in a response or in the judges' cache; None if it cannot be priced."""
        model = usage.get("model")
        counts = ((key, usage.get(key)) for key in (INPUT_TOKENS, OUTPUT_TOKENS, *_CACHE_TOKENS))
        tokens: dict[str, Any] = {
            key: count if isinstance(count, int) and not isinstance(count, bool) else None for key, count in counts
        }
        return self.cost(model if isinstance(model, str) else None, provider=provider, **tokens)

    def most_cost(
        self, model: str, *, input_tokens: int, output_tokens: int, provider: str | None = None
    ) -> float | None:
        """Return the most that a call with at most so many tokens can cost, in USD; None without a known price.

        Example:
            >>> pricing = Pricing({"m": PriceConfig(input=1.0, output=4.0, cache_write_input=2.0)})
            >>> pricing.most_cost("m", input_tokens=500_000, output_tokens=250_000)
            2.0
        """
        rates = self._rates_of(model, provider)
        return None if rates is None else rates.most(input_tokens, output_tokens)

    def load(self, model: str, provider: str | None = None) -> None:
        """Look up a model's price now; the first lookup is slow, as it reads the data of genai-prices."""
        self._rates_of(model, provider)

    def is_overridden(self, model: str) -> bool:
        """Return whether the config has a price for the model."""
        return self._override(model) is not None

    def _rates_of(self, model: str, provider: str | None) -> Rates | None:
        key = (model, provider)
        if key not in self._known:
            self._known[key] = self._override(model) or known_rates(model, provider)
        return self._known[key]

    def _override(self, model: str) -> Rates | None:
        names = [model, *(model.partition(sign)[2] for sign in ":/")]
        names += [_DATE.sub("", name) for name in names]
        return next((self._overrides[name] for name in names if name in self._overrides), None)


def lacks_costs(totals: Mapping[str, object], *, has_judges: bool) -> bool:
    """Return whether the totals of a run lack the cost of its agent or of its judges."""
    return AGENT_COST not in totals or (has_judges and JUDGES_COST not in totals)


def unpriced_warning(models: Iterable[str]) -> str:
    """Return the warning about models without a known price, and what to do about it."""
    names = ", ".join(sorted(models))
    install = "" if find_spec("genai_prices") else "install graphrag-eval-lc[judges], or "
    return (
        f"no price is known for {names}, so costs are left out: {install}add "
        "prices: {model: {input: …, output: …}} in the config"
    )


def priced_response(response: Mapping[str, Any], pricing: Pricing) -> dict[str, Any]:
    """Return a copy of a response with the costs of its model calls in USD.

    Each of ``llm_calls`` gets ``cost``, and the response gets their sum as ``agent_cost``; each of ``failed_attempts``
    likewise. An existing cost is kept if the model has no known price. A call that failed without tokens is ignored.
    ``agent_cost`` is absent if the cost of any other call is unknown.

    Example:
        >>> from graphrag_eval_lc.config import PriceConfig
        >>> pricing = Pricing({"m": PriceConfig(input=1.0, output=2.0)})
        >>> call = {"model": "m", "input_tokens": 500_000, "output_tokens": 250_000}
        >>> priced_response({"llm_calls": [call, call]}, pricing)["agent_cost"]
        2.0
    """
    priced = _priced(response, pricing)
    attempts = response.get("failed_attempts")
    if isinstance(attempts, list):
        priced["failed_attempts"] = [
            _priced(attempt, pricing) if isinstance(attempt, Mapping) else attempt for attempt in attempts
        ]
    return priced


def _priced(record: Mapping[str, Any], pricing: Pricing) -> dict[str, Any]:
    priced = dict(record)
    calls = record.get("llm_calls")
    if not isinstance(calls, list):
        return priced
    found = []
    for call in calls:
        if isinstance(call, Mapping):
            cost = pricing.cost_of_usage(call)
            call = dict(call) if cost is None else {**call, COST: cost}
        found.append(call)
    priced["llm_calls"] = found
    counted = [call for call in found if not failed_without_tokens(call)]
    if counted:
        costs = [call.get(COST) if isinstance(call, Mapping) else None for call in counted]
        priced.pop(AGENT_COST, None)
        if None not in costs:
            priced[AGENT_COST] = sum(costs)
    return priced


def failed_without_tokens(call: object) -> bool:
    """Return whether a model call failed without reporting tokens, so that it counts as free."""
    return isinstance(call, Mapping) and "error" in call and not any(key in call for key in TOKENS)


# Provider names: LangChain's, and the corresponding one of genai-prices.
_PROVIDERS = {"azure_openai": "azure", "azure_ai": "azure"}
# Names that any OpenAI-compatible endpoint may have.
_ANY_PROVIDER = {None, "openai", "litellm"}
# Ollama's names of local models: deepseek-r1:8b, mistral:latest.
_LOCAL = re.compile(r".+:(latest|\d[\d.x]*b\b.*)", re.IGNORECASE)
_BEDROCK = re.compile(r"(?:arn:.*/)?((?:[a-z-]+\.)?[a-z0-9]+\.[a-z].*)")


def known_rates(model: str, provider: str | None = None) -> Rates | None:
    """Return today's price of a model; None if it is unknown, or ``genai-prices`` is not installed.

    The name may be as a provider reports it, or as LangChain and LiteLLM write it: ``gpt-4o-mini-2024-07-18``,
    ``openai:gpt-4o-mini``, ``azure/gpt-4o``, ``us.anthropic.claude-3-haiku-20240307-v1:0``. The provider ``openai`` may
    be any compatible endpoint: if OpenAI has no such model, only the name is used.
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
        price: Any = found.model_price
        of_tokens = {kind: getattr(price, key, None) for kind, key in _GENAI_NAMES.items()}  # older data lacks some
        rates: dict[str, Any] = {kind: _rate(each) for kind, each in of_tokens.items() if each is not None}
        if "input" not in rates:  # for example models that are billed by the minute
            return None
        per_request = float(price.requests_kcount or 0) / 1000
        return Rates(**{"output": None, "cached_input": rates["input"], **rates, "request": per_request})
    return None


def _candidates(model: str, provider: str | None) -> Iterator[tuple[str, str | None]]:
    """Yield the names and providers under which a model may be found, the most likely first."""
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


_GENAI_NAMES = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cached_input": "cache_read_mtok",
    "cache_write_input": "cache_write_mtok",
    "cache_write_1h_input": "cache_write_1h_mtok",
}


def _rate(price: Any) -> Rate:
    if isinstance(price, Decimal):
        return flat_rate(float(price))
    return (*flat_rate(float(price.base)), *((tier.start, float(tier.price)) for tier in price.tiers))


def dollars(amount: float) -> str:
    """Return USD as text: with cents, and below 10 cents with two significant digits.

    Example:
        >>> dollars(1234.5), dollars(0.12), dollars(0.0036), dollars(0)
        ('$1,234.50', '$0.12', '$0.0036', '$0.00')
    """
    places = 2 if amount == 0 or abs(amount) >= 0.1 else min(1 - floor(log10(abs(amount))), 10)
    return f"${amount:,.{places}f}"
