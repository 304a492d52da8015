"""What steps are to the reference: their names there, and which groups count."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig


def step_name(step: Mapping[str, Any], config: EvaluationConfig) -> str:
    """Give the name under which an actual step fulfils a reference step, as the config maps the tools."""
    name = str(step.get("name"))
    return config.steps.names.get(name, name)


def is_scored(group: int, groups: Sequence[Sequence[Any]], config: EvaluationConfig) -> bool:
    """Tell whether the group at an index counts for the score.

    Example:
        >>> is_scored(0, [["a"], ["b"], []], EvaluationConfig()), is_scored(1, [["a"], ["b"], []], EvaluationConfig())
        (False, True)
    """
    filled = [index for index, steps in enumerate(groups) if steps]
    return group in (filled if config.steps.scoring == "all_groups" else filled[-1:])
