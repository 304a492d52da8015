"""The money of an agent's model calls: reserved before each is sent, as far as callbacks tell what it can cost."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.llm_calls import model_name, model_usage, result_model_name
from graphrag_eval_lc.cost_limit import Account, CostLimitError, Reservation
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metrics import OUTPUT_TOKENS
from graphrag_eval_lc.retrying import status_of

_BOUND_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict", "ls_max_tokens")
_PROVIDERS_TOKENS = 500  # what providers add to a prompt with tools


class SpentAnswers:
    """The longest answers so far, by model: what an answer without a bound is taken to need.

    Args:
        on_longer: Told each model whose longest answer is another one now, with its tokens.

    Example:
        >>> answers = SpentAnswers()
        >>> answers.note("m", 300)
        >>> answers.longest("m"), answers.longest("n")
        (300, 0)
    """

    def __init__(self, on_longer: Callable[[str, int], None] | None = None) -> None:
        self._on_longer = on_longer
        self._longest: dict[str, int] = {}

    def note(self, model: str, tokens: int) -> None:
        """Note the tokens of an answer."""
        if tokens > self._longest.get(model, 0):
            self._longest[model] = tokens
            if self._on_longer is not None:
                self._on_longer(model, tokens)

    def longest(self, model: str) -> int:
        """Return the tokens of a model's longest answer; 0 while there is none."""
        return self._longest.get(model, 0)


class AgentCosts:
    """Keeps the model calls of one attempt within the limit of costs: what does not fit is not sent.

    The bytes of a prompt bound its tokens, and ``max_tokens`` of the agent's model its answer. A model without one is
    taken to answer no longer than it did so far, so that the limit can be passed by what it answers more. A call waits
    where it fits once others have ended. Not bounded here are calls of models without a price, those that no callback
    tells of, and synchronous ones in the thread of an event loop, where nothing can wait.

    Args:
        limit: The money of the run.
        pricing: The prices.
        answers: The longest answers so far, of all attempts.

    Attributes:
        counted: USD that the limit has counted for the attempt.
        refusal: Why a call was not sent; None while all were.
        handlers: What the agent's callbacks must have, in this order.
    """

    def __init__(self, limit: Account, pricing: Pricing, answers: SpentAnswers) -> None:
        self.counted = 0.0
        self.refusal: str | None = None
        self.handlers: tuple[BaseCallbackHandler, ...] = (_Threads(self), _Loops(self))
        self._limit = limit
        self._pricing = pricing
        self._answers = answers
        self._open: dict[UUID, tuple[Reservation, str]] = {}
        self._loops: dict[UUID, asyncio.AbstractEventLoop] = {}
        self._lock = Lock()

    def reserve_in_thread(self, run_id: UUID, prompt: "_Prompt") -> None:
        """Reserve what a call in a thread can cost; the thread may wait. Leave one in an event loop to ``areserve``.

        Raises:
            CostLimitError: It does not fit.
        """
        try:
            self._loops[run_id] = asyncio.get_running_loop()
        except RuntimeError:
            most = prompt.most_cost(self._pricing, self._answers)
            if most is not None:
                reservation = self._reserved(most)
                self._note(run_id, reservation or asyncio.run(self._areserved(most)), prompt)

    async def areserve(self, run_id: UUID, prompt: "_Prompt") -> None:
        """Reserve what a call in this event loop can cost.

        Raises:
            CostLimitError: It does not fit.
        """
        loop = self._loops.pop(run_id, None)
        most = None if loop is None else prompt.most_cost(self._pricing, self._answers)
        if most is None:
            return
        if loop is asyncio.get_running_loop():
            self._note(run_id, await self._areserved(most), prompt)
        elif reservation := self._reserved(most):  # a call that holds up its loop: who waits here waits for ever
            self._note(run_id, reservation, prompt)

    def settle_answer(self, run_id: UUID, response: LLMResult) -> None:
        """Settle what a call did cost."""
        with self._lock:
            reservation, asked = self._open.get(run_id, (None, ""))
        if reservation is None:
            return
        usage: Mapping[str, Any] = {**model_usage(response)}
        names = (result_model_name(response) or asked, asked)
        costs = (self._pricing.cost_of_usage({**usage, "model": name}) for name in names if usage)
        self._answers.note(asked, usage.get(OUTPUT_TOKENS) or 0)
        self.settle(run_id, next((cost for cost in costs if cost is not None), None))

    def settle(self, run_id: UUID, cost: float | None) -> None:
        """Settle a call with what it cost; None, where nobody knows, counts as the most."""
        with self._lock:
            reservation, _ = self._open.pop(run_id, (None, ""))
            if reservation is not None:
                reservation.settle(cost)
                self.counted += reservation.amount if cost is None else cost

    def end(self) -> None:
        """Settle the calls that did not end, with the most that they can cost."""
        for run_id in list(self._open):
            self.settle(run_id, None)

    def _reserved(self, most: float) -> Reservation | None:
        try:
            return self._limit.reserve(most)
        except CostLimitError as problem:
            self.refusal = str(problem)
            raise

    async def _areserved(self, most: float) -> Reservation:
        try:
            return await self._limit.areserve(most)
        except CostLimitError as problem:
            self.refusal = str(problem)
            raise

    def _note(self, run_id: UUID, reservation: Reservation, prompt: "_Prompt") -> None:
        with self._lock:
            self._open[run_id] = reservation, prompt.model


