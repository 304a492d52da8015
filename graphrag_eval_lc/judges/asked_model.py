"""The base of all models of judges: settings of the config, requests with retries, shared answers, tokens and costs."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, TypeVar, Unpack

from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.capture.llm_calls import message_result, model_usage, result_model_name
from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.errors import JudgeError, RunFolderError
from graphrag_eval_lc.judges.cache import PAID_IN_VAIN, AnswerCache, request_digest
from graphrag_eval_lc.judges.model_calls import HINTS, ModelCalls, RequestCosts, RequestSize, refusal_text
from graphrag_eval_lc.judges.model_interface import (
    Asked,
    CallPool,
    Embedded,
    TooLongError,
    UnusableAnswerError,
    Usage,
    total_cost,
    unusable_answer,
)
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.judges.scores import note_known_cost
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metrics import COST, INPUT_TOKENS, OUTPUT_TOKENS
from graphrag_eval_lc.retrying import is_too_long, status_of
from graphrag_eval_lc.texts import visible

Outcome = TypeVar("Outcome")
Answered = TypeVar("Answered", bound=Asked[Any] | Embedded)

_log = logging.getLogger(__name__)

_DEFAULT_CONCURRENCY = 16
_DEFAULT_RETRIES = 3
_DEFAULT_TIMEOUT_SEC = 120.0


class AskingOptions(TypedDict, total=False):
    """How a model is asked.

    Attributes:
        pool: Bounds the requests at once; None, the default: 16.
        pricing: The prices; None, the default: those of genai-prices.
        cache: Keeps answers; None, the default: none is kept.
        max_retries: How many requests may follow a failed one; 3 by default.
        timeout: The longest time of a request in seconds; 120 by default.
        budget: What all requests may spend; None, the default: no limit.
        plan: Counts requests in place of sending them; None, the default: they are sent.
    """

    pool: CallPool | None
    pricing: Pricing | None
    cache: AnswerCache | None
    max_retries: int
    timeout: float
    budget: Budget | None
    plan: RequestPlan | None


@dataclass(slots=True)
class _Flight:
    """A request in flight, and the number of its waiters."""

    task: asyncio.Task[Any]
    waiters: int = 0


class AskedModel:
    """A model that judges ask.

    Args:
        name: Its name in messages and in the cache.
        model: Its name at the provider.
        provider: Who runs it.
        settings: All else that its answers depend on.
        has_own_clients: Whether no other event loop uses its HTTP connections.
        **options: How it is asked.
    """

    def __init__(
        self,
        name: str,
        model: str,
        provider: str | None,
        settings: Mapping[str, Any],
        *,
        has_own_clients: bool = False,
        **options: Unpack[AskingOptions],
    ) -> None:
        self.name = name
        self._model = model
        self._provider = provider
        self._settings = settings
        self._pricing = options.get("pricing") or Pricing()
        self._pricing.load(model, provider)  # not with the first answers, which would wait to be written
        self._cache = options.get("cache")
        self._plan = options.get("plan")
        self._takes_records = self._cache is not None
        self._in_flight: dict[tuple[asyncio.AbstractEventLoop, str], _Flight] = {}
        self._counted: set[str] = set()
        self._calls = ModelCalls(
            options.get("pool") or CallPool(_DEFAULT_CONCURRENCY),
            max_retries=options.get("max_retries", _DEFAULT_RETRIES),
            timeout=options.get("timeout", _DEFAULT_TIMEOUT_SEC),
            has_own_clients=has_own_clients,
            costs=RequestCosts(
                options.get("budget") or Budget(),
                self._cost,
                self._most_cost,
                name,
                model,
                keep_assumed=self._keep_in_vain,
            ),
        )

    @property
    def given_up(self) -> str | None:
        """Why the model is asked nothing more; None while it is asked."""
        return self._calls.given_up

    def _digest(self, asked: Mapping[str, Any]) -> str:
        """Return the cache's key of a request; an empty one without a cache."""
        return request_digest(self.name, {**asked, "settings": self._settings}) if self._cache is not None else ""

    def _record(self, digest: str) -> Mapping[str, Any] | None:
        return self._cache.get(digest) if self._cache is not None else None

    def _keep(self, digest: str, record: Mapping[str, Any], cost: float | None) -> None:
        """Keep a paid answer and its cost."""
        self._counted.add(digest)
        self._kept(digest, record if cost is None else {**record, COST: cost})

    def _kept(self, digest: str, record: Mapping[str, Any]) -> None:
        """Write into the cache; if that fails, the answer is used all the same, and no further one is kept."""
        if self._cache is None or not self._takes_records:
            return
        try:
            self._cache.put(digest, record)
        except RunFolderError as problem:
            self._takes_records = False
            _log.warning("%s", visible(f"answers of {self.name} are not kept from here on: {problem}"))

    async def _shared(self, digest: str, request: Callable[[], Coroutine[Any, Any, Answered]]) -> Answered:
        """Return the outcome of a request, or that of an equal one in flight, at no further cost.

        Without a cache every request is sent. A request is cancelled with its last waiter.

        Raises:
            UnusableAnswerError: There is no usable answer; the first waiter's error has the cost.
        """
        if self._cache is None:
            return await request()
        key = asyncio.get_running_loop(), digest
        flight = self._in_flight.get(key)
        is_shared = flight is not None
        if flight is None:
            flight = self._in_flight[key] = _Flight(asyncio.create_task(request()))
        flight.waiters += 1
        try:
            answered: Answered = await asyncio.shield(flight.task)
            return replace(answered, cost=0.0, is_cached=True) if is_shared else answered
        except UnusableAnswerError as problem:
            if not is_shared:
                raise
            raise type(problem)(problem.what, hint=problem.hint) from problem.__cause__
        finally:
            flight.waiters -= 1
            if (flight.task.done() or not flight.waiters) and self._in_flight.get(key) is flight:
                del self._in_flight[key]
                flight.task.cancel()

    def _cost(self, usages: Iterable[Usage]) -> float | None:
        return usages_cost(usages, self._pricing, model=self._model, provider=self._provider)

    def _most_cost(self, size: RequestSize) -> float | None:
        return self._pricing.most_cost(
            self._model,
            input_tokens=size.input_tokens,
            output_tokens=size.output_tokens or 0,
            provider=self._provider,
        )

    def _known_cost(self, usages: Iterable[Usage], digest: str | None = None) -> float | None:
        """Return what a cached answer once cost; 0 from the second use of a digest on."""
        if self._plan is not None:
            self._plan.known += 1
        if digest in self._counted:
            return 0.0
        if digest is not None:
            self._counted.add(digest)
        cost = self._cost(usages)
        note_known_cost(cost)
        return cost

    async def _outcome(self, request: Awaitable[Outcome], paid: list[Usage]) -> Outcome:
        """Return the outcome of a request; raise any failure as an UnusableAnswerError with the cost."""
        try:
            return await request
        except asyncio.CancelledError:
            self._paid(paid)
            raise
        except JudgeError as problem:
            raise unusable_answer(problem, self._paid(paid), paid) from problem.__cause__
        except Exception as problem:
            if is_too_long(problem):
                raise TooLongError(
                    f"the texts are too long for {self.name}: {refusal_text(problem)}",
                    hint="Judge with a model that takes longer texts, or leave the metric out (judges: metrics).",
                    cost=self._paid(paid),
                    usages=paid,
                ) from problem
            text = ", ".join((refusal_text(problem), *getattr(problem, "__notes__", ())))
            raise UnusableAnswerError(
                f"{self.name} could not be asked: {text}",
                hint=HINTS.get(status_of(problem) or 0),
                cost=self._paid(paid),
                usages=paid,
            ) from problem

    def _paid(self, usages: Sequence[Usage]) -> float | None:
        """Return what was paid in vain, which the cache keeps for the limit of a later session."""
        costs = [self._cost([usage]) for usage in usages]
        self._keep_in_vain(sum(filter(None, costs)))
        return total_cost(costs)

    def _keep_in_vain(self, cost: float) -> None:
        if cost:
            self._kept(PAID_IN_VAIN, {COST: cost})


