"""What changed from one run to the next, according to their records: dataset, settings, judges, agent, capture."""

from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_eval_lc.compare.settings import changed_settings
from graphrag_eval_lc.run_store.stored_runs import StoredRun
from graphrag_eval_lc.texts import listed

_SHORT = 8  # of a digest, as people see it
_JUDGES = {"generation": "the judge", "embedding": "the judge's embeddings", "prompts": "the judges' prompts"}
_AGENT = {"agent": "the agent", "agent_source": "what the agent resolves to", "agent_config": "the agent's config"}
_VERSION = "graphrag-eval-lc"


def changes_between(before: StoredRun, after: StoredRun) -> list[str]:
    """Return what changed, each as a short sentence without a full stop; nothing if nothing is known.

    Args:
        before: A run.
        after: One that came later.
    """
    return [
        *_dataset_changes(before, after),
        *_setting_changes(before.record, after.record),
        *_judge_changes(before.record, after.record),
        *_evaluator_changes(before.record, after.record),
        *_agent_changes(before.record, after.record),
    ]


def _dataset_changes(before: StoredRun, after: StoredRun) -> Iterator[str]:
    digests = before.dataset_digest, after.dataset_digest
    questions, others = _mapping(before.record.get("questions")), _mapping(after.record.get("questions"))
    counts = {"new": len(others.keys() - questions.keys()), "gone": len(questions.keys() - others.keys())}
    changed = sum(others[key] != questions[key] for key in questions.keys() & others.keys())
    told = ", ".join(
        f"{number:,} {what}" for what, number in {**counts, "with another text": changed}.items() if number
    )
    if digests[0] is None or digests[1] is None or digests[0] == digests[1]:
        if questions and others and told:
            yield f"which questions of the dataset were asked: {told}"
        return
    which = f"questions {told}" if told else "its references or other keys"
    yield f"the dataset: {which} ({digests[0][:_SHORT]} → {digests[1][:_SHORT]})"


def _setting_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    configs = _mapping(before.get("config")), _mapping(after.get("config"))
    # The judges' models stand in a section of their own, by the names that the models themselves have.
    if configs[0] and configs[1] and (names := [name for name in changed_settings(*configs) if name != "llm"]):
        yield f"the config: {listed([name for name in names if not name.startswith('llm.')] or names)}"
    repeats = before.get("repeats") or 1, after.get("repeats") or 1
    if repeats[0] != repeats[1]:
        yield f"repeats: {repeats[0]} → {repeats[1]}"
    captures = _mapping(before.get("capture")), _mapping(after.get("capture"))
    if captures[0] and captures[1] and captures[0] != captures[1]:
        keys = dict.fromkeys((*captures[0], *captures[1]))
        yield f"what is kept of runs: {listed([key for key in keys if captures[0].get(key) != captures[1].get(key)])}"


def _judge_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    judges = _mapping(before.get("judges")), _mapping(after.get("judges"))
    for key, name in _JUDGES.items():
        if judges[0].get(key) == judges[1].get(key):
            continue
        if key == "prompts":
            prompts = _mapping(judges[0].get(key)), _mapping(judges[1].get(key))
            names = dict.fromkeys((*prompts[0], *prompts[1]))
            changed = [each for each in names if each in prompts[0] and each in prompts[1]]
            if others := [each for each in changed if prompts[0][each] != prompts[1][each]]:
                yield f"{name}: {listed(others)}"
        else:
            yield f"{name}: {_text(judges[0].get(key))} → {_text(judges[1].get(key))}"


def _evaluator_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key in ("evaluators", "matchers"):
        names = [_names(record.get(key)) for record in (before, after)]
        if names[0] is None or names[1] is None or names[0] == names[1]:
            continue
        new = [f"with {name}" for name in names[1] if name not in names[0]]
        gone = [f"without {name}" for name in names[0] if name not in names[1]]
        yield f"the {key}: {listed([*new, *gone])}"


def _names(records: object) -> list[str] | None:
    """Return the names of evaluators or matchers in a run.json; None if it does not have them."""
    if not isinstance(records, list):
        return None
    told = (_mapping(each) for each in records)
    return sorted(str(each.get("name") or each.get("media_type")) for each in told)


def _agent_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key, name in _AGENT.items():
        if before.get(key) != after.get(key):
            is_short = key != "agent_config"
            yield f"{name}: {_text(before.get(key))} → {_text(after.get(key))}" if is_short else name
    digests = _mapping(before.get("agent_digests")), _mapping(after.get("agent_digests"))
    contents = [{str(digest) for digest in each.values()} for each in digests]
    if all(contents) and contents[0] != contents[1]:  # a file that was only moved is no change
        names = dict.fromkeys((*digests[0], *digests[1]))
        yield f"the agent's source: {listed([each for each in names if digests[0].get(each) != digests[1].get(each)])}"
    versions = _mapping(before.get("versions")), _mapping(after.get("versions"))
    if (was := versions[0].get(_VERSION)) and (now := versions[1].get(_VERSION)) and was != now:
        yield f"{_VERSION}: {was} → {now}"


def _text(value: object) -> str:
    return "none" if value is None else str(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
