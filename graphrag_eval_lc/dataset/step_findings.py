"""Finds the mistakes in a reference step: what no step could match, and what is not read as intended."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from numbers import Number
from typing import Any

from graphrag_eval_lc.dataset.query_language import language_of
from graphrag_eval_lc.dataset.rules import found, in_quotes, shown
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


def step_findings(location: Location, step: Mapping[str, Any], views: StepViews) -> Iterator[Finding]:
    """Yield the mistakes in the output, the media type, the columns and the ids of a reference step."""
    name, given = str(step.get("name")), step.get("output_media_type")
    given = given if isinstance(given, str) else None
    reference = views.reference_view({**step, "name": name, "output_media_type": given})
    _, media_type = views.compared_by(reference)
    kind = views.kind_of(reference)
    declared = views.declared_kind_of(name)
    # A value that is not a text is reported by the format check.
    if declared is None and given == step.get("output_media_type"):
        yield from _media_type_findings(location, given, media_type, kind, reference)
    if step.get("relevant_ids") is not None:
        yield from _relevant_ids_findings((*location, "relevant_ids"), step["relevant_ids"])
        # An output next to them is for its texts.
        if views.includes(reference) or (step.get("output") is None and not has_own_check(kind)):
            return
    if kind is step_kind_for(None, None):
        yield from _output_findings((*location, "output"), step.get("output"))
    if declared is None and kind_if_readable(name, media_type, step) not in (None, kind):
        yield from _column_findings(location, kind, reference)
    if kind.forms and media_type != given:  # its check reads the output as scoring does
        reference = views.reference_view({**step, "name": name, "output_media_type": media_type})
    for finding in _kind_findings(kind, reference, media_type):
        at = finding.location if not finding.location or finding.location[0] in step else ()
        yield replace(finding, location=(*location, *at))


def _output_findings(location: Location, output: object) -> Iterator[Finding]:
    """Find a reference output that is not a text although texts are compared."""
    if isinstance(output, Number):
        yield found("output_number", location, value=shown(output), quote=in_quotes(output)[:-1])
    elif output is not None and not isinstance(output, str):
        yield found("output_type", location, type=type(output).__name__)


def _media_type_findings(
    location: Location, given: str | None, meant: str | None, kind: StepKind, reference: StepView
) -> Iterator[Finding]:
    """Find a media type that is read as another one, is unknown, or says less than the output."""
    key = (*location, "output_media_type")
    place = location if given is None else key
    is_text = kind is step_kind_for(None, None)
    shown_type = shortened(given or "", 80)
    is_json = meant == JSON_MEDIA_TYPE and bare_media_type(given or "").endswith("+json")
    if given is None and meant is not None:
        yield found("no_media_type", location, title=kind.title_for(meant), meant=meant)
    elif given is not None and given != meant and not is_json:
        yield found("other_media_type", key, given=shown_type, meant=meant)
    elif given is not None and is_text and (near := near_media_types(given)):
        yield found("unknown_media_type", key, given=shown_type, near=near[0])
    elif is_text and _is_readable(reference, parse_sparql_results):
        yield found("results_as_text", place, verb="Add" if given is None else "Write", meant=SPARQL_RESULTS)
    elif (form := _rows_of_own_query(given, kind, reference)) is not None:
        title = "a text" if is_text else kind.title
        yield found("rows_as_other", location, form=form, title=title, name=reference["name"])
    elif given is not None and is_text and bare_media_type(given) != "text/plain":
        yield found("text_media_type", key, given=shown_type)


def _column_findings(location: Location, kind: StepKind, reference: StepView) -> Iterator[Finding]:
    """Find columns that are required of an output that is not rows, and is compared otherwise."""
    if reference.get(REQUIRED_COLUMNS) is None or reference.get("output") is None:
        return
    try:
        reference.parsed(read_sparql_results)
    except UnreadableOutput as problem:
        if kind.parse is None or _is_readable(reference, kind.parse):  # else the kind's own finding says how to fix it
            yield found("columns_without_rows", (*location, "output"), title=kind.title, problem=problem)


def _rows_of_own_query(given: str | None, kind: StepKind, reference: StepView) -> str | None:
    """Return the form of the rows that a query returned to any tool; None if there are none, or they are compared."""
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
                yield found("no_args", name=reference["name"])
        elif kind.parse is not None:
            reference.parsed(kind.parse)
        elif reference.get("output") is None:
            yield found("no_output", ("output",))
    except UnreadableOutput as problem:
        output = reference.get("output")
        place = cut_json(output) if isinstance(output, str) and not isinstance(problem, CutOutput) else None
        rule = "cut_output" if isinstance(problem, CutOutput) or place is not None else "unreadable_output"
        said = f"{problem}; {place}" if place is not None else problem
        yield found(rule, ("output",), title=kind.title_for(media_type), problem=said)


def _checked(kind: StepKind, check: Check, reference: StepView) -> list[Finding]:
    try:
        findings = list(check(reference))
    except UnreadableOutput:
        raise
    except Exception as problem:
        said = f"{type(problem).__name__}: {str(problem) or 'no message':.200}"
        return [found("failed_check", kind=kind.key, problem=said)]
    for finding in findings:
        if not isinstance(finding, Finding):
            hint = "A check yields Findings of graphrag_eval_lc.matching."
            raise MatcherError(f"the check of {kind.key} returned {finding!r:.80}", hint=hint)
    return findings


def _relevant_ids_findings(location: Location, relevant_ids: Any) -> Iterator[Finding]:
    try:
        if isinstance(relevant_ids, Collection) and not isinstance(relevant_ids, str | bytes):  # as the format requires
            parse_relevant_ids(relevant_ids)
    except UnreadableOutput as problem:
        yield found("relevant_ids", location, problem=problem)
