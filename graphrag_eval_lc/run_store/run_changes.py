"""Compares the run.json of two runs: changes of dataset, settings, judges, agent and capture, as short sentences."""

from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_eval_lc.compare.settings import changed_settings
from graphrag_eval_lc.run_store.stored_runs import StoredRun
from graphrag_eval_lc.texts import listed

_SHORT = 8  # of a digest, as people see it
_JUDGES = {"generation": "the judge", "embedding": "the judge's embeddings"}
_AGENT = {"agent": "the agent", "agent_source": "what the agent resolves to"}
_VERSION = "graphrag-eval-lc"


def changes_between(before: StoredRun, after: StoredRun) -> list[str]:
    """Return what changed since an earlier run, as short sentences without a full stop; empty if nothing is known."""
    return [*_dataset_changes(before, after), *_record_changes(before.record, after.record)]


def _dataset_changes(before: StoredRun, after: StoredRun) -> Iterator[str]:
    old, new = before.dataset_digest, after.dataset_digest
    questions, others = _mapping(before.record.get("questions")), _mapping(after.record.get("questions"))
    counts = {
        "new": len(others.keys() - questions.keys()),
        "gone": len(questions.keys() - others.keys()),
        "with another text": sum(others[key] != questions[key] for key in questions.keys() & others.keys()),
    }
    which = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
    if old is not None and new is not None and old != new:
        what = f"questions {which}" if which else "its references or other keys"
        yield f"the dataset: {what} ({old[:_SHORT]} → {new[:_SHORT]})"
    elif questions and others and which:
        yield f"which questions of the dataset were asked: {which}"


def _record_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    def both(key: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return _mapping(before.get(key)), _mapping(after.get(key))

    configs, captures, judges = both("config"), both("capture"), both("judges")
    # The judges' models have their own section in run.json, with the names that the models report.
    if all(configs) and (names := [name for name in changed_settings(*configs) if name != "llm"]):
        yield f"the config: {listed([name for name in names if not name.startswith('llm.')] or names)}"
    repeats = before.get("repeats") or 1, after.get("repeats") or 1
    if repeats[0] != repeats[1]:
        yield f"repeats: {repeats[0]} → {repeats[1]}"
    if all(captures) and (names := _differing(*captures)):
        yield f"what is kept of runs: {listed(names)}"
    yield from _replaced(_JUDGES, *judges)
    prompts = [_mapping(each.get("prompts")) for each in judges]
    if names := [name for name in _differing(*prompts) if name in prompts[0] and name in prompts[1]]:
        yield f"the judges' prompts: {listed(names)}"
    for key in ("evaluators", "matchers"):
        old, new = _names(before.get(key)), _names(after.get(key))
        if old is not None and new is not None and old != new:
            added = [f"with {each}" for each in new if each not in old]
            yield f"the {key}: {listed(added + [f'without {each}' for each in old if each not in new])}"
    yield from _replaced(_AGENT, before, after)
    if before.get("agent_config") != after.get("agent_config"):
        yield "the agent's config"
    digests = both("agent_digests")
    contents = [{str(digest) for digest in each.values()} for each in digests]
    if all(contents) and contents[0] != contents[1]:  # moving the file does not count
        yield f"the agent's source: {listed(_differing(*digests))}"
    was, now = (versions.get(_VERSION) for versions in both("versions"))
    if was and now and was != now:
        yield f"{_VERSION}: {was} → {now}"


def _replaced(titles: Mapping[str, str], before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key, title in titles.items():
        old, new = ("none" if each.get(key) is None else each[key] for each in (before, after))
        if old != new:
            yield f"{title}: {old} → {new}"


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [key for key in dict.fromkeys((*before, *after)) if before.get(key) != after.get(key)]


def _names(records: object) -> list[str] | None:
    """Return the names of evaluators or matchers in a run.json; None if the key is missing."""
    if not isinstance(records, list):
        return None
    return sorted(str(each.get("name") or each.get("media_type")) for each in map(_mapping, records))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
