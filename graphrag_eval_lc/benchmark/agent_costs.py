"""The money of an agent's model calls: reserved before each is sent, as far as callbacks tell what it can cost."""

import json
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.llm_calls import model_name, model_usage, result_model_name
from graphrag_eval_lc.cost_limit import CostLimit, CostLimitError, Reservation
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metrics import OUTPUT_TOKENS
from graphrag_eval_lc.retrying import status_of

_BOUND_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict", "ls_max_tokens")
_PROVIDERS_TOKENS = 500  # what providers add to a prompt with tools


class SpentAnswers:
    """The longest answers so far, by model: what an answer without a bound is taken to need.

    Example:
        >>> answers = SpentAnswers()
        >>> answers.note("m", 300)
        >>> answers.longest("m"), answers.longest("n")
        (300, 0)
    """

    def __init__(self) -> None:
        self._longest: dict[str, int] = {}

    def note(self, model: str, tokens: int) -> None:
        """Note the tokens of an answer."""
        self._longest[model] = max(tokens, self._longest.get(model, 0))

    def longest(self, model: str) -> int:
        """Return the tokens of a model's longest answer; 0 while there is none."""
        return self._longest.get(model, 0)


class AgentCosts(BaseCallbackHandler):
    """Keeps the model calls of one attempt within the limit of costs: what does not fit is not sent.

    The bytes of a prompt bound its tokens, and ``max_tokens`` of the agent's model its answer. A model without one is
    taken to answer no longer than it did so far, so that the limit can be passed by what it answers more. Calls of
    models without a price, and those that no callback tells of, are not bounded here.

    Args:
        limit: The money of the run.
        pricing: The prices.
        answers: The longest answers so far, of all attempts.

    Attributes:
        counted: USD that the limit has counted for the attempt.
        refusal: Why a call was not sent; None while all were.
    """

    raise_error = True  # else the call would be sent
    run_inline = True

    def __init__(self, limit: CostLimit, pricing: Pricing, answers: SpentAnswers) -> None:
        self.counted = 0.0
        self.refusal: str | None = None
        self._limit = limit
        self._pricing = pricing
        self._answers = answers
        self._open: dict[UUID, tuple[Reservation, str]] = {}
        self._lock = Lock()

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Reserve what a call can cost.

        Raises:
            CostLimitError: It does not fit.
        """
        texts = [[message.content, message.additional_kwargs] for batch in messages for message in batch]
        self._reserve(run_id, texts, kwargs.get("invocation_params"), metadata)

    def on_llm_start(
        self,
        serialized: dict[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Do as ``on_chat_model_start``, for models that complete texts."""
        self._reserve(run_id, prompts, kwargs.get("invocation_params"), metadata)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle what a call did cost."""
        usage: Mapping[str, Any] = {**model_usage(response)}
        with self._lock:
            reservation, asked = self._open.get(run_id, (None, ""))
        if reservation is None:
            return
        name = result_model_name(response) or asked
        cost = self._pricing.cost_of_usage({**usage, "model": name}) if usage else None
        if usage and cost is None:
            cost = self._pricing.cost_of_usage({**usage, "model": asked})
        self._answers.note(asked, usage.get(OUTPUT_TOKENS) or 0)
        self._settle(run_id, cost)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a call that failed: nothing where it was refused, the most where nobody knows."""
        status = status_of(error)
        self._settle(run_id, 0.0 if status is not None and status >= 400 else None)

    def end(self) -> None:
        """Settle the calls that did not end, with the most that they can cost."""
        for run_id in list(self._open):
            self._settle(run_id, None)

    def _reserve(self, run_id: UUID, texts: Sequence[Any], params: Any, metadata: Mapping[str, Any] | None) -> None:
        name = model_name(params, metadata) or (metadata or {}).get("ls_model_name") or ""
        prompt = json.dumps([texts, params], ensure_ascii=False, default=str)
        places = [place for place in (params, metadata) if isinstance(place, Mapping)]
        bounds = (_count(place.get(key)) for place in places for key in _BOUND_KEYS)
        bound = next((tokens for tokens in bounds if tokens is not None), None)
        most = self._pricing.most_cost(
            name,
            input_tokens=len(prompt.encode("utf-8", "surrogatepass")) + _PROVIDERS_TOKENS,
            output_tokens=self._answers.longest(name) if bound is None else bound,
            provider=(metadata or {}).get("ls_provider"),
        )
        if most is None:
            return
        try:
            reservation = self._limit.reserve(most)
        except CostLimitError as problem:
            self.refusal = str(problem)
            self._limit.close(self.refusal)
            raise
        with self._lock:
            self._open[run_id] = reservation, name

    def _settle(self, run_id: UUID, cost: float | None) -> None:
        with self._lock:
            reservation, _ = self._open.pop(run_id, (None, ""))
            if reservation is not None:
                reservation.settle(cost)
                self.counted += reservation.amount if cost is None else cost


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
