"""The outcome of a run: its aggregates in memory, its responses and results read from disk on demand; ``load_run``."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from graphrag_eval_lc.aggregation.question_values import mean_text, score_values
from graphrag_eval_lc.benchmark.run_manifest import kept_notes
from graphrag_eval_lc.compare.gate_checks import GateResult
from graphrag_eval_lc.compare.gates import Gates, gate_results, gates_in
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.config import EvaluationConfig, GateConfig
from graphrag_eval_lc.dataset.ids import nearest_id
from graphrag_eval_lc.dataset.loading import response_key
from graphrag_eval_lc.errors import GraphRAGEvalError, OptionError, PublishError, RunFolderError
from graphrag_eval_lc.evaluation.samples import Shard
from graphrag_eval_lc.files.opening import is_of_run, is_private_beside, make_folder, refuse_odd
from graphrag_eval_lc.files.writing import json_line, replace_file
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import Response, Result
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metrics import (
    COST,
    MAIN_METRIC,
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_SUCCESS_SAMPLES,
    OUTPUTS_CUT,
    TOTAL_TOKENS,
    UNDECIDED,
    metric_spec,
    own_metrics,
)
from graphrag_eval_lc.retrying import masked_error_text
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RESULTS_FILE, RUN_FILE, iter_responses, iter_results, read_run
from graphrag_eval_lc.run_folder.folder import read_aggregates
from graphrag_eval_lc.run_store.baselines import earlier_of
from graphrag_eval_lc.tables import Results, Table, aggregates_table, questions_table, steps_table
from graphrag_eval_lc.tables.notebook_html import facts_html, never_raising, page_html, run_html
from graphrag_eval_lc.tables.plots import plot_scores, plot_templates, plot_times
from graphrag_eval_lc.tables.results import ShownQuestion
from graphrag_eval_lc.tables.table import write_parquet
from graphrag_eval_lc.texts import counted, on_one_line
from graphrag_eval_lc.traces.export import otlp_requests
from graphrag_eval_lc.view import RunView, run_view
from graphrag_eval_lc.view.run_view import MOST_FAILURES, GateLine

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

RunKind = Literal["questions", "steps", "aggregates"]
_KINDS: tuple[RunKind, ...] = ("questions", "steps", "aggregates")

_COUNTS = {"answered": NUMBER_OF_SUCCESS_SAMPLES, "failed": NUMBER_OF_ERROR_SAMPLES}
_UNCERTAIN = {"undecided steps": UNDECIDED, "outputs that are cut": OUTPUTS_CUT}
_SPENT = {TOTAL_TOKENS: "tokens", COST: "cost in USD"}
_RESUMED = (
    "the run was resumed and did not finish; the scores are those from before. "
    "graphrag-eval-lc score RUN_DIR scores what was answered since"
)


class BenchmarkRun:
    """The outcome of a run.

    A run with a folder holds only its aggregates in memory; ``iter_results`` reads one result at a time.

    Attributes:
        aggregates: The statistics over the results.
        output_dir: The run's folder, or None.
        stopped: Why the run ended early, as a dict; None if it ran all questions. ``reason`` is interrupted,
            max_failures, max_tokens, max_time or max_cost; for a merged run, missing or not scored. ``message`` is a
            sentence for people. ``left_out`` is the number of samples without a response.
        warnings: What the user should know about the run, such as lines of the journal that cannot be read.
        judges: The judges' models, metrics and prompts; None if nothing was judged.
        regression: The gate that says whether the run is worse than its ``baseline``, confirmed with ``confirm``; None
            without a baseline, and for a run that was stopped early or loaded.
        notes: A sentence each on which questions were scored, if a selection left some out, and on graded steps.
    """

    def __init__(
        self,
        aggregates: dict[str, Any],
        *,
        output_dir: Path | None = None,
        responses: list[Response] | None = None,
        results: list[Result] | None = None,
        stopped: Mapping[str, Any] | None = None,
        warnings: Sequence[str] = (),
        judges: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        config: EvaluationConfig | None = None,
        gates: Sequence[GateConfig] | None = None,
    ) -> None:
        self.aggregates = aggregates
        self.output_dir = output_dir
        self.stopped = stopped
        self.warnings = warnings
        self.judges = judges
        self.notes = notes
        self.regression: GateResult | None = None
        self._config = config
        self._gates = gates
        self._responses = responses
        self._results = results
        self._views: dict[int, RunView] = {}
        self._main_score: str | None = None

    @on_one_line
    def __repr__(self) -> str:
        micro = self.aggregates["micro"]
        parts = [
            f"{micro[NUMBER_OF_SUCCESS_SAMPLES]} answered",
            f"{micro[NUMBER_OF_ERROR_SAMPLES]} failed",
            self.main_score,
            f"stopped: {self.stopped['reason']}" if self.stopped else "",
            str(self.output_dir) if self.output_dir else "",
        ]
        return f"<BenchmarkRun {', '.join(part for part in parts if part)}>"

    @cached_property
    def results(self) -> Results:
        """The scored samples, by question in the dataset's order, then by repeat."""
        return Results(self.iter_results())

    @cached_property
    def responses(self) -> list[Response]:
        """The responses that were scored, in the order of the results."""
        if self._responses is not None:
            return self._responses
        if self.output_dir is None:
            return []
        known = {response_key(response): response for response in iter_responses(self.output_dir / RESPONSES_FILE)}
        keys = map(response_key, self.iter_results())
        return [cast("Response", known[key]) for key in keys if key in known]

    def iter_results(self) -> Iterator[Result]:
        """Yield the results one at a time.

        Raises:
            RunFolderError: The file of results cannot be read.
        """
        if self._results is not None:
            yield from self._results
        elif self.output_dir is not None:
            yield from cast("Iterator[Result]", iter_results(self.output_dir / RESULTS_FILE))

    def result(self, question_id: str, repeat: int = 1) -> Result:
        """Return the result of one question.

        Raises:
            RunFolderError: The run has none.
        """
        found = next((each for each in self.results if response_key(each) == (question_id, repeat)), None)
        return found or self._missing("result", question_id, repeat)

    def show(self, question_id: str, repeat: int = 1) -> ShownQuestion:
        """Return one question for a notebook or ``print``: what was asked, answered and done, and why it scored so.

        Raises:
            RunFolderError: The run has no result of it.

        Example:
            >>> from graphrag_eval_lc import run_benchmark
            >>> dataset = [{"template_id": "sums", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
            >>> print(run_benchmark(lambda question: "2", dataset, progress="off").show("q1"))
            q1 of sums: 1 + 1?
            answer: 2
        """
        return ShownQuestion(self.result(question_id, repeat))

    def response(self, question_id: str, repeat: int = 1) -> Response:
        """Return the response to one question.

        Raises:
            RunFolderError: The run has none.
        """
        found = next((each for each in self.responses if response_key(each) == (question_id, repeat)), None)
        return found or self._missing("response", question_id, repeat)

    @property
    def config(self) -> EvaluationConfig | None:
        """The configuration of a run without a folder; None if it is in run.json, or nowhere."""
        return self._config

    @property
    def gates(self) -> list[GateConfig]:
        """The gates that the run must pass: those of its config, then those passed in Python.

        Raises:
            RunFolderError: The run's record cannot be read.
        """
        return gates_in(run_results(self)) if self._gates is None else list(self._gates)

    def gate_results(self, gates: Gates = None) -> list[GateResult]:
        """Return for each gate whether the run passes it; see ``graphrag_eval_lc.gate_results``.

        Args:
            gates: Such as ``["steps_score=0.9", "elapsed_sec.p95=30"]``; None: ``gates``, without those that need a
                baseline.

        Raises:
            RunFolderError: The run's record or its results cannot be read.
            OptionError: A gate bounds a metric on the wrong side, or needs a baseline.

        Example:
            >>> from graphrag_eval_lc import run_benchmark
            >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
            >>> run = run_benchmark(lambda question: "2", dataset, progress="off")
            >>> all(gate.has_passed for gate in run.gate_results(["elapsed_sec.max=10"]))
            True
        """
        if gates is None:
            gates = [gate for gate in self.gates if not gate.needs_baseline]
        return gate_results(self, gates, self._config)

    def to_pandas(self, kind: RunKind = "questions") -> "pd.DataFrame":
        """Return a frame with a row for each sample, for each call of the agent, or for each value of the aggregates.

        The columns are those of ``questions_table``, ``steps_table`` and ``aggregates_table`` in
        ``graphrag_eval_lc.tables.run_tables``. The results are read one at a time.

        Raises:
            MissingExtraError: pandas is not installed.
            OptionError: The kind does not exist.
            RunFolderError: The file of results cannot be read.
        """
        return self._table(kind).to_pandas()

    def to_csv(self, directory: str | PathLike[str]) -> list[Path]:
        """Write the three tables of ``to_pandas`` to questions.csv, steps.csv and aggregates.csv.

        Args:
            directory: The folder; it is made if it is missing, and files of these names are replaced.

        Returns:
            The files.

        Raises:
            RunFolderError: The file of results cannot be read, or a file cannot be written.
        """
        folder = _made(directory)
        return [self._table(kind).to_csv(folder / f"{kind}.csv") for kind in _KINDS]

    def to_parquet(self, directory: str | PathLike[str]) -> list[Path]:
        """Write the three tables of ``to_pandas`` to questions.parquet, steps.parquet and aggregates.parquet.

        Columns keep their types; one that mixes numbers and texts is of texts.

        Args:
            directory: The folder; it is made if it is missing, and files of these names are replaced.

        Returns:
            The files.

        Raises:
            MissingExtraError: pyarrow is not installed.
            RunFolderError: The file of results cannot be read, or a file cannot be written.
        """
        folder = _made(directory)
        return [write_parquet(self._table(kind), folder / f"{kind}.parquet") for kind in _KINDS]

    def to_otlp(
        self, to: str | PathLike[str], *, project: str | None = None, headers: Mapping[str, str] | None = None
    ) -> int:
        """Send or write the responses as traces of OpenTelemetry, so that any viewer shows them.

        Each question is a trace: the agent's span, and in it those of models and tools, with the attributes of
        OpenInference and of the GenAI conventions, and secrets masked. The ids are always the same, so
        ``publish_scores`` finds these traces, and a viewer that replaces spans has none twice. ``read_traces`` reads a
        file of them with no step lost. Prompts and artifacts are left out.

        Args:
            to: The address of a receiver, such as ``http://localhost:6006/v1/traces``, or a file to write (OTLP/JSON, a
                request a line).
            project: The project in which Phoenix shows them.
            headers: HTTP headers, such as those with a key; None: those in OTEL_EXPORTER_OTLP_HEADERS.

        Returns:
            How many traces were sent or written.

        Raises:
            MissingExtraError: opentelemetry-proto is not installed, which sending needs.
            PublishError: The receiver cannot be reached, or refuses them.
            RunFolderError: The file cannot be written, or the run's files cannot be read.

        Example:
            >>> run.to_otlp("traces.jsonl")  # doctest: +SKIP
            48
        """
        record = read_run(self.output_dir) if self.output_dir is not None else None
        requests = otlp_requests(self.responses, str((record or {}).get("run_id") or "run"), project)
        if not isinstance(to, str) or "://" not in to:
            replace_file(Path(to), map(json_line, requests))
            return len(self.responses)
        import httpx  # here, as scoring needs no HTTP and should start fast

        from graphrag_eval_lc.traces.export import OTLPSender

        sender = OTLPSender(to, "traces", headers)
        for request in requests:
            try:
                rejected = sender.send(request)
            except httpx.HTTPError as problem:
                hint = "Check the address, which ends in /v1/traces, and the key."
                raise PublishError(
                    f"{to} does not accept the traces: {masked_error_text(problem)}", hint=hint
                ) from problem
            if rejected is not None:
                raise PublishError(f"{to} rejected a part of the traces: {rejected}")
        return len(self.responses)

    def plot_scores(self, metric: str = MAIN_METRIC, *, ax: "Axes | None" = None) -> "Axes":
        """Draw how the values of a metric are distributed, by template; failed samples are apart.

        Raises:
            MissingExtraError: matplotlib is not installed.
            OptionError: No sample has the metric.
            RunFolderError: The file of results cannot be read.
        """
        return plot_scores(self._table("questions").rows, metric, ax=ax)

    @recorded_only_here()
    def plot_templates(self, metric: str = MAIN_METRIC, *, ax: "Axes | None" = None) -> "Axes":
        """Draw a metric's mean for each template with its 95 % interval.

        Repeats of a question count as their mean, and failed samples as 0, or as the greatest value of a score where
        lower is better.

        Raises:
            MissingExtraError: matplotlib or scipy is not installed.
            OptionError: No sample has the metric.
            RunFolderError: The file of results cannot be read.
        """
        numbers = run_results(self, self._config).numbers([metric])
        values: dict[str, list[float]] = {}
        for question in numbers.questions.values() if numbers.has(metric) else ():
            value = question.mean(metric) if metric_spec(metric).is_spent else question.score(metric)
            if value is not None:
                values.setdefault(question.template_id, []).append(value)
        return plot_templates(values, metric, ax=ax)

    def plot_time(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw how many seconds samples took, by template.

        Raises:
            MissingExtraError: matplotlib is not installed.
            OptionError: No time was measured.
            RunFolderError: The file of results cannot be read.
        """
        return plot_times(self._table("questions").rows, ax=ax)

    @never_raising
    def _repr_html_(self) -> str:
        micro, totals = self.aggregates["micro"], self.aggregates.get("totals", {})
        counts = [(name, f"{micro[key]:,}") for name, key in _COUNTS.items()]
        counts += [(name, f"{micro[key]:,}") for name, key in _UNCERTAIN.items() if micro.get(key)]
        more = [(name, f"{totals[metric]:,.10g}") for metric, name in _SPENT.items() if metric in totals]
        more += [("note", note) for note in self.notes]
        more += [("stopped", str(self.stopped["message"]))] if self.stopped else []
        more += [("folder", str(self.output_dir))] if self.output_dir else []
        try:
            return run_html("Benchmark run", self.view(), counts, more)
        except GraphRAGEvalError as problem:  # such as a missing folder: whatever is known is shown
            return page_html(facts_html("Benchmark run", [*counts, *more, ("not read", str(problem))]))

    @property
    def main_score(self) -> str:
        """The mean of the main metric, as text; empty if it was not measured. It is read once, without the results.

        ``repr`` shows it, and asyncio calls ``repr`` on the result of a task, so it must be fast.
        """
        if self._main_score is None:
            metric, micro = MAIN_METRIC, self.aggregates["micro"]
            self._main_score = ""
            if not micro[NUMBER_OF_ERROR_SAMPLES] and "repeats" not in self.aggregates:
                self._main_score = f"{metric} {micro[metric]['mean']:.3f}" if metric in micro else ""
            else:
                with contextlib.suppress(GraphRAGEvalError):  # such as a folder that is gone
                    scores = score_values(run_results(self, self._config).numbers([metric], only=True))
                    self._main_score = f"{metric} {mean_text(scores[metric].mean())}" if metric in scores else ""
        return self._main_score

    @recorded_only_here()
    def view(self, *, most_failures: int = MOST_FAILURES) -> RunView:
        """Return what terminal, report and notebook show: headline, gates, grouped failures, scores, templates, costs.

        The results are read once, one at a time.

        Args:
            most_failures: How many of the worst failures are in it.

        Raises:
            RunFolderError: The file of results cannot be read.

        Example:
            >>> from graphrag_eval_lc import run_benchmark
            >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
            >>> str(run_benchmark(lambda question: "2", dataset, progress="off").view().headline)
            '1 question, not scored'
        """
        if most_failures not in self._views:
            results = run_results(self, self._config)
            checked = [*self.gate_results(), *([] if self.regression is None else [self.regression])]
            gates = [GateLine(gate.state, masked_text(str(gate))) for gate in checked]
            self._views[most_failures] = run_view(
                results,
                results.config(),
                metrics=own_metrics(self.aggregates["micro"]),
                gates=gates,
                earlier=earlier_of(results.path, results.record, results.config()),
                judges=self.judges,
                most_failures=most_failures,
            )
        return self._views[most_failures]

    def _table(self, kind: RunKind) -> Table:
        if kind == "questions":
            return questions_table(self.iter_results())
        if kind == "steps":
            return steps_table(self.iter_results())
        if kind == "aggregates":
            return aggregates_table(self.aggregates)
        raise OptionError(f"unknown kind of frame {kind!r}", key="kind", hint=f"Give {', '.join(_KINDS)}.")

    def _missing(self, what: str, question_id: str, repeat: int) -> Any:
        known = dict.fromkeys(str(result["question_id"]) for result in self.results)
        near = None if question_id in known else nearest_id(str(question_id), known.keys())
        meant = "" if near is None else f"Did you mean {near}? "
        raise RunFolderError(
            f"the run has no {what} for repeat {repeat} of this question",
            path=self.output_dir,
            question_id=question_id,
            hint=f"{meant}The ids are those of the results: [result['question_id'] for result in run.results].",
        )


def _made(directory: str | PathLike[str]) -> Path:
    """Return a folder, which is made if it is missing."""
    folder = Path(directory)
    if is_of_run(folder):
        refuse_odd(folder)
    make_folder(folder, is_private=is_private_beside(folder))
    return folder


def load_run(path: str | PathLike[str]) -> BenchmarkRun:
    """Open a finished run: its aggregates, results, responses, frames, plots and gates.

    Nothing is run, scored or written, so you need no agent, models or keys. To score the responses again, for example
    with another configuration, use ``score_run``.

    Args:
        path: The run's folder.

    Raises:
        RunFolderError: It is not the folder of a run that was scored to its end, or a file in it cannot be read.

    Example:
        >>> run = load_run("runs/first")  # doctest: +SKIP
        >>> run.to_pandas().groupby("template_id")["steps_score"].mean()  # doctest: +SKIP
    """
    folder = Path(path)
    if not folder.is_dir():
        what = "this is a file, not the folder of a run" if folder.exists() else "the folder does not exist"
        raise RunFolderError(what, path=folder, hint="Give the folder that run, score or demo wrote.")
    record, aggregates = read_run(folder), read_aggregates(folder)
    if record is None:
        hint = "Give the folder of one run; list_runs finds those in a folder."
        raise RunFolderError(f"the folder holds no {RUN_FILE}", path=folder, hint=hint)
    if not aggregates or not (folder / RESULTS_FILE).is_file():
        hint = "Resume it with the same command, or score what was answered: graphrag-eval-lc score RUN_DIR."
        raise RunFolderError("the run did not finish, so it has no scores yet", path=folder, hint=hint)
    return BenchmarkRun(
        aggregates,
        output_dir=folder,
        stopped=record.get("stopped") or None,
        judges=record.get("judges") or None,
        warnings=[] if "totals" in record else [_RESUMED],  # the end writes them, and resuming removes them
        notes=list(notes_in(record)),
    )


def notes_in(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a note on which questions were scored, if not all, and one on answers of an agent that changed since."""
    if (shard := Shard.in_record(record)) is not None:
        yield f"this is shard {shard} of a run; all numbers are of its questions alone"
    number = len(record.get("questions") or {})
    if number and record.get("scored_selection"):
        yield f"a selection of the {counted(number, 'question')} of the run was scored; all numbers are of these alone"
    yield from kept_notes(record)
