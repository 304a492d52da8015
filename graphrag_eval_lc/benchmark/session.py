"""One session of a run: what is still to be asked is asked, while what is answered is scored."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from graphrag_eval_lc.benchmark.agent_costs import AgentCosts, SpentAnswers
from graphrag_eval_lc.benchmark.agents import Agent
from graphrag_eval_lc.benchmark.attempt_records import attempts_in, completed, cost_spent, tokens_spent
from graphrag_eval_lc.benchmark.attempts import AgentCall, Asking
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.harness import Harness
from graphrag_eval_lc.benchmark.kept_answers import reuse_text
from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.benchmark.run_output import RunOutput
from graphrag_eval_lc.benchmark.workers.engines import worker_pool
from graphrag_eval_lc.benchmark.workers.pool import WorkerPool
from graphrag_eval_lc.evaluation.limits import Budget
from graphrag_eval_lc.evaluation.pipeline import Pipeline
from graphrag_eval_lc.evaluation.samples import RunPlan, Sample, samples_of
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.event_loop.stalls import StallWatch
from graphrag_eval_lc.records import Question, Response, Template
from graphrag_eval_lc.registry.metrics import NUMBER_OF_ERROR_SAMPLES, NUMBER_OF_SUCCESS_SAMPLES
from graphrag_eval_lc.run_folder.journal import key_of
from graphrag_eval_lc.texts import counted

Take = Callable[[Sample, Response], Awaitable[None]]

# Responses that wait for their scores, for each place: enough that the agents never wait for a single large one.
_ROOM_PER_PLACE = 4
_UNSEEN_CALLS = "no model call of the agent was seen, so that the budget counts nothing for it"


class RunSession:
    """A run from its start or its resumption to its end.

    Args:
        options: The options of the run.
        output: Where the run goes, resumed.
        stop: Ends the session before its time.
    """

    def __init__(self, options: CheckedOptions, output: RunOutput, stop: StopSignal) -> None:
        self._options = options
        self._output = output
        self._stop = stop
        self._step_names: set[str] = set()
        self._kept: dict[int, Response] = {}
        self._harness: Harness | None = None
        self._answers = SpentAnswers()
        self._is_judge_paid = output.judges is not None and output.judges.asks_models
        self._budget = Budget(
            options.max_tokens,
            options.max_time,
            output.cost_limit,
            unpriced=output.pricing.unpriced,
            has_judges=self._is_judge_paid,
        )

    async def arun(
        self, agent: Agent, templates: Sequence[Template], questions: Sequence[tuple[Template, Question]]
    ) -> BenchmarkRun:
        """Ask what is not answered yet, score everything, and write the files.

        Args:
            agent: The agent.
            templates: The dataset.
            questions: Those that are selected, with their templates, in the dataset's order.
        """
        options, output = self._options, self._output
        samples = samples_of(questions, options.repeats, options.shard)
        plan = output.planned(samples, retry_errors=options.retry_errors)
        async with self._asking(agent, is_needed=bool(plan.to_ask)) as call:
            if isinstance(call, WorkerPool):
                if await self._take_over(call, plan.to_ask):
                    plan = output.planned(samples, retry_errors=options.retry_errors)
                await call.abegin(self._stop)
            pipeline, left_out = await self._ask_and_score(plan, call, templates)
        del samples, plan  # the end takes the most memory
        aggregates = await asyncio.get_running_loop().run_in_executor(None, pipeline.finish)
        stopped = None
        if self._stop.reason is not None:
            stopped = {"reason": self._stop.reason, "message": self._stop.message, "left_out": left_out}
        responses = [response for _, response in sorted(self._kept.items())]
        run = output.end(pipeline, aggregates, questions, responses, stopped=stopped)
        self._warn_of_tools_never_called()
        self._tell_ended(aggregates["micro"], 0 if stopped is None else left_out)
        return run

    async def _ask_and_score(self, plan: RunPlan, call: Asking, templates: Sequence[Template]) -> tuple[Pipeline, int]:
        """Ask what is to be asked while what is done is scored; return the scores, and the number left out."""
        options, output = self._options, self._output
        asked_at = output.asked_at(sample.key for sample in plan.done)
        reuse = reuse_text(len(plan.to_ask), len(plan.done), asked_at) if plan.done else None
        if reuse is not None and options.progress == "off":  # else the display says it, first of all
            output.notes.insert(0, reuse)
        output.event(
            "run_started",
            message=reuse,
            total=plan.total,
            done=len(plan.done),
            errors=plan.errors,
            max_concurrency=options.max_concurrency,
            run_id=output.record.run_id,
            label=output.record.described.get("label"),
            output_dir=None if output.folder is None else str(output.folder.shown),
        )
        pipeline = output.pipeline(templates, repeats=options.repeats, on_judged=self._judged)

        async def take(sample: Sample, response: Response) -> None:
            self._warn_of_unseen_calls(response)
            if options.on_response is not None:
                options.on_response(response)
            await self._score(sample, response, pipeline)

        return pipeline, await self._ask(plan, call, pipeline, take)

    @asynccontextmanager
    async def _asking(self, agent: Agent, *, is_needed: bool) -> AsyncGenerator[Asking, None]:
        """Give what asks the agent: this process, or workers, which end with the context."""
        options = self._options
        if options.has_workers and is_needed:
            async with worker_pool(agent, options, self._output, self._stop) as pool:
                yield pool
            return
        costs = None if options.max_cost is None else self._agent_costs
        yield AgentCall(
            agent, options.input_fn, options.answer_fn, options.agent_config, options.capture, options.timeout, costs
        )

    async def _take_over(self, workers: WorkerPool, to_ask: Sequence[Sample]) -> bool:
        """Journal what workers of a lost session answered and its driver did not get; return whether there was any."""
        asked = {sample.key: sample for sample in to_ask}
        journal = self._output.journal
        taken = 0
        for response in () if journal is None else await workers.aleft_behind():
            sample = asked.pop(key_of(response) or ("", 0), None)
            if journal is None or sample is None or response.get("question_text") != sample.question["question_text"]:
                continue
            journal.add(completed(sample, response, self._options.repeats))
            taken += 1
        if taken:
            was = counted(taken, "answer", "answers")
            self._output.warn(
                f"{was} of a session that was lost came from its workers, and nothing of it is asked again"
            )
        return taken > 0

    async def _ask(self, plan: RunPlan, call: Asking, pipeline: Pipeline, take: Take) -> int:
        options, record = self._options, self._output.record
        self._harness = harness = Harness(
            call,
            options,
            attempt_prefix=f"{record.run_id}/{len(record.earlier_sessions) + 1}",
            total=plan.total,
            stop=self._stop,
            budget=self._budget,
            tell=self._output.tell,
            earlier_attempts=self._earlier_attempts,
            keep=self._keep,
            take=take,
            priced=pipeline.priced,
        )
        pipeline.begin(room=_ROOM_PER_PLACE * options.max_concurrency)
        rescoring = asyncio.create_task(self._score_done(plan.done, pipeline))
        with StallWatch(self._output.warn):
            try:
                if options.max_tokens is not None or options.max_cost is not None:  # what was spent already counts
                    await rescoring
                    for sample in plan.to_ask:
                        self._spend_earlier(self._output.response(sample.key), pipeline)
                left_out = await harness.arun(plan.to_ask)
                await rescoring
                await self._score_done(harness.left_out, pipeline)  # a failed answer of before stays what it was
            finally:
                rescoring.cancel()
                await pipeline.aclose()
        return left_out

    async def _score_done(self, done: Sequence[Sample], pipeline: Pipeline) -> None:
        """Score what earlier sessions answered: references and the configuration may have changed."""
        for sample in done:
            response = self._output.response(sample.key)
            if response is not None:
                self._spend_earlier(response, pipeline)
                await self._score(sample, response, pipeline)
                await asyncio.sleep(0)

    async def _score(self, sample: Sample, response: Response, pipeline: Pipeline) -> None:
        self._step_names.update(str(step.get("name")) for step in response.get("actual_steps") or ())
        if self._is_judge_paid:
            self._budget.await_judges()
        await pipeline.aadd(sample, response)

    def _judged(self, cost: float | None) -> None:
        """Count what the judges of one result cost; questions may have waited for it."""
        if self._is_judge_paid:
            self._budget.spend_on_judges(cost)
            if self._harness is not None:
                self._harness.look_again()

    def _keep(self, sample: Sample, response: Response) -> None:
        if self._output.journal is None:
            self._kept[sample.position] = response
        else:
            self._output.journal.add(response)

    def _agent_costs(self) -> AgentCosts:
        return AgentCosts(self._output.cost_limit, self._output.pricing, self._answers)

    def _earlier_attempts(self, sample: Sample) -> list[dict[str, Any]]:
        response = self._output.response(sample.key)
        return [] if response is None else attempts_in(response)

    def _spend_earlier(self, response: Response | None, pipeline: Pipeline) -> None:
        """Count what a response of an earlier session spent."""
        if response is not None:
            priced = pipeline.priced(response)
            self._budget.spend(tokens_spent(priced), None, cost_spent(priced))

    def _warn_of_unseen_calls(self, response: Response) -> None:
        """Warn once where a budget cannot be kept, as the agent asks its models where nobody sees it."""
        is_limited = self._options.max_tokens is not None or self._options.max_cost is not None
        is_unseen = response.get("status") == "success" and not response.get("llm_calls")
        if is_limited and is_unseen and _UNSEEN_CALLS not in self._output.warnings:
            self._output.warn(_UNSEEN_CALLS)

    def _warn_of_tools_never_called(self) -> None:
        """Say which tools' documents were to be kept and which nobody called, as where a name is misspelt."""
        capture, called = self._options.capture, self._step_names
        tools, names = capture.get("retrieval_documents", False), capture.get("step_names") or {}
        if isinstance(tools, bool) or not called:
            return
        unknown = sorted(tool for tool in tools if names.get(tool, tool) not in called)
        if unknown:
            self._output.warn(
                f"retrieval_documents names {', '.join(unknown)}, which no response calls; "
                f"they call {', '.join(sorted(called))}"
            )

    def _tell_ended(self, micro: Mapping[str, Any], left_out: int) -> None:
        errors = micro[NUMBER_OF_ERROR_SAMPLES]
        done = errors + micro[NUMBER_OF_SUCCESS_SAMPLES]
        self._output.event(
            "run_ended",
            total=done + left_out,
            done=done,
            errors=errors,
            elapsed_sec=self._output.record.session.elapsed_sec,
            left_out=left_out,
        )
