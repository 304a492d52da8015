"""The base of models that judges ask: cache, prices, concurrency limit, retries and budget."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any, TypedDict, TypeVar, Unpack
from weakref import WeakValueDictionary

from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.budget import Budget, BudgetSpentError
from graphrag_eval_lc.capture.llm_calls import message_result, model_call
from graphrag_eval_lc.error_bodies import unsaid_body, words_of
from graphrag_eval_lc.errors import JudgeError, RunFolderError
from graphrag_eval_lc.judges.cache import PAID_IN_VAIN, JudgeCache, request_digest
from graphrag_eval_lc.judges.model_interface import (
    Asked,
    BrokenAnswerError,
    CallPool,
    GivenUpError,
    NotAskedError,
    TooLongError,
    UnusableAnswerError,
    Usage,
    paid_error,
    total_cost,
)
from graphrag_eval_lc.judges.request_plan import RequestPlan, RequestSize, size_of
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metrics import COST
from graphrag_eval_lc.retrying import (
    RetryPolicy,
    is_rate_limit,
    is_too_long,
    is_worth_a_retry,
    masked_error_text,
    refuses_everything,
    retry_after_of,
    status_of,
    was_never_sent,
)
from graphrag_eval_lc.texts import visible

Outcome = TypeVar("Outcome")

_log = logging.getLogger(__name__)

# Counts how many times the same request is made on purpose: each number has a separate answer in the cache.
ask_number: ContextVar[int] = ContextVar("ask_number", default=1)

FIRST_WAIT_SEC = 0.5
_MOST_REFUSALS = 3  # in a row; then nothing more is asked
_BILLED_PERHAPS = frozenset({408, 499, 504, 524})  # a proxy gave up, but the model may have answered
_HINTS = {
    401: "Check the API key.",
    403: "Check what the API key may do.",
    404: "Check the name of the model, and base_url.",
}


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A model: its name in messages and the cache, its name at the provider, the provider, and its settings."""

    name: str
    model: str
    provider: str | None
    settings: Mapping[str, Any]


class AskingOptions(TypedDict, total=False):
    """How a model is asked; an option that is missing or None has the default.

    Attributes:
        pool: Limits concurrent requests. Default: 16.
        pricing: The prices. Default: those of genai-prices.
        cache: Stores answers. Default: no cache.
        max_retries: How many retries may follow a failed request. Default: 3.
        timeout: The timeout of a request in seconds. Default: 120.
        budget: What all requests may spend. Default: no limit.
        plan: Counts requests instead of sending them. Default: they are sent.
    """

    pool: CallPool | None
    pricing: Pricing | None
    cache: JudgeCache | None
    max_retries: int
    timeout: float
    budget: Budget | None
    plan: RequestPlan | None


