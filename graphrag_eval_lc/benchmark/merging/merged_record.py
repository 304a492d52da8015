"""The run.json of a merged run: what its parts have in common, and what each of them adds."""

from collections.abc import Iterator, Mapping, Sequence
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

# Those of a part alone, or of its scoring; they are made again.
_OF_PART = ("format_version", "run_id", "label", "href", "tags", "shard", "merged", "selection", "times", "stopped")
_AT_END = ("totals", "questions", "earlier_questions", "judges", "scored", "scored_selection")


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
        questions: What ``merged_questions`` returns.
        label: The run's label; None: that of the parts, if all have the same.
        stopped: Why it is not complete.
    """
    records, first = [part.record for part in parts], parts[0].record
    shared = {
        key: first.get(key) for key in ("label", "href") if all(each.get(key) == first.get(key) for each in records)
    }
    tags = list(dict.fromkeys(tag for record in records for tag in texts_of(record.get("tags"))))
    selections = [mapping_of(record.get("selection")) for record in records]
    if any(each != selections[0] for each in selections):
        is_whole = len(questions) == sum(1 for _ in questions_of(templates))
        selections[0] = {} if is_whole else {"question_ids": list(questions)}
    earlier = {key: each for record in records for key, each in mapping_of(record.get("earlier_questions")).items()}
    described = {
        **shared,
        **({} if label is None else {"label": label}),
        "tags": tags,
        "merged": list({str(each.get("run_id")): each for part in parts for each in part.origins}.values()),
        "dataset": first.get("dataset"),
        "selection": selections[0],
        **{key: value for key, value in first.items() if key not in (*_OF_PART, *_AT_END)},
        KEPT: [each for record in records for each in records_of(record.get(KEPT))],
        "times": _times(parts),
        "stopped": dict(stopped or {}),
        "earlier_questions": {key: digest for key, digest in earlier.items() if key not in questions},
        "judges": next((record["judges"] for record in reversed(records) if "judges" in record), None),
    }
    known = {key: value for key, value in described.items() if value not in (None, [], {})}
    scorers = {key: _scorers(records, key) for key in ("matchers", "evaluators", "plugins") if key in first}
    return {"run_id": new_run_id(datetime.now(UTC)), **known, **scorers, "questions": questions}


def merged_questions(parts: Sequence[Part], templates: Sequence[Template]) -> dict[str, Any]:
    """Return the digests of the questions that any part selects, by their ids, in the dataset's order."""
    known: dict[str, Any] = {}
    for part in parts:
        known.update(mapping_of(part.record.get("questions")))
    ids = (str(question["id"]) for _, question in questions_of(templates))
    return {each: known[each] for each in ids if each in known}


def _scorers(records: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    """Return the matchers, evaluators or plugins of all parts, with the metrics that an evaluator gave in any."""
    known: dict[str, Any] = {}
    for each in (each for record in records for each in records_of(record.get(key))):
        name = json_text([each.get("name"), each.get("media_type"), each.get("sha256")])
        before = known.get(name, {})
        metrics = list(dict.fromkeys((*texts_of(before.get("metrics")), *texts_of(each.get("metrics")))))
        known[name] = {**before, **each, **({"metrics": metrics} if "metrics" in {**before, **each} else {})}
    return list(known.values())


def _times(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the sessions of all parts in the order in which they began; the seconds are those of all together."""
    unique = {json_text(each): each for part in parts for each in _sessions(part, parts[0].record)}
    ordered = sorted(unique.values(), key=lambda session: str(session.get("started")))
    finished = [str(each["finished"]) for each in ordered if "finished" in each]
    seconds = [each.get(ELAPSED_SEC) for each in ordered]
    spent = round(sum(each for each in seconds if isinstance(each, int | float)), 3)
    ended = {"finished": max(finished), ELAPSED_SEC: spent} if finished else {}
    return {"started": ordered[0].get("started") if ordered else None, **ended, "sessions": ordered}


def _sessions(part: Part, first: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the sessions of a part, with its shard, and with the commit and capture of then if those differ."""
    record = part.record
    own: dict[str, Any] = {} if part.shard is None else {"shard": str(part.shard)}
    own |= {key: record[key] for key in ("git", "capture") if key in record and record[key] != first.get(key)}
    for session in records_of(mapping_of(record.get("times")).get("sessions")):
        yield {**own, **session}
