"""Comparing SPARQL 1.1 JSON results: rows as tuples, whatever the columns are called."""

from graphrag_eval_lc.matching.sparql.comparison import SparqlComparison, compare_sparql_results
from graphrag_eval_lc.matching.sparql.readers import read_sparql_results
from graphrag_eval_lc.matching.sparql.results import SPARQL_RESULTS, SparqlResults, parse_sparql_results
from graphrag_eval_lc.matching.sparql.sparql_steps import match_sparql_steps

__all__ = [
    "SPARQL_RESULTS",
    "SparqlComparison",
    "SparqlResults",
    "compare_sparql_results",
    "match_sparql_steps",
    "parse_sparql_results",
    "read_sparql_results",
]
