"""The step kind iri_discovery: whether a search or a query found the IRI."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from graphrag_eval_lc.files.record_file import Finding
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.iri_rank import (
    found_at,
    holds_whole,
    iris_in_text,
    place_of,
    rank_in_results,
    rank_in_text,
    readable_text,
)
from graphrag_eval_lc.matching.matchers import CutOutput, Step, StepScore, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.outputs import cut_mark
from graphrag_eval_lc.matching.rows import read_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import SPARQL_QUERY, step_results
from graphrag_eval_lc.registry.step_kinds import StepKind

_IRI_DISCOVERY: Final = "iri_discovery"
# The tool that finds IRIs by their labels.
AUTOCOMPLETE_SEARCH: Final = "autocomplete_search"


def match_iri_discovery_steps(reference: StepView, actual: StepView) -> StepScore:
    """Score 1 if the reference step's IRI is in the actual step's output as a whole term.

    The output may have any form: SPARQL results, in which a cell must be the IRI; JSON, a table, lines or a sentence.
    ``urn:a`` is not in ``urn:ab``, and an error that quotes an IRI has not found it. The grade is 1 ÷ its rank among
    the IRIs of the output.
    """
    iri = reference.get("output")
    if not isinstance(iri, str) or not iri:
        return explained(0.0, "the reference step names no IRI as its output")
    output = actual.get("output")
    if output is None and actual.declared is None:
        return explained(0.0, "there is no output")
    text = actual.once(_text_of)
    if actual.declared is None and iri not in text and not _may_be_cut(actual, text):
        return _missing(iri, actual)
    try:
        results = step_results(actual)
    except CutOutput as problem:
        # An IRI at the end may go on behind the cut.
        if not text.endswith(iri) and (place := place_of(text, iri)) is not None:
            return _found(text, place, iri)
        raise problem
    except UnreadableOutput as problem:
        if _tells_of_error(problem):
            return explained(0.0, f"the output of {actual.tool or actual.get('name')} is {problem}")
        results = None
    if results is not None:
        if any(iri in cells.texts for each in results.columns.values() for cells in each.with_parts.values()):
            return found_at(lambda: rank_in_results(results, iri), f"{iri} is in the output")
        if not results.is_untyped and not results.faults:
            return _missing(iri, actual)
    if (place := place_of(text, iri)) is not None:
        return _found(text, place, iri)
    if results is None and (mark := cut_mark(text)) is not None:
        raise CutOutput(f"the output ends with {mark!r}")
    return _missing(iri, actual)


def _text_of(step: StepView) -> str:
    return readable_text(step.get("output"))


def _tells_of_error(problem: UnreadableOutput) -> bool:
    """Return whether an output is an error, such as ``Error: there is no <urn:a>``, which found nothing."""
    return str(problem).startswith("an error: ")


def _may_be_cut(actual: StepView, output: str) -> bool:
    """Return whether an output may end before its end, told quickly."""
    is_broken_json = output[:1] in {"{", "["} and output.rstrip()[-1:] not in {"}", "]"}
    return is_broken_json or actual.cut_by_capture is not None or cut_mark(output) is not None


def _found(text: str, place: int, iri: str) -> StepScore:
    return found_at(lambda: rank_in_text(text, place), f"{iri} is in the output")


def _missing(iri: str, actual: StepView) -> StepScore:
    return explained(0.0, f"{iri} is not in the output of {actual.tool or actual.get('name')}")


def _check_step(step: StepView) -> Iterator[Finding]:
    """Find reference steps without an IRI, or with one that no tool would give as it is written."""
    output = step.get("output")
    if not isinstance(output, str) or not output:
        yield Finding(f"an {_IRI_DISCOVERY} step needs the IRI as its output", "Write the IRI.", ("output",))
    elif output != (iri := output.strip().removeprefix("<").removesuffix(">").strip()):
        what = "the IRI has angle brackets, spaces or a line break around it, and is looked for with them"
        yield Finding(what, f"Write {iri}.", ("output",), severity="warning")


def _draft_step(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    """Return a reference step for the first IRI of a search that a later step uses in its arguments."""
    asked = "\n".join(_argument_text(other) for other in later)
    iri = next((each for each in iris_of(step.get("output")) if holds_whole(asked, each)), None)
    if iri is None:
        return None
    given = step.get("args") or {}
    args = {"query": given["query"]} if "query" in given else given
    return {"name": _IRI_DISCOVERY, "args": args, "output": iri, "output_media_type": "text/uri"}


def iris_of(output: Any) -> list[str]:
    """Return the IRIs of an output of any form, in reading order; of a text also what may be one.

    Example:
        >>> iris_of('["urn:a", "urn:b"]')
        ['urn:a', 'urn:b']
    """
    try:
        results = read_sparql_results(output)
    except UnreadableOutput as problem:
        return iris_in_text(readable_text(output)) if output and not _tells_of_error(problem) else []
    if results.is_untyped:
        return iris_in_text("\n".join(text for each in results.columns.values() for text in each.texts))
    columns = results.columns.values()
    return [text for each in columns for row, text in enumerate(each.texts) if each.kind(row) == "uri"]


def _argument_text(step: Step) -> str:
    args = step.get("args")
    values = args.values() if isinstance(args, Mapping) else [args]
    return "\n".join(value if isinstance(value, str) else json_text(value) for value in values)


IRI = StepKind(
    key=_IRI_DISCOVERY,
    title="an IRI",
    serves=((_IRI_DISCOVERY, None),),
    matcher=match_iri_discovery_steps,
    fulfilled_by=(AUTOCOMPLETE_SEARCH, SPARQL_QUERY),
    check=_check_step,
    draft=_draft_step,
    drafted_from=(AUTOCOMPLETE_SEARCH,),
    drafts_each=True,
    shown_as="iri",
)
