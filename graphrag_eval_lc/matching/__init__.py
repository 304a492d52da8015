"""Matching: reference steps and actual steps compared, with scores and reasons."""

from graphrag_eval_lc.files.record_file import Finding
from graphrag_eval_lc.matching.built_in_kinds import BUILT_IN
from graphrag_eval_lc.matching.candidates import StepDiagnosis
from graphrag_eval_lc.matching.matchers import Comparison, StepView, UnreadableOutput, explained, register_matcher
from graphrag_eval_lc.matching.sparql import SparqlComparison, compare_sparql_results
from graphrag_eval_lc.matching.steps import Match, StepsMatch, match_steps
from graphrag_eval_lc.registry.step_kinds import StepKind, declare_step_kinds, register_step_kind

declare_step_kinds(BUILT_IN)

__all__ = [
    "Comparison",
    "Finding",
    "Match",
    "SparqlComparison",
    "StepDiagnosis",
    "StepKind",
    "StepView",
    "StepsMatch",
    "UnreadableOutput",
    "compare_sparql_results",
    "explained",
    "match_steps",
    "register_matcher",
    "register_step_kind",
]
