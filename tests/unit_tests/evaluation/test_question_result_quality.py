"""Recall, precision, F1 and order of the steps in results."""

from typing import Any

import pytest

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.matching import StepScore, register_matcher

QUALITY = ("steps_recall", "steps_precision", "steps_f1", "steps_order")
GROUPS = [[{"name": "find", "output": "a"}], [{"name": "look", "output": "b"}]]


def call(name: str, output: str) -> dict[str, Any]:
    return {"name": name, "args": {}, "status": "success", "output": output}


def result_of(*steps: dict[str, Any], groups: Any = GROUPS, config: Any = None, **more: Any) -> dict[str, Any]:
    question = {"id": "q", "question_text": "What?"} | ({} if groups is None else {"reference_steps": groups})
    dataset: Any = [{"template_id": "t", "questions": [question]}]
    responses: Any = [{"question_id": "q", "actual_steps": list(steps), **more}]
    return dict(run_evaluation(dataset, responses, config)[0])


def quality_of(result: dict[str, Any]) -> list[float]:
    return [result[key] for key in QUALITY]


def test_quality_covers_all_groups_whatever_the_scoring() -> None:
    steps = (call("look", "b"), call("look", "c"), call("find", "a"), call("other", "a"))
    for scoring in ("last_group", "all_groups"):
        result = result_of(*steps, config={"steps": {"scoring": scoring}})
        assert quality_of(result) == [1.0, 2 / 3, 0.8, 0.0]
    assert result_of(call("look", "b"))["steps_score"] == 1.0
    assert quality_of(result_of(call("look", "b"))) == [0.5, 1.0, 2 / 3, 1.0]


def test_grades_count_if_steps_are_graded() -> None:
    near = StepScore(0.0, lambda: "near", lambda: 0.0, grade=lambda: 0.5)
    register_matcher(name="look")(lambda reference, actual: near)
    steps = (call("find", "a"), call("look", "c"))
    assert quality_of(result_of(*steps)) == [0.5, 0.5, 0.5, 1.0]
    assert quality_of(result_of(*steps, config={"steps": {"grading": "graded"}})) == [0.75, 0.75, 0.75, 1.0]


@pytest.mark.parametrize("groups", [None, [], [[]]])
def test_without_reference_steps_earlier_values_are_dropped(groups: Any) -> None:
    result = result_of(call("look", "b"), groups=groups, **dict.fromkeys(QUALITY, 0.5))
    assert not {*QUALITY} & result.keys()


def test_failed_question_keeps_the_quality_of_its_steps() -> None:
    result = result_of(call("look", "b"), error="away")
    assert (result["status"], result["steps_recall"]) == ("error", 0.5)
