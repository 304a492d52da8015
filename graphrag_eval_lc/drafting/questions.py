"""What of a response becomes the references of its question."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching.matchers import UnreadableOutput
from graphrag_eval_lc.registry.step_kinds import (
    RETRIEVAL,
    StepKind,
    drafting_kinds,
    drafting_kinds_by_form,
    step_kind_for,
)


def drafted_references(response: Mapping[str, Any], config: EvaluationConfig) -> dict[str, Any]:
    """Give the reference answer and the groups of reference steps for which a response may stand.

    Args:
        response: A response that did not fail.
        config: The configuration: what the tools are called among the reference steps, and which are retrieval.

    Returns:
        ``reference_answer`` and ``reference_steps``, each only where there is one.
    """
    references: dict[str, Any] = {}
    if response.get("actual_answer"):
        references["reference_answer"] = response["actual_answer"]
    names = config.steps.names
    steps = [
        {**step, "name": names.get(str(step.get("name")), str(step.get("name")))}
        for step in response.get("actual_steps") or ()
        if isinstance(step, Mapping)
    ]
    groups = _groups(steps, config.retrieval.document_step_names(names))
    if groups:
        references["reference_steps"] = groups
    return references


def _groups(steps: list[dict[str, Any]], document_names: frozenset[str]) -> list[list[dict[str, Any]]]:
    successful = [step for step in steps if step.get("status", "success") == "success"]
    drafted: dict[tuple[str, str], dict[str, Any]] = {}
    for place, step in enumerate(successful):
        name = step["name"]
        kind = _kind_of(step, document_names)
        reference = None if kind is None else _reference_step(kind, step, successful[place + 1 :])
        if kind is None or reference is None:
            continue
        key = (name, str(reference.get("output")) if kind.drafts_each else "")
        if not kind.drafts_each:
            drafted.pop(key, None)
        drafted[key] = reference
    return [[reference] for reference in drafted.values()]


def _kind_of(step: Mapping[str, Any], document_names: frozenset[str]) -> StepKind | None:
    """Give the kind of which an actual step is, by its name or by the form of its output; None for none."""
    name = step["name"]
    kinds = [step_kind_for(RETRIEVAL, None)] if name in document_names else drafting_kinds(name)
    if not kinds:
        kinds = [kind for kind in drafting_kinds_by_form() if kind.parse] + [step_kind_for(None, None)]
    return next((kind for kind in kinds if _is_readable(step, kind)), None)


def _is_readable(step: Mapping[str, Any], kind: StepKind) -> bool:
    if kind.reads == "args" or (kind.draft is not None and kind.parse is None):
        return True
    output = step.get("output")
    if not isinstance(output, str) or not output:
        return False
    try:
        if kind.parse is not None:
            kind.parse(output)
    except UnreadableOutput:
        return False
    return True


def _reference_step(kind: StepKind, step: Mapping[str, Any], later: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Give the reference step that a kind makes of an actual one; None where its output says nothing."""
    step = {**step, "args": step.get("args") or {}}
    if kind.draft is None:
        keys = ("name", "args") if kind.reads == "args" else ("name", "args", "output")
        media_type = kind.media_type_for(step["name"])
        return {key: step[key] for key in keys} | ({} if media_type is None else {"output_media_type": media_type})
    try:
        reference = kind.draft(step, later)
    except UnreadableOutput:
        return None
    except Exception as problem:
        what = f"the draft of {kind.key} failed with {type(problem).__name__}: {str(problem) or 'no message':.200}"
        raise MatcherError(what, mend="Mend the function that drafts its reference steps.") from problem
    if reference is not None and not (isinstance(reference, Mapping) and isinstance(reference.get("name"), str)):
        mend = "A draft is a reference step with a name, or None."
        raise MatcherError(f"the draft of {kind.key} gave {reference!r:.80}", mend=mend)
    return None if reference is None else dict(reference)