class AskedModel:
    """The base of models that judges ask.

    Rate limits, server errors, timeouts, lost connections and broken answers are retried after a wait, which doubles
    each time and is at least what the server asks for. A waiting request does not occupy a slot. After a rate limit
    with Retry-After, nothing is sent to this model before that time. If the server refuses three requests in a row for
    a reason that applies to all (wrong key, unknown model, used up quota), no more are sent: ``given_up`` says why.
    """

    def __init__(self, described: ModelDescription, **options: Unpack[AskingOptions]) -> None:
        self.described = described
        self.name = described.name
        self.given_up: str | None = None
        self._pricing = options.get("pricing") or Pricing()
        self._pricing.load(described.model, described.provider)  # now, so that the first answers need not wait
        self._cache = options.get("cache")
        self._takes_records = self._cache is not None
        self._plan = options.get("plan")
        self._pool = options.get("pool") or CallPool(16)
        self._budget = options.get("budget") or Budget()
        self._timeout = options.get("timeout", 120.0)
        self._policy = RetryPolicy(options.get("max_retries", 3), _is_worth_a_retry, FIRST_WAIT_SEC)
        self._resumes_at = 0.0
        self._refusals = 0
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
        self._counted: set[str] = set()

    # --- the cache ---

    async def _through_cache(
        self,
        asked: Mapping[str, Any],
        read: Callable[[Mapping[str, Any]], Outcome],
        request: Callable[[list[Usage]], Awaitable[tuple[dict[str, Any], Outcome]]],
        planned: Callable[[RequestPlan, str], Outcome],
    ) -> Asked[Outcome]:
        """Return an answer from the cache, or a new one; concurrent equal requests wait for the first one.

        ``asked`` is everything that the answer depends on, apart from the model's settings. ``read`` returns the answer
        in a record, ``request`` a new record with its answer, and ``planned`` an example if nothing is sent.
        """
        number = ask_number.get()
        again = {} if number == 1 else {"ask_number": number}
        digest = request_digest(self.name, {**asked, **again, "settings": self.described.settings})
        if (known := self._known(digest, read)) is not None:
            return known
        if self._plan is not None:
            return Asked(planned(self._plan, digest if self._cache is not None else ""), 0.0, is_planned=True)
        if self._cache is None:
            return await self._new(digest, request)
        async with self._locks.setdefault((id(asyncio.get_running_loop()), digest), asyncio.Lock()):
            return self._known(digest, read) or await self._new(digest, request)

    def _known(self, digest: str, read: Callable[[Mapping[str, Any]], Outcome]) -> Asked[Outcome] | None:
        """Return the cached answer, with its original cost; 0 from the second use of a digest on."""
        record = self._cache.get(digest) if self._cache is not None else None
        if record is None:
            return None
        try:
            value = read(record)
            usages = tuple({**usage} for usage in record["usages"])
        except (ValueError, KeyError, TypeError, BrokenAnswerError):  # changed by hand
            return None
        if self._plan is not None:
            self._plan.known += 1
        cost = 0.0 if digest in self._counted else self._cost(usages)
        self._counted.add(digest)
        return Asked(value, cost, usages, is_cached=True)

    async def _new(
        self, digest: str, request: Callable[[list[Usage]], Awaitable[tuple[dict[str, Any], Outcome]]]
    ) -> Asked[Outcome]:
        """Return a new answer and cache it; raise any failure as an UnusableAnswerError with the cost."""
        paid: list[Usage] = []
        try:
            record, value = await request(paid)
        except asyncio.CancelledError:
            self._paid_in_vain(paid)
            raise
        except JudgeError as problem:
            raise paid_error(problem, [self._paid_in_vain(paid)]) from problem.__cause__
        except Exception as problem:
            raise self._failure(problem, self._paid_in_vain(paid)) from problem
        cost = self._cost(paid)
        self._counted.add(digest)
        record["usages"] = paid
        self._keep(digest, record if cost is None else {**record, COST: cost})
        return Asked(value, cost, tuple(paid))

    def _failure(self, problem: Exception, cost: float | None) -> UnusableAnswerError:
        text = _refusal_text(problem)
        if is_too_long(problem):
            hint = "Judge with a model that takes longer texts, or leave the metric out (judges: metrics)."
            return TooLongError(f"the texts are too long for {self.name}: {text}", hint=hint, cost=cost)
        text = ", ".join((text, *getattr(problem, "__notes__", ())))
        hint = _HINTS.get(status_of(problem) or 0, "")
        return UnusableAnswerError(f"{self.name} could not be asked: {text}", hint=hint or None, cost=cost)

    def _keep(self, digest: str, record: Mapping[str, Any]) -> None:
        """Write to the cache; if that fails, the answer is still used, and no further answers are cached."""
        if self._cache is None or not self._takes_records:
            return
        try:
            self._cache.put(digest, record)
        except RunFolderError as problem:
            self._takes_records = False
            _log.warning("%s", visible(f"answers of {self.name} are not kept from here on: {problem}"))

    # --- money ---

    def _cost(self, usages: Iterable[Usage]) -> float | None:
        return usages_cost(usages, self._pricing, model=self.described.model, provider=self.described.provider)

    def _most_cost(self, size: RequestSize) -> float | None:
        tokens = {"input_tokens": size.input_tokens, "output_tokens": size.output_tokens or 0}
        return self._pricing.most_cost(self.described.model, provider=self.described.provider, **tokens)

    def _paid_in_vain(self, usages: Sequence[Usage]) -> float | None:
        """Return the cost of unusable answers, and record it in the cache for the budget of a later session."""
        costs = [self._cost([usage]) for usage in usages]
        if known := sum(filter(None, costs)):
            self._keep(PAID_IN_VAIN, {COST: known})
        return total_cost(costs)

    def _check_budget(self) -> None:
        """Raise if nothing is left of the budget, or if the cost of a request is unknown."""
        if self._budget.max_cost is not None and self._most_cost(RequestSize(0, 0)) is None:
            unpriced = f"no price is known for {self.described.model} (add it to prices in the config)"
            self._budget.end("max_cost", f"a budget of money cannot be kept: {unpriced}")
        try:
            self._budget.check()
        except BudgetSpentError as problem:
            raise NotAskedError(f"{self.name} is not asked: {problem}") from None

    def _spend(self, usages: Sequence[Usage], request: Mapping[str, Any], *, was_sent: bool) -> None:
        """Count the cost of a request; if it may be billed but reports no usage, count the most that it can cost."""
        cost = self._cost(usages) if usages else None if was_sent else 0.0
        if cost is None and self._budget.max_cost is not None:
            cost = self._most_cost(size_of(request))
            if cost:
                self._keep(PAID_IN_VAIN, {COST: cost})
        self._budget.spend(cost or 0.0)

    # --- requests ---

    async def _sent(
        self, request: Mapping[str, Any], send: Callable[[list[Usage]], Awaitable[Outcome]], paid: list[Usage]
    ) -> Outcome:
        """Return the outcome of a request, with retries; raise the last error.

        ``send`` is called for each attempt with a list, to which it adds the reported usage; ``paid`` collects all. The
        body of the request bounds its cost.
        """
        for attempt in count(1):
            try:
                outcome = await self._in_slot(request, send, paid)
            except NotAskedError:
                raise
            except JudgeError:  # the model did answer, so this is not a refusal
                self._refusals = 0
                raise
            except Exception as problem:
                self._count_refusal(problem)
                wait = self._policy.wait_before_retry(attempt, problem)
                if wait is None or (is_failed_generation(problem) and attempt > 1):
                    if attempt > 1:
                        problem.add_note(f"after {attempt} attempts")
                    raise
                if is_rate_limit(problem) and retry_after_of(problem):
                    self._resumes_at = max(self._resumes_at, time.monotonic() + wait)
            else:
                self._refusals = 0
                return outcome
            await asyncio.sleep(wait)
        raise AssertionError("count has no end")

    def _count_refusal(self, problem: Exception) -> None:
        self._refusals = self._refusals + 1 if refuses_everything(problem) else 0
        if self._refusals >= _MOST_REFUSALS and self.given_up is None:
            hint = _HINTS.get(status_of(problem) or 0)
            self.given_up = (
                f"{self.name} refused {self._refusals} requests in a row and is asked nothing more: "
                f"{_refusal_text(problem)}" + (f" ({hint[0].lower()}{hint[1:].removesuffix('.')})" if hint else "")
            )

    async def _in_slot(
        self, request: Mapping[str, Any], send: Callable[[list[Usage]], Awaitable[Outcome]], paid: list[Usage]
    ) -> Outcome:
        """Wait for a slot, send a request, and count its cost, whether or not it succeeds."""
        while True:
            await asyncio.sleep(max(0.0, self._resumes_at - time.monotonic()))
            async with self._pool.slot():
                if self._resumes_at > time.monotonic():
                    continue
                if self.given_up is not None:
                    raise GivenUpError(self.given_up)
                self._check_budget()
                usages: list[Usage] = []
                was_sent = True
                try:
                    async with asyncio.timeout(self._timeout) as deadline:
                        return await send(usages)
                except TimeoutError:
                    if deadline.expired():
                        raise TimeoutError(f"no answer within {self._timeout:g} s") from None
                    raise
                except Exception as problem:
                    was_sent = _is_billed_perhaps(problem)
                    raise
                finally:
                    paid += usages
                    self._spend(usages, request, was_sent=was_sent)


