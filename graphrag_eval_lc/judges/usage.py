"""The tokens that requests of judges reported, and what they cost."""

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from graphrag_eval_lc.capture.llm_calls import model_usage, result_model_name
from graphrag_eval_lc.judges.model import Usage
from graphrag_eval_lc.judges.scores import total_cost
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metrics import INPUT_TOKENS, OUTPUT_TOKENS


def usage_in(body: Mapping[str, Any]) -> Usage:
    """Give the usage that the body of an answer of the OpenAI API reports.

    Example:
        >>> usage = usage_in({"model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
        >>> usage.model, usage.input_tokens, usage.output_tokens
        ('m', 9, 2)
    """
    return _usage(LLMResult(generations=[], llm_output={"model": body.get("model"), "usage": body.get("usage")}))


def usage_of(message: AIMessage) -> Usage:
    """Give the usage that a message of a LangChain chat model reports."""
    return _usage(LLMResult(generations=[[ChatGeneration(message=message)]]))


def _usage(result: LLMResult) -> Usage:
    tokens = model_usage(result)
    return Usage(
        result_model_name(result),
        tokens.get(INPUT_TOKENS),
        tokens.get(OUTPUT_TOKENS),
        tokens.get("cached_input_tokens"),
        tokens.get("cache_write_input_tokens"),
        tokens.get("cache_write_1h_input_tokens"),
    )


def usages_cost(usages: Iterable[Usage], pricing: Pricing | None, *, model: str, provider: str | None) -> float | None:
    """Give the USD of requests; None where one of them cannot be priced.

    Args:
        usages: What they reported.
        pricing: The prices; None: there are none.
        model: The model that was asked for. Its price counts, and that of the model which answered only where this
            one has none, or where the config gives a price for the latter alone: a local server may report any name.
        provider: Who runs the model.
    """
    if pricing is None:
        return None
    return total_cost(_cost(usage, pricing, model, provider) for usage in usages)


def _cost(usage: Usage, pricing: Pricing, model: str, provider: str | None) -> float | None:
    names = sorted(
        dict.fromkeys((model, usage.model or model)),
        key=lambda name: not pricing.is_overridden(name),  # those of the config come first
    )
    unpriced = set(names) & pricing.unpriced
    for name in names:
        cost = pricing.cost(
            name,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            cache_write_input_tokens=usage.cache_write_input_tokens,
            cache_write_1h_input_tokens=usage.cache_write_1h_input_tokens,
            provider=provider,
        )
        if cost is not None:
            # Of the other name no price is needed, unless something else asked for it before.
            pricing.unpriced.difference_update(set(names) - unpriced)
            return cost
    return None
