"""The requests to one model: their places, retries and money, and when no more are sent."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, TypeVar

from graphrag_eval_lc.cost_limit import CostLimit, CostLimitError, Reservation
from graphrag_eval_lc.error_bodies import unsaid_body
from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.event_loop.http_connections import close_connections_of_resting_loops
from graphrag_eval_lc.judges.endpoint import is_failed_generation, refuses_part
from graphrag_eval_lc.judges.model_interface import BrokenAnswerError, CallPool, GivenUpError, NotAskedError, Usage
from graphrag_eval_lc.judges.scores import note_settled_cost
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.prices import dollars
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
from graphrag_eval_lc.texts import visible

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
_ROUNDED = 1 + 1e-9
_MOST_REFUSALS = 3  # in a row; then nothing more is asked
_BILLED_PERHAPS = frozenset({408, 499, 504, 524})  # a proxy gave up, and the model perhaps did not


@dataclass(slots=True)
class RequestCosts:
    """What the requests to one model may cost, and did.

    Until the model has answered once, one request to it is sent at a time where there is a limit: what it bills may
    be more than its bound, as of a server that takes no ``max_tokens``, and is seen in the first answer.

    Attributes:
        limit: The money, which all models of a run share.
        cost_of: Returns the USD of usages; None where they cannot be priced.
        most_cost_of: Returns the most USD of a request of some size; None where nothing bounds it.
        name: The model's name in messages.
        model: Its name at the provider, under which the config prices it.
        keep_assumed: Told the USD that are counted for a request whose cost nobody knows.
        excess: What a request did cost for each USD of its bound, at most; at least 1.
        is_proven: Whether the model has answered.
    """

    limit: CostLimit
    cost_of: Callable[[Iterable[Usage]], float | None]
    most_cost_of: Callable[[RequestSize], float | None]
    name: str
    model: str
    keep_assumed: Callable[[float], None]
    excess: float = 1.0
    is_proven: bool = False

    async def areserve(self, size: Callable[[], RequestSize]) -> tuple[Reservation, RequestSize | None]:
        """Reserve the most that a request can cost, and return the reservation with the request's size.

        Raises:
            NotAskedError: It does not fit into the limit.
        """
        bound = None if self.limit.most is None else size()
        most = 0.0 if bound is None else self.most_cost_of(bound)
        try:
            unbounded = self._unbounded(bound) if most is None and bound is not None else ""
            return await self.limit.areserve(
                None if most is None else most * self.excess, unbounded=unbounded, is_alone=not self.is_proven
            ), bound
        except CostLimitError as problem:
            raise NotAskedError(f"{self.name} is not asked: {problem}") from None

    def settle(
        self, reservation: Reservation, size: RequestSize | None, usages: Sequence[Usage], *, was_sent: bool
    ) -> None:
        """Settle what a request did cost.

        Args:
            reservation: What it reserved.
            size: Its size, where there is a limit.
            usages: What the provider reported; empty for a request without an answer.
            was_sent: Whether the provider may have worked for it.
        """
        cost = self.cost_of(usages) if usages else None if was_sent else 0.0
        if usages:
            self.is_proven = True
        if size is not None and cost is not None:
            self._learn_from(cost, size, usages)
        reservation.settle(cost)
        note_settled_cost(reservation.amount if cost is None else cost)
        if cost is None and reservation.amount:
            self.keep_assumed(reservation.amount)

    def _learn_from(self, cost: float, size: RequestSize, usages: Sequence[Usage]) -> None:
        """Reserve more from here on, where a request did cost more than its bound."""
        most = self.most_cost_of(size) or 0.0
        if cost <= most * self.excess * _ROUNDED or not most:
            return
        self.excess = cost / most
        reported = (sum(usage.input_tokens or 0 for usage in usages), sum(usage.output_tokens or 0 for usage in usages))
        told = (
            f"{self.name} took {dollars(cost)} for a request that should cost {dollars(most)} at most: it reported "
            f"{reported[0]:,} input tokens for {size.input_tokens:,} bytes, and {reported[1]:,} output tokens where "
            f"{size.output_tokens or 0:,} were allowed. The budget of money may have been passed, and from here on "
            "as much is reserved"
        )
        _log.warning("%s", visible(told))

    def _unbounded(self, size: RequestSize) -> str:
        if size.output_tokens is None:
            return f"nothing bounds the answers of {self.name} (set its max_tokens)"
        return f"no price is known for {self.model} (prices in the config can give it)"


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
            size: Returns the most tokens of an attempt; called where there is a limit of costs.

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
                reservation, bound = await self._costs.areserve(size)
                return await self._settled(request, paid, reservation, bound)

    async def _settled(
        self,
        request: Callable[[list[Usage]], Awaitable[Outcome]],
        paid: list[Usage],
        reservation: Reservation,
        bound: RequestSize | None,
    ) -> Outcome:
        """Send a request, and settle what it cost, whatever comes of it."""
        usages: list[Usage] = []
        was_sent = True
        try:
            return await self._in_time(lambda: request(usages))
        except Exception as problem:
            was_sent = _is_billed_perhaps(problem)
            raise
        finally:
            paid += usages
            self._costs.settle(reservation, bound, usages, was_sent=was_sent)

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
