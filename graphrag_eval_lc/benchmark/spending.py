"""What an agent's attempts spend: the budget is checked before each model call, and failed attempts are kept."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.budget import Budget, BudgetSpentError
from graphrag_eval_lc.capture.llm_calls import model_call, model_name
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metrics import AGENT_COST, ELAPSED_SEC, INPUT_TOKENS, OUTPUT_TOKENS, TOKENS, TOTAL_TOKENS

_KEPT = (
    "error", "started_at", ELAPSED_SEC, "run_id", "run_ids", *TOKENS, AGENT_COST,
    "actual_steps", "llm_calls", "llm_messages", "llm_tools",
)  # fmt: skip


def failed_attempt(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a failed attempt on the response that follows."""
    return {key: response[key] for key in _KEPT if key in response}


def attempts_in(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the attempts of an earlier response, itself the last, as they are kept on the response that follows."""
    return [*response.get("failed_attempts", ()), failed_attempt(response)]


def _all_attempts(response: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [response, *response.get("failed_attempts", ())]


def tokens_spent(response: Mapping[str, Any]) -> int | None:
    """Return the tokens of a response with all its attempts; None where some are not known.

    An attempt without a model call spent none. A failed call whose tokens are not known is not counted.

    Example:
        >>> tokens_spent({"total_tokens": 7, "failed_attempts": [{"total_tokens": 5}, {"llm_calls": []}]})
        12
    """
    spent = 0
    for attempt in _all_attempts(response):
        if attempt.get(TOTAL_TOKENS) is not None:
            spent += attempt[TOTAL_TOKENS]
        elif any("error" not in call for call in attempt.get("llm_calls") or ()):
            return None
    return spent


def cost_spent(response: Mapping[str, Any]) -> float | None:
    """Return the USD that the agent's model calls of all attempts cost; None where some are not known.

    An attempt that spent no tokens cost nothing.

    Example:
        >>> cost_spent({"agent_cost": 0.5, "failed_attempts": [{"agent_cost": 0.25}, {"llm_calls": []}]})
        0.75
    """
    spent = 0.0
    for attempt in _all_attempts(response):
        if attempt.get(AGENT_COST) is not None:
            spent += attempt[AGENT_COST]
        elif _spent_tokens(attempt) or any(
            "error" not in call or _spent_tokens(call) for call in attempt.get("llm_calls") or ()
        ):
            return None
    return spent


def seconds_spent(response: Mapping[str, Any]) -> float:
    """Return the seconds that a response took with all its attempts, without the waits between them."""
    return sum(attempt.get(ELAPSED_SEC) or 0.0 for attempt in _all_attempts(response))


def _spent_tokens(record: Mapping[str, Any]) -> bool:
    return any(record.get(key) for key in TOKENS)


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

    def on_llm_start(
        self,
        serialized: dict[str, Any] | None,
        prompts: list[Any],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Refuse a call if nothing is left of the budget."""
        try:
            self._budget.check()
        except BudgetSpentError as problem:
            self.refusal = str(problem)
            raise
        known = metadata or {}
        self._models[run_id] = model_name(kwargs.get("invocation_params"), known) or str(
            known.get("ls_model_name") or ""
        )

    def on_chat_model_start(self, *arguments: Any, **options: Any) -> None:
        """Refuse a call if nothing is left of the budget."""
        self.on_llm_start(*arguments, **options)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count what a call spent; what is not known is left to the response."""
        asked = self._models.pop(run_id, "")
        usage: dict[str, Any] = {**model_call(response, has_ended=False)}
        model = usage.pop("model", asked)
        tokens = (usage.get(INPUT_TOKENS) or 0) + (usage.get(OUTPUT_TOKENS) or 0)
        names = dict.fromkeys((model, asked))
        costs = (self._pricing.cost_of_usage({**usage, "model": name}) for name in names if usage and name)
        cost = next((cost for cost in costs if cost is not None), None)
        self.is_priced &= cost is not None or not usage
        self.cost += cost or 0.0
        self.tokens += tokens
        self._budget.spend(cost or 0.0, tokens)
