"""The price of one model: USD for a million tokens, by how long the prompt is."""

from collections.abc import Sequence
from dataclasses import dataclass

# (tokens, USD): prompts of more than so many tokens pay this for a million tokens. The first holds for every prompt.
Rate = Sequence[tuple[int, float]]


def flat_rate(usd: float) -> Rate:
    """Give the rate that is the same for every prompt."""
    return ((-1, usd),)


@dataclass(frozen=True, slots=True)
class Rates:
    """What a model's tokens cost.

    Attributes:
        input: That of tokens of the prompt.
        output: That of tokens of the answer; None for a model that gives none, such as one of embeddings.
        cached_input: That of tokens of the prompt which the provider had in its cache.
        request: USD for the request itself.

    Example:
        >>> Rates(input=flat_rate(2.0), output=flat_rate(8.0), cached_input=flat_rate(0.5)).cost(500_000, 100_000, 0)
        1.8
    """

    input: Rate
    output: Rate | None
    cached_input: Rate
    request: float = 0.0

    def cost(self, input_tokens: int, output_tokens: int, cached_input_tokens: int) -> float | None:
        """Give the USD of one request, of whose prompt some tokens were cached; None where a rate is not known."""
        micro_usd = _usd(self.input, input_tokens) * (input_tokens - cached_input_tokens)
        if cached_input_tokens:
            micro_usd += _usd(self.cached_input, input_tokens) * cached_input_tokens
        if output_tokens:
            if self.output is None:
                return None
            micro_usd += _usd(self.output, input_tokens) * output_tokens
        return self.request + micro_usd / 1e6


def _usd(rate: Rate, input_tokens: int) -> float:
    return next(usd for above, usd in reversed(rate) if input_tokens > above)
