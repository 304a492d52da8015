"""Plans the requests of judges: counts them and estimates tokens and cost without sending any."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphrag_eval_lc.judges.model_interface import total_cost
from graphrag_eval_lc.prices import Pricing, dollars
from graphrag_eval_lc.texts import counted

BYTES_A_TOKEN = 4
"""The approximate number of UTF-8 bytes in a token of English text or JSON."""
TOKENS_AN_ANSWER = 200
"""The approximate number of tokens in a judge's answer, with its reason."""


class RequestSize(NamedTuple):
    """The largest number of tokens of a request: in its prompt, and in its answers (None without a limit)."""

    input_tokens: int
    output_tokens: int | None


def size_of(request: Mapping[str, Any]) -> RequestSize:
    """Return the size of a request by its JSON body, whose syntax exceeds what a provider adds to the texts.

    A token has at least one byte of UTF-8.

    Example:
        >>> size_of({"input": "Wörter"}), size_of({"messages": [], "max_tokens": 100})
        (RequestSize(input_tokens=20, output_tokens=0), RequestSize(input_tokens=35, output_tokens=100))
    """
    text = json.dumps(request, ensure_ascii=False, default=str)
    bounds = [bound for key in ("max_tokens", "max_completion_tokens") if isinstance(bound := request.get(key), int)]
    answer = 0 if "input" in request else max(bounds, default=None)
    return RequestSize(len(text.encode("utf-8", "surrogatepass")), answer)


@dataclass(slots=True)
class RequestPlan:
    """The requests that judges would send, with estimated tokens and USD (None if a model has no known price).

    ``known`` counts answers that are in the cache or that an equal request returns; ``notes`` say what is not counted.

    Example:
        >>> plan = RequestPlan(Pricing())
        >>> for _ in range(2):
        ...     plan.add("digest", "no-such-model", None, RequestSize(400, 100))
        >>> plan.requests, plan.known, plan.input_tokens, plan.output_tokens, plan.cost
        (1, 1, 100, 100, None)
    """

    pricing: Pricing = field(repr=False)
    requests: int = 0
    known: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    unpriced: set[str] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    _digests: set[str] = field(default_factory=set, repr=False)

    def add(self, digest: str, model: str, provider: str | None, size: RequestSize) -> None:
        """Count a request, or an answer that the cache would have by then; without a cache the digest is empty."""
        if digest in self._digests:
            self.known += 1
            return
        self._digests |= {digest} - {""}
        sent, received = size.input_tokens // BYTES_A_TOKEN, TOKENS_AN_ANSWER
        if size.output_tokens is not None:
            received = min(received, size.output_tokens)
        self.requests += 1
        self.input_tokens += sent
        self.output_tokens += received
        cost = self.pricing.most_cost(model, input_tokens=sent, output_tokens=received, provider=provider)
        if cost is None:
            self.unpriced.add(model)
        self.cost = total_cost([self.cost, cost])

    def sentences(self) -> list[str]:
        """Return the plan in sentences."""
        known = f" ({counted(self.known, 'more answer is', 'more answers are')} known already)" if self.known else ""
        if not self.requests:
            return [f"The judges would ask nothing{known}.", *sorted(self.notes)]
        about = f"about {self.input_tokens:,} input and {self.output_tokens:,} output tokens"
        if self.cost is not None:
            about += f", {dollars(round(self.cost, 6))}"
        texts = [f"The judges would send {counted(self.requests, 'request')}{known}: {about}."]
        if self.unpriced:
            texts.append(f"No price is known for {', '.join(sorted(self.unpriced))} (add it to prices in the config).")
        return [*texts, *sorted(self.notes)]


# Keys that end the judging early unless they are 0.
_ENDING = frozenset({"noncommittal"})


def example_of(schema: Mapping[str, Any], name: str = "-") -> Any:
    """Return an example that fits a closed JSON schema, with one item in each list, so that judges can continue.

    A text is the name of its key.

    Example:
        >>> example_of({"type": "object", "properties": {"verdict": {"enum": [0, 1]}, "why": {"type": "string"}}})
        {'verdict': 1, 'why': 'why'}
    """
    if "enum" in schema:
        return schema["enum"][-1]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], name)
    if schema.get("type") == "object":
        parts = schema.get("properties", {})
        return {key: 0 if key in _ENDING else example_of(part, key) for key, part in parts.items()}
    if schema.get("type") == "array":
        return [example_of(schema.get("items", {}), name)] * max(1, schema.get("minItems", 0))
    return {"integer": 1, "number": 1.0, "boolean": True}.get(schema.get("type", ""), name)
