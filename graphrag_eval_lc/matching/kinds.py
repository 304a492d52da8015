"""The kinds of steps of this package: how each is compared, checked, drafted and shown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.comparison import StepView
from graphrag_eval_lc.matching.iri import AUTOCOMPLETE_SEARCH, holds_whole, match_iri_discovery_steps
from graphrag_eval_lc.matching.json_text import match_json_steps, match_texts, parse_json_output
from graphrag_eval_lc.matching.relevant_ids import parse_document_ids
from graphrag_eval_lc.matching.retrieval import match_retrieval_steps
from graphrag_eval_lc.matching.sparql import SPARQL_RESULTS, match_sparql_steps, parse_sparql_results
from graphrag_eval_lc.matching.time_series import match_data_points_steps, match_time_series_steps
from graphrag_eval_lc.record_files import Finding
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, StepKind

_SPARQL_QUERY = "sparql_query"
_IRI_DISCOVERY = "iri_discovery"

Step = Mapping[str, Any]


def _check_sparql(step: StepView) -> Iterator[Finding]:
    results = step.parsed(parse_sparql_results)
    required = step.get("required_columns")
    for index, column in enumerate(required if isinstance(required, list | tuple) else ()):
        if results.boolean is None and column not in results.variables:
            near = f"It has: {', '.join(results.variables) or 'none'}."
            yield Finding(f"the output has no column {column}", near, ("required_columns", index))


def _check_documents(step: StepView) -> Iterator[Finding]:
    if step.id_column is not None:  # it counts as retrieval as its output has ids
        yield from _check_sparql(step)
    elif not step.parsed(parse_document_ids):
        yield Finding("no relevant documents", "List at least one, as [{id: …}].", ("output",))


def _check_iri(step: StepView) -> Iterator[Finding]:
    if not isinstance(step.get("output"), str) or not step["output"]:
        yield Finding(f"an {_IRI_DISCOVERY} step needs the IRI as its output", "Write the IRI.", ("output",))


def _draft_sparql(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    """Give a query's reference step; None where its results say nothing."""
    del later
    results = parse_sparql_results(step["output"])
    if results.boolean is None and not results.row_count:
        return None
    kept = {key: step[key] for key in ("name", "args", "output")}
    return {**kept, "output_media_type": SPARQL_RESULTS, "required_columns": list(results.variables)}


def _draft_documents(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    del later
    return {key: step[key] for key in ("name", "args", "output")} if parse_document_ids(step["output"]) else None


def _draft_iri(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    """Give the reference step for the first hit of a search that stands in the arguments of a later step."""
    results = parse_sparql_results(step.get("output"))
    asked = "\n".join(_argument_text(other) for other in later)
    texts = (
        text for each in results.columns.values() for row, text in enumerate(each.texts) if each.kind(row) == "uri"
    )
    iri = next((text for text in texts if holds_whole(asked, text)), None)
    if iri is None:
        return None
    args = {"query": (step.get("args") or {}).get("query")}
    return {"name": _IRI_DISCOVERY, "args": args, "output": iri, "output_media_type": "text/uri"}


def _argument_text(step: Step) -> str:
    args = step.get("args")
    values = args.values() if isinstance(args, Mapping) else [args]
    return "\n".join(value if isinstance(value, str) else json_text(value) for value in values)


# Of forms that an output may have, the earlier goes before the later.
BUILT_IN = (
    StepKind(
        key="sparql",
        title="SPARQL results",
        serves=((_SPARQL_QUERY, SPARQL_RESULTS), (None, SPARQL_RESULTS)),
        matcher=match_sparql_steps,
        parse=parse_sparql_results,
        check=_check_sparql,
        draft=_draft_sparql,
        shown_as="rows",
    ),
    StepKind(
        key="retrieval",
        title="documents",
        serves=((RETRIEVAL, None),),
        matcher=match_retrieval_steps,
        parse=parse_document_ids,
        check=_check_documents,
        draft=_draft_documents,
    ),
    StepKind(
        key="iri_discovery",
        title="an IRI",
        serves=((_IRI_DISCOVERY, None),),
        matcher=match_iri_discovery_steps,
        fulfilled_by=(AUTOCOMPLETE_SEARCH, _SPARQL_QUERY),
        check=_check_iri,
        draft=_draft_iri,
        drafted_from=(AUTOCOMPLETE_SEARCH,),
        drafts_each=True,
        shown_as="iri",
    ),
    StepKind(
        key="time_series",
        title="time series",
        serves=(("retrieve_time_series", None),),
        matcher=match_time_series_steps,
        reads="args",
    ),
    StepKind(
        key="data_points",
        title="data points",
        serves=(("retrieve_data_points", None),),
        matcher=match_data_points_steps,
        reads="args",
    ),
    StepKind(
        key="json",
        title="JSON",
        serves=((None, "application/json"),),
        matcher=match_json_steps,
        parse=parse_json_output,
    ),
    StepKind(key="text", serves=((None, None),), matcher=match_texts),
)
