"""The requests to one model: their places, retries and money, and when no more are sent."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, TypeVar

from graphrag_eval_lc.budget import Budget, BudgetSpentError
from graphrag_eval_lc.error_bodies import unsaid_body
from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.event_loop.http_connections import close_connections_of_resting_loops
from graphrag_eval_lc.judges.endpoint import is_failed_generation, refuses_part
from graphrag_eval_lc.judges.model_interface import BrokenAnswerError, CallPool, GivenUpError, NotAskedError, Usage
from graphrag_eval_lc.judges.scores import note_settled_cost
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.retrying import (
    RetryPolicy,
    is_rate_limit,
    is_worth_a_retry,
    masked_error_text,
    refuses_everything,
    retry_after_of,
    status_of,
    was_never_sent,
)

Outcome = TypeVar("Outcome")

_log = logging.getLogger(__name__)

HINTS = {
    401: "Check the API key.",
    403: "Check what the API key may do.",
    404: "Check the name of the model, and base_url.",
}
"""What to do about an HTTP status."""


class RequestSize(NamedTuple):
    """The most tokens of a request.

    Attributes:
        input_tokens: Those of the prompt: its UTF-8 bytes, as a token is one byte or more.
        output_tokens: Those of all its answers; None where nothing bounds them.
    """

    input_tokens: int
    output_tokens: int | None


def size_of(body: Mapping[str, Any], output_tokens: int | None, *, overhead: int = 0) -> RequestSize:
    """Return the size of a request with a JSON body, whose syntax is more than what a provider adds to its texts.

    Example:
        >>> size_of({"input": "Wörter"}, 0)
        RequestSize(input_tokens=20, output_tokens=0)
    """
    text = json.dumps(body, ensure_ascii=False, default=str)
    return RequestSize(len(text.encode("utf-8", "surrogatepass")) + overhead, output_tokens)


_ANSWER_BOUNDS = ("max_tokens", "max_completion_tokens")
_ANSWER_COUNTS = ("n", "best_of")


def most_answer_tokens(body: Mapping[str, Any]) -> int | None:
    """Return the most tokens of all answers to a chat request; None where its body does not bound them.

    Example:
        >>> most_answer_tokens({"max_tokens": 100, "n": 3}), most_answer_tokens({"n": 3})
        (300, None)
    """
    bounds = [bound for key in _ANSWER_BOUNDS if isinstance(bound := body.get(key), int)]
    counts = [count for key in _ANSWER_COUNTS if isinstance(count := body.get(key), int)]
    return max(bounds) * max([1, *counts]) if bounds else None


FIRST_WAIT_SEC = 0.5
_MOST_REFUSALS = 3  # in a row; then nothing more is asked
_BILLED_PERHAPS = frozenset({408, 499, 504, 524})  # a proxy gave up, and the model perhaps did not


@dataclass(slots=True)
class RequestCosts:
    """What the requests to one model spend of the budget.

    Attributes:
        budget: What all models of a run may spend.
        cost_of: Returns the USD of usages; None if they cannot be priced.
        most_cost_of: Returns the most USD of a request of some size; None if the model has no price.
        name: The model's name in messages.
        model: Its name at the provider, under which the config prices it.
        keep_assumed: Called with the USD that are counted for a request whose cost nobody knows.
    """

    budget: Budget
    cost_of: Callable[[Iterable[Usage]], float | None]
    most_cost_of: Callable[[RequestSize], float | None]
    name: str
    model: str
    keep_assumed: Callable[[float], None]

    def check(self) -> None:
        """Refuse a request if nothing is left of the budget, or if nobody knows what the request costs.

        Raises:
            NotAskedError: The request is not to be sent.
        """
        if self.budget.max_cost is not None and self.most_cost_of(RequestSize(0, 0)) is None:
            unpriced = f"no price is known for {self.model} (prices in the config can give it)"
            self.budget.end("max_cost", f"a budget of money cannot be kept: {unpriced}")
        try:
            self.budget.check()
        except BudgetSpentError as problem:
            raise NotAskedError(f"{self.name} is not asked: {problem}") from None

    def spend(self, usages: Sequence[Usage], size: Callable[[], RequestSize], *, was_sent: bool) -> None:
        """Count what a request cost; one that may be billed and reports nothing counts as the most it can cost.

        Args:
            usages: What the provider reported; empty for a request without an answer.
            size: Returns the most tokens of the request.
            was_sent: Whether the provider may have worked for it.
        """
        cost = self.cost_of(usages) if usages else None if was_sent else 0.0
        if cost is None and self.budget.max_cost is not None:
            cost = self.most_cost_of(size()) or 0.0
            if cost:
                self.keep_assumed(cost)
        self.budget.spend(cost or 0.0)
        note_settled_cost(cost or 0.0)


class ModelCalls:
    """The requests to one model, with retries.

    Rate limits, server errors, timeouts, lost connections and broken answers are retried after a wait, which doubles
    each time and is at least what the server asks for. A waiting request holds no place. After a rate limit with
    Retry-After nothing is sent to this model before that time. The timeout, in seconds, leaves out the time in which
    others block the event loop. Where the server refuses three requests in a row as it will refuse all (a wrong key,
    an unknown model, a used up quota), nothing more is sent.

    Attributes:
        given_up: Why nothing more is sent; None while requests are sent.
    """

    def __init__(
        self, pool: CallPool, *, max_retries: int, timeout: float, costs: RequestCosts, has_own_clients: bool
    ) -> None:
        self.given_up: str | None = None
        self._pool = pool
        self._timeout = timeout
        self._costs = costs
        self._has_own_clients = has_own_clients
        self._policy = RetryPolicy(max_retries, _is_worth_a_retry, FIRST_WAIT_SEC)
        self._resumes_at = 0.0
        self._refusals = 0

    async def outcome_of(
        self, request: Callable[[list[Usage]], Awaitable[Outcome]], paid: list[Usage], size: Callable[[], RequestSize]
    ) -> Outcome:
        """Return the outcome of a request.

        Args:
            request: Called for each attempt, with a list to which it adds what the provider reports.
            paid: The usages of all attempts are added to it.
            size: Returns the most tokens of an attempt.

        Raises:
            Exception: That of the last attempt; a JudgeError at once.
        """
        if not self._has_own_clients:
            close_connections_of_resting_loops()
        for attempt in count(1):
            try:
                outcome = await self._in_place(request, paid, size)
            except NotAskedError:
                raise
            except JudgeError:  # an answer, though one that cannot be used
                self._refusals = 0
                raise
            except Exception as problem:
                self._count_refusal(problem)
                wait = self._policy.wait_before_retry(attempt, problem)
                if wait is None:
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
        if not refuses_everything(problem):
            self._refusals = 0
            return
        self._refusals += 1
        if self._refusals >= _MOST_REFUSALS and self.given_up is None:
            self.given_up = (
                f"{self._costs.name} refused {self._refusals} requests in a row and is asked nothing more: "
                f"{refusal_text(problem)}{self._hint(problem)}"
            )

    @staticmethod
    def _hint(problem: Exception) -> str:
        hint = HINTS.get(status_of(problem) or 0)
        return "" if hint is None else f" ({hint[0].lower()}{hint[1:].removesuffix('.')})"

    async def _in_place(
        self, request: Callable[[list[Usage]], Awaitable[Outcome]], paid: list[Usage], size: Callable[[], RequestSize]
    ) -> Outcome:
        while True:
            await asyncio.sleep(max(0.0, self._resumes_at - time.monotonic()))
            async with self._pool.place():
                if self._resumes_at > time.monotonic():
                    continue
                if self.given_up is not None:
                    raise GivenUpError(self.given_up)
                self._costs.check()
                return await self._counted(request, paid, size)

    async def _counted(
        self, request: Callable[[list[Usage]], Awaitable[Outcome]], paid: list[Usage], size: Callable[[], RequestSize]
    ) -> Outcome:
        """Send a request, and count what it cost, whatever comes of it."""
        usages: list[Usage] = []
        was_sent = True
        try:
            return await self._in_time(lambda: request(usages))
        except Exception as problem:
            was_sent = _is_billed_perhaps(problem)
            raise
        finally:
            paid += usages
            self._costs.spend(usages, size, was_sent=was_sent)

    async def _in_time(self, request: Callable[[], Awaitable[Outcome]]) -> Outcome:
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                return await request()
        except TimeoutError:
            if deadline.expired():
                raise TimeoutError(f"no answer within {self._timeout:g} s") from None
            raise


def _is_billed_perhaps(error: Exception) -> bool:
    """Return whether a request that failed without a usage may have cost something: what is refused is not billed."""
    status = status_of(error)
    if status is not None:
        return status < 400 or status in _BILLED_PERHAPS
    return not was_never_sent(error)


def _is_worth_a_retry(error: BaseException) -> bool:
    if isinstance(error, BrokenAnswerError) and error.status_code is None:
        return True
    return is_failed_generation(error) or (is_worth_a_retry(error) and not refuses_part(error))


def refusal_text(error: BaseException) -> str:
    """Return what a failed request says, with what only the body of the response says; secrets are masked."""
    unsaid = masked_text(unsaid_body(error))
    return f"{masked_error_text(error)}: {unsaid}" if unsaid else masked_error_text(error)
