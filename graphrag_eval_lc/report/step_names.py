"""What steps are to the reference: their names there, and which groups count."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching.registry import names_with_a_meaning
from graphrag_eval_lc.matching.sparql import SPARQL_RESULTS
from graphrag_eval_lc.matching.steps import scored_groups


def step_name(step: Mapping[str, Any], config: EvaluationConfig) -> str:
    """Give the name under which an actual step fulfils a reference step, as the config maps the tools."""
    name = str(step.get("name"))
    return config.steps.names.get(name, name)


def is_query(reference: Mapping[str, Any]) -> bool:
    """Tell whether a reference step is a query of the graph: by its name, or by the media type of its output.

    Example:
        >>> is_query({"name": "run_sparql", "output_media_type": SPARQL_RESULTS}), is_query({"name": "run_sparql"})
        (True, False)
    """
    name = reference.get("name")
    has_results = reference.get("output_media_type") == SPARQL_RESULTS
    return name == "sparql_query" or (has_results and name not in names_with_a_meaning())


def is_scored(group: int, groups: Sequence[Sequence[Any]], config: EvaluationConfig) -> bool:
    """Tell whether the group at an index counts for the score.

    Example:
        >>> is_scored(0, [["a"], ["b"], []], EvaluationConfig()), is_scored(1, [["a"], ["b"], []], EvaluationConfig())
        (False, True)
    """
    return group in scored_groups(groups, config.steps.scoring)
