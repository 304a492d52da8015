"""Finding the mistakes in the reference steps of a question: what nothing could fulfil, and what is not as meant."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphrag_eval_lc.dataset.key_findings import (
    REFERENCE_STEP_KEYS,
    key_findings,
    output_findings,
    switch_findings,
)
from graphrag_eval_lc.dataset.query_language import language_of
from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.files.record_file import Finding, Location
from graphrag_eval_lc.matching.json_and_text import JSON
from graphrag_eval_lc.matching.matchers import CutOutput, StepView, UnreadableOutput
from graphrag_eval_lc.matching.outputs import cut_json
from graphrag_eval_lc.matching.retrieval import parse_relevant_ids
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS, parse_sparql_results, read_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import JSON_MEDIA_TYPE, REQUIRED_COLUMNS
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.registry.step_kinds import (
    Check,
    StepKind,
    bare_media_type,
    has_own_check,
    kind_if_readable,
    near_media_types,
    step_kind_for,
)
from graphrag_eval_lc.texts import shortened


def step_groups_findings(location: Location, groups: Any, views: StepViews) -> Iterator[Finding]:
    """Find what is wrong with the groups of reference steps of a question.

    Args:
        location: The location of the question.
        groups: Its reference steps.
        views: How the config has steps read and compared.
    """
    for group_index, group in enumerate(_list(groups)):
        place = (*location, "reference_steps", group_index)
        if isinstance(group, list | tuple) and not group:
            yield Finding("an empty group of reference steps", "Remove it, or add the steps that belong to it.", place)
        for index, step in enumerate(_list(group)):
            if isinstance(step, Mapping):
                yield from _step_findings((*place, index), step, views)


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else []


def _step_findings(location: Location, step: Mapping[str, Any], views: StepViews) -> Iterator[Finding]:
    yield from key_findings(location, step, REFERENCE_STEP_KEYS)
    yield from switch_findings(location, step)
    name, given = str(step.get("name")), step.get("output_media_type")
    given = given if isinstance(given, str) else None
    reference = views.reference_view({**step, "name": name, "output_media_type": given})
    _, media_type = views.compared_by(reference)
    kind = views.kind_of(reference)
    declared = views.declared_kind_of(name)
    # What is no text is a finding of the format.
    if declared is None and given == step.get("output_media_type"):
        yield from _media_type_findings(location, given, media_type, kind, reference)
    if step.get("relevant_ids") is not None:
        yield from _relevant_ids_findings((*location, "relevant_ids"), step["relevant_ids"])
        # An output beside them is there for its texts.
        if views.includes(reference) or (step.get("output") is None and not has_own_check(kind)):
            return
    if kind is step_kind_for(None, None):
        yield from output_findings(location, step.get("output"))
    if declared is None and kind_if_readable(name, media_type, step) not in (None, kind):
        yield from _column_findings(location, kind, reference)
    if kind.forms and media_type != given:  # its check reads the output as scoring does
        reference = views.reference_view({**step, "name": name, "output_media_type": media_type})
    for finding in _kind_findings(kind, reference, media_type):
        at = finding.location if not finding.location or finding.location[0] in step else ()
        yield replace(finding, location=(*location, *at))


def _media_type_findings(
    location: Location, given: str | None, meant: str | None, kind: StepKind, reference: StepView
) -> Iterator[Finding]:
    """Find a media type that is read as another one, is unknown, or says less than the output."""
    place = (*location, "output_media_type")
    if given is None and meant is not None:
        what = f"there is no output_media_type, and the output is compared as {kind.title_for(meant)}"
        yield Finding(what, f"Add output_media_type: {meant}.", location, severity="warning")
    elif (
        given is not None
        and given != meant
        and not (meant == JSON_MEDIA_TYPE and bare_media_type(given).endswith("+json"))
    ):
        what = f"the media type {shortened(given, 80)} is read as {meant}"
        yield Finding(what, f"Write output_media_type: {meant}.", place, severity="warning")
    elif given is not None and kind is step_kind_for(None, None) and (near := near_media_types(given)):
        what = f"the media type {shortened(given, 80)} is unknown, so that the output is compared as a text"
        yield Finding(what, f"Write {near[0]}, with an output of that kind.", place)
    elif kind is step_kind_for(None, None) and _is_readable(reference, parse_sparql_results):
        what = "the output is SPARQL results and compared as a text, so that the order of its rows and its names count"
        hint = f"{'Add' if given is None else 'Write'} output_media_type: {SPARQL_RESULTS}."
        yield Finding(what, hint, location if given is None else place, severity="warning")
    elif (form := _rows_of_own_query(given, kind, reference)) is not None:
        as_what = "a text" if kind is step_kind_for(None, None) else kind.title
        what = f"a query gave the output, {form}, and it is compared as {as_what}, so that the order of its rows and"
        hint = f"Have its rows compared: steps: {{kinds: {{{reference['name']}: rows}}}} in the config."
        yield Finding(f"{what} its names count", hint, location, severity="warning")
    elif given is not None and kind is step_kind_for(None, None) and bare_media_type(given) != "text/plain":
        what = f"outputs of the media type {shortened(given, 80)} cannot be compared, other than as the same text"
        hint = "Keep it if the text must be the same, to the letter; else store an output that can be compared."
        yield Finding(what, hint, place, severity="warning")


def _column_findings(location: Location, kind: StepKind, reference: StepView) -> Iterator[Finding]:
    """Find columns that are required of an output that is no rows, and is compared otherwise."""
    if reference.get(REQUIRED_COLUMNS) is None or reference.get("output") is None:
        return
    try:
        reference.parsed(read_sparql_results)
    except UnreadableOutput as problem:
        if kind.parse is not None and not _is_readable(reference, kind.parse):  # said of the kind, with what mends it
            return
        what = f"{REQUIRED_COLUMNS} are given, and the output is no rows, so that it is compared as {kind.title}"
        hint = f"Store the rows that the tool gives, or leave {REQUIRED_COLUMNS} out."
        yield Finding(f"{what}: {problem}", hint, (*location, "output"))


def _rows_of_own_query(given: str | None, kind: StepKind, reference: StepView) -> str | None:
    """Return the form of rows that a tool of any name gave to a query; None where it is none, or they are compared."""
    args = reference.get("args")
    if kind not in (JSON, step_kind_for(None, None)) or given not in (None, JSON_MEDIA_TYPE):
        return None
    if not isinstance(args, Mapping) or not any(isinstance(arg, str) and language_of(arg) for arg in args.values()):
        return None
    return reference.parsed(read_sparql_results).form if _is_readable(reference, read_sparql_results) else None


def _is_readable(reference: StepView, parse: Callable[[Any], Any]) -> bool:
    try:
        reference.parsed(parse)
    except UnreadableOutput:
        return False
    return True


def _kind_findings(kind: StepKind, reference: StepView, media_type: str | None) -> Iterator[Finding]:
    """Find the mistakes in a reference step of a kind; their locations begin in the step."""
    if kind.reads == "output" and kind.check is None and kind.parse is None:
        kind = step_kind_for(None, media_type)
    try:
        if kind.check is not None:
            yield from _checked(kind, kind.check, reference)
        elif kind.reads == "args":
            if not isinstance(reference.get("args"), Mapping):
                yield Finding(f"a {reference['name']} step is compared by its args, and has none", "Add args.")
        elif kind.parse is not None:
            reference.parsed(kind.parse)
        elif reference.get("output") is None:
            yield Finding("no output to compare with", "Add output: what a good agent sees.", ("output",))
    except UnreadableOutput as problem:
        title = kind.title_for(media_type)
        what, hint = f"the output cannot be read as {title}: {problem}", "Store what the tool gives."
        output = reference.get("output")
        if isinstance(problem, CutOutput):
            hint = "Store all that the tool gives."
        elif isinstance(output, str) and (place := cut_json(output)) is not None:
            what, hint = f"{what}; {place}", "Store all that the tool gives."
        yield Finding(what, hint, ("output",))


def _checked(kind: StepKind, check: Check, reference: StepView) -> list[Finding]:
    try:
        findings = list(check(reference))
    except UnreadableOutput:
        raise
    except Exception as problem:
        what = f"the check of {kind.key} failed with {type(problem).__name__}: {str(problem) or 'no message':.200}"
        return [Finding(what, "Mend the step, or the function that checks it.")]
    for finding in findings:
        if not isinstance(finding, Finding):
            hint = "A check gives Findings of graphrag_eval_lc.matching."
            raise MatcherError(f"the check of {kind.key} gave {finding!r:.80}", hint=hint)
    return findings


def _relevant_ids_findings(location: Location, relevant_ids: Any) -> Iterator[Finding]:
    try:
        if isinstance(relevant_ids, Collection) and not isinstance(relevant_ids, str | bytes):  # as the format has it
            parse_relevant_ids(relevant_ids)
    except UnreadableOutput as problem:
        hint = "List ids, or groups of ids of which one will do, or give each id its gain."
        yield Finding(str(problem), hint, location)
