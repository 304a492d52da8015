"""The run that a report shows: its results, its samples with their keys, and what run.json tells of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from graphrag_eval_lc.aggregation import is_error
from graphrag_eval_lc.aggregation.measurements import Metrics, metrics_of, number
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.earlier_run import plugins_text
from graphrag_eval_lc.compare.runs import RunSource, run_results
from graphrag_eval_lc.config import CaptureConfig, EvaluationConfig
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.exporters import exporter
from graphrag_eval_lc.registry.metrics import ANSWER_F1, ELAPSED_SEC, STEPS_SCORE, metric_spec, own_metrics
from graphrag_eval_lc.report.formats import one_line, shown_name
from graphrag_eval_lc.run_folder import RUN_FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """A run as a report reads it.

    Attributes:
        folder: Its folder; None for a run in memory.
        record: The content of run.json; empty where there is none.
        config: The configuration that it was scored with, without the models.
        results: Its results.
        warnings: What is to be known of it.
        more_metrics: Metrics that its aggregates have and its configuration does not tell.
    """

    folder: Path | None
    record: Mapping[str, Any]
    config: EvaluationConfig
    results: Iterable[Mapping[str, Any]]
    warnings: Sequence[str] = ()
    more_metrics: Sequence[str] = ()

    def metrics(self) -> Metrics:
        """Return the metrics of its results."""
        known = metrics_of(self.config)
        more = [metric for metric in self.more_metrics if metric not in known.of_samples]
        return replace(known, of_samples=(*known.of_samples, *more))

    def file_of(self, name: str) -> Path:
        """Return where an exporter writes the run, where no path is given.

        Raises:
            OptionError: The run has no folder.
        """
        if self.folder is None:
            raise OptionError(f"the run has no folder to write the {name} to", hint="Give a path.")
        return self.folder / exporter(name).file_name

    def step_names(self) -> list[str]:
        """Return the names of the reference steps of the whole dataset, of which the results may have a part."""
        dataset = self.record.get("dataset")
        names = dataset.get("step_names") if isinstance(dataset, Mapping) else None
        return [str(name) for name in names] if isinstance(names, list) else []


def reported_run(source: RunSource) -> ReportedRun:
    """Return what a report reads of a run.

    Args:
        source: The folder of a run, what ``run_benchmark`` or ``score_run`` gave, or a list of results.

    Raises:
        RunFolderError: It is no folder of a run that is scored, or was written by a newer version.
        ComparisonError: It is none of these.
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
    return ReportedRun(
        folder=results.path,
        record=record,
        config=config,
        results=results,
        warnings=warnings,
        more_metrics=own_metrics(run.aggregates.get("micro", {})) if run is not None else (),
    )


def _config_in(record: Mapping[str, Any]) -> tuple[EvaluationConfig, str | None]:
    """Return the configuration in run.json, and what is wrong with it."""
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


@dataclass(frozen=True, slots=True)
class ReportedSample:
    """A result with what the sections share.

    Attributes:
        key: Its question's id, with the repeat from the second on; no other sample has it.
        template_id: Its template, to be shown.
        result: The result.
        scores: Its scores by metric as it is shown, those of steps as their mean; of a failed sample what
            it counts as.
        has_failed: Whether the agent gave no answer.
    """

    key: str
    template_id: str
    result: Mapping[str, Any]
    scores: Mapping[str, float]
    has_failed: bool

    @property
    def steps_right(self) -> bool | None:
        """Whether the steps scored in full; None where they were not scored."""
        score = number(self.result.get(STEPS_SCORE))
        return None if score is None else score >= 1.0

    @property
    def answer_right(self) -> bool | None:
        """Whether the answer was judged to be right, as that of a failed sample is not; None where nothing is known."""
        if self.has_failed:
            return None if self.result.get("reference_answer") is None else False
        score = number(self.result.get(ANSWER_F1))
        return None if score is None else score >= ANSWER_THRESHOLD

    @property
    def is_judged(self) -> bool:
        """Whether its answer was compared with the reference answer."""
        return not self.has_failed and number(self.result.get(ANSWER_F1)) is not None


def reported_samples(results: Iterable[Mapping[str, Any]], metrics: Metrics) -> Iterator[ReportedSample]:
    """Yield the results one at a time as samples with unique keys."""
    taken: set[str] = set()
    for result in results:
        has_failed = is_error(result)
        yield ReportedSample(
            key=_unique_key(result, taken),
            template_id=shown_name(result.get("template_id")),
            result=result,
            scores=_scores(result, metrics),
            has_failed=has_failed,
        )