# --- what errors mean ---

SCHEMA_WORDS = r"schema|structured|grammar|samplers|guided|constrained|response.?format"
_REFUSED_IN_500 = re.compile(SCHEMA_WORDS, re.IGNORECASE)
_FAILED_GENERATION = re.compile(r"json_validate_failed|tool_use_failed")


def refuses_part(error: BaseException) -> bool:
    """Return whether an endpoint may have refused a part of the request that can be left out.

    A text that is too long is not such a part, whatever else the message names. Some local servers answer 500 if they
    cannot convert the schema into a grammar; a retry does not help.
    """
    if is_too_long(error) or is_failed_generation(error):
        return False
    status = status_of(error)
    return status in {400, 404, 415, 422, 501} or (status == 500 and bool(_REFUSED_IN_500.search(words_of(error))))


def is_failed_generation(error: BaseException) -> bool:
    """Return whether an endpoint rejected what the model wrote, not the request: another answer may be accepted."""
    return status_of(error) == 400 and _FAILED_GENERATION.search(words_of(error)) is not None


def _is_billed_perhaps(error: Exception) -> bool:
    """Return whether a request that failed without reporting usage may have cost something; refusals are not billed."""
    status = status_of(error)
    return not was_never_sent(error) if status is None else status < 400 or status in _BILLED_PERHAPS


