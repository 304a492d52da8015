"""One session of a run: from what is still to be asked to the files of the run."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from graphrag_eval_lc.benchmark.agents import Agent
from graphrag_eval_lc.benchmark.attempts import AgentCall
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.harness import Harness, attempts_in, cost_spent, superseded, tokens_spent
from graphrag_eval_lc.benchmark.run_manifest import (
    RunManifest,
    capture_warnings,
    changed_questions,
    missing_in_session,
    refuse_changes,
)
from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.benchmark.scorers import dropped_warning, judging_warnings, plugin_warnings, scored_with
from graphrag_eval_lc.evaluation.events import EventKind, Observer, RunEvent, RunStalls
from graphrag_eval_lc.evaluation.limits import Budget, StopSignal
from graphrag_eval_lc.evaluation.pipeline import Pipeline
from graphrag_eval_lc.evaluation.samples import RunPlan, Sample, planned, samples_of
from graphrag_eval_lc.prices import Pricing, priced_response
from graphrag_eval_lc.records import Question, Response, Template
from graphrag_eval_lc.registry.metrics import NUMBER_OF_ERROR_SAMPLES, NUMBER_OF_SUCCESS_SAMPLES
from graphrag_eval_lc.run_folder import Journal, RunFolder

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.judging import Judges

# Responses that wait for their scores, for each place: enough that the agents never wait for a single large one.
_ROOM_PER_PLACE = 4
_UNSEEN_CALLS = "no model call of the agent was seen, so that the budget counts nothing for it"


class RunSession:
    """A run from its start or its resumption to its end.

    Args:
        options: The options of the run.
        questions: Those that are selected, with their templates, in the dataset's order.
        folder: The run's folder, locked; None keeps all in memory.
        observers: Who is told what happens.
        record: What run.json is to say.
        stop: Ends the session before its time.
        pricing: The prices of model calls.
        judges: Who judges the results; None: nobody.
    """

    def __init__(
        self,
        options: CheckedOptions,
        questions: Sequence[tuple[Template, Question]],
        folder: RunFolder | None,
        observers: Sequence[Observer],
        record: RunManifest,
        stop: StopSignal,
        pricing: Pricing,
        judges: "Judges | None",
    ) -> None:
        self._options = options
        self._questions = questions
        self._folder = folder
        self._observers = observers
        self._record = record
        self._stop = stop
        self._warnings: list[str] = []
        self._step_names: set[str] = set()
        self._journal: Journal | None = None
        self._kept: dict[int, Response] = {}
        self._harness: Harness | None = None
        self._pricing = pricing
        self._judges = judges
        self._stalls = RunStalls(self.warn, self._tell, options.repeats)
        self._is_judge_paid = judges is not None and judges.asks_models
        self._budget = Budget(
            options.max_tokens,
            options.max_time,
            options.max_cost,
            unpriced=pricing.unpriced,
            has_judges=self._is_judge_paid,
        )

    def warn(self, *messages: str) -> None:
        """Note what is to be known of the run, and tell it at once."""
        for message in messages:
            self._warnings.append(message)
            self._event("warning", message=message)

    async def arun(self, agent: Agent, templates: Sequence[Template]) -> BenchmarkRun:
        """Ask what is not answered yet, score everything, and write the files.

        Args:
            agent: The agent.
            templates: The dataset.
        """
        with contextlib.ExitStack() as stack:
            plan = self._begin(stack)
            file = None if self._folder is None else stack.enter_context(self._folder.results())
            pipeline = Pipeline(
                self._options.config,
                templates,
                repeats=self._options.repeats,
                pricing=self._pricing,
                judges=self._judges,
                file=file,
                tell=self._tell,
                on_judged=self._judged,
                stalls=self._stalls,
            )
            left_out = await self._ask(plan, agent, pipeline)
            aggregates = await asyncio.to_thread(pipeline.finish)
        stopped = None
        if self._stop.reason is not None:
            stopped = {"reason": self._stop.reason, "message": self._stop.message, "left_out": left_out}
        return self._end(pipeline, aggregates, stopped)

    def _begin(self, stack: contextlib.ExitStack) -> RunPlan:
        """Open the folder's run, or begin it, and give what is to be asked."""
        if self._folder is not None:
            earlier = self._folder.earlier
            changed: frozenset[str] = frozenset()
            if earlier is not None:
                changed = changed_questions(earlier, self._record.as_dict())
                if not self._options.force:
                    refuse_changes(earlier, self._record.as_dict(), self._folder.path)
                self.warn(*capture_warnings(earlier, self._record.as_dict()))
                self.warn(*self._scored_otherwise(earlier, self._folder))
                self._record = self._record.resuming(earlier)
            else:  # responses without a record of what they answer would be of no use
                self._folder.write_run(self._record.as_dict())
            self._journal = stack.enter_context(self._folder.journal())
            self.warn(*self._journal.set_aside)
            outdated = [key for key in self._journal.keys() if key[0] in changed]  # noqa: SIM118  # no dict
            for key in outdated:
                self._journal.add(superseded(key))
            self._folder.write_run(self._record.as_dict())
        samples = samples_of(self._questions, self._options.repeats)
        plan = planned(samples, self._journal, retry_errors=self._options.retry_errors)
        self._event(
            "run_started",
            total=plan.total,
            done=len(plan.done),
            errors=plan.errors,
            max_concurrency=self._options.max_concurrency,
            run_id=self._record.run_id,
            label=self._record.described.get("label"),
            output_dir=str(self._folder.path) if self._folder else None,
        )
        return plan

    def _scored_otherwise(self, earlier: Mapping[str, Any], folder: RunFolder) -> Sequence[str]:
        """Refuse to lose scores of the earlier sessions, or say which go."""
        missing = missing_in_session(earlier, folder.path, self._options)
        described = None if self._judges is None else self._judges.describe()
        return [
            *dropped_warning(missing),
            *plugin_warnings(earlier, self._record.described),
            *judging_warnings(earlier, described, dropped=missing),
        ]

    async def _ask(self, plan: RunPlan, agent: Agent, pipeline: Pipeline) -> int:
        """Ask what is to be asked while what is done is scored; give the number of samples left out."""
        pipeline.begin(room=_ROOM_PER_PLACE * self._options.max_concurrency)
        options = self._options

        def keep(sample: Sample, response: Response) -> None:
            if self._journal is None:
                self._kept[sample.position] = response
            else:
                self._journal.add(response)

        async def take(sample: Sample, response: Response) -> None:
            self._warn_of_tokens(response)
            if options.on_response is not None:
                options.on_response(response)
            await self._score(sample, response, pipeline)

        call = AgentCall(
            agent, options.input_fn, options.answer_fn, options.agent_config, options.capture, options.timeout
        )
        self._harness = harness = Harness(
            call,
            options,
            attempt_prefix=f"{self._record.run_id}/{len(self._record.earlier_sessions) + 1}",
            total=plan.total,
            stop=self._stop,
            budget=self._budget,
            tell=self._tell,
            earlier_attempts=self._earlier_attempts,
            keep=keep,
            take=take,
            priced=pipeline.priced,
            stalls=self._stalls,
        )
        rescoring = asyncio.create_task(self._score_done(plan.done, pipeline))
        with self._stalls.watch:
            try:
                if options.max_tokens is not None or options.max_cost is not None:  # what was spent already counts
                    await rescoring
                    for sample in plan.to_ask:
                        self._spend_earlier(sample)
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
            response = None if self._journal is None else self._journal.read(sample.key)
            if response is not None and not response.get("superseded"):
                self._spend(response)
                await self._score(sample, cast("Response", response), pipeline)
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

    def _earlier_attempts(self, sample: Sample) -> list[dict[str, Any]]:
        response = None if self._journal is None else self._journal.read(sample.key)
        return [] if response is None else attempts_in(response)

    def _warn_of_tokens(self, response: Response) -> None:
        """Warn once where a budget cannot be kept, as the agent asks its models where nobody sees it."""
        is_limited = self._options.max_tokens is not None or self._options.max_cost is not None
        is_unseen = response.get("status") == "success" and not response.get("llm_calls")
        if is_limited and is_unseen and _UNSEEN_CALLS not in self._warnings:
            self.warn(_UNSEEN_CALLS)

    def _warn_of_tools_never_called(self) -> None:
        """Say which tools' documents were to be kept and which nobody called, as where a name is misspelt."""
        capture, called = self._options.capture, self._step_names
        tools, names = capture.get("retrieval_documents", False), capture.get("step_names") or {}
        if isinstance(tools, bool) or not called:
            return
        unknown = sorted(tool for tool in tools if names.get(tool, tool) not in called)
        if unknown:
            self.warn(
                f"retrieval_documents names {', '.join(unknown)}, which no response calls; "
                f"they call {', '.join(sorted(called))}"
            )

    def _spend_earlier(self, sample: Sample) -> None:
        response = None if self._journal is None else self._journal.read(sample.key)
        if response is not None:
            self._spend(response)

    def _spend(self, response: Mapping[str, Any]) -> None:
        """Count what a response of an earlier session spent."""
        priced = priced_response(response, self._pricing)
        self._budget.spend(tokens_spent(priced), None, cost_spent(priced))

    def _end(self, pipeline: Pipeline, aggregates: dict[str, Any], stopped: dict[str, Any] | None) -> BenchmarkRun:
        options = self._options
        scorers = scored_with(self._questions, options.config, options.evaluators, self._judges)
        record = self._record.end(aggregates["totals"], stopped, scorers)
        if self._folder is not None:
            self._folder.write_aggregates(aggregates)
            self._folder.write_run(record.as_dict())
        self.warn(*pipeline.warnings(wants_costs=options.max_cost is not None))
        self._warn_of_tools_never_called()
        micro = aggregates["micro"]
        errors = micro[NUMBER_OF_ERROR_SAMPLES]
        self._event(
            "run_ended",
            total=errors + micro[NUMBER_OF_SUCCESS_SAMPLES] + (stopped["left_out"] if stopped else 0),
            done=errors + micro[NUMBER_OF_SUCCESS_SAMPLES],
            errors=errors,
            elapsed_sec=record.session.elapsed_sec,
            left_out=stopped["left_out"] if stopped else 0,
        )
        return BenchmarkRun(
            aggregates,
            output_dir=self._folder.path if self._folder else None,
            responses=None if self._folder else [response for _, response in sorted(self._kept.items())],
            results=None if self._folder else pipeline.kept(),
            stopped=stopped,
            warnings=self._warnings,
            judges=None if self._judges is None else self._judges.describe(),
        )

    def _event(self, kind: EventKind, **fields: Any) -> None:
        self._tell(RunEvent(kind, fields))

    def _tell(self, event: RunEvent) -> None:
        for observer in self._observers:
            observer(event)
