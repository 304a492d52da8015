"""The run that a report shows: its samples with their keys, and what run.json says of it."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.recorded_scoring import plugins_text
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
from graphrag_eval_lc.run_store.last_run import earlier_of
from graphrag_eval_lc.texts import counted, one_line
from graphrag_eval_lc.view import RunView, run_view
from graphrag_eval_lc.view.headline import Earlier
from graphrag_eval_lc.view.run_view import MOST_FAILURES, GateLine

_ALL = Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """A run as a report reads it.

    Attributes:
        folder: Its folder; None for a run in memory.
        record: The content of run.json; empty if there is none.
        config: The configuration that it was scored with, without the models.
        results: Its results.
        warnings: What a reader must know of it.
        more_metrics: Metrics of its aggregates that its configuration does not name.
        source: What it was read from; None for some of a run's questions, to which its gates do not apply.
    """

    folder: Path | None
    record: Mapping[str, Any]
    config: EvaluationConfig
    results: Iterable[Mapping[str, Any]]
    warnings: Sequence[str] = ()
    more_metrics: Sequence[str] = ()
    source: RunSource | None = None

    def metrics(self) -> Metrics:
        """Return the metrics of its results."""
        return Metrics(self.config, self.more_metrics)

    def view(self, gates: Sequence[GateResult] | None = None, *, most_failures: int = MOST_FAILURES) -> RunView:
        """Return the view of the run, for which its results are read once.

        Args:
            gates: Its gates, as they were checked; None: those of its configuration.
            most_failures: How many of the worst failures are in it.
        """
        return run_view(
            self.results,
            self.config,
            metrics=self.more_metrics,
            gates=self.gate_lines(gates),
            earlier=self.earlier(),
            judges=self.record.get("judges"),
            most_failures=most_failures,
        )

    def earlier(self) -> Earlier | None:
        """Return the run that this one is compared with; None if there is none."""
        return earlier_of(self.folder, self.record, self.config)

    def checked_gates(self) -> Sequence[GateResult]:
        """Return the gates of the run's configuration, checked."""
        if isinstance(self.source, BenchmarkRun):
            return self.source.gate_results()
        return gate_results(self.source) if isinstance(self.source, str | PathLike) else []

    def gate_lines(self, gates: Sequence[GateResult] | None = None) -> list[GateLine]:
        """Return gates as views have them; None: those of the run's configuration."""
        checked = self.checked_gates() if gates is None else gates
        return [GateLine(gate.state, masked_text(str(gate))) for gate in checked]

    def file_of(self, name: str) -> Path:
        """Return the default path of what an exporter writes.

        Raises:
            OptionError: The run has no folder.
        """
        if self.folder is None:
            raise OptionError(f"the run has no folder to write the {name} to", hint="Give a path.")
        return self.folder / exporter(name).file_name

    def step_names(self) -> list[str]:
        """Return the names of the whole dataset's reference steps; the results may have only some of them."""
        names = part_of(self.record, "dataset").get("step_names")
        return [str(name) for name in names] if isinstance(names, list) else []


