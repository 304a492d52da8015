"""What ran, from run.json: names and values for people to read."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from graphrag_eval_lc.config import CaptureConfig, EvaluationConfig
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.report.reported_run import ReportedRun
from graphrag_eval_lc.report.texts import one_line
from graphrag_eval_lc.runner.recorded_plugins import plugins_text

_VALUE = 400
_OF_AGENT = ("Started", "Finished", "Duration")
_OF_SCORING = ("Scoring started", "Scoring finished", "Duration of the scoring")


def what_ran(run: ReportedRun) -> list[dict[str, str]]:
    """Give the section ``what_ran``; what is not known is left out."""
    return [
        {"name": name, "value": one_line(value, _VALUE), **link}
        for name, value, link in _facts(run)
        if value not in (None, "", "{}", "[]")
    ]


def title_of(run: ReportedRun) -> str:
    """Give the title: the run's label, else the name of its folder."""
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
    """Give a link where the address is one of the web; anything else would be code or a file."""
    if not isinstance(href, str):
        return {}
    try:
        is_web = urlsplit(href).scheme in ("http", "https")
    except ValueError:
        return {}
    return {"href": one_line(href, 2_000)} if is_web else {}


def _text(value: Any) -> str:
    """Give nested values on one line: ``steps.scoring: all_groups, …``."""
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
    """Give the functions of a user's own: ``count_rows: my_package.matchers:match_counts``."""
    known = [each for each in records if isinstance(each, Mapping)] if isinstance(records, list) else []
    names = (" with ".join(str(each[key]) for key in ("name", "media_type") if key in each) for each in known)
    return ", ".join(f"{name}: {each.get('function')}" for name, each in zip(names, known, strict=True))


def _changed(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value != defaults.get(key)}


def _changed_config(config: EvaluationConfig) -> dict[str, Any]:
    """Give what the config says of the scoring; what was captured stands in the run's record."""
    return config.model_dump(exclude_defaults=True, exclude={"llm", "prices", "capture"})


def _duration(times: Mapping[str, Any]) -> str:
    seconds = times.get(ELAPSED_SEC)
    if not isinstance(seconds, int | float):
        return ""
    sessions = times.get("sessions")
    count = len(sessions) if isinstance(sessions, list) else 1
    return f"{seconds:,.1f} s" + (f" in {count} sessions" if count > 1 else "")
