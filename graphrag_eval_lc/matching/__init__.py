"""Matching: reference steps and actual steps compared, with scores and reasons."""

from graphrag_eval_lc.matching.comparison import Comparison, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.diagnosis import StepDiagnosis
from graphrag_eval_lc.matching.iri import match_iri_discovery_steps
from graphrag_eval_lc.matching.json_text import match_json_steps
from graphrag_eval_lc.matching.registry import keep_as_built_in, register_matcher
from graphrag_eval_lc.matching.retrieval import match_retrieval_steps
from graphrag_eval_lc.matching.sparql import (
    SPARQL_RESULTS,
    SparqlComparison,
    compare_sparql_results,
    match_sparql_steps,
)
from graphrag_eval_lc.matching.steps import Match, StepsMatch, match_steps
from graphrag_eval_lc.matching.time_series import match_data_points_steps, match_time_series_steps

register_matcher(name="sparql_query", media_type=SPARQL_RESULTS)(match_sparql_steps)
register_matcher(media_type=SPARQL_RESULTS)(match_sparql_steps)
register_matcher(name="retrieval")(match_retrieval_steps)
register_matcher(name="iri_discovery", fulfilled_by=("autocomplete_search", "sparql_query"))(match_iri_discovery_steps)
register_matcher(name="retrieve_time_series")(match_time_series_steps)
register_matcher(name="retrieve_data_points")(match_data_points_steps)
register_matcher(media_type="application/json")(match_json_steps)
keep_as_built_in()

__all__ = [
    "Comparison",
    "Match",
    "SparqlComparison",
    "StepDiagnosis",
    "StepView",
    "StepsMatch",
    "UnreadableOutput",
    "compare_sparql_results",
    "explained",
    "match_steps",
    "register_matcher",
]
