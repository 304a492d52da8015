"""The run that a report shows: its samples with their keys, and its run.json."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.run_manifest import plugins_text
from graphrag_eval_lc.compare import GateResult, gate_results
from graphrag_eval_lc.compare.runs import RunSource, run_results
from graphrag_eval_lc.config import CaptureConfig, EvaluationConfig
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.samples import Shard
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import NO_RESPONSE
from graphrag_eval_lc.registry.exporters import exporter
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, own_metrics
from graphrag_eval_lc.run_folder import RUN_FILE
from graphrag_eval_lc.run_store.baselines import earlier_of
from graphrag_eval_lc.run_store.stored_runs import part_of
from graphrag_eval_lc.texts import counted, one_line
from graphrag_eval_lc.view import RunView, run_view
from graphrag_eval_lc.view.run_view import MOST_FAILURES, Earlier, GateLine

_ALL: Final = Selection()
_VALUE: Final = 400
_SPEC: Final = re.compile(r"([^\s()]+?:[\w.-]+|https?://\S+)(?:\(None\))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """A run as a report reads it.

    Attributes:
        folder: Its folder; None for a run in memory.
        record: The content of run.json; empty if there is none.
        config: The configuration that it was scored with, without the models.
        results: Its results.
        warnings: What a reader must know about it.
        more_metrics: Metrics in its aggregates that its configuration does not name.
        source: What it was read from; None for a selection of questions, to which gates do not apply.
    """

    folder: Path | None
    record: Mapping[str, Any]
    config: EvaluationConfig
    results: Iterable[Mapping[str, Any]]
    warnings: Sequence[str] = ()
    more_metrics: Sequence[str] = ()
    source: RunSource | None = None

    @property
    def title(self) -> str:
        """The run's label, else the name of its folder."""
        name = self.record.get("label") or (self.folder.resolve().name if self.folder is not None else "")
        return one_line(name, 120) if name else "Evaluation run"

    @property
    def dataset_argument(self) -> str:
        """The dataset as a command names it; empty if its file is not known."""
        path = part_of(self.record, "dataset").get("path")
        return shlex.quote(one_line(path, _VALUE)) if path else ""

    @property
    def again_command(self) -> str:
        """The command that runs the agent again; empty if no command can name the agent or the dataset."""
        spec = _SPEC.fullmatch(str(self.record.get("agent")))
        if spec is None or not self.dataset_argument:
            return ""
        return f"graphrag-eval-lc run {self.dataset_argument} --agent {shlex.quote(one_line(spec[1], _VALUE))}"

    def metrics(self) -> Metrics:
        """Return the metrics of its results."""
        return Metrics(self.config, self.more_metrics)

    def view(self, gates: Sequence[GateResult], *, most_failures: int = MOST_FAILURES) -> RunView:
        """Return the view of the run, for which its results are read once."""
        return run_view(
            self.results,
            self.config,
            metrics=self.more_metrics,
            gates=gate_lines(gates),
            earlier=self.earlier(),
            judges=self.record.get("judges"),
            most_failures=most_failures,
        )

    def earlier(self) -> Earlier | None:
        """Return the run that this one is compared with, or None."""
        return earlier_of(self.folder, self.record, self.config)

    def checked_gates(self) -> Sequence[GateResult]:
        """Return the gates of the run's configuration, checked."""
        if isinstance(self.source, BenchmarkRun):
            return self.source.gate_results()
        return gate_results(self.source) if isinstance(self.source, str | PathLike) else []

    def file_of(self, name: str) -> Path:
        """Return the default path of what an exporter writes.

        Raises:
            OptionError: The run has no folder.
        """
        if self.folder is None:
            raise OptionError(f"the run has no folder to write the {name} to", hint="Give a path.")
        return self.folder / exporter(name).file_name

    def what_ran(self, measured: Mapping[str, str]) -> list[dict[str, str]]:
        """Return what ran, as names and values, with what was measured; unknown facts are left out."""
        href = self.record.get("href")
        link = {"href": one_line(href, 2_000)} if _is_web(href) else {}
        return [
            {"name": name, "value": one_line(value, _VALUE), **(link if name in ("Label", "Link") else {})}
            for name, value in _facts(self, measured).items()
            if value not in (None, "", "{}", "[]")
        ]


def gate_lines(gates: Iterable[GateResult]) -> list[GateLine]:
    """Return gates as views have them."""
    return [GateLine(gate.state, masked_text(str(gate))) for gate in gates]


