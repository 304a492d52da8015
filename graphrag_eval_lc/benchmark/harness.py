"""Asks the samples of a run: several at a time, failed ones again where it is worth it, and none is lost."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, cast

from graphrag_eval_lc.benchmark.attempt_records import (
    completed,
    cost_spent,
    failed_attempt,
    seconds_spent,
    tokens_spent,
)
from graphrag_eval_lc.benchmark.attempts import Asking, Attempt, RunInterruptedError, WorkerLostError
from graphrag_eval_lc.benchmark.concurrency_limit import ConcurrencyLimit
from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.evaluation.events import EventKind, Observer, RunEvent
from graphrag_eval_lc.evaluation.limits import Budget, Fit
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.records import Response
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.retrying import is_rate_limit, retry_after_of
from graphrag_eval_lc.run_folder import Key
from graphrag_eval_lc.texts import counted


class Harness:
    """Asks the samples of one session of a run.

    Args:
        call: How the agent is asked.
        options: The options of the run.
        attempt_prefix: The beginning of the ids of this session's attempts, unlike that of any other.
        total: The number of samples of the whole run.
        stop: Ends the session before its time.
        budget: What the run may spend.
        tell: Told what happens.
        earlier_attempts: Returns the attempts of earlier sessions at a sample, which its response keeps.
        keep: Keeps each response, as soon as it ends.
        take: Given each response once it is kept; it may wait.
        priced: Returns a response with what its model calls cost.
    """

    def __init__(
        self,
        call: Asking,
        options: CheckedOptions,
        *,
        attempt_prefix: str,
        total: int,
        stop: StopSignal,
        budget: Budget,
        tell: Observer,
        earlier_attempts: Callable[[Sample], list[dict[str, Any]]],
        keep: Callable[[Sample, Response], None],
        take: Callable[[Sample, Response], Awaitable[None]],
        priced: Callable[[Response], Response],
    ) -> None:
        self._call = call
        self._options = options
        self._attempt_prefix = attempt_prefix
        self._total = total
        self._stop = stop
        self._budget = budget
        self._tell = tell
        self._earlier_attempts = earlier_attempts
        self._keep = keep
        self._take = take
        self._priced = priced
        self._samples: Sequence[Sample] = ()
        self._begun = 0  # how many of these
        self._asking = 0
        self._errors = 0
        self._counted: dict[Key, float] = {}  # USD that the limit of costs has, of questions that are being asked
        self._some_end = asyncio.Event()
        self._places = ConcurrencyLimit(
            options.max_concurrency,
            options.requests_per_minute,
            lambda limit, reason: self._event("limit_changed", limit=limit, reason=reason),
        )

    async def arun(self, samples: Sequence[Sample]) -> int:
        """Ask samples, and return the number of those that were left out since the run was stopped."""
        self._samples, self._begun = samples, 0
        self._stop.bind(self._stopping)
        timer = asyncio.create_task(self._watch_time())
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._options.max_concurrency, len(samples))):
                    workers.create_task(self._work())
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None  # a file cannot be written, or a caller's function failed: one says it
        finally:
            timer.cancel()
        return self._left

    @property
    def left_out(self) -> Sequence[Sample]:
        """The samples that were not asked since the run was stopped."""
        return self._samples[self._begun :]

    @property
    def _left(self) -> int:
        return len(self._samples) - self._begun

    def look_again(self) -> None:
        """Ask the budget again whether the next question fits."""
        self._some_end.set()

    async def _work(self) -> None:
        while await self._may_start():  # before a place is taken, which a retry may need meanwhile
            epoch = await self._places.take_place(self._stop)
            if epoch is None:
                return
            if not self._left or self._budget.fit(self._asking) is not Fit.GO:  # another one was quicker
                self._places.leave()
                continue
            sample = self._samples[self._begun]
            self._begun += 1
            earlier = self._earlier_attempts(sample)
            self._asking += 1
            try:
                response = await self._ask(sample, epoch, earlier)
            finally:
                self._asking -= 1
                self._some_end.set()
            await self._ended(sample, response, len(earlier))

    async def _may_start(self) -> bool:
        """Return whether there is another sample to ask; wait for those in flight where the budget wants it."""
        while self._left and self._stop.reason is None:
            fit = self._budget.fit(self._asking)
            if fit is Fit.GO:
                return True
            if fit is Fit.END and self._budget.reason is not None:
                self._stop.request(self._budget.reason, self._budget.message)
                return False
            self._some_end.clear()
            await self._some_end.wait()
        return False

    async def _ask(self, sample: Sample, epoch: int | None, earlier: list[dict[str, Any]]) -> Response:
        """Ask one sample until it is answered, is not worth another attempt, or the run stops.

        Args:
            sample: The sample.
            epoch: That of the place that is taken for its first attempt.
            earlier: The attempts of earlier sessions.
        """
        for number in count(1):
            try:
                attempt = await self._attempt(sample, number)
            finally:
                self._places.leave()
            if self._stop.is_at_once:
                raise KeyboardInterrupt(self._stop.message)  # perhaps it hit the agent, which took it for its own
            if attempt.error is None:
                self._places.went_well()
                return self._complete(sample, attempt.response, earlier)
            wait = self._wait_after(attempt, number, epoch)
            self._tell_failed(sample, attempt, number, wait)
            if wait is None and not isinstance(attempt.error, RunInterruptedError):
                return self._complete(sample, attempt.response, earlier)
            if wait is None or await self._stop.sleep(wait):
                break
            epoch = await self._places.take_place(self._stop)
            if epoch is None:
                break
            earlier = [*earlier, failed_attempt(attempt.response)]
        return self._complete(sample, attempt.response, earlier, is_interrupted=True)

    async def _attempt(self, sample: Sample, number: int) -> Attempt:
        self._event_of("attempt_started", sample, attempt=number)
        attempt_id = f"{self._attempt_prefix}/{sample.key[0]}/{sample.repeat}/{number}"
        attempt = await self._call.aattempt(sample.question, attempt_id, self._stop.abandoned)
        self._counted[sample.key] = self._counted.get(sample.key, 0.0) + attempt.counted
        return attempt

    def _wait_after(self, attempt: Attempt, number: int, epoch: int | None) -> float | None:
        error = attempt.error
        if error is None or isinstance(error, RunInterruptedError):
            return None
        if isinstance(error, WorkerLostError):
            return 0.0 if error.is_asked_again else None
        if is_rate_limit(error):
            retry_after = retry_after_of(error)
            longest = self._options.retry.longest_retry_after
            self._places.was_limited(epoch, retry_after if retry_after is None or retry_after <= longest else None)
        return self._options.retry.wait_before_retry(number, error)

    def _complete(
        self, sample: Sample, response: Response, earlier: list[dict[str, Any]], *, is_interrupted: bool = False
    ) -> Response:
        """Return the response as it is kept: with its repeat, the failed attempts, and whether it was interrupted."""
        complete = completed(sample, response, self._options.repeats)
        if is_interrupted:
            complete |= {"status": "error", "interrupted": True}
        if earlier:
            complete["failed_attempts"] = earlier
        return self._priced(cast("Response", complete))

    async def _ended(self, sample: Sample, response: Response, earlier: int) -> None:
        """Keep, tell and hand on a response; ``earlier`` of its failed attempts are of earlier sessions."""
        attempts = cast("dict[str, Any]", response).get("failed_attempts", [])
        own = {**response, "failed_attempts": attempts[earlier:]}
        self._keep(sample, response)  # before anything that may fail
        counted_cost = self._counted.pop(sample.key, 0.0)
        self._budget.spend(tokens_spent(own), seconds_spent(own), cost_spent(own), counted_cost)
        is_error = response.get("status") == "error"
        self._event_of(
            "response_ended",
            sample,
            status="error" if is_error else "success",
            error=response.get("error"),
            attempts=1 + len(attempts),
            elapsed_sec=seconds_spent(response),
            total_tokens=tokens_spent(own),
            steps=len(response.get("actual_steps") or ()),
        )
        await self._take(sample, response)
        if is_error and not cast("dict[str, Any]", response).get("interrupted"):
            self._errors += 1
            limit = self._options.failure_limit
            if limit is not None and limit.is_passed(errors=self._errors, total=self._total):
                failed = f"{counted(self._errors, 'question')} failed in this session"
                self._stop.request("max_failures", f"{failed}, and no more than {limit} may")

    def _stopping(self) -> None:
        """Stop the run: nobody waits for a place any longer, and those in flight have ``grace`` seconds to end."""
        in_flight = self._places.in_flight
        message = f"Stopping ({self._stop.message}): {in_flight or 'nothing'} in flight"
        if self._stop.reason == "interrupted" and in_flight:
            message += f" may take {self._options.grace:g} s to end; once more stops at once"
        self._places.wake_all()
        self._some_end.set()
        if self._stop.reason == "interrupted":
            asyncio.get_running_loop().call_later(self._options.grace, self._stop.abandon)
        self._event("run_stopping", reason=self._stop.reason, message=message, in_flight=in_flight)  # which may fail

    async def _watch_time(self) -> None:
        """End the run when its time is over."""
        seconds = self._budget.seconds_left
        if seconds is not None:
            await asyncio.sleep(seconds)
            self._stop.request("max_time", f"the time of {self._options.max_time:g} s is over")
            self._stop.abandon()

    def _tell_failed(self, sample: Sample, attempt: Attempt, number: int, wait: float | None) -> None:
        self._event_of(
            "attempt_failed",
            sample,
            attempt=number,
            error=attempt.response.get("error"),
            retry_in_sec=wait,
            elapsed_sec=attempt.response.get(ELAPSED_SEC),
        )

    def _event_of(self, kind: EventKind, sample: Sample, **fields: Any) -> None:
        repeat = sample.repeat if self._options.repeats > 1 else None
        self._tell(RunEvent(kind, {"question_id": sample.key[0], "repeat": repeat, **fields}))

    def _event(self, kind: EventKind, **fields: Any) -> None:
        self._tell(RunEvent(kind, fields))
