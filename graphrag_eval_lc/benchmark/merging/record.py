"""The run.json of a merged run: what its parts have in common, and what each of them adds."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from graphrag_eval_lc.benchmark.merging.parts import Part
from graphrag_eval_lc.benchmark.record_values import mapping_of, records_of, texts_of
from graphrag_eval_lc.benchmark.run_identity import KEPT
from graphrag_eval_lc.benchmark.run_manifest import new_run_id
from graphrag_eval_lc.dataset.loading import questions_of
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.records import Template
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC

# Those of a part alone, or of its scoring; they are made anew.
_OF_PART = ("format_version", "run_id", "label", "href", "tags", "shard", "merged", "selection", "times", "stopped")
_AT_END = ("totals", "questions", "earlier_questions", "judges", "scored", "scored_selection")
_OF_SESSION = ("git", "capture")
_SCORERS = ("matchers", "evaluators", "plugins")


def merged_record(
    parts: Sequence[Part],
    templates: Sequence[Template],
    questions: Mapping[str, Any],
    *,
    label: str | None = None,
    stopped: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the run.json of a merged run, without totals.

    Args:
        parts: The parts, which belong together.
        templates: The dataset.
        questions: What ``merged_questions`` gives.
        label: The run's label; None: that of the parts, where all have the same.
        stopped: Why it is not complete.
    """
    first = parts[0].record
    records = [part.record for part in parts]
    label = _common(records, "label") if label is None else label
    tags = list(dict.fromkeys(tag for record in records for tag in texts_of(record.get("tags"))))
    named = {"label": label, "href": _common(records, "href"), "tags": tags or None}
    judges = next((record["judges"] for record in reversed(records) if "judges" in record), None)
    origins = {str(each.get("run_id")): each for part in parts for each in part.origins}
    kept = {key: value for key, value in first.items() if key not in (*_OF_PART, *_AT_END)}
    answers = [each for record in records for each in records_of(record.get(KEPT))]
    return {
        "run_id": new_run_id(datetime.now(UTC)),
        **{key: value for key, value in named.items() if value is not None},
        "merged": list(origins.values()),
        "dataset": first.get("dataset"),
        **_selection(parts, templates, questions),
        **kept,
        **({KEPT: answers} if answers else {}),
        **_limits(records),
        **{key: found for key in _SCORERS if (found := _scorers(records, key)) is not None},
        "times": _times(parts, first),
        **({} if stopped is None else {"stopped": dict(stopped)}),
        "questions": questions,
        **_earlier_questions(records, questions),
        **({} if judges is None else {"judges": judges}),
    }


def merged_questions(parts: Sequence[Part], templates: Sequence[Template]) -> dict[str, Any]:
    """Return the digests of the questions that any part selects, by their ids, in the dataset's order."""
    known: dict[str, Any] = {}
    for part in parts:
        known.update(mapping_of(part.record.get("questions")))
    ids = (str(question["id"]) for _, question in questions_of(templates))
    return {each: known[each] for each in ids if each in known}


def _selection(
    parts: Sequence[Part], templates: Sequence[Template], questions: Mapping[str, Any]
) -> dict[str, Mapping[str, Any]]:
    """Return the selection of all parts together; nothing where it is the whole dataset."""
    selections = [mapping_of(part.record.get("selection")) for part in parts]
    if all(each == selections[0] for each in selections):
        return {"selection": selections[0]} if selections[0] else {}
    templates_of = {str(question["id"]): str(template["template_id"]) for template, question in questions_of(templates)}
    if len(questions) == len(templates_of):
        return {}
    chosen = {templates_of[each] for each in questions}
    if sum(template_id in chosen for template_id in templates_of.values()) == len(questions):
        whole = [each for each in dict.fromkeys(templates_of.values()) if each in chosen]
        return {"selection": {"template_ids": whole}}
    return {"selection": {"question_ids": list(questions)}}


def _limits(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the limits; of the places of several machines the most."""
    limits = dict(mapping_of(records[0].get("limits")))
    places = [mapping_of(record.get("limits")).get("max_concurrency") for record in records]
    known = [each for each in places if isinstance(each, int)]
    return {"limits": {**limits, **({"max_concurrency": max(known)} if known else {})}} if limits else {}


def _scorers(records: Sequence[Mapping[str, Any]], key: str) -> list[Any] | None:
    """Return the matchers, evaluators or plugins of all parts; of one the record that says most."""
    known: dict[str, Any] = {}
    for each in (each for record in records for each in records_of(record.get(key))):
        name = json_text([each.get("name"), each.get("media_type"), each.get("sha256")])
        before = known.get(name, {})
        metrics = list(dict.fromkeys((*texts_of(before.get("metrics")), *texts_of(each.get("metrics")))))
        more = {"metrics": metrics} if "metrics" in before or "metrics" in each else {}
        known[name] = {**(each if len(each) > len(before) else before), **more}
    return list(known.values()) if any(key in record for record in records) else None


def _times(parts: Sequence[Part], first: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sessions of all parts in the order in which they began; the seconds are those of all together."""
    sessions = [each for part in parts for each in _sessions(part, first)]
    unique = {json_text(each): each for each in sessions}  # of a merge and one of its parts
    ordered = sorted(unique.values(), key=lambda session: str(session.get("started")))
    finished = [str(each["finished"]) for each in ordered if "finished" in each]
    seconds = [each.get(ELAPSED_SEC) for each in ordered]
    spent = round(sum(each for each in seconds if isinstance(each, int | float)), 3)
    ended = {"finished": max(finished), ELAPSED_SEC: spent} if finished else {}
    return {"started": ordered[0].get("started") if ordered else None, **ended, "sessions": ordered}


def _sessions(part: Part, first: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield the sessions of a part, with its shard, and with what was otherwise then."""
    record = part.record
    own: dict[str, Any] = {} if part.shard is None else {"shard": str(part.shard)}
    own |= {key: record[key] for key in _OF_SESSION if key in record and record[key] != first.get(key)}
    sessions = mapping_of(record.get("times")).get("sessions")
    for session in records_of(sessions):
        yield {**own, **session}


def _earlier_questions(records: Iterable[Mapping[str, Any]], questions: Mapping[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for record in records:
        known.update(mapping_of(record.get("earlier_questions")))
    gone = {key: digest for key, digest in known.items() if key not in questions}
    return {"earlier_questions": gone} if gone else {}


def _common(records: Sequence[Mapping[str, Any]], key: str) -> Any:
    """Return a value that all records have; None where it differs."""
    first = records[0].get(key)
    return first if all(record.get(key) == first for record in records) else None
