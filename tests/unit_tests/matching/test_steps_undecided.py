from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.uncertain_steps import look_call, reference, register_text_matcher

from graphrag_eval_lc.config import Scoring
from graphrag_eval_lc.matching import StepsMatch, match_steps
from graphrag_eval_lc.matching.matchers import StepScore, StepView, comparison_of, explained


def matched(groups: Sequence[Sequence[str]], outputs: Sequence[str], scoring: Scoring = "last_group") -> StepsMatch:
    register_text_matcher()
    steps = [look_call(output, id=f"c{at}") for at, output in enumerate(outputs)]
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


def test_truncated_outputs_do_not_depend_on_what_is_read_first() -> None:
    first, second = (matched([["ok"], ["so"]], ["o<cut>", "so"]) for _ in range(2))
    assert second.diagnosis is not None
    assert first.cut == second.cut == {0: "the output ends after 1 characters"}


OUTPUTS = st.lists(st.sampled_from(["a", "b", "c", "?", "0.5", "a<cut>"]), max_size=6)


@given(
    groups=st.lists(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3), min_size=1, max_size=3),
    outputs=OUTPUTS,
    scoring=st.sampled_from(["last_group", "all_groups"]),
)
def test_bounds_of_the_score(groups: list[list[str]], outputs: list[str], scoring: Scoring) -> None:
    match = matched(groups, outputs, scoring)
    score, undecided, upper = numbers(match)
    assert score is not None
    # Undecided steps count as mismatches.
    without = matched(groups, ["no" if "?" in each or "<" in each else each for each in outputs], scoring)
    assert (score, [(one.group, one.reference, one.actual) for one in match.matches]) == (
        without.steps_score,
        [(one.group, one.reference, one.actual) for one in without.matches],
    )
    assert upper is None or score <= upper <= 1.0
    assert (upper is None) <= (undecided == 0)
    reported = sum(step.outcome == "undecided" for group in match.diagnosis for step in group)
    assert undecided <= reported
    # However the undecided steps turn out, the score stays at or below the upper score if steps match fully or not at
    # all.
    if "0.5" not in outputs:
        for truth in ("a", "b", "c"):
            ended = matched(groups, [truth if "?" in each or "<" in each else each for each in outputs], scoring)
            assert (ended.steps_score or 0.0) <= (score if upper is None else upper) + 1e-12


def test_registered_matcher_may_leave_a_comparison_undecided() -> None:
    found = comparison_of(lambda *_: explained(0.0, "who knows", is_undecided=True), StepView({}), StepView({}))
    assert isinstance(found, StepScore)
    assert found.outcome == "undecided"