def reported_run(source: RunSource, selection: Selection = _ALL) -> ReportedRun:
    """Return a run as a report reads it.

    Args:
        source: The folder of a run, what ``run_benchmark`` or ``score_run`` returned, or a list of results.
        selection: Which of its questions are shown.

    Raises:
        RunFolderError: It is not the folder of a scored run, or was written by a newer version.
        ComparisonError: It is none of these.
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
    config, problem = _config_in(record)
    if problem is not None:
        warnings.append(problem)
    shown: Iterable[Mapping[str, Any]] = results
    if not selection.is_all:
        shown = _SelectedResults(results, selection)
        warnings.insert(0, shown.note())
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
    """The results of the selected questions, which can be read several times.

    Raises:
        OptionError: There are none, or an id that was selected is not there.
    """

    def __init__(self, results: Iterable[Mapping[str, Any]], selection: Selection) -> None:
        self._results = results
        self._selection = selection
        self._names = selection.by_id()
        questions: dict[str, str] = {}
        shown: set[str] = set()
        for result in results:
            questions[str(result["question_id"])] = str(result.get("template_id"))
            if self._is_shown(result):
                shown.add(str(result["question_id"]))
        selection.refuse_unknown(questions.values(), questions, error=OptionError, where="The run")
        if not shown:
            what = "the run has none of the selected questions"
            raise OptionError(what, hint="Select fewer things at the same time.")
        self._counts = len(shown), len(questions)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return filter(self._is_shown, self._results)

    def note(self) -> str:
        """Say which part of the run is shown."""
        shown, number = self._counts
        return (
            f"This report is of a part of the run: {shown:,} of its {counted(number, 'question')} "
            f"({_text(self._selection.as_dict())}). All numbers are of these alone."
        )

    def _is_shown(self, result: Mapping[str, Any]) -> bool:
        if self._selection.answered_only and result.get("error") == NO_RESPONSE:
            return False
        return self._names(result.get("template_id"), result["question_id"])


def _config_in(record: Mapping[str, Any]) -> tuple[EvaluationConfig, str | None]:
    """Return the configuration in run.json, and a problem with it."""
    config = record.get("config")
    if not isinstance(config, Mapping):
        return EvaluationConfig(), None
    # The models are of no use here, and their secrets are masked.
    known = {key: value for key, value in config.items() if key != "llm"}
    try:
        return EvaluationConfig.model_validate(known), None
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(map(str, first["loc"]))
        text = f"The config in {RUN_FILE} cannot be read ({place}: {first['msg']}); the report takes the defaults."
        return EvaluationConfig(), text


_VALUE = 400
_OF_AGENT = ("Started", "Finished", "Duration")
_OF_SCORING = ("Scoring started", "Scoring finished", "Duration of the scoring")


def what_ran(run: ReportedRun, measured: Mapping[str, str] | None = None) -> list[dict[str, str]]:
    """Return the section ``what_ran`` with what was measured of the run; what is not known is left out."""
    link = _link(run.record.get("href"))
    return [
        {"name": name, "value": one_line(value, _VALUE), **(link if name in ("Label", "Link") else {})}
        for name, value in _facts(run, measured or {}).items()
        if value not in (None, "", "{}", "[]")
    ]


_SPEC = re.compile(r"([^\s()]+?:[\w.-]+|https?://\S+)(?:\(None\))?")


def again_command(record: Mapping[str, Any]) -> str:
    """Return the command that asks the agent of a run again; empty if no command can name the agent or the dataset.

    Example:
        >>> again_command({"agent": "my_agent.py:graph", "dataset": {"path": "qa.yaml"}})
        'graphrag-eval-lc run qa.yaml --agent my_agent.py:graph'
    """
    spec, dataset = _SPEC.fullmatch(str(record.get("agent"))), dataset_argument(record)
    if spec is None or not dataset:
        return ""
    return f"graphrag-eval-lc run {dataset} --agent {shlex.quote(one_line(spec[1], _VALUE))}"


def dataset_argument(record: Mapping[str, Any]) -> str:
    """Return the dataset of a run as a command names it; empty if its file is not known."""
    path = part_of(record, "dataset").get("path")
    return shlex.quote(one_line(path, _VALUE)) if path else ""


def title_of(run: ReportedRun) -> str:
    """Return the title: the run's label, else the name of its folder."""
    label = run.record.get("label")
    name = label or (run.folder.resolve().name if run.folder is not None else "")
    return one_line(name, 120) if name else "Evaluation run"


