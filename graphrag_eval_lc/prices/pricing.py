"""What one call of a model costs: by the prices of the config, else by those that are known."""

import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

from graphrag_eval_lc.config import PriceConfig
from graphrag_eval_lc.prices.known_rates import known_rates
from graphrag_eval_lc.prices.rates import Rates, flat_rate
from graphrag_eval_lc.registry.metrics import AGENT_COST, JUDGES_COST

_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")
_UNNAMED = "a model without a name"


class Pricing:
    """Prices calls of models, with the data of ``genai-prices`` where that is installed; nothing is downloaded.

    A model's price is looked up once, and holds as it was at that moment.

    Args:
        overrides: Prices by model that go before those that are known. The name is the one that the provider reports;
            that without the provider before it (``openai:gpt-4o``) or the date behind it will do.

    Attributes:
        unpriced: The models that spent tokens and have no price.

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
        self._overrides = {name: _rates(price) for name, price in (overrides or {}).items()}
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
        """Give the USD of one call.

        Args:
            model: The model that answered, as the provider reports it.
            input_tokens: Tokens of the prompt, those read from a cache and written to one included.
            output_tokens: Tokens of the answer; 0 for embeddings.
            cached_input_tokens: Those of the prompt that the provider had in its cache; None: none.
            cache_write_input_tokens: Those that it wrote to its cache; None: none.
            cache_write_1h_input_tokens: Those of the written ones that it keeps for an hour; None: none.
            provider: Who runs the model, where that is known.

        Returns:
            None where the model has no known price, or the tokens are not known or contradict each other.
        """
        cached, written = cached_input_tokens or 0, cache_write_input_tokens or 0
        hourly = cache_write_1h_input_tokens or 0
        if input_tokens is None or output_tokens is None or output_tokens < 0:
            return None
        if min(cached, written) < 0 or cached + written > input_tokens or not 0 <= hourly <= written:
            return None
        rates = self._rates_of(model, provider) if model else None
        cost = None if rates is None else rates.cost(input_tokens, output_tokens, cached, written, hourly)
        if cost is None:
            self.unpriced.add(model or _UNNAMED)
        return cost

    def is_overridden(self, model: str) -> bool:
        """Tell whether the config gives the model's price."""
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


def _rates(price: PriceConfig) -> Rates:
    of_input = flat_rate(price.input)
    return Rates(
        input=of_input,
        output=None if price.output is None else flat_rate(price.output),
        cached_input=of_input if price.cached_input is None else flat_rate(price.cached_input),
        cache_write_input=None if price.cache_write_input is None else flat_rate(price.cache_write_input),
        cache_write_1h_input=None if price.cache_write_1h_input is None else flat_rate(price.cache_write_1h_input),
    )


def lacks_costs(totals: Mapping[str, object], *, has_judges: bool) -> bool:
    """Tell whether the totals of a run lack what its agent, or its judges, cost."""
    return AGENT_COST not in totals or (has_judges and JUDGES_COST not in totals)


def unpriced_warning(models: Iterable[str]) -> str:
    """Say of which models no price is known, and how to give one."""
    names = ", ".join(sorted(models))
    install = "" if find_spec("genai_prices") else "install graphrag-eval-lc[judges], or "
    return (
        f"no price is known for {names}, so that costs are left out: {install}give "
        "prices: {model: {input: …, output: …}} in the config"
    )
