"""What an agent's model calls spend: the budget is checked before each call, as far as callbacks report it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.budget import Budget, BudgetSpentError
from graphrag_eval_lc.capture.llm_calls import model_name, model_usage, result_model_name
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metrics import INPUT_TOKENS, OUTPUT_TOKENS


class AgentCosts(BaseCallbackHandler):
    """Checks the budget before each model call of one attempt, and counts what the call spent.

    Calls that no callback reports, such as those of a deployed graph, are counted with the response.

    Args:
        budget: The budget of the run.
        pricing: The prices.

    Attributes:
        cost: USD that the budget has counted for the attempt.
        tokens: Tokens that the budget has counted for the attempt.
        is_priced: Whether a price is known for all calls that reported tokens.
        refusal: Why a call was not sent; None if all were.
    """

    raise_error = True  # else the call would be sent
    run_inline = True

    def __init__(self, budget: Budget, pricing: Pricing) -> None:
        self.cost = 0.0
        self.tokens = 0
        self.is_priced = True
        self.refusal: str | None = None
        self._budget = budget
        self._pricing = pricing
        self._models: dict[UUID, str] = {}

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Refuse a call if nothing is left of the budget."""
        self._begin(run_id, metadata or {}, kwargs)

    def on_llm_start(
        self,
        serialized: dict[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Refuse a call if nothing is left of the budget."""
        self._begin(run_id, metadata or {}, kwargs)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count what a call spent; what is not known is left to the response."""
        asked = self._models.pop(run_id, "")
        usage: Mapping[str, Any] = {**model_usage(response)}
        tokens = (usage.get(INPUT_TOKENS) or 0) + (usage.get(OUTPUT_TOKENS) or 0)
        names = dict.fromkeys((result_model_name(response) or asked, asked))
        costs = (self._pricing.cost_of_usage({**usage, "model": name}) for name in names if usage and name)
        cost = next((cost for cost in costs if cost is not None), None)
        self.is_priced &= cost is not None or not usage
        self.cost += cost or 0.0
        self.tokens += tokens
        self._budget.spend(cost or 0.0, tokens)

    def _begin(self, run_id: UUID, metadata: Mapping[str, Any], kwargs: Mapping[str, Any]) -> None:
        try:
            self._budget.check()
        except BudgetSpentError as problem:
            self.refusal = str(problem)
            raise
        self._models[run_id] = model_name(kwargs.get("invocation_params"), metadata) or str(
            metadata.get("ls_model_name") or ""
        )
