"""What an agent's model calls cost, written into its response."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.prices.pricing import Pricing
from graphrag_eval_lc.registry.metrics import AGENT_COST, COST, INPUT_TOKENS, OUTPUT_TOKENS, TOKENS


def priced_response(response: Mapping[str, Any], pricing: Pricing) -> dict[str, Any]:
    """Give a response with what its model calls cost in USD; the one given stays as it is.

    Each of ``llm_calls`` gets ``cost``, and the response ``agent_cost``, their sum; the same in each of
    ``failed_attempts``. A cost that stands there already stays where the model has no known price. A call that failed
    without tokens is not counted. ``agent_cost`` is absent where the cost of another call is not known. A response
    without such calls is given as it is.

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
    priced["llm_calls"] = calls = [_priced_call(call, pricing) for call in calls]
    counted = [call for call in calls if not _failed_without_tokens(call)]
    if counted:
        costs = [call.get(COST) if isinstance(call, Mapping) else None for call in counted]
        priced.pop(AGENT_COST, None)
        if None not in costs:
            priced[AGENT_COST] = sum(costs)
    return priced


def _priced_call(call: Any, pricing: Pricing) -> Any:
    if not isinstance(call, Mapping) or _failed_without_tokens(call):
        return call
    model = call.get("model")
    cost = pricing.cost(
        model if isinstance(model, str) else None,
        input_tokens=_count(call, INPUT_TOKENS),
        output_tokens=_count(call, OUTPUT_TOKENS),
        cached_input_tokens=_count(call, "cached_input_tokens"),
        cache_write_input_tokens=_count(call, "cache_write_input_tokens"),
        cache_write_1h_input_tokens=_count(call, "cache_write_1h_input_tokens"),
    )
    return dict(call) if cost is None else {**call, COST: cost}


def _failed_without_tokens(call: object) -> bool:
    return isinstance(call, Mapping) and "error" in call and not any(key in call for key in TOKENS)


def _count(call: Mapping[str, Any], key: str) -> int | None:
    value = call.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
