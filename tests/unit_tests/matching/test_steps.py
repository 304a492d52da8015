import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.config import RetrievalConfig, Scoring, SparqlConfig, ToleranceConfig
from graphrag_eval_lc.matching import StepView, match_steps, register_matcher
from graphrag_eval_lc.matching.steps import custom_matchers_for


def ref(name: str, output: Any = "ok") -> dict[str, Any]:
    return {"name": name, "args": {}, "output": output}


def act(name: str, output: Any = "ok", status: str = "success", **more: Any) -> dict[str, Any]:
    return {"name": name, "args": {}, "id": f"call_{name}", "status": status, "output": output, **more}


def scored(
    reference_steps: list[list[dict[str, Any]]], actual_steps: list[dict[str, Any]], scoring: Scoring = "last_group"
) -> tuple[float | None, list[tuple[int, int, int]]]:
    match = match_steps(reference_steps, actual_steps, scoring=scoring)
    return match.steps_score, [(one.group, one.reference, one.actual) for one in match.matches]


def test_last_group_is_the_share_of_its_steps_that_are_fulfilled() -> None:
    assert scored([[ref("a")], [ref("b"), ref("c")]], [act("c")]) == (0.5, [(1, 1, 0)])


def test_last_group_does_not_need_the_groups_before_it() -> None:
    assert scored([[ref("a")], [ref("b")]], [act("b")]) == (1.0, [(1, 0, 0)])


def test_all_groups_is_the_mean_over_the_groups() -> None:
    assert scored([[ref("a")], [ref("b")]], [act("b")], "all_groups") == (0.5, [(1, 0, 0)])
    assert scored([[ref("a")], [ref("b")]], [act("a"), act("b")], "all_groups") == (1.0, [(0, 0, 0), (1, 0, 1)])


def test_earlier_group_matches_only_before_the_earliest_step_matched_so_far() -> None:
    assert scored([[ref("a")], [ref("b")]], [act("b"), act("a")], "all_groups") == (0.5, [(1, 0, 0)])


def test_walk_stops_after_a_group_that_is_not_matched_in_full() -> None:
    reference = [[ref("a")], [ref("b"), ref("c")], [ref("d")]]
    assert scored(reference, [act("a"), act("b"), act("d")], "all_groups") == (0.5, [(1, 0, 1), (2, 0, 2)])


def test_of_equal_steps_the_later_ones_match_and_leave_room_for_earlier_groups() -> None:
    actual = [act("b"), act("a"), act("b")]
    assert scored([[ref("a")], [ref("b")]], actual, "all_groups") == (1.0, [(0, 0, 1), (1, 0, 2)])


def test_step_matches_at_most_once() -> None:
    assert scored([[ref("a"), ref("a")]], [act("a")])[0] == 0.5


@pytest.mark.parametrize("status", ["error", "timeout", None])
def test_only_successful_steps_match(status: str | None) -> None:
    assert scored([[ref("a")]], [act("a") | {"status": status}]) == (0.0, [])


def test_names_must_be_equal() -> None:
    assert scored([[ref("a")]], [act("b")]) == (0.0, [])


def test_no_reference_steps_give_no_score() -> None:
    assert scored([], [act("a")]) == (None, [])
    assert scored([[]], [act("a")], "all_groups") == (None, [])


def test_empty_group_is_passed_over() -> None:
    assert scored([[ref("a")], []], [act("a")]) == (1.0, [(0, 0, 0)])
    assert scored([[], [ref("a")]], [act("a")], "all_groups") == (1.0, [(1, 0, 0)])


def test_step_that_cannot_be_compared_is_told_and_scores_0() -> None:
    reference = [[{"name": "a", "output": "[]", "output_media_type": "application/json"}]]
    match = match_steps(reference, [act("a", "oops")])
    assert match.steps_score == 0.0
    assert match.unreadable == {0: "the output is not JSON: oops"}


class TestDiagnosis:
    def reasons(self, reference: Any, actual: Any, scoring: Scoring = "last_group") -> list[list[str]]:
        diagnosis = match_steps(reference, actual, scoring=scoring).diagnosis
        return [[step.reason for step in group] for group in diagnosis]

    def test_says_it_for_every_group_scored_or_not(self) -> None:
        assert self.reasons([[ref("a")], [ref("b")]], [act("a"), act("b")]) == [
            ["fits, but its group is not scored: the same text"],
            ["the same text"],
        ]

    def test_names_the_nearest_step(self) -> None:
        step = match_steps([[ref("a")]], [act("a", "no"), act("a", "nor", id="c2")]).diagnosis[0][0]
        assert (step.nearest, step.nearest_id, step.score, step.matched) == (1, "c2", 0.0, False)
        assert step.reason == "another text: nor instead of ok"

    def test_says_what_was_called_instead(self) -> None:
        assert self.reasons([[ref("a")]], [act("b"), act("c"), act("b")]) == [
            ["the agent did not call a; it called b, c"]
        ]
        assert self.reasons([[ref("a")]], []) == [["the agent did not call a nor any other tool"]]

    def test_gives_the_error_of_the_tool_that_stood_in_the_way(self) -> None:
        failed = act("a", status="error") | {"output": "Lexical error at line 1"}
        assert self.reasons([[ref("a")]], [failed]) == [["1 call of a failed: Lexical error at line 1"]]
        assert self.reasons([[ref("a")]], [failed | {"error": "timed out"}, failed | {"error": "x"}]) == [
            ["2 calls of a failed: x"]
        ]
        assert self.reasons([[ref("a")]], [failed, act("a", "no")]) == [
            ["another text: no instead of ok; 1 call failed: Lexical error at line 1"]
        ]

    def test_says_when_a_fitting_step_came_too_late_or_counts_elsewhere(self) -> None:
        late = self.reasons([[ref("a")], [ref("b")]], [act("b"), act("a")], "all_groups")
        assert late[0] == ["fits, but comes after a step of a later group: the same text"]
        taken = self.reasons([[ref("a"), ref("a")]], [act("a")])
        assert sorted(taken[0]) == ["fits, but fulfils another reference step: the same text", "the same text"]


