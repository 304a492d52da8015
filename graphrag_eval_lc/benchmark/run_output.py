"""The output of a run: locks its folder, opens or resumes the journal, reports events, and writes the final files."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from graphrag_eval_lc.aggregation.sample_values import grading_note
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.earlier_run import (
    agent_changes,
    capture_warnings,
    local_minute,
    missing_scorers,
    refuse_changes,
    refuse_missing,
    refuse_other_part,
    refuse_other_source,
    scoring_warnings,
    source_changes,
)
from graphrag_eval_lc.benchmark.run_manifest import KEPT, Record, ended, kept_notes, resumed, scored_with
from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.evaluation.events import EventKind, Observer, RunEvent, ignore_event
from graphrag_eval_lc.evaluation.pipeline import Comparer, Pipeline, judges_of
from graphrag_eval_lc.evaluation.question_result import evaluate_question
from graphrag_eval_lc.evaluation.samples import RunPlan, Sample, planned
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.records import Response, Template
from graphrag_eval_lc.registry.exporters import written_report
from graphrag_eval_lc.run_folder import Journal, Key, RunFolder

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.run_options import CheckedOptions, ScoredBy
    from graphrag_eval_lc.judges.cache import JudgeCache
    from graphrag_eval_lc.judges.judging import Judges


class RunOutput(ExitStack):
    """Reads and writes a run's folder and reports events; the folder is locked during the context.

    Call ``prepare`` first, then ``resume`` for a run or ``replace`` for responses from elsewhere, then ``pipeline`` and
    ``end``.
    """

    def __init__(
        self, output_dir: str | PathLike[str] | None, *, at: Path | None = None, open_files: bool = False
    ) -> None:
        super().__init__()
        self.folder = None if output_dir is None else RunFolder(output_dir, at=at, is_private=not open_files)
        self.journal: Journal | None = None
        self.pricing: Pricing  # from prepare on, as the next two
        self.budget: Budget
        self.judges: Judges | None
        self.observers: Sequence[Observer] = ()
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.record: Record = {}
        self.elapsed_sec = 0.0
        self._began = time.monotonic()
        self._options: ScoredBy
        self._cache: JudgeCache | None = None

    def __enter__(self) -> Self:
        if self.folder is not None:
            self.enter_context(self.folder.lock())
        return self

    # --- warnings and events ---

    def warn(self, *messages: str) -> None:
        """Keep warnings for the run's ``warnings``, and report them at once."""
        for message in messages:
            self.warnings.append(message)
            self.event("warning", message=message)

    def event(self, kind: EventKind, **fields: Any) -> None:
        """Pass an event on to the observers."""
        if self.observers:
            self._notify(RunEvent(kind, fields))

    def _notify(self, event: RunEvent) -> None:
        for observer in self.observers:
            observer(event)

    def note_cluster(self, address: str | None) -> None:
        """Report that workers of a cluster are started, which takes some seconds."""
        where = "a Ray cluster" if address is None else f"the Ray cluster {address}"
        self.event("workers_starting", message=f"Starting workers on {where}.")

    # --- the beginning ---

    @property
    def earlier(self) -> Mapping[str, Any] | None:
        """The run.json of the run in the folder, or None."""
        return None if self.folder is None else self.folder.earlier

    @property
    def judges_record(self) -> Mapping[str, Any] | None:
        """The entry of the judges in run.json; None if no model judges."""
        return None if self.judges is None else self.judges.describe()

    def prepare(self, options: "ScoredBy") -> None:
        """Create prices and judges. This may fail, so it comes before anything that changes an earlier run."""
        self._options = options
        if (note := grading_note(options.config)) is not None:
            self.notes.append(note)
        self.pricing = Pricing(options.config.prices)
        self.budget = Budget(options.max_cost)
        is_asked = options.config.llm is not None or options.llm is not None
        if self.folder is not None and is_asked and options.judge_cache:
            self._cache = self.enter_context(self.folder.judge_cache())
        self.judges = self._judges_of(options)

    def _judges_of(self, options: "ScoredBy", plan: RequestPlan | None = None) -> "Judges | None":
        return judges_of(
            options.config,
            evaluators=options.evaluators,
            llm=options.llm,
            embeddings=options.embeddings,
            cache=self._cache,
            pricing=self.pricing,
            budget=self.budget,
            plan=plan,
        )

    def resume(
        self, record: Record, options: "CheckedOptions", texts: Mapping[str, str], *, is_dry: bool = False
    ) -> None:
        """Resume the run in the folder, or begin a new one; ``texts`` are the questions' texts by id.

        Raises:
            RunFolderError: The run in the folder is another one or of another source of the agent, or was scored with
                what is missing now; or a file cannot be read or written.
        """
        self.record, earlier = record, self.earlier
        if self.folder is None or (earlier is None and is_dry):
            return
        if earlier is not None:
            self._take_up(earlier, self.folder.shown, options, texts)
        if not is_dry:
            self.folder.write_run(self.record)  # before any response, which would be useless without it
        if earlier is None:
            self.open_journal()
        if self._cache is not None and self.budget.max_cost is not None:
            self.budget.spend(self._cache.spent())

    def _take_up(
        self, earlier: Mapping[str, Any], shown: Path, options: "CheckedOptions", texts: Mapping[str, str]
    ) -> None:
        """Resume the run in the folder, unless it is a different one."""
        now, missing = self.record, missing_scorers(earlier, options)
        refuse_other_part(earlier, now, shown)
        if not options.force:
            refuse_changes(earlier, now, shown, is_other_agent_fine=options.keep_answers)
            refuse_missing(missing, shown, "--force (force=True) to resume without")
        self.warn(*capture_warnings(earlier, now), *scoring_warnings(earlier, now, self.judges_record, missing))
        self.record = resumed(now, earlier)
        journal = self.open_journal(texts)
        reused = [
            key
            for key in journal
            if (summary := journal.summary(key)) and not summary.is_to_ask(retry_errors=options.retry_errors)
        ]
        # Another agent was already refused, unless one of the two options allows it.
        of_spec = list(agent_changes(earlier, now))
        changes = of_spec or source_changes(earlier, now)
        if changes and reused:
            kept = {"answers": len(reused), "asked": self.asked_at(reused), "changes": "; ".join(changes)}
            if not options.keep_answers and not of_spec:
                refuse_other_source(kept, shown)
            self.record = {**self.record, KEPT: [*(earlier.get(KEPT) or []), kept]}
        self.notes += kept_notes(self.record)

    def asked_at(self, keys: Iterable[Key]) -> str:
        """Return the time of the newest of some answers in the folder, to the minute; empty if it is unknown."""
        newest = None if self.journal is None else self.journal.newest(keys)
        sessions: Any = ((self.earlier or {}).get("times") or {}).get("sessions") or ({},)
        return local_minute((newest or {}).get("started_at"), sessions[-1].get("started"))

    def replace(self, record: Record, responses: Iterable[Response], *, overwrite: bool) -> None:
        """Begin a run whose responses were recorded elsewhere."""
        self.record = record
        if self.folder is not None:
            if overwrite:
                self.folder.clear()
            self.folder.refuse_earlier()
            self.folder.write_run(record)
            self.folder.write_responses(responses)

    def open_journal(self, texts: Mapping[str, str] | None = None) -> Journal:
        """Read the responses in the folder; those to other ``texts`` of questions do not count."""
        assert self.folder is not None
        self.journal = self.enter_context(self.folder.journal(texts))
        self.warn(*self.journal.unreadable)
        return self.journal

    def planned(self, samples: Sequence[Sample], *, retry_errors: bool) -> RunPlan:
        """Return which samples of the resumed run are done, and which are still to run."""
        known = None if self.journal is None else self.journal.summary
        return planned(samples, known, retry_errors=retry_errors)

    def planned_judging(
        self, options: "ScoredBy", samples: Iterable[Sample], response_of: Callable[[Sample], Response | None]
    ) -> RequestPlan | None:
        """Return the requests that the judges would send about samples; None if no model judges.

        Nothing is sent or written. Answers in the folder's cache need no request.
        """
        plan, config = RequestPlan(self.pricing), options.config
        judges = self._judges_of(options, plan)
        if judges is None or not judges.asks_models:
            return None
        views = StepViews(config.steps, config.sparql, config.retrieval)

        async def judge_all() -> None:
            for sample in samples:
                response = response_of(sample)
                result = evaluate_question(sample.template, sample.question, response, config, views=views)
                await judges.ajudge(cast("dict[str, Any]", result), sample.question, response or {})

        run_sync(judge_all)
        return plan

    def response(self, key: Key) -> Response | None:
        """Return the response in the folder that counts for a sample, or None."""
        return None if self.journal is None else cast("Response | None", self.journal.read(key))

    # --- the end ---

    def pipeline(self, templates: Sequence[Template], *, repeats: int, comparer: Comparer | None = None) -> Pipeline:
        """Return the pipeline that scores responses and writes the results to the folder."""
        return Pipeline(
            self._options.config,
            templates,
            repeats=repeats,
            pricing=self.pricing,
            judges=self.judges,
            file=None if self.folder is None else self.enter_context(self.folder.results()),
            notify=self._notify if self.observers else ignore_event,
            budget=self.budget,
            comparer=comparer,
        )

    def end(
        self,
        pipeline: Pipeline,
        aggregates: dict[str, Any],
        responses: list[Response],
        *,
        stopped: Mapping[str, Any] | None = None,
    ) -> BenchmarkRun:
        """Write the aggregates and run.json, and return the run."""
        judges = self.judges_record
        scorers = scored_with(self._options.evaluators, self.judges)
        self.elapsed_sec = round(time.monotonic() - self._began, 3)
        self.record = ended(self.record, self.elapsed_sec, aggregates["totals"], stopped, scorers, judges)
        if self.journal is not None:
            self.journal.close()
        if self.folder is not None:
            self.folder.write_aggregates(aggregates)
            self.folder.write_run(self.record)
        self.warn(*pipeline.warnings(wants_costs=self._options.max_cost is not None))
        return BenchmarkRun(
            aggregates,
            output_dir=None if self.folder is None else self.folder.shown,
            responses=responses if self.folder is None else None,
            results=pipeline.kept() if self.folder is None else None,
            stopped=pipeline.stopped(stopped),  # run.json only says why the agent's run stopped
            warnings=self.warnings,
            judges=judges,
            notes=self.notes,
            config=self._options.config,
            # The gates apply to the whole run, not to a part.
            gates=() if "shard" in self.record else (*self._options.config.gates, *self._options.gates),
        )


def with_report(run: BenchmarkRun, folder: Path | None) -> BenchmarkRun:
    """Write the report of a run into its folder, if it has one; a note says why it could not be written."""
    problem = None if folder is None else written_report(folder)[1]
    if problem is not None:
        run.notes = [*run.notes, problem]
    return run