@dataclass(frozen=True, slots=True)
class _Prompt:
    """What a model is asked, as callbacks tell it."""

    texts: Sequence[Any]
    params: Any
    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, texts: Sequence[Any], metadata: Mapping[str, Any] | None, kwargs: Mapping[str, Any]) -> "_Prompt":
        return cls(texts, kwargs.get("invocation_params"), metadata or {})

    @property
    def model(self) -> str:
        """The model's name."""
        return model_name(self.params, self.metadata) or str(self.metadata.get("ls_model_name") or "")

    def most_cost(self, pricing: Pricing, answers: SpentAnswers) -> float | None:
        """Return the most USD that the call can cost; None for a model without a price."""
        text = json.dumps([self.texts, self.params], ensure_ascii=False, default=str)
        places = [place for place in (self.params, self.metadata) if isinstance(place, Mapping)]
        bounds = (_count(place.get(key)) for place in places for key in _BOUND_KEYS)
        bound = next((tokens for tokens in bounds if tokens is not None), None)
        return pricing.most_cost(
            self.model,
            input_tokens=len(text.encode("utf-8", "surrogatepass")) + _PROVIDERS_TOKENS,
            output_tokens=answers.longest(self.model) if bound is None else bound,
            provider=self.metadata.get("ls_provider"),
        )


def _messages(messages: list[list[BaseMessage]]) -> list[Any]:
    return [[message.content, message.additional_kwargs] for batch in messages for message in batch]


class _Threads(BaseCallbackHandler):
    """Reserves for calls in threads, and settles all."""

    raise_error = True  # else the call would be sent
    run_inline = True

    def __init__(self, costs: AgentCosts) -> None:
        self._costs = costs

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._costs.reserve_in_thread(run_id, _Prompt.of(_messages(messages), metadata, kwargs))

    def on_llm_start(
        self,
        serialized: dict[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._costs.reserve_in_thread(run_id, _Prompt.of(prompts, metadata, kwargs))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        self._costs.settle_answer(run_id, response)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        status = status_of(error)  # what is refused costs nothing
        self._costs.settle(run_id, 0.0 if status is not None and status >= 400 else None)


class _Loops(AsyncCallbackHandler):
    """Reserves for calls in event loops. LangChain calls it in threads too, but raises nothing there."""

    raise_error = True
    run_inline = True

    def __init__(self, costs: AgentCosts) -> None:
        self._costs = costs

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        await self._costs.areserve(run_id, _Prompt.of(_messages(messages), metadata, kwargs))

    async def on_llm_start(
        self,
        serialized: dict[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        await self._costs.areserve(run_id, _Prompt.of(prompts, metadata, kwargs))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
