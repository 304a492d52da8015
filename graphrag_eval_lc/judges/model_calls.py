"""The requests to one model: each in a place of the run's pool, in bounded time, and sent again where that helps."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.event_loop.http_connections import close_connections_of_resting_loops
from graphrag_eval_lc.event_loop.stalls import timeout_beside_stalls
from graphrag_eval_lc.judges.call_pool import CallPool
from graphrag_eval_lc.judges.judge_problems import BrokenAnswerError
from graphrag_eval_lc.retrying import RetryPolicy, is_rate_limit, is_worth_a_retry, retry_after_of

Outcome = TypeVar("Outcome")

FIRST_WAIT_SEC = 0.5


class ModelCalls:
    """The requests to one model.

    Rate limits, server errors, timeouts, lost connections and broken answers are retried, after a wait that doubles
    and is as long as the server asks at least. No place is held meanwhile. After a rate limit with a Retry-After
    nothing else is sent to this model before that time either.

    Args:
        pool: The places.
        max_retries: How many requests may follow the first.
        timeout: The longest that a request may take, in seconds, longer where others block the event loop meanwhile.
    """

    def __init__(self, pool: CallPool, *, max_retries: int, timeout: float) -> None:
        self._pool = pool
        self._timeout = timeout
        self._policy = RetryPolicy(max_retries, _is_worth_a_retry, FIRST_WAIT_SEC)
        self._resumes_at = 0.0

    async def outcome_of(self, request: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Give what a request gives in the end.

        Args:
            request: Sends it; called once for each attempt.

        Raises:
            Exception: What the last attempt failed with; a JudgeError at once.
        """
        close_connections_of_resting_loops()
        for attempt in count(1):
            try:
                return await self._in_place(request)
            except JudgeError:
                raise
            except Exception as problem:
                wait = self._policy.wait_before_retry(attempt, problem)
                if wait is None:
                    if attempt > 1:
                        problem.add_note(f"after {attempt} attempts")
                    raise
                if is_rate_limit(problem) and retry_after_of(problem):
                    self._resumes_at = max(self._resumes_at, time.monotonic() + wait)
            await asyncio.sleep(wait)
        raise AssertionError("count has no end")

    async def _in_place(self, request: Callable[[], Awaitable[Outcome]]) -> Outcome:
        while True:
            await asyncio.sleep(max(0.0, self._resumes_at - time.monotonic()))
            async with self._pool.place():
                if self._resumes_at <= time.monotonic():
                    return await self._in_time(request)

    async def _in_time(self, request: Callable[[], Awaitable[Outcome]]) -> Outcome:
        try:
            async with timeout_beside_stalls(self._timeout) as deadline:
                return await request()
        except TimeoutError:
            if deadline.expired():
                raise TimeoutError(f"no answer within {self._timeout:g} s") from None
            raise


def _is_worth_a_retry(error: BaseException) -> bool:
    return isinstance(error, BrokenAnswerError) or is_worth_a_retry(error)
