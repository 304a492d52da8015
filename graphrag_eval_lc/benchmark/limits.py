"""The limits of a run: the concurrency limit, which adapts to rate limits, and the budget of tokens and costs."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.budget import Budget, BudgetSpentError
from graphrag_eval_lc.capture.llm_calls import model_call, model_name
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metrics import AGENT_COST, ELAPSED_SEC, INPUT_TOKENS, OUTPUT_TOKENS, TOKENS, TOTAL_TOKENS

_KEPT = (
    "error", "started_at", ELAPSED_SEC, "run_id", "run_ids", *TOKENS, AGENT_COST,
    "actual_steps", "llm_calls", "llm_messages", "llm_tools",
)  # fmt: skip


def failed_attempt(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a failed attempt that the next response keeps in ``failed_attempts``."""
    return {key: response[key] for key in _KEPT if key in response}


def attempts_in(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the ``failed_attempts`` of the response after an earlier one: the earlier one's, then that one itself."""
    return [*response.get("failed_attempts", ()), failed_attempt(response)]


def _all_attempts(response: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [response, *response.get("failed_attempts", ())]


def tokens_spent(response: Mapping[str, Any]) -> int | None:
    """Return the tokens of a response with all its attempts; None if some are unknown.

    An attempt without a model call spent none. A failed call with unknown tokens is not counted.

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
    """Return the cost in USD of the agent's model calls over all attempts; None if some are unknown.

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
    """

    raise_error = True  # otherwise LangChain would send the call anyway
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
        """Count what a call spent; unknown tokens are counted later, with the response."""
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


class ConcurrencyLimit:
    """Limits how many attempts run at once in one event loop, and adapts to rate limits.

    The limit follows additive increase, multiplicative decrease, as in TCP. A rate limit halves the number of slots,
    and nothing starts before the time that the server names. Rate limits of attempts that began before the halving do
    not halve it again. After as many good attempts in a row as there are slots, one slot is added, up to ``most``.
    """

    def __init__(
        self,
        most: int,
        per_minute: float | None,
        on_change: Callable[[int, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._interval = 0.0 if per_minute is None else 60.0 / per_minute
        self._on_change = on_change
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._starts_from = 0.0
        self._asks_from = 0.0
        self._good_in_a_row = 0
        self.limit = most
        self.in_flight = 0
        self.epoch = 0

    async def take_slot(self, stop: StopSignal) -> int | None:
        """Wait for a slot and return the number of halvings so far, for ``was_limited``; None if the run stops."""
        while True:
            if stop.reason is not None:
                return None
            if self.in_flight >= self.limit:
                slot = asyncio.get_running_loop().create_future()
                self._waiting.append(slot)
                await slot
                continue
            seconds = self._starts_from - self._clock()
            if seconds <= 0:
                break
            await stop.sleep(seconds)
        if self._interval:
            self._starts_from = max(self._clock(), self._starts_from) + self._interval
        self.in_flight += 1
        return self.epoch

    async def wait_for_pace(self, abandoned: "asyncio.Future[None]") -> bool:
        """Wait for the pace again in a process that became ready only after it had its slot.

        Processes become ready together, so their questions would be sent together.
        """
        while (seconds := self._asks_from - self._clock()) > 0 and not abandoned.done():
            await asyncio.wait({abandoned}, timeout=seconds)
        self._asks_from = max(self._asks_from, self._clock() + self._interval)
        return not abandoned.done()

    def leave(self) -> None:
        """Free a slot."""
        self.in_flight -= 1
        if self._waiting:
            self._wake()

    def went_well(self) -> None:
        """Note an attempt without a rate limit."""
        if self.limit == self._most:
            return
        self._good_in_a_row += 1
        if self._good_in_a_row >= self.limit:
            self._set(self.limit + 1, "no rate limit for a while")

    def was_limited(self, epoch: int | None, retry_after: float | None) -> None:
        """Note a rate limit."""
        self._good_in_a_row = 0
        if retry_after:
            self._asks_from = max(self._asks_from, self._clock() + retry_after)
            self._starts_from = max(self._starts_from, self._asks_from)
        if epoch == self.epoch and self.limit > 1:
            self.epoch += 1
            self._set(self.limit // 2, "rate limit")

    def wake_all(self) -> None:
        """Wake everything that waits for a slot, because the run stops."""
        while self._waiting:
            self._wake()

    def _set(self, limit: int, reason: str) -> None:
        self.limit = limit
        self._good_in_a_row = 0
        self._on_change(limit, reason)
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            slot = self._waiting.popleft()
            if not slot.done():
                slot.set_result(None)
                return
