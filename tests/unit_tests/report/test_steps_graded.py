"""The report of graded scores: all groups count, and questions with extra calls have a note."""

from typing import Any

from support.graded_steps import look_calls, references, register_score_matcher

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.aggregation import reason_of
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.report.steps import SampleSteps, step_groups, uses_of

GRADED = {"steps": {"grading": "graded"}}


def result_of(groups: list[str], *worths: Any) -> dict[str, Any]:
    register_score_matcher()
    question: Any = {"id": "q", "question_text": "?", "reference_steps": references(*groups)}
    response: Any = {"question_id": "q", "actual_answer": "", "actual_steps": look_calls(*worths)}
    template: Any = {"template_id": "t", "questions": [question]}
    return dict(run_evaluation([template], [response], GRADED)[0])


def test_steps_of_earlier_groups_are_scored() -> None:
    groups = step_groups(SampleSteps(result_of(["a", "b", "c"], {"a": 0.4}, "b"), load_config(GRADED)))
    assert [(step["status"], step["score"], step["scored"]) for group in groups for step in group] == [
        ("matched", 0.4, True),
        ("matched", 1.0, True),
        ("near", 0.0, True),
    ]
    assert uses_of(groups) == {0: "≈ in part: group 1 step 1", 1: "✓ group 2 step 1"}


def test_question_with_extra_calls_has_a_note() -> None:
    assert (
        reason_of(result_of(["a"], "x", "a"))
        == "all is fulfilled, but with more calls than needed: steps_precision is 0.50"
    )
    assert reason_of(result_of(["a"], "a")) == ""
    assert reason_of(result_of(["a"], {"a": 0.5})) == "look: it does not fit. Worth 0.5, so it says."
