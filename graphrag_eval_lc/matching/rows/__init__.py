"""Compares the results of queries: rows as tuples of values, whatever the columns are called."""

from graphrag_eval_lc.matching.rows.comparison import SparqlComparison, compare_sparql_results
from graphrag_eval_lc.matching.rows.readers import read_sparql_results
from graphrag_eval_lc.matching.rows.results import SPARQL_RESULTS, SparqlResults, parse_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import match_row_steps
from graphrag_eval_lc.public_names import only_public

__all__ = [
    "SPARQL_RESULTS",
    "SparqlComparison",
    "SparqlResults",
    "compare_sparql_results",
    "match_row_steps",
    "parse_sparql_results",
    "read_sparql_results",
]

__dir__ = only_public(globals())
