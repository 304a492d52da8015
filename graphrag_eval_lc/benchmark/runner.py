"""The middle of a run: runs the open questions concurrently, keeps the responses in the journal, and scores them."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from graphrag_eval_lc.benchmark.attempts import (
    NOTHING_SPENT,
    AgentCall,
    Attempt,
    RunInterruptedError,
    Spent,
    WorkerLostError,
)
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.earlier_run import reuse_text
from graphrag_eval_lc.benchmark.limits import (
    AgentCosts,
    ConcurrencyLimit,
    attempts_in,
    cost_spent,
    failed_attempt,
    seconds_spent,
    tokens_spent,
)
from graphrag_eval_lc.benchmark.ready_agents import Agent
from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.benchmark.run_output import RunOutput
from graphrag_eval_lc.benchmark.score_options import RAY
from graphrag_eval_lc.evaluation.events import EventKind
from graphrag_eval_lc.evaluation.samples import RunPlan, Sample, samples_of
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.event_loop.stalls import StallWatch
from graphrag_eval_lc.records import Question, Response, Template
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, NUMBER_OF_ERROR_SAMPLES, NUMBER_OF_SUCCESS_SAMPLES
from graphrag_eval_lc.retrying import is_rate_limit, retry_after_of
from graphrag_eval_lc.texts import counted

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.worker import Workers

# Responses that may wait for scoring, for each slot: enough that the agent never waits for one slow score.
_ROOM_PER_SLOT = 4
_UNSEEN_CALLS = "no model call of the agent was seen, so that the budget counts nothing for it"


class Runner:
    """One session of a run, from its start or its resumption to its end."""

    def __init__(
        self,
        options: CheckedOptions,
        output: RunOutput,
        stop: StopSignal,
        templates: Sequence[Template],
        questions: Sequence[tuple[Template, Question]],
    ) -> None:
        self._options = options
        self._output = output
        self._stop = stop
        self._budget = output.budget
        self._budget.max_tokens = options.max_tokens
        self._slots = ConcurrencyLimit(
            options.max_concurrency,
            options.requests_per_minute,
            lambda limit, reason: output.event("limit_changed", limit=limit, reason=reason),
        )
        self._is_limited = options.max_tokens is not None or options.max_cost is not None
        self._attempt_prefix = f"{output.record['run_id']}/{len(output.record['times']['sessions'])}"
        samples = samples_of(questions, options.repeats, options.shard)
        self._plan = output.planned(samples, retry_errors=options.retry_errors)
        self._templates = templates
        self._call: AgentCall | Workers[Any]
        self._begun = 0  # how many samples were started
        self._errors = 0
        self._problem: Exception | None = None  # the first that ends the run
        self._step_names: set[str] = set()
        self._kept: dict[int, Response] = {}  # by position, if there is no folder

    async def arun(self, agent: Agent) -> BenchmarkRun:
        """Run the open questions, score everything, and write the files."""
        options, output, stop = self._options, self._output, self._stop
        if options.has_workers and self._plan.to_ask:
            await self._ask_by_workers(agent.given)
        else:
            self._call = AgentCall(
                agent,
                options.input_fn,
                options.answer_fn,
                options.agent_config,
                options.capture,
                options.timeout,
                (lambda: AgentCosts(self._budget, output.pricing)) if self._is_limited else None,
            )
            await self._ask_and_score()
        left_out, pipeline = len(self._plan.to_ask) - self._begun, self._pipeline
        self._plan = RunPlan((), ())  # the end takes the most memory
        aggregates = await asyncio.get_running_loop().run_in_executor(None, pipeline.finish)
        stopped = None
        if stop.reason is not None:
            stopped = {"reason": stop.reason, "message": stop.message, "left_out": left_out}
        run = output.end(pipeline, aggregates, [each for _, each in sorted(self._kept.items())], stopped=stopped)
        self._warn_of_tools_never_called()
        errors = aggregates["micro"][NUMBER_OF_ERROR_SAMPLES]
        done = errors + aggregates["micro"][NUMBER_OF_SUCCESS_SAMPLES]
        left_out = 0 if stopped is None else left_out
        seconds = output.elapsed_sec
        output.event(
            "run_ended", total=done + left_out, done=done, errors=errors, elapsed_sec=seconds, left_out=left_out
        )
        return run

    async def _ask_by_workers(self, agent: Any) -> None:
        """Run and score with workers, which load the agent themselves and are closed in any case."""
        from graphrag_eval_lc.benchmark.worker import Job  # few runs need workers, and the packages for them

        options, output = self._options, self._output
        job = Job(
            agent=agent,
            agent_config=options.agent_config,
            key_variable=options.agent_key_env,
            input_fn=options.input_fn,
            answer_fn=options.answer_fn,
            capture=options.capture,
            timeout=options.timeout,
            retry=options.retry,
        )
        workers: Workers[Any]
        if options.engine == RAY:
            from graphrag_eval_lc.benchmark.ray_engine import RayWorkers

            most, slots, address = options.workers, options.max_concurrency, options.ray_address
            workers = RayWorkers(job, self._slots, workers=most, address=address, max_concurrency=slots)
            output.note_cluster(address)
        else:
            from graphrag_eval_lc.benchmark.isolated_workers import IsolatedWorkers

            workers = IsolatedWorkers(job, self._slots, output.warn)
        is_whole = False
        try:
            await workers.aopen(self._stop)
            self._call = workers
            await self._ask_and_score()
            is_whole = True
        finally:
            await workers.aclose(waits=is_whole)

    async def _ask_and_score(self) -> None:
        """Run the open questions while the answers of earlier sessions are scored."""
        options, output, plan = self._options, self._output, self._plan
        reuse = None
        if plan.done:
            asked_at = output.asked_at(sample.key for sample in plan.done)
            reuse = reuse_text(len(plan.to_ask), len(plan.done), asked_at)
            if options.progress == "off":  # else the display says it, first of all
                output.notes.insert(0, reuse)
        output.event(
            "run_started",
            message=reuse,
            total=plan.total,
            done=len(plan.done),
            errors=plan.errors,
            max_concurrency=options.max_concurrency,
            run_id=output.record["run_id"],
            label=output.record.get("label"),
            output_dir=None if output.folder is None else str(output.folder.shown),
        )
        self._pipeline = output.pipeline(self._templates, repeats=options.repeats)
        self._pipeline.begin(room=_ROOM_PER_SLOT * options.max_concurrency)
        if self._is_limited:  # what was spent already counts
            for sample in (*plan.done, *plan.to_ask):
                if (response := output.response(sample.key)) is not None:
                    self._count_spent(self._pipeline.priced(response))
        rescoring = asyncio.create_task(self._score_earlier(plan.done))
        with StallWatch(output.warn):
            try:
                await self._ask_all()
                await rescoring
                # Of the samples that the stopped run did not start: failed answers that were not retried.
                await self._score_earlier(self._plan.to_ask[self._begun :])
            finally:
                rescoring.cancel()
                await self._pipeline.aclose()

    async def _score_earlier(self, samples: Sequence[Sample]) -> None:
        """Score the answers of earlier sessions again, as references and configuration may have changed."""
        for sample in samples:
            response = self._output.response(sample.key)
            if response is not None:
                self._step_names.update(str(step.get("name")) for step in response.get("actual_steps") or ())
                await self._pipeline.aadd(sample, self._pipeline.priced(response))
                await asyncio.sleep(0)

    # --- asking ---

    async def _ask_all(self) -> None:
        """Run all open samples concurrently, until the run is stopped."""
        self._stop.bind(self._stopping)
        most = self._options.max_time
        timer = None if most is None else asyncio.create_task(self._end_after(most))
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._options.max_concurrency, len(self._plan.to_ask))):
                    workers.create_task(self._work())
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            if timer is not None:
                timer.cancel()
        if self._problem is not None:
            raise self._problem

    async def _work(self) -> None:
        """Run one sample after the other; several of these tasks share the queue."""
        to_ask = self._plan.to_ask
        while self._begun < len(to_ask):
            epoch = await self._slots.take_slot(self._stop)
            if epoch is None:
                return
            if self._is_over() or self._begun >= len(to_ask):  # another task took the last sample
                self._slots.leave()
                return
            sample = to_ask[self._begun]
            self._begun += 1
            before = self._output.response(sample.key)  # failed or interrupted
            earlier = [] if before is None else attempts_in(before)
            try:
                await self._keep(sample, await self._ask(sample, epoch, earlier), len(earlier))
            except Exception as problem:  # from a file or a user's function; questions in flight are kept
                self._problem = self._problem or problem
                return

    def _is_over(self) -> bool:
        """Return whether to start nothing more; stop the run if its budget is used up."""
        if self._budget.limit is not None:
            self._stop.request(self._budget.limit, self._budget.message)
        return self._stop.reason is not None or self._problem is not None

    async def _ask(self, sample: Sample, epoch: int | None, earlier: list[dict[str, Any]]) -> Response:
        """Run one sample, with retries, until it is answered, an error is not worth a retry, or the run stops."""
        is_interrupted = False
        for number in count(1):
            attempt_id = f"{self._attempt_prefix}/{sample.key[0]}/{sample.repeat}/{number}"
            try:  # an observer may fail too, and the slot must be free for others
                if self._output.observers:
                    self._notify("attempt_started", sample, attempt=number)
                attempt = await self._call.aattempt(sample.question, attempt_id, self._stop.abandoned)
            finally:
                self._slots.leave()
            if self._stop.is_at_once:
                raise KeyboardInterrupt(self._stop.message)  # the agent may have swallowed it
            response = self._pipeline.priced(attempt.response)
            if self._is_limited:
                self._count_spent(response, attempt.counted)
            if attempt.error is None:
                self._slots.went_well()
                break
            wait = self._wait_after(attempt, number, epoch)
            self._notify(
                "attempt_failed",
                sample,
                attempt=number,
                error=response.get("error"),
                retry_in_sec=wait,
                elapsed_sec=response.get(ELAPSED_SEC),
            )
            is_interrupted = isinstance(attempt.error, RunInterruptedError)
            if wait is None:
                break
            is_interrupted = True  # unless it is asked again
            if self._is_over() or await self._stop.sleep(wait):
                break
            epoch = await self._slots.take_slot(self._stop)
            if epoch is None:
                break
            earlier = [*earlier, failed_attempt(response)]
        complete: dict[str, Any] = {"question_id": sample.key[0]}
        if self._options.repeats > 1:
            complete["repeat"] = sample.repeat
        complete |= {key: value for key, value in response.items() if key not in ("question_id", "repeat")}
        if is_interrupted and attempt.error is not None:
            complete |= {"status": "error", "interrupted": True}
        if earlier:
            complete["failed_attempts"] = earlier
        return cast("Response", complete)

    def _wait_after(self, attempt: Attempt, number: int, epoch: int | None) -> float | None:
        """Return the seconds to wait before the next attempt; None for no further attempt."""
        error, retry = attempt.error, self._options.retry
        if error is None or isinstance(error, RunInterruptedError):
            return None
        if isinstance(error, WorkerLostError):
            return None
        if is_rate_limit(error):
            retry_after = retry_after_of(error)
            is_short = retry_after is None or retry_after <= retry.longest_retry_after
            self._slots.was_limited(epoch, retry_after if is_short else None)
        return retry.wait_before_retry(number, error)

    def _count_spent(self, response: Mapping[str, Any], counted: Spent = NOTHING_SPENT) -> None:
        """Add to the budget what all attempts of a response spent, minus what it has ``counted`` already."""
        budget = self._budget
        cost, tokens = cost_spent(response), tokens_spent(response)
        if tokens is None and budget.max_tokens is not None:
            why = "the agent's model does not report all its tokens"
            budget.end("max_tokens", f"{why}, so that a budget of tokens cannot be kept")
        if cost is None and not (counted.usd and counted.is_priced) and budget.max_cost is not None:
            why, unpriced = "the cost of some model calls is not known", self._output.pricing.unpriced
            if unpriced:
                why = f"no price is known for {', '.join(sorted(unpriced))} (add it to prices in the config)"
            budget.end("max_cost", f"a budget of money cannot be kept: {why}")
        budget.spend(max(0.0, (cost or 0.0) - counted.usd), max(0, (tokens or 0) - counted.tokens))

    async def _keep(self, sample: Sample, response: Response, earlier: int) -> None:
        """Write, report and score a response; its first ``earlier`` failed attempts are from earlier sessions."""
        if self._output.journal is None:
            self._kept[sample.position] = response
        else:
            self._output.journal.add(response)  # before anything that may fail
        record = cast("dict[str, Any]", response)
        is_error = record.get("status") == "error"
        if self._output.observers:
            attempts = record.get("failed_attempts", [])
            self._notify(
                "response_ended",
                sample,
                status="error" if is_error else "success",
                error=record.get("error"),
                attempts=1 + len(attempts),
                elapsed_sec=seconds_spent(record),
                total_tokens=tokens_spent({**record, "failed_attempts": attempts[earlier:]}),
                steps=len(record.get("actual_steps") or ()),
            )
        if (
            self._is_limited
            and not is_error
            and not record.get("llm_calls")
            and _UNSEEN_CALLS not in self._output.warnings
        ):
            self._output.warn(_UNSEEN_CALLS)
        if self._options.on_response is not None:
            self._options.on_response(response)
        self._step_names.update(str(step.get("name")) for step in response.get("actual_steps") or ())
        await self._pipeline.aadd(sample, response)
        if is_error and not record.get("interrupted"):
            self._errors += 1
            limit = self._options.failure_limit
            if limit is not None and limit.is_passed(errors=self._errors, total=self._plan.total):
                failed = f"{counted(self._errors, 'question')} failed in this session"
                self._stop.request("max_failures", f"{failed}, and no more than {limit} may")

    # --- stopping early ---

    def _stopping(self) -> None:
        """Stop the run: nothing more starts, and questions in flight have ``grace`` seconds to end."""
        in_flight = self._slots.in_flight
        message = f"Stopping ({self._stop.message}): {in_flight or 'nothing'} in flight"
        if self._stop.reason == "interrupted" and in_flight:
            message += f" may take {self._options.grace:g} s to end; once more stops at once"
        self._slots.wake_all()
        if self._stop.reason == "interrupted":
            asyncio.get_running_loop().call_later(self._options.grace, self._stop.abandon)
        # An observer may fail, so this comes last.
        self._output.event("run_stopping", reason=self._stop.reason, message=message, in_flight=in_flight)

    async def _end_after(self, seconds: float) -> None:
        """End the run when its time is over."""
        await asyncio.sleep(seconds)
        self._stop.request("max_time", f"the time of {seconds:g} s is over")
        self._stop.abandon()

    # --- events and warnings ---

    def _notify(self, kind: EventKind, sample: Sample, **fields: Any) -> None:
        repeat = sample.repeat if self._options.repeats > 1 else None
        self._output.event(kind, question_id=sample.key[0], repeat=repeat, **fields)

    def _warn_of_tools_never_called(self) -> None:
        """Warn about tools and nodes named in the capture options that no response has, such as typing errors."""
        capture, called = self._options.capture, self._step_names
        documents, names = capture.get("retrieval_documents", False), capture.get("step_names") or {}
        tools = () if isinstance(documents, bool) else documents
        for option, named in (("retrieval_documents", tools), ("nodes", capture.get("nodes") or ())):
            unknown = sorted(each for each in named if names.get(each, each) not in called)
            if unknown and (called or option == "nodes"):
                steps = f"they call {', '.join(sorted(called))}" if called else "they call nothing"
                self._output.warn(f"{option} names {', '.join(unknown)}, which no response calls; {steps}")
