from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.uncertain_steps import looked, reference, register_doubts

from graphrag_eval_lc.config import Scoring
from graphrag_eval_lc.matching import StepsMatch, match_steps
from graphrag_eval_lc.matching.matchers import CutOutput, StepScore, StepView, comparison_of, explained
from graphrag_eval_lc.matching.retrieval import match_retrieval_steps


def matched(groups: Sequence[Sequence[str]], outputs: Sequence[str], scoring: Scoring = "last_group") -> StepsMatch:
    register_doubts()
    steps = [looked(output, id=f"c{at}") for at, output in enumerate(outputs)]
    return match_steps([[reference(each) for each in group] for group in groups], steps, scoring=scoring)


def numbers(match: StepsMatch) -> tuple[float | None, int, float | None]:
    return match.steps_score, match.undecided, match.steps_score_upper


@pytest.mark.parametrize(
    ("groups", "outputs", "expected"),
    [
        pytest.param([["ok"]], ["?"], (0.0, 1, 1.0), id="it may fit"),
        pytest.param([["ok"]], ["no"], (0.0, 0, None), id="a mismatch is certain"),
        pytest.param([["ok"]], ["?", "ok"], (1.0, 0, None), id="another step fits"),
        pytest.param([["ok", "so"]], ["ok", "?"], (0.5, 1, 1.0), id="one of two fits"),
        pytest.param([["ok", "so"]], ["no", "?"], (0.0, 2, 0.5), id="one step may fulfil one reference step only"),
        pytest.param([["ok"]], ["0.5", "?"], (0.5, 0, 1.0), id="one fits half, another may fit in full"),
        pytest.param([["a?"], ["ok"]], ["so", "ok"], (1.0, 0, None), id="in a group that is not scored"),
    ],
)
def test_undecided_steps_count_0_and_bound_the_score_from_above(
    groups: Any, outputs: Any, expected: tuple[float, int, float | None]
) -> None:
    assert numbers(matched(groups, outputs)) == expected


@pytest.mark.parametrize(
    ("groups", "outputs", "expected"),
    [
        pytest.param([["a"], ["ok"]], ["a", "?"], (0.0, 1, 1.0), id="the upper score walks on where the walk stopped"),
        pytest.param([["a?"], ["ok"]], ["b", "no"], (0.0, 0, None), id="a group that is not reached is not undecided"),
        pytest.param([["a"], ["ok"]], ["b", "?"], (0.0, 1, 0.5), id="nor does it fit"),
        pytest.param([["a"], ["ok"]], ["ok", "no", "?"], (0.5, 0, None), id="none that is early enough may fit"),
        pytest.param([["a"], ["ok"]], ["ok", "a", "?"], (0.5, 0, 1.0), id="a later match would leave room"),
    ],
)
def test_groups_in_order_are_walked_as_far_as_they_may_fit(
    groups: Any, outputs: Any, expected: tuple[float, int, float | None]
) -> None:
    assert numbers(matched(groups, outputs, "all_groups")) == expected


class TestDiagnosis:
    def outcomes(self, match: StepsMatch) -> list[list[str]]:
        return [[step.outcome for step in group] for group in match.diagnosis]

    def test_outcome_is_that_of_the_comparison_with_the_nearest_step(self) -> None:
        match = matched([["ok", "so", "a"]], ["ok", "?", "no"])
        assert self.outcomes(match) == [["match", "undecided", "undecided"]]
        assert self.outcomes(matched([["ok"]], ["no"])) == [["mismatch"]]

    def test_step_without_any_comparison_is_a_mismatch(self) -> None:
        assert self.outcomes(matched([["ok"]], [])) == [["mismatch"]]
        register_doubts()
        failed = looked(status="error", error="away")
        assert self.outcomes(match_steps([[reference()]], [failed])) == [["mismatch"]]

    def test_undecided_step_is_nearer_than_one_that_does_not_fit(self) -> None:
        step = matched([["ok"]], ["?", "no"]).diagnosis[0][0]
        assert (step.nearest, step.score, step.matched) == (0, 0.0, False)
        assert step.reason == "the search reached its bound"

    def test_undecided_step_is_told_rather_than_one_that_fulfils_another_step(self) -> None:
        match = matched([["ok", "ok"]], ["ok", "?"])
        assert sorted(self.outcomes(match)[0]) == ["match", "undecided"]
        assert {step.nearest for step in match.diagnosis[0]} == {0, 1}

    def test_step_that_may_fit_is_not_called_extra(self) -> None:
        assert matched([["ok"]], ["?", "no"]).extra == [1]


class TestCutOutputs:
    def test_are_told_by_step_and_undecided(self) -> None:
        match = matched([["ok"]], ["o<cut>", "no"])
        assert match.cut == {0: "the output ends after 1 characters"}
        assert numbers(match) == (0.0, 1, 1.0)
        assert match.diagnosis[0][0].reason == "the output ends after 1 characters"
        assert match.unreadable == {}

    def test_do_not_depend_on_what_is_asked_first(self) -> None:
        first, second = (matched([["ok"], ["so"]], ["o<cut>", "so"]) for _ in range(2))
        assert second.diagnosis is not None
        assert first.cut == second.cut == {0: "the output ends after 1 characters"}

    def test_of_retrieval_are_undecided(self) -> None:
        documents = {"name": "retrieval", "output": '[{"id": "a"}]'}

        class CutView(StepView):
            def parsed(self, parse: Any) -> Any:
                raise CutOutput("the output ends in a text")

        found = comparison_of(match_retrieval_steps, StepView(documents), CutView(documents))
        assert (found.score, found.outcome, found.cut) == (0.0, "undecided", "the output ends in a text")


OUTPUTS = st.lists(st.sampled_from(["a", "b", "c", "?", "0.5", "a<cut>"]), max_size=6)


@given(
    groups=st.lists(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3), min_size=1, max_size=3),
    outputs=OUTPUTS,
    scoring=st.sampled_from(["last_group", "all_groups"]),
)
def test_laws_of_the_bounds(groups: list[list[str]], outputs: list[str], scoring: Scoring) -> None:
    match = matched(groups, outputs, scoring)
    score, undecided, upper = numbers(match)
    assert score is not None
    # What is undecided counts as what does not fit.
    without = matched(groups, ["no" if "?" in each or "<" in each else each for each in outputs], scoring)
    assert (score, [(one.group, one.reference, one.actual) for one in match.matches]) == (
        without.steps_score,
        [(one.group, one.reference, one.actual) for one in without.matches],
    )
    assert upper is None or score <= upper <= 1.0
    assert (upper is None) <= (undecided == 0)
    told = sum(step.outcome == "undecided" for group in match.diagnosis for step in group)
    assert undecided <= told
    # No way in which the doubts could end is above the upper score where steps fit in full or not at all.
    if "0.5" not in outputs:
        for truth in ("a", "b", "c"):
            ended = matched(groups, [truth if "?" in each or "<" in each else each for each in outputs], scoring)
            assert (ended.steps_score or 0.0) <= (score if upper is None else upper) + 1e-12


def test_users_matchers_may_leave_a_comparison_undecided() -> None:
    found = comparison_of(lambda *_: explained(0.0, "who knows", is_undecided=True), StepView({}), StepView({}))
    assert isinstance(found, StepScore)
    assert found.outcome == "undecided"
