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
        cache_write_input: That of tokens of the prompt which the provider wrote to its cache; None: as ``input``.
        cache_write_1h_input: That of those which it keeps for an hour; None: as ``cache_write_input``.

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
        """Give the USD of one request; None where a rate is not known.

        Args:
            input_tokens: Tokens of the prompt, all of them.
            output_tokens: Tokens of the answer.
            cached_input_tokens: Those of the prompt that were read from the provider's cache.
            cache_write_input_tokens: Those that were written to it.
            cache_write_1h_input_tokens: Those of the written ones that stay for an hour.
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


def _usd(rate: Rate, input_tokens: int) -> float:
    return next(usd for above, usd in reversed(rate) if input_tokens > above)
