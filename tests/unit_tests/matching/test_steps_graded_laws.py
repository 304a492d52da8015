"""Laws of graded scores: bounds, when they are 1, and the effect of right and wrong calls."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graded_steps import graded

LETTERS = "abcd"
WORTHS = st.dictionaries(st.sampled_from(LETTERS), st.sampled_from([0.1, 0.25, 0.5, 0.9, 1.0]), max_size=4)
GROUPS = st.lists(st.text(LETTERS, min_size=1, max_size=3), min_size=1, max_size=3)
CALLS = st.lists(WORTHS, max_size=6)
LAWS = settings(max_examples=150, deadline=None)


def score(groups: list[str], calls: list[dict[str, float]]) -> float:
    found = graded(groups, *calls).steps_score
    assert found is not None
    return found


@given(GROUPS, CALLS)
@LAWS
def test_all_metrics_are_between_0_and_1(groups: list[str], calls: list[dict[str, float]]) -> None:
    match = graded(groups, *calls)
    assert match.quality is not None
    assert all(0.0 <= value <= 1.0 for value in match.quality.record().values())
    assert match.steps_score == match.quality.f1


@given(GROUPS, CALLS, st.randoms())
@LAWS
def test_score_is_1_exactly_if_all_steps_match_fully_without_extra_calls(
    groups: list[str], calls: list[dict[str, float]], random: Any
) -> None:
    right = [{letter: 1.0} for letter in "".join(groups)]
    random.shuffle(right)
    assert score(groups, right) == 1.0
    match = graded(groups, *calls)
    is_full = [each.score for each in match.matches] == [1.0] * len("".join(groups))
    assert (match.steps_score == 1.0) == (is_full and len(calls) == len(match.matches))


@pytest.mark.full
@given(GROUPS, CALLS, st.data())
@LAWS
def test_matching_one_more_reference_step_never_lowers_the_score(
    groups: list[str], calls: list[dict[str, float]], data: Any
) -> None:
    match = graded(groups, *calls)
    matched = {(each.group, each.reference) for each in match.matches}
    open_letters = [
        letter for at, group in enumerate(groups) for index, letter in enumerate(group) if (at, index) not in matched
    ]
    if open_letters:
        more = {data.draw(st.sampled_from(open_letters)): 1.0}
        at = data.draw(st.integers(0, len(calls)))
        assert match.steps_score is not None
        assert score(groups, [*calls[:at], more, *calls[at:]]) >= match.steps_score - 1e-12


@pytest.mark.full
@given(GROUPS, CALLS, st.data())
@LAWS
def test_better_call_never_lowers_the_score(groups: list[str], calls: list[dict[str, float]], data: Any) -> None:
    if calls:
        at = data.draw(st.integers(0, len(calls) - 1))
        better = {letter: max(worth, data.draw(st.sampled_from([0.2, 1.0]))) for letter, worth in calls[at].items()}
        changed = [*calls[:at], better, *calls[at + 1 :]]
        assert score(groups, changed) >= score(groups, calls) - 1e-12


@pytest.mark.full
@given(GROUPS, CALLS, st.randoms())
@LAWS
def test_order_of_calls_and_groups_affects_only_steps_order(
    groups: list[str], calls: list[dict[str, float]], random: Any
) -> None:
    other_calls, other_groups = random.sample(calls, len(calls)), random.sample(groups, len(groups))
    one, other = graded(groups, *calls).quality, graded(other_groups, *other_calls).quality
    assert one is not None
    assert other is not None
    assert (one.recall, one.precision, one.f1) == pytest.approx((other.recall, other.precision, other.f1))
