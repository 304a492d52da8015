"""The step kind iri_discovery: whether a search or a query found the IRI."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from graphrag_eval_lc.files.record_file import Finding
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.iri_rank import IRI_CHARACTER, found_at, rank_in_results, rank_in_text
from graphrag_eval_lc.matching.matchers import CutOutput, Step, StepScore, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.outputs import cut_mark
from graphrag_eval_lc.matching.rows import parse_sparql_results
from graphrag_eval_lc.matching.rows.readers import step_results
from graphrag_eval_lc.matching.rows.results import SparqlResults
from graphrag_eval_lc.matching.rows.row_steps import SPARQL_QUERY
from graphrag_eval_lc.registry.step_kinds import StepKind

_IRI_DISCOVERY: Final = "iri_discovery"
# The tool that finds IRIs by their labels.
AUTOCOMPLETE_SEARCH: Final = "autocomplete_search"


def match_iri_discovery_steps(reference: StepView, actual: StepView) -> StepScore:
    """Score 1 where the reference step's IRI stands in the actual step's output.

    In the results of an ``autocomplete_search`` it must be a URI binding; in the output of any other step it may
    stand anywhere, but only as a whole term: ``urn:a`` does not stand in ``urn:ab``. The grade is 1 ÷ its rank among
    the IRIs of the output.
    """
    iri = reference.get("output")
    if not isinstance(iri, str) or not iri:
        return explained(0.0, "the reference step names no IRI as its output")
    output = actual.get("output")
    if not isinstance(output, str) and actual.declared is None:
        return explained(0.0, "there is no output")
    if actual.declared is None and iri not in output and "\\" not in output and not _may_be_cut(actual, output):
        return _missing(iri, actual)
    try:
        results = step_results(actual)
    except CutOutput as problem:
        return _in_cut_text(iri, output, actual, problem)
    except UnreadableOutput as problem:
        return _in_text(iri, output, actual, problem)
    only_uris = actual.get("name") == AUTOCOMPLETE_SEARCH and not results.is_untyped
    if _holds_term(results, iri, only_uris=only_uris):
        return found_at(lambda: rank_in_results(results, iri), f"{iri} is in the output")
    if results.faults:  # it may stand in a column that cannot be read
        faults = "; ".join(map(results.fault_of, results.faults))
        return _in_text(iri, output, actual, UnreadableOutput(faults))
    return _missing(iri, actual)


def _may_be_cut(actual: StepView, output: str) -> bool:
    """Return whether an output may end before its end, told quickly."""
    is_broken_json = output[:1] in {"{", "["} and output.rstrip()[-1:] not in {"}", "]"}
    return is_broken_json or actual.cut_by_capture is not None or cut_mark(output) is not None


def _in_cut_text(iri: str, output: Any, actual: StepView, problem: CutOutput) -> StepScore:
    """Look in what is left of an output; where the IRI does not stand there, it may have stood behind the cut."""
    if not isinstance(output, str) or output.endswith(iri) or (place := _place_of(output, iri)) is None:
        raise problem
    if actual.get("name") == AUTOCOMPLETE_SEARCH:  # whether as a binding of a URI is not known
        return found_at(lambda: rank_in_text(output, place), str(problem), cut=str(problem))
    return found_at(lambda: rank_in_text(output, place), f"{iri} is in the output")


def _in_text(iri: str, output: Any, actual: StepView, problem: UnreadableOutput) -> StepScore:
    """Look in an output that is no SPARQL results, such as the Turtle of a DESCRIBE."""
    if actual.get("name") == AUTOCOMPLETE_SEARCH or not isinstance(output, str):
        return explained(0.0, str(problem), unreadable=str(problem))
    place = _place_of(output, iri)
    if place is not None:
        return found_at(lambda: rank_in_text(output, place), f"{iri} is in the output")
    mark = cut_mark(output)
    if mark is not None:
        raise CutOutput(f"the output ends with {mark!r}")
    return _missing(iri, actual)


def holds_whole(text: str, iri: str) -> bool:
    """Return whether an IRI stands in a text as a whole term, not as part of another one.

    Example:
        >>> holds_whole("<urn:a> a <urn:b> .", "urn:a"), holds_whole("<urn:ab>", "urn:a")
        (True, False)
    """
    return _place_of(text, iri) is not None


def _place_of(text: str, iri: str) -> int | None:
    """Return where an IRI first stands in a text as a whole term; None where it does not."""
    if iri not in text:
        return None
    whole = re.search(rf"(?<!{IRI_CHARACTER}){re.escape(iri)}(?!(?:\.(?!\s|$)|(?!\.){IRI_CHARACTER}))", text)
    return None if whole is None else whole.start()


def _holds_term(results: SparqlResults, iri: str, *, only_uris: bool) -> bool:
    """Return whether a cell is the IRI; or, unless only bindings of URIs count, the part of a triple term."""
    columns = results.columns.values()
    if only_uris:
        return any(text == iri and each.kind(row) == "uri" for each in columns for row, text in enumerate(each.texts))
    return any(iri in cells.texts for each in columns for cells in each.with_parts.values())


def _missing(iri: str, actual: StepView) -> StepScore:
    return explained(0.0, f"{iri} is not in the output of {actual.get('name')}")


def _check_step(step: StepView) -> Iterator[Finding]:
    """Find reference steps without an IRI."""
    if not isinstance(step.get("output"), str) or not step["output"]:
        yield Finding(f"an {_IRI_DISCOVERY} step needs the IRI as its output", "Write the IRI.", ("output",))


def _draft_step(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    """Return a reference step for the first IRI of a search that a later step uses in its arguments."""
    results = parse_sparql_results(step.get("output"))
    asked = "\n".join(_argument_text(other) for other in later)
    texts = (
        text for each in results.columns.values() for row, text in enumerate(each.texts) if each.kind(row) == "uri"
    )
    iri = next((text for text in texts if holds_whole(asked, text)), None)
    if iri is None:
        return None
    given = step.get("args") or {}
    args = {"query": given["query"]} if "query" in given else given
    return {"name": _IRI_DISCOVERY, "args": args, "output": iri, "output_media_type": "text/uri"}


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