def test_nearest_step_of_a_group_that_is_not_scored_is_one_that_counts_nowhere_else() -> None:
    match = match_steps([[ref("a")], [ref("a")]], [act("a", id="c1"), act("a", id="c2")])
    assert match.diagnosis[0][0].nearest_id == "c1"
    assert match.diagnosis[0][0].reason == "fits, but its group is not scored: the same text"
    assert match.extra == []


names = st.sampled_from("ab")
groups = st.lists(st.lists(names.map(ref), max_size=3), max_size=3)
actual_lists = st.lists(names.map(act), max_size=5)


@given(groups, actual_lists, st.sampled_from(["last_group", "all_groups"]))
def test_score_lies_between_0_and_1_and_every_match_is_diagnosed(
    reference: list[list[dict[str, Any]]], actual: list[dict[str, Any]], scoring: Scoring
) -> None:
    match = match_steps(reference, actual, scoring=scoring)
    assert match.steps_score is None or 0.0 <= match.steps_score <= 1.0
    assert [len(group) for group in match.diagnosis] == [len(group) for group in reference]
    diagnosed = {
        (group, index, step.nearest)
        for group, steps in enumerate(match.diagnosis)
        for index, step in enumerate(steps)
        if step.matched
    }
    assert diagnosed == {(one.group, one.reference, one.actual) for one in match.matches}


@given(st.permutations([ref("a"), ref("b"), ref("b", "other")]), actual_lists)
def test_order_inside_a_group_does_not_matter(group: list[dict[str, Any]], actual: list[dict[str, Any]]) -> None:
    assert scored([group], actual)[0] == scored([[ref("a"), ref("b"), ref("b", "other")]], actual)[0]


@pytest.mark.parametrize(
    ("of_config", "of_step", "expected"),
    [
        (None, None, 1.0),
        (1e-9, None, 0.0),
        (1e-9, 1e-6, 1.0),
        (1e-5, 1e-9, 0.0),
        (1e-5, "1e-9", 0.0),
    ],
)
def test_the_tolerance_of_a_step_goes_before_that_of_the_config(
    of_config: float | None, of_step: Any, expected: float
) -> None:
    def total(number: str) -> str:
        term = {"type": "literal", "value": number, "datatype": "http://www.w3.org/2001/XMLSchema#float"}
        return json.dumps({"head": {"vars": ["total"]}, "results": {"bindings": [{"total": term}]}})

    sparql = None if of_config is None else SparqlConfig(tolerance=ToleranceConfig(float=of_config))
    reference = ref("sparql_query", total("15063.998")) | {"output_media_type": "application/sparql-results+json"}
    reference["tolerance"] = of_step
    match = match_steps([[reference]], [act("sparql_query", total("15063.999"))], sparql=sparql)
    assert match.steps_score == expected
    assert "differs by 7e-8 of its value" in match.diagnosis[0][0].reason


def test_media_type_decides_how_outputs_are_read_whatever_the_step_is_called() -> None:
    def results(name: str) -> str:
        bindings = [{name: {"type": "literal", "value": "1"}}]
        return json.dumps({"head": {"vars": [name]}, "results": {"bindings": bindings}})

    reference = {"name": "run_sparql", "output": results("a"), "output_media_type": "application/sparql-results+json"}
    actual = {"name": "run_sparql", "status": "success", "output": results("b")}
    assert match_steps([[reference]], [actual]).steps_score == 1.0


@pytest.mark.usefixtures("forget_matchers")
def test_custom_matchers_for_steps_are_those_that_may_compare_them() -> None:
    def own(reference: StepView, actual: StepView) -> float:
        return 1.0

    keys: list[tuple[str | None, str | None]] = [
        ("count", None),
        ("count", "text/x"),
        (None, "text/x"),
        ("retrieval", None),
        ("other", None),
    ]
    for name, media_type in keys:
        register_matcher(name=name, media_type=media_type)(own)
    assert set(custom_matchers_for([])) == set()
    assert set(custom_matchers_for([{"name": "count"}, {"name": "count"}])) == {("count", None)}
    typed = {"name": "count", "output_media_type": "text/x"}
    assert set(custom_matchers_for([typed])) == {("count", None), ("count", "text/x"), (None, "text/x")}
    searched = {"name": "search_docs", "relevant_ids": ["a"]}
    assert set(custom_matchers_for([searched])) == set()
    retrieval = RetrievalConfig.model_validate({"steps": ["search_docs"]})
    assert set(custom_matchers_for([searched], retrieval=retrieval)) == {("retrieval", None)}
