"""Steps whose outputs say what they are worth for which reference step, told by a matcher of a test's own."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_eval_lc.matching import StepScore, StepsMatch, StepView, match_steps, register_matcher
from graphrag_eval_lc.matching.matchers import CutOutput


def match_by_worth(reference: StepView, actual: StepView) -> StepScore:
    """Score 1 what is worth 1, and grade by the worth; ``?`` among the names leaves the comparison undecided."""
    worths: Mapping[str, float] = json.loads(actual["output"])
    if "cut" in worths:
        raise CutOutput("the output breaks off")
    worth = worths.get(reference["output"], 0.0)
    is_undecided = "?" in worths
    score = float(worth == 1 and not is_undecided)
    return StepScore(
        score,
        lambda: "it fits" if score else "it does not fit",
        lambda: worth,
        is_undecided=is_undecided,
        grade=lambda: worth,
        grade_reason=lambda: f"Worth {worth}, so it says.",
    )


def register_worths() -> None:
    """Have steps called ``look`` compared so."""
    register_matcher(name="look")(match_by_worth)


def references(*groups: str) -> list[list[dict[str, Any]]]:
    """Return groups of reference steps, one for each letter of a text."""
    return [[{"name": "look", "output": letter} for letter in group] for group in groups]


def looks(*worths: Mapping[str, float] | str) -> list[dict[str, Any]]:
    """Return calls that are worth so much; a text stands for what is worth 1 for each of its letters."""
    outputs = [dict.fromkeys(each, 1.0) if isinstance(each, str) else dict(each) for each in worths]
    return [
        {"name": "look", "args": {"call": at}, "id": f"c{at}", "status": "success", "output": json.dumps(output)}
        for at, output in enumerate(outputs)
    ]


def graded(groups: Sequence[str], *worths: Mapping[str, float] | str) -> StepsMatch:
    """Match such groups with such calls, graded."""
    register_worths()
    return match_steps(references(*groups), looks(*worths), grading="graded")