def _unique_key(result: Mapping[str, Any], taken: set[str]) -> str:
    repeat = result.get("repeat")
    name = shown_name(result.get("question_id"))
    key = wanted = f"{name} #{repeat}" if isinstance(repeat, int) and repeat > 1 else name
    count = 1
    while key in taken:
        count += 1
        key = f"{wanted} ({count})"
    taken.add(key)
    return key


def _scores(result: Mapping[str, Any], metrics: Metrics) -> dict[str, float]:
    """Return the scores of a result; of a failed question what it counts as."""
    numbers = dict(metrics.sample_numbers(result))
    numbers |= {metric: fmean(values) for metric, values in metrics.step_scores(result).items()}
    return {shown_name(metric): value for metric, value in numbers.items() if not metric_spec(metric).is_spent}


_VALUE = 400
_OF_AGENT = ("Started", "Finished", "Duration")
_OF_SCORING = ("Scoring started", "Scoring finished", "Duration of the scoring")


def what_ran(run: ReportedRun) -> list[dict[str, str]]:
    """Return the section ``what_ran``; what is not known is left out."""
    return [
        {"name": name, "value": one_line(value, _VALUE), **link}
        for name, value, link in _facts(run)
        if value not in (None, "", "{}", "[]")
    ]


def title_of(run: ReportedRun) -> str:
    """Return the title: the run's label, else the name of its folder."""
    label = run.record.get("label")
    name = label or (run.folder.resolve().name if run.folder is not None else "")
    return one_line(name, 120) if name else "Evaluation run"


def _facts(run: ReportedRun) -> Iterator[tuple[str, Any, dict[str, str]]]:
    record = run.record
    dataset, times = _part(record, "dataset"), _part(record, "times")
    yield "Label", record.get("label"), _link(record.get("href"))
    if record.get("label") is None:
        yield "Link", record.get("href"), _link(record.get("href"))
    yield "Tags", ", ".join(map(str, record.get("tags") or ())), {}
    yield "Agent", record.get("agent"), {}
    yield "Agent's source", record.get("agent_source"), {}
    yield "Agent's config", _text(record.get("agent_config")), {}
    yield "Dataset", _dataset(dataset), {}
    yield "Dataset's digest", dataset.get("sha256"), {}
    yield "Selection", _text(record.get("selection")), {}
    yield "Repeats", record.get("repeats"), {}
    yield "Judges", _judges(_part(record, "judges")), {}
    yield "Matchers", _functions(record.get("matchers")), {}
    yield "Evaluators", _functions(record.get("evaluators")), {}
    yield "Plugins", plugins_text(record), {}
    yield "Capture", _text(_changed(_part(record, "capture"), CaptureConfig().model_dump())), {}
    yield "Config", _text(_changed_config(run.config)), {}
    limits = {name: value for name, value in _part(record, "limits").items() if value is not None}
    yield "Limits", _text(limits), {}
    # Without an agent, recorded responses were scored, and when they were made is not known.
    started, finished, duration = _OF_AGENT if "agent" in record else _OF_SCORING
    yield started, times.get("started"), {}
    yield finished, times.get("finished"), {}
    yield duration, _duration(times), {}
    yield "Versions", ", ".join(f"{name} {version}" for name, version in _part(record, "versions").items()), {}
    yield "Run", record.get("run_id"), {}
    yield "Folder", run.folder, {}


def _part(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = record.get(key)
    return part if isinstance(part, Mapping) else {}


def _link(href: object) -> dict[str, str]:
    """Return a link where the address is one of the web; anything else would be code or a file."""
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


def _judges(judges: Mapping[str, Any]) -> str:
    return _text({key: value for key, value in judges.items() if key != "prompts"})


def _functions(records: Any) -> str:
    """Return the functions of a user's own: ``count_rows: my_package.matchers:match_counts``."""
    known = [each for each in records if isinstance(each, Mapping)] if isinstance(records, list) else []
    names = (" with ".join(str(each[key]) for key in ("name", "media_type") if key in each) for each in known)
    return ", ".join(f"{name}: {each.get('function')}" for name, each in zip(names, known, strict=True))


def _changed(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value != defaults.get(key)}


def _changed_config(config: EvaluationConfig) -> dict[str, Any]:
    """Return what the config says of the scoring; what was captured stands in the run's record."""
    return config.model_dump(exclude_defaults=True, exclude={"llm", "prices", "capture"})


def _duration(times: Mapping[str, Any]) -> str:
    seconds = times.get(ELAPSED_SEC)
    if not isinstance(seconds, int | float):
        return ""
    sessions = times.get("sessions")
    count = len(sessions) if isinstance(sessions, list) else 1
    return f"{seconds:,.1f} s" + (f" in {count} sessions" if count > 1 else "")
