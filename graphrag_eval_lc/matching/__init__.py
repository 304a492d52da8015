"""Matching: compares reference steps with actual steps, and returns scores and reasons."""

from graphrag_eval_lc.files.record_file import Finding
from graphrag_eval_lc.matching.candidates import StepDiagnosis
from graphrag_eval_lc.matching.iri_discovery import IRI
from graphrag_eval_lc.matching.json_and_text import JSON, TEXT
from graphrag_eval_lc.matching.matchers import (
    CutOutput,
    StepScore,
    StepView,
    UnreadableOutput,
    explained,
    register_matcher,
)
from graphrag_eval_lc.matching.retrieval import DOCUMENTS
from graphrag_eval_lc.matching.rows import SparqlComparison, compare_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import ROWS
from graphrag_eval_lc.matching.steps import Match, StepsMatch, match_steps
from graphrag_eval_lc.matching.time_series import DATA_POINTS, TIME_SERIES
from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.registry.step_kinds import StepKind, declare_step_kinds, register_step_kind

# If several kinds fit an output, the first one in this list is used.
BUILT_IN = (ROWS, DOCUMENTS, IRI, TIME_SERIES, DATA_POINTS, JSON, TEXT)
declare_step_kinds(BUILT_IN)

__all__ = [
    "CutOutput",
    "Finding",
    "Match",
    "SparqlComparison",
    "StepDiagnosis",
    "StepKind",
    "StepScore",
    "StepView",
    "StepsMatch",
    "UnreadableOutput",
    "compare_sparql_results",
    "explained",
    "match_steps",
    "register_matcher",
    "register_step_kind",
]

__dir__ = only_public(globals())