def usage_in(body: Mapping[str, Any]) -> Usage:
    """Return the usage in the body of an OpenAI API response.

    Example:
        >>> usage = usage_in({"model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
        >>> usage.model, usage.input_tokens, usage.output_tokens
        ('m', 9, 2)
    """
    return _usage(LLMResult(generations=[], llm_output={"model": body.get("model"), "usage": body.get("usage")}))


def usage_of(message: AIMessage) -> Usage:
    """Return the usage in a message of a LangChain chat model."""
    return _usage(message_result(message))


def _usage(result: LLMResult) -> Usage:
    tokens = model_usage(result)
    return Usage(
        result_model_name(result),
        tokens.get(INPUT_TOKENS),
        tokens.get(OUTPUT_TOKENS),
        tokens.get("cached_input_tokens"),
        tokens.get("cache_write_input_tokens"),
        tokens.get("cache_write_1h_input_tokens"),
    )


def usages_cost(usages: Iterable[Usage], pricing: Pricing, *, model: str, provider: str | None) -> float | None:
    """Return the USD of requests; None where one of them cannot be priced.

    The price of ``model``, which was asked for, goes before that of the model that answered, since a local server may
    report any name; but not where the config prices the latter alone.
    """
    return total_cost(_cost(usage, pricing, model, provider) for usage in usages)


def _cost(usage: Usage, pricing: Pricing, model: str, provider: str | None) -> float | None:
    names = sorted(
        dict.fromkeys((model, usage.model or model)),
        key=lambda name: not pricing.is_overridden(name),  # names that the config prices come first
    )
    unpriced = set(names) & pricing.unpriced
    for name in names:
        cost = pricing.cost(
            name,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            cache_write_input_tokens=usage.cache_write_input_tokens,
            cache_write_1h_input_tokens=usage.cache_write_1h_input_tokens,
            provider=provider,
        )
        if cost is not None:
            # The other name needs no price, unless it lacked one before.
            pricing.unpriced.difference_update(set(names) - unpriced)
            return cost
    return None


ModelSettings = GenerationConfig | EmbeddingConfig
"""A model of the config."""

# LiteLLM's names of options that no model takes.
LITELLM_OPTIONS = frozenset({"api_base", "drop_params", "num_retries"})


def model_name_of(settings: ModelSettings) -> str:
    """Return the name of a model in messages and in the cache, such as ``openai:gpt-4o-mini``."""
    return f"{settings.provider}:{settings.model}"


def extra_settings(settings: ModelSettings) -> dict[str, Any]:
    """Return what the config says of a model beside the known keys."""
    return settings.model_extra or {}


def given_api_key(settings: ModelSettings) -> str | None:
    """Return the key that the config gives."""
    return settings.api_key.get_secret_value() if settings.api_key is not None else None


def given_base_url(settings: ModelSettings) -> str | None:
    """Return the address that the config gives: ``base_url``, else ``api_base``, LiteLLM's name of it."""
    return settings.base_url or extra_settings(settings).get("api_base") or None


def effective_base_url(settings: ModelSettings) -> str | None:
    """Return the address to ask; None is OpenAI's own. ``OPENAI_BASE_URL`` is read for the provider openai alone."""
    of_environment = os.environ.get("OPENAI_BASE_URL") if settings.provider == "openai" else None
    return given_base_url(settings) or of_environment or None
