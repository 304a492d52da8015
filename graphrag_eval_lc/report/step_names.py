"""What steps are to the reference: their names there, and which groups count."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching.steps import scored_groups
from graphrag_eval_lc.registry.step_kinds import ShownAs, shown_as


def step_name(step: Mapping[str, Any], config: EvaluationConfig) -> str:
    """Give the name under which an actual step fulfils a reference step, as the config maps the tools."""
    name = str(step.get("name"))
    return config.steps.names.get(name, name)


def is_query(reference: Mapping[str, Any]) -> bool:
    """Tell whether a reference step is a query of the graph: by its name, or by the media type of its output.

    Example:
        >>> results = "application/sparql-results+json"
        >>> is_query({"name": "run_sparql", "output_media_type": results}), is_query({"name": "run_sparql"})
        (True, False)
    """
    return _shown_as(reference) == "rows"


def is_iri(reference: Mapping[str, Any]) -> bool:
    """Tell whether a reference step is an IRI that has to be found before a query can use it.

    Example:
        >>> is_iri({"name": "iri_discovery", "output": "urn:a"}), is_iri({"name": "sparql_query"})
        (True, False)
    """
    return _shown_as(reference) == "iri"


def _shown_as(reference: Mapping[str, Any]) -> ShownAs:
    return shown_as(str(reference.get("name")), reference.get("output_media_type"))


def is_scored(group: int, groups: Sequence[Sequence[Any]], config: EvaluationConfig) -> bool:
    """Tell whether the group at an index counts for the score.

    Example:
        >>> is_scored(0, [["a"], ["b"], []], EvaluationConfig()), is_scored(1, [["a"], ["b"], []], EvaluationConfig())
        (False, True)
    """
    return group in scored_groups(groups, config.steps.scoring)