def _facts(run: ReportedRun, measured: Mapping[str, str]) -> dict[str, Any]:
    record = run.record
    label, dataset, times = record.get("label"), part_of(record, "dataset"), part_of(record, "times")
    left_out = ("prompts", "certificate", "calibrated")
    judges = {key: value for key, value in part_of(record, "judges").items() if key not in left_out}
    defaults = CaptureConfig().model_dump()
    capture = {key: value for key, value in part_of(record, "capture").items() if value != defaults.get(key)}
    # What the config says of the capture stands in the record, as it was when the run was made.
    config = run.config.model_dump(exclude_defaults=True, exclude={"llm", "prices", "capture"})
    limits = {name: value for name, value in part_of(record, "limits").items() if value is not None}
    # Without an agent, recorded responses were scored, and when they were made is not known.
    started, finished, duration = _OF_AGENT if "agent" in record else _OF_SCORING
    return {
        "Label": label,
        "Link": record.get("href") if label is None else None,
        "Tags": ", ".join(map(str, record.get("tags") or ())),
        "Agent": record.get("agent"),
        "Agent's source": record.get("agent_source"),
        "Agent's config": _text(record.get("agent_config")),
        "Dataset": _dataset(dataset),
        "Dataset's digest": dataset.get("sha256"),
        "Selection": _text(record.get("selection")),
        "Selection of the scoring": _text(record.get("scored_selection")),
        "Shard": Shard.in_record(record),
        "Merged of": _merged(record.get("merged")),
        "Repeats": record.get("repeats"),
        "Judges": _text(judges),
        "Matchers": _functions(record.get("matchers")),
        "Evaluators": _functions(record.get("evaluators")),
        "Plugins": plugins_text(record),
        "Capture": _text(capture),
        "Config": _text(config),
        "Limits": _text(limits),
        started: times.get("started"),
        finished: times.get("finished"),
        duration: _duration(times),
        **measured,
        "Versions": ", ".join(f"{name} {version}" for name, version in part_of(record, "versions").items()),
        "Run": record.get("run_id"),
        "Folder": run.folder,
    }


def _merged(origins: object) -> str | None:
    return counted(len(origins), "run") if isinstance(origins, list) else None


def part_of(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a section of run.json; empty if it has none."""
    part = record.get(key)
    return part if isinstance(part, Mapping) else {}


def _link(href: object) -> dict[str, str]:
    """Return a link to a web address; nothing for any other, which could be code or a file."""
    if not isinstance(href, str):
        return {}
    try:
        is_web = urlsplit(href).scheme in ("http", "https")
    except ValueError:
        return {}
    return {"href": one_line(href, 2_000)} if is_web else {}


def _text(value: Any) -> str:
    """Return nested values on one line: ``steps.scoring: all_groups, …``."""
    return ", ".join(f"{name}: {item}" for name, item in _flat(value or {}))


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        name = f"{above}{key}"
        if isinstance(item, Mapping) and item:
            yield from _flat(item, f"{name}.")
        else:
            yield name, item if isinstance(item, str) else json_text(item)


def _dataset(dataset: Mapping[str, Any]) -> str:
    counts = [f"{dataset[key]:,} {key}" for key in ("questions", "templates") if isinstance(dataset.get(key), int)]
    path = dataset.get("path")
    return f"{path} ({', '.join(counts)})" if path and counts else str(path or ", ".join(counts))


def _functions(records: Any) -> str:
    """Return the functions of a user's own: ``count_rows: my_package.matchers:match_counts``."""
    known = [each for each in records if isinstance(each, Mapping)] if isinstance(records, list) else []
    names = (" with ".join(str(each[key]) for key in ("name", "media_type") if key in each) for each in known)
    return ", ".join(f"{name}: {each.get('function')}" for name, each in zip(names, known, strict=True))


def _duration(times: Mapping[str, Any]) -> str:
    seconds = times.get(ELAPSED_SEC)
    if not isinstance(seconds, int | float):
        return ""
    sessions = times.get("sessions")
    count = len(sessions) if isinstance(sessions, list) else 1
    return f"{seconds:,.1f} s" + (f" in {count} sessions" if count > 1 else "")
