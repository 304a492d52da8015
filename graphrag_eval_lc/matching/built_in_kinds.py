"""The step kinds of this package: each with its matcher, its check and its draft."""

from graphrag_eval_lc.matching.iri_discovery import (
    AUTOCOMPLETE_SEARCH,
    IRI_DISCOVERY,
    check_iri_step,
    draft_iri_step,
    match_iri_discovery_steps,
)
from graphrag_eval_lc.matching.json_and_text import match_json_steps, match_texts, parse_json_output
from graphrag_eval_lc.matching.retrieval import (
    check_documents_step,
    draft_documents_step,
    match_retrieval_steps,
    parse_document_ids,
)
from graphrag_eval_lc.matching.sparql import SPARQL_RESULTS, match_sparql_steps, parse_sparql_results
from graphrag_eval_lc.matching.sparql.comparison import check_sparql_step, draft_sparql_step
from graphrag_eval_lc.matching.time_series import match_data_points_steps, match_time_series_steps
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, StepKind

_SPARQL_QUERY = "sparql_query"


# Of forms that an output may have, the earlier goes before the later.
BUILT_IN = (
    StepKind(
        key="sparql",
        title="SPARQL results",
        serves=((_SPARQL_QUERY, SPARQL_RESULTS), (None, SPARQL_RESULTS)),
        matcher=match_sparql_steps,
        parse=parse_sparql_results,
        check=check_sparql_step,
        draft=draft_sparql_step,
        shown_as="rows",
    ),
    StepKind(
        key="retrieval",
        title="documents",
        serves=((RETRIEVAL, None),),
        matcher=match_retrieval_steps,
        parse=parse_document_ids,
        check=check_documents_step,
        draft=draft_documents_step,
    ),
    StepKind(
        key="iri_discovery",
        title="an IRI",
        serves=((IRI_DISCOVERY, None),),
        matcher=match_iri_discovery_steps,
        fulfilled_by=(AUTOCOMPLETE_SEARCH, _SPARQL_QUERY),
        check=check_iri_step,
        draft=draft_iri_step,
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
