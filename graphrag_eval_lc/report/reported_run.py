"""The run that a report shows: its samples with their keys, and what run.json tells of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from graphrag_eval_lc.aggregation import is_error
from graphrag_eval_lc.aggregation.sample_values import Metrics, number
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.recorded_scoring import plugins_text
from graphrag_eval_lc.compare.runs import RunSource, run_results
from graphrag_eval_lc.config import CaptureConfig, EvaluationConfig
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.question_result import NO_RESPONSE
from graphrag_eval_lc.evaluation.shards import Shard
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.exporters import exporter
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    ANSWER_F1,
    ELAPSED_SEC,
    STEPS_SCORE,
    STEPS_SCORE_UPPER,
    TOTAL_TOKENS,
    metric_spec,
    own_metrics,
)
from graphrag_eval_lc.report.formats import one_line, shown_name
from graphrag_eval_lc.run_folder import RUN_FILE
from graphrag_eval_lc.texts import counted

_ALL = Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """A run as a report reads it.

    Attributes:
        folder: Its folder; None for a run in memory.
        record: The content of run.json; empty where there is none.
        config: The configuration that it was scored with, without the models.
        results: Its results.
        warnings: What a reader must know of it.
        more_metrics: Metrics of its aggregates that its configuration does not name.
    """

    folder: Path | None
    record: Mapping[str, Any]
    config: EvaluationConfig
    results: Iterable[Mapping[str, Any]]
    warnings: Sequence[str] = ()
    more_metrics: Sequence[str] = ()

    def metrics(self) -> Metrics:
        """Return the metrics of its results."""
        return Metrics(self.config, self.more_metrics)

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
        RunFolderError: It is no folder of a run that is scored, or was written by a newer version.
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


ANSWER_THRESHOLD = 0.5


@dataclass(slots=True)
class ReportedSample:
    """A result, and what several sections of the report need of it.

    Attributes:
        key: Its question's id, with the repeat from the second on; unique.
        template_id: Its template's name as it is shown.
        result: The result.
        values: Its values by metric, several of a metric of steps; of a failed sample what it counts as.
        scores: Those of scores by the metric's name as it is shown: of metrics of steps the mean.
        has_failed: Whether the agent gave no answer.
        seconds: What the last attempt took; None where that is not known.
        tokens: What the last attempt used; None where that is not known.
        usd: What the agent cost; None where that is not known.
        is_judged: Whether its answer was compared with the reference answer.
        steps_right: Whether the steps scored in full; None where they were not scored, or undecided ones leave it open.
        answer_right: Whether the answer was judged to be right, which a failed sample's is not; None where nothing is
            known.
    """

    key: str
    template_id: str
    result: Mapping[str, Any]
    values: Mapping[str, Sequence[float]]
    scores: Mapping[str, float]
    has_failed: bool
    seconds: float | None = field(init=False)
    tokens: float | None = field(init=False)
    usd: float | None = field(init=False)
    is_judged: bool = field(init=False)
    steps_right: bool | None = field(init=False)
    answer_right: bool | None = field(init=False)

    def __post_init__(self) -> None:
        keys = (ELAPSED_SEC, TOTAL_TOKENS, AGENT_COST, STEPS_SCORE, STEPS_SCORE_UPPER, ANSWER_F1)
        self.seconds, self.tokens, self.usd, score, upper, answer = (number(self.result.get(key)) for key in keys)
        is_open = score is not None and upper is not None and score < 1.0 <= upper
        self.steps_right = None if score is None or is_open else score >= 1.0
        self.is_judged = not self.has_failed and answer is not None
        if self.has_failed:
            self.answer_right = None if self.result.get("reference_answer") is None else False
        else:
            self.answer_right = None if answer is None else answer >= ANSWER_THRESHOLD


def reported_samples(results: Iterable[Mapping[str, Any]], metrics: Metrics) -> Iterator[ReportedSample]:
    """Yield the results one at a time as samples with unique keys."""
    taken: set[str] = set()
    shown: dict[str, str | None] = {}  # the names of scores
    for result in results:
        values = metrics.values(result)
        for metric in values.keys() - shown.keys():
            shown[metric] = None if metric_spec(metric).is_spent else shown_name(metric)
        yield ReportedSample(
            key=sample_key(result, taken),
            template_id=shown_name(result.get("template_id")),
            result=result,
            values=values,
            scores={
                name: of_metric[0] if len(of_metric) == 1 else fmean(of_metric)
                for metric, of_metric in values.items()
                if (name := shown[metric]) is not None
            },
            has_failed=is_error(result),
        )


def sample_key(result: Mapping[str, Any], taken: set[str]) -> str:
    """Return the key by which a report lists and links a sample, and note it as taken.

    Args:
        result: The sample's result.
        taken: The keys of the samples before it.
    """
    repeat = result.get("repeat")
    given = result.get("question_id")
    name = shown_name(given)
    if name == given:  # one object for all who keep it
        name = given
    key = wanted = f"{name} #{repeat}" if isinstance(repeat, int) and repeat > 1 else name
    count = 1
    while key in taken:
        count += 1
        key = f"{wanted} ({count})"
    taken.add(key)
    return key


_VALUE = 400
_OF_AGENT = ("Started", "Finished", "Duration")
_OF_SCORING = ("Scoring started", "Scoring finished", "Duration of the scoring")


def what_ran(run: ReportedRun) -> list[dict[str, str]]:
    """Return the section ``what_ran``; what is not known is left out."""
    link = _link(run.record.get("href"))
    return [
        {"name": name, "value": one_line(value, _VALUE), **(link if name in ("Label", "Link") else {})}
        for name, value in _facts(run).items()
        if value not in (None, "", "{}", "[]")
    ]


def title_of(run: ReportedRun) -> str:
    """Return the title: the run's label, else the name of its folder."""
    label = run.record.get("label")
    name = label or (run.folder.resolve().name if run.folder is not None else "")
    return one_line(name, 120) if name else "Evaluation run"


def _facts(run: ReportedRun) -> dict[str, Any]:
    record = run.record
    label, dataset, times = record.get("label"), part_of(record, "dataset"), part_of(record, "times")
    judges = {key: value for key, value in part_of(record, "judges").items() if key != "prompts"}
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
        "Versions": ", ".join(f"{name} {version}" for name, version in part_of(record, "versions").items()),
        "Run": record.get("run_id"),
        "Folder": run.folder,
    }


def _merged(origins: object) -> str | None:
    return counted(len(origins), "run") if isinstance(origins, list) else None


def part_of(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a section of run.json; empty where it has none."""
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
