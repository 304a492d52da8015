"""What to say of scores whose steps are graded, and of those that were scored again with another grading."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig, StepsConfig
from graphrag_eval_lc.registry.metrics import STEPS_F1, STEPS_SCORE


def grading_note(config: EvaluationConfig) -> str | None:
    """Return what ``steps_score`` is where steps are graded; None where they are not.

    Example:
        >>> grading_note(EvaluationConfig(steps=StepsConfig(grading="graded")))
        'Steps are graded: steps_score is steps_f1, over all groups'
        >>> grading_note(EvaluationConfig(steps=StepsConfig(grading="graded", scoring="last_group")))
        'Steps are graded: steps_score is steps_f1, over all groups; scoring: last_group says nothing'
    """
    steps = config.steps
    if steps.grading == "binary":
        return None
    # Where it is the default nobody expects anything of it.
    ignored = f"; scoring: {steps.scoring} says nothing" if "scoring" in steps.model_fields_set else ""
    return f"Steps are graded: {STEPS_SCORE} is {STEPS_F1}, over all groups{ignored}"


def grading_change(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Say that steps were graded otherwise before; None where they were not.

    Args:
        before: The configuration of the earlier scoring, as run.json has it.
        now: That of the present one.

    Example:
        >>> grading_change({"steps": {"scoring": "last_group"}}, {"steps": {"grading": "graded"}})
        'steps are graded now and were binary before, so that steps_score is not comparable with that of before'
    """
    old, new = _grading(before), _grading(now)
    if old == new:
        return None
    return f"steps are {new} now and were {old} before, so that {STEPS_SCORE} is not comparable with that of before"


def _grading(config: Mapping[str, Any]) -> Any:
    steps = config.get("steps")
    default = StepsConfig().grading
    return steps.get("grading", default) if isinstance(steps, Mapping) else default