def reported_run(source: RunSource, selection: Selection = _ALL) -> ReportedRun:
    """Return a run, or the selected questions of it, as a report reads it.

    Raises:
        RunFolderError: It is not the folder of a scored run, or was written by a newer version.
        ComparisonError: It is neither a folder, nor a run, nor a list of results.
        OptionError: It has none of the selected questions, or lacks an id that was selected.
    """
    results = run_results(source)
    run = source if isinstance(source, BenchmarkRun) else None
    record, warnings = results.record, list(run.warnings) if run is not None else []
    if run is not None and not record:
        in_memory = {"stopped": run.stopped, "judges": run.judges}
        record = {key: value for key, value in in_memory.items() if value}
    elif results.path is not None and not record:
        warnings.append(f"There is no {RUN_FILE}, so nothing is known of what ran.")
    config = EvaluationConfig()
    # The models are not needed here, and their secrets are masked.
    known = {key: value for key, value in part_of(record, "config").items() if key != "llm"}
    try:
        config = EvaluationConfig.model_validate(known)
    except ValidationError as problem:
        first = problem.errors()[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        warnings.append(f"The config in {RUN_FILE} cannot be read ({what}); the report takes the defaults.")
    shown: Iterable[Mapping[str, Any]] = results
    if not selection.is_all:
        shown = _SelectedResults(results, selection)
        warnings.insert(0, shown.note)
    return ReportedRun(
        folder=results.path,
        record=record,
        config=config,
        results=shown,
        warnings=warnings,
        more_metrics=own_metrics(run.aggregates.get("micro", {})) if run is not None else (),
        source=source if selection.is_all else None,
    )


class _SelectedResults:
    """The results of the selected questions, which can be read several times; ``note`` says which part it is."""

    def __init__(self, results: Iterable[Mapping[str, Any]], selection: Selection) -> None:
        self._results = results
        self._answered_only = selection.answered_only
        self._names = selection.by_id()
        questions = {str(result["question_id"]): str(result.get("template_id")) for result in results}
        shown = {str(result["question_id"]) for result in self}
        selection.refuse_unknown(questions.values(), questions, error=OptionError, where="The run")
        if not shown:
            what = "the run has none of the selected questions"
            raise OptionError(what, hint="Select fewer things at the same time.")
        self.note = (
            f"This report is of a part of the run: {len(shown):,} of its {counted(len(questions), 'question')} "
            f"({_text(selection.as_dict())}). All numbers are of these alone."
        )

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for result in self._results:
            is_left_out = self._answered_only and result.get("error") == NO_RESPONSE
            if not is_left_out and self._names(result.get("template_id"), result["question_id"]):
                yield result


def _facts(run: ReportedRun, measured: Mapping[str, str]) -> dict[str, Any]:
    record = run.record
    label, dataset, times = record.get("label"), part_of(record, "dataset"), part_of(record, "times")
    left_out = ("prompts", "certificate", "calibrated")
    judges = {key: value for key, value in part_of(record, "judges").items() if key not in left_out}
    defaults = CaptureConfig().model_dump()
    capture = {key: value for key, value in part_of(record, "capture").items() if value != defaults.get(key)}
    # The record already has the capture settings that the run was made with.
    config = run.config.model_dump(exclude_defaults=True, exclude={"llm", "prices", "capture"})
    limits = {name: value for name, value in part_of(record, "limits").items() if value is not None}
    sizes = [f"{dataset[key]:,} {key}" for key in ("questions", "templates") if isinstance(dataset.get(key), int)]
    path, origins = dataset.get("path"), record.get("merged")
    # Without an agent, recorded responses were scored; when they were made is unknown.
    scoring = {"Scoring started": "started", "Scoring finished": "finished"}
    times_of = {"Started": "started", "Finished": "finished"} if "agent" in record else scoring
    seconds, sessions = times.get(ELAPSED_SEC), times.get("sessions")
    duration = f"{seconds:,.1f} s" if isinstance(seconds, int | float) else ""
    if duration and isinstance(sessions, list) and len(sessions) > 1:
        duration += f" in {len(sessions)} sessions"
    return {
        "Label": label,
        "Link": record.get("href") if label is None else None,
        "Tags": ", ".join(map(str, record.get("tags") or ())),
        "Agent": record.get("agent"),
        "Agent's source": record.get("agent_source"),
        "Agent's config": _text(record.get("agent_config")),
        "Dataset": f"{path} ({', '.join(sizes)})" if path and sizes else str(path or ", ".join(sizes)),
        "Dataset's digest": dataset.get("sha256"),
        "Selection": _text(record.get("selection")),
        "Selection of the scoring": _text(record.get("scored_selection")),
        "Shard": Shard.in_record(record),
        "Merged of": counted(len(origins), "run") if isinstance(origins, list) else None,
        "Repeats": record.get("repeats"),
        "Judges": _text(judges),
        "Matchers": _functions(record.get("matchers")),
        "Evaluators": _functions(record.get("evaluators")),
        "Plugins": plugins_text(record),
        "Capture": _text(capture),
        "Config": _text(config),
        "Limits": _text(limits),
        **{name: times.get(key) for name, key in times_of.items()},
        "Duration" if "agent" in record else "Duration of the scoring": duration,
        **measured,
        "Versions": ", ".join(f"{name} {version}" for name, version in part_of(record, "versions").items()),
        "Run": record.get("run_id"),
        "Folder": run.folder,
    }


def _is_web(href: object) -> bool:
    """Return whether a text is a web address; any other address could be code or a file."""
    try:
        return isinstance(href, str) and urlsplit(href).scheme in ("http", "https")
    except ValueError:
        return False


def _text(value: Any) -> str:
    """Return nested values on one line: ``steps.scoring: all_groups, …``."""

    def flat(value: Mapping[str, Any], above: str = "") -> Iterator[str]:
        for key, item in value.items():
            if isinstance(item, Mapping) and item:
                yield from flat(item, f"{above}{key}.")
            else:
                yield f"{above}{key}: {item if isinstance(item, str) else json_text(item)}"

    return ", ".join(flat(value or {}))


def _functions(records: Any) -> str:
    """Return a user's own functions: ``count_rows: my_package.matchers:match_counts``."""
    known = [each for each in records if isinstance(each, Mapping)] if isinstance(records, list) else []
    names = (" with ".join(str(each[key]) for key in ("name", "media_type") if key in each) for each in known)
    return ", ".join(f"{name}: {each.get('function')}" for name, each in zip(names, known, strict=True))
