"""Steps with a known score per reference step, compared by a custom matcher."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_eval_lc.matching import StepScore, StepsMatch, StepView, match_steps, register_matcher
from graphrag_eval_lc.matching.matchers import CutOutput


def match_by_score(reference: StepView, actual: StepView) -> StepScore:
    """Match only a score of 1, and grade by the score; ``?`` among the names leaves the comparison undecided."""
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


def register_score_matcher() -> None:
    """Register the matcher for ``look`` steps."""
    register_matcher(name="look")(match_by_score)


def references(*groups: str) -> list[list[dict[str, Any]]]:
    """Return groups of reference steps, one per letter."""
    return [[{"name": "look", "output": letter} for letter in group] for group in groups]


def look_calls(*worths: Mapping[str, float] | str) -> list[dict[str, Any]]:
    """Return calls with given scores. A string scores 1 for each of its letters."""
    outputs = [dict.fromkeys(each, 1.0) if isinstance(each, str) else dict(each) for each in worths]
    return [
        {"name": "look", "args": {"call": at}, "id": f"c{at}", "status": "success", "output": json.dumps(output)}
        for at, output in enumerate(outputs)
    ]


def graded(groups: Sequence[str], *worths: Mapping[str, float] | str) -> StepsMatch:
    """Match the groups with the calls, with partial scores."""
    register_score_matcher()
    return match_steps(references(*groups), look_calls(*worths), grading="graded")
