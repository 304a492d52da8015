"""Assignment across all groups: the best total, each call used once and, among equal totals, the best order."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import fsum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graded_steps import graded, look_calls, match_by_score, references

from graphrag_eval_lc.matching import StepScore, StepView, match_steps, register_matcher
from graphrag_eval_lc.matching.assignment import order_share


def assigned(groups: Sequence[str], *worths: Mapping[str, float] | str) -> list[tuple[str, int]]:
    match = graded(groups, *worths)
    return [(groups[each.group][each.reference], each.actual) for each in match.matches]


@pytest.mark.parametrize(
    ("groups", "calls", "expected"),
    [
        pytest.param(["a", "b"], ["a", "b", "a"], [("a", 0), ("b", 1)], id="last of equal calls would be out of order"),
        pytest.param(["a", "b"], ["a", "a", "b", "b"], [("a", 1), ("b", 3)], id="the last ones in order"),
        pytest.param(["a", "b"], ["b", "a"], [("a", 1), ("b", 0)], id="total before order"),
        pytest.param(["a", "ab"], ["a", "a", "b"], [("a", 0), ("a", 1), ("b", 2)], id="the same step in two groups"),
        pytest.param(
            ["a", "ab"], ["a", "b"], [("a", 0), ("b", 1)], id="one of two steps that need the same call, in order"
        ),
        pytest.param(["a", "b", "a"], ["a", "b"], [("a", 0), ("b", 1)], id="the first of two that need one call"),
        pytest.param(["a", "b", "a"], ["b", "a"], [("b", 0), ("a", 1)], id="the last of two that need one call"),
        pytest.param(["x", "ab"], ["x", "ab", "ab"], [("x", 0), ("a", 1), ("b", 2)], id="any order within a group"),
        pytest.param(["a", "", "b"], ["a", "b"], [("a", 0), ("b", 1)], id="a group without steps"),
        pytest.param(["a"], [{"a": 0.3}, {"a": 0.9}, {"a": 0.5}], [("a", 1)], id="best of partial matches"),
        pytest.param(["a", "b"], [{"a": 1.0, "b": 0.9}, {"a": 0.8}], [("a", 1), ("b", 0)], id="the best total"),
        pytest.param(
            ["a", "b"], [{"a": 0.5}, {"b": 0.5}, {"a": 0.5}], [("a", 0), ("b", 1)], id="partial matches, in order"
        ),
        pytest.param(["xy", "z"], ["xy", "y", "z"], [("x", 0), ("y", 1), ("z", 2)], id="assignment within a group"),
        pytest.param(["w", "xy"], ["xy", "w", "y", "xy"], [("w", 1), ("x", 3), ("y", 2)], id="room for earlier steps"),
        pytest.param(["a", "b"], [], [], id="no calls"),
        pytest.param([], ["a"], [], id="no groups"),
    ],
)
def test_best_total_is_chosen_and_the_best_order_among_equal_totals(
    groups: Any, calls: Any, expected: list[tuple[str, int]]
) -> None:
    assert assigned(groups, *calls) == expected


worths = st.dictionaries(st.sampled_from("abc"), st.sampled_from([0.25, 0.5, 1.0]), max_size=3)


@given(st.lists(st.text("abc", min_size=1, max_size=2), max_size=3), st.lists(worths, max_size=5))
@settings(max_examples=150, deadline=None)
def test_no_assignment_has_a_higher_total_or_more_matches_at_the_same_total(
    groups: list[str], calls: list[dict[str, float]]
) -> None:
    match = graded(groups, *calls)
    best = max(all_assignments(groups, calls), default=(0.0, 0, 1.0))
    share = order_share([(each.group, each.actual) for each in match.matches])
    assert fsum(each.score for each in match.matches) == pytest.approx(best[0])
    assert len({each.actual for each in match.matches}) == len(match.matches) == best[1]
    assert share <= best[2] + 1e-9
    letters = [letter for group in groups for letter in group]
    most = [max((call.get(letter, 0.0) for call in calls), default=0.0) for letter in letters]
    if best == (pytest.approx(fsum(most)), len(letters), 1.0):  # every step can have its best call, in order
        assert share == 1.0


def all_assignments(groups: list[str], calls: list[dict[str, float]]) -> list[tuple[float, int, float]]:
    """Return the total, the number of matches and the order of every assignment."""
    letters = [(at, letter) for at, group in enumerate(groups) for letter in group]
    options = [
        [None, *(index for index, call in enumerate(calls) if call.get(letter, 0.0) > 0)] for _, letter in letters
    ]
    found = []
    for chosen in product(*options):
        used = [index for index in chosen if index is not None]
        if len(used) == len(set(used)):
            pairs = [(letter, index) for letter, index in zip(letters, chosen, strict=True) if index is not None]
            total = round(fsum(calls[index][letter] for (_, letter), index in pairs), 9)
            found.append((total, len(pairs), round(order_share([(at, index) for (at, _), index in pairs]), 9)))
    return found


def test_calls_before_the_last_full_match_are_not_compared() -> None:
    compared: list[tuple[str, str]] = []

    @register_matcher(name="look")
    def match_and_note(reference: StepView, actual: StepView) -> StepScore:
        compared.append((reference["output"], actual["id"]))
        return match_by_score(reference, actual)

    assert match_steps(references("a", "b"), look_calls("a", "b", "a", "b")).quality is not None
    assert compared == [("b", "c3"), ("a", "c3"), ("a", "c2")]


@pytest.mark.full
def test_hundreds_of_steps_in_the_wrong_order_are_assigned_in_time() -> None:
    letters = [chr(0x4E00 + at) for at in range(150)]
    match = graded(letters, *reversed(letters), *letters[:75])
    assert match.quality is not None
    assert match.steps_score == pytest.approx(2 * 150 / (150 + 225))
