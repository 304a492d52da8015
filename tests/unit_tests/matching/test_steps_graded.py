"""What StepsMatch tells where steps are graded: matches, diagnosis, undecided steps, surplus, and grades that fail."""

import json
from typing import Any

import pytest
from support.graded_steps import graded, looks, references, register_worths

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.config import EvaluationConfig, load_config
from graphrag_eval_lc.errors import ConfigError, MatcherError
from graphrag_eval_lc.matching import StepScore, match_steps, register_matcher


def test_matches_have_their_grades_and_say_why() -> None:
    match = graded(["a", "b"], {"a": 0.4}, "b")
    assert [(each.group, each.actual, each.score, each.reason) for each in match.matches] == [
        (0, 0, 0.4, "it does not fit. Worth 0.4, so it says."),
        (1, 1, 1.0, "it fits"),
    ]


def test_diagnosis_has_the_grade_and_what_was_found_beside_it() -> None:
    (partial,), (missing,) = graded(["a", "b"], {"a": 0.4}, "x").diagnosis
    assert (partial.nearest, partial.score, partial.matched, partial.outcome) == (0, 0.4, True, "mismatch")
    assert (missing.nearest, missing.score, missing.matched, missing.outcome) == (1, 0.0, False, "mismatch")


@pytest.mark.parametrize(
    ("groups", "calls", "reason"),
    [
        (["a", "a"], ["a"], "matched (used for another reference step): it fits"),
        (["a", "a"], [{"a": 0.5}], "matched in part (used for another reference step): it does not fit."),
    ],
)
def test_steps_of_all_groups_count(groups: Any, calls: Any, reason: str) -> None:
    (first,), (second,) = graded(groups, *calls).diagnosis
    assert {first.matched, second.matched} == {True, False}
    assert (second if first.matched else first).reason.startswith(reason)


def test_order_does_not_forbid_a_match() -> None:
    match = graded(["a", "b"], "b", "a")
    assert [each.matched for group in match.diagnosis for each in group] == [True, True]
    assert match.steps_score == 1.0


@pytest.mark.parametrize(
    ("groups", "calls", "expected"),
    [
        pytest.param(["a"], [{"?": 1}], (0.0, 1, 1.0), id="it may fit"),
        pytest.param(["a"], [{"?": 1, "a": 0.5}], (0.5, 1, 1.0), id="worth half at least"),
        pytest.param(["a"], [{"?": 1, "a": 1.0}], (1.0, 0, None), id="worth all of it"),
        pytest.param(["a"], [{"cut": 1}], (0.0, 1, 1.0), id="cut"),
        pytest.param(["a"], ["a", {"?": 1}], (2 / 3, 0, None), id="another one fits"),
        pytest.param(["a"], [{"a": 0.5}, {"?": 1}], (1 / 3, 0, 2 / 3), id="another one fits in part"),
        pytest.param(["a", "b"], [{"?": 1}, "b"], (0.5, 1, 1.0), id="in an earlier group"),
        pytest.param(["ab"], [{"?": 1}], (0.0, 2, 2 / 3), id="one of two"),
    ],
)
def test_undecided_steps_bound_the_score(groups: Any, calls: Any, expected: tuple[float, int, float | None]) -> None:
    match = graded(groups, *calls)
    assert match.steps_score == pytest.approx(expected[0])
    assert match.undecided == expected[1]
    assert match.steps_score_upper == (None if expected[2] is None else pytest.approx(expected[2]))


def test_step_that_is_worth_something_is_not_extra() -> None:
    assert graded(["a", "b"], {"a": 0.4}, "x", "b").extra == [1]
    assert graded(["a"], "x", {"a": 0.4}).extra == [0]


def test_retrieval_of_all_groups_counts() -> None:
    groups = [
        [{"name": "retrieval", "output": json.dumps([{"id": "d1"}])}],
        [{"name": "retrieval", "output": json.dumps([{"id": "d2"}, {"id": "d3"}])}],
    ]
    found = [json.dumps([{"id": "d1"}]), json.dumps([{"id": "d2"}])]
    steps = [
        {"name": "retrieval", "args": {}, "id": f"c{at}", "status": "success", "output": output}
        for at, output in enumerate(found)
    ]
    match = match_steps(groups, steps, grading="graded")
    assert [pair.position for pair in match.retrieval_pairs()] == [0, 1]
    assert match.quality is not None
    assert (match.quality.recall, match.quality.precision) == (0.75, 0.75)
    assert [pair.position for pair in match_steps(groups, steps).retrieval_pairs()] == [1]


def test_result_names_the_matches_of_all_groups() -> None:
    register_worths()
    question: Any = {"id": "q", "question_text": "?", "reference_steps": references("a", "b")}
    response: Any = {"question_id": "q", "actual_answer": "", "actual_steps": looks({"a": 0.5}, "b")}
    template: Any = {"template_id": "t", "questions": [question]}
    (result,) = run_evaluation([template], [response], {"steps": {"grading": "graded"}})
    assert [step["matches"] for group in result["reference_steps"] for step in group] == ["c0", "c1"]
    assert (result["steps_score"], dict(result)["steps_f1"], dict(result)["steps_recall"]) == (0.75, 0.75, 0.75)
    (first,), (second,) = dict(result)["steps_diagnosis"]
    assert (first["score"], first["matched"], second["score"]) == (0.5, True, 1.0)


class TestGradesOfUsersMatchers:
    def matched(self, outcome: Any) -> Any:
        register_matcher(name="own")(lambda reference, actual: outcome)
        step = {"name": "own", "args": {}, "id": "c", "status": "success", "output": ""}
        return match_steps([[{"name": "own", "output": ""}]], [step], grading="graded")

    def step_score(self, **more: Any) -> StepScore:
        return StepScore(0.0, lambda: "no", lambda: 0.0, **more)

    def test_number_is_its_own_grade(self) -> None:
        assert self.matched(0.4).steps_score == pytest.approx(0.4)

    def test_step_score_may_have_a_grade(self) -> None:
        match = self.matched(self.step_score(grade=lambda: 0.3))
        assert match.steps_score == pytest.approx(0.3)
        assert match.diagnosis[0][0].reason == "no; worth 0.3"

    def test_grade_that_fails_is_0_and_says_why(self) -> None:
        match = self.matched(self.step_score(grade=lambda: 1 / 0))
        assert match.steps_score == 0.0
        assert match.diagnosis[0][0].reason == "no; its grade failed with ZeroDivisionError: division by zero"

    @pytest.mark.parametrize("grade", [1.5, -0.1, float("nan"), "1", None])
    def test_grade_that_is_none_is_a_mistake_in_the_matcher(self, grade: Any) -> None:
        with pytest.raises(MatcherError, match="a grade is a number from 0 to 1"):
            self.matched(self.step_score(grade=lambda: grade))


class TestConfig:
    def test_scoring_says_nothing_where_steps_are_graded(self) -> None:
        with pytest.raises(ConfigError, match="scoring: all_groups says nothing where steps are graded"):
            load_config({"steps": {"grading": "graded", "scoring": "all_groups"}})

    def test_config_that_was_written_in_full_is_read_again(self) -> None:
        config = load_config({"steps": {"grading": "graded"}})
        again: EvaluationConfig = load_config({"steps": config.steps.model_dump()})
        assert (again.steps.grading, again.steps.counted) == ("graded", "all_groups")

    def test_without_grades_scoring_says_which_groups_count(self) -> None:
        assert [load_config({"steps": {"scoring": each}}).steps.counted for each in ("last_group", "all_groups")] == [
            "last_group",
            "all_groups",
        ]