def _is_worth_a_retry(error: BaseException) -> bool:
    if isinstance(error, BrokenAnswerError) and error.status_code is None:
        return True
    return is_failed_generation(error) or (is_worth_a_retry(error) and not refuses_part(error))


def _refusal_text(error: BaseException) -> str:
    """Return the message of a failed request and what only the response body says, with secrets masked."""
    unsaid = masked_text(unsaid_body(error))
    return f"{masked_error_text(error)}: {unsaid}" if unsaid else masked_error_text(error)


# --- usage ---


def usage_in(body: Mapping[str, Any]) -> Usage:
    """Return the usage in the body of an OpenAI API response.

    Example:
        >>> usage_in({"model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
        {'input_tokens': 9, 'output_tokens': 2, 'total_tokens': 11, 'model': 'm'}
    """
    output = {"model": body.get("model"), "usage": body.get("usage")}
    return {**model_call(LLMResult(generations=[], llm_output=output), has_ended=False)}


def usage_of(message: AIMessage) -> Usage:
    """Return the usage in a message of a LangChain chat model."""
    return {**model_call(message_result(message), has_ended=False)}


def usages_cost(usages: Iterable[Usage], pricing: Pricing, *, model: str, provider: str | None) -> float | None:
    """Return the cost of requests in USD; None if one of them cannot be priced.

    The price of ``model``, which was requested, takes precedence over that of the model that answered, as a local
    server may report any name. If the config prices only the model that answered, that price is used.
    """
    costs: list[float | None] = []
    for usage in usages:
        names = dict.fromkeys((model, usage.get("model") or model))
        ordered = sorted(names, key=lambda name: not pricing.is_overridden(name))
        unpriced = names.keys() & pricing.unpriced
        costs.append(None)
        for name in ordered:
            costs[-1] = pricing.cost_of_usage({**usage, "model": name}, provider)
            if costs[-1] is not None:
                # Do not report the other name as unpriced, unless it was before.
                pricing.unpriced.difference_update(names.keys() - unpriced)
                break
    return total_cost(costs)
