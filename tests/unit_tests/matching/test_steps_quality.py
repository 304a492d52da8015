"""Recall, precision, F1 and order of the steps of all groups."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.graded_steps import graded, looks, references, register_worths

from graphrag_eval_lc.matching import StepsMatch, match_steps
from graphrag_eval_lc.matching.assignment import order_share


def quality(match: StepsMatch) -> tuple[float, float, float, float]:
    found = match.quality
    assert found is not None
    return found.recall, found.precision, pytest.approx(found.f1), found.order


@pytest.mark.parametrize(
    ("groups", "calls", "expected"),
    [
        pytest.param(["a", "b"], ["a", "b"], (1.0, 1.0, 1.0, 1.0), id="all"),
        pytest.param(["a", "b"], ["b", "a"], (1.0, 1.0, 1.0, 0.0), id="in the wrong order"),
        pytest.param(["a", "b", "c"], ["b", "a", "c"], (1.0, 1.0, 1.0, 2 / 3), id="one pair of three is not in order"),
        pytest.param(["ab"], ["b", "a"], (1.0, 1.0, 1.0, 1.0), id="inside a group no order counts"),
        pytest.param(["a", "b"], ["a"], (0.5, 1.0, 2 / 3, 1.0), id="one is missing"),
        pytest.param(["a", "b"], ["a", "x"], (0.5, 0.5, 0.5, 1.0), id="a near miss does not cancel what was right"),
        pytest.param(["a"], ["a", "x", "x", "x", "x"], (1.0, 0.2, 1 / 3, 1.0), id="four calls too many"),
        pytest.param(["a"], [{"a": 0.5}], (0.5, 0.5, 0.5, 1.0), id="half of it"),
        pytest.param(["a"], [{"a": 0.5}, "a"], (1.0, 0.5, 2 / 3, 1.0), id="half of it, then all"),
        pytest.param(["a", "a"], ["a"], (0.5, 1.0, 2 / 3, 1.0), id="one call does not count twice"),
        pytest.param(["a"], [], (0.0, 0.0, 0.0, 1.0), id="no call"),
        pytest.param(["", "a"], ["a"], (1.0, 1.0, 1.0, 1.0), id="a group without steps"),
    ],
)
def test_all_groups_count_each_for_itself(groups: Any, calls: Any, expected: tuple[float, ...]) -> None:
    match = graded(groups, *calls)
    assert quality(match) == expected
    assert match.steps_score == pytest.approx(expected[2])


def test_without_grades_the_scores_are_summed_and_stand_beside_steps_score() -> None:
    register_worths()
    match = match_steps(references("a", "b"), looks({"a": 0.9}, "b"))
    assert match.steps_score == 1.0
    assert quality(match) == (0.5, 0.5, 0.5, 1.0)


def test_only_successful_calls_of_a_fitting_name_count_in_precision() -> None:
    register_worths()
    steps = looks("a", "a", "a")
    steps[0]["status"], steps[1]["name"] = "error", "other"
    assert quality(match_steps(references("a"), steps)) == (1.0, 1.0, 1.0, 1.0)


def test_a_query_counts_for_the_iri_that_it_finds_or_for_its_rows_not_for_both() -> None:
    rows = '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:a"}}]}}'
    media_type = "application/sparql-results+json"
    groups = [
        [{"name": "iri_discovery", "output": "urn:a"}],
        [{"name": "sparql_query", "output": rows, "output_media_type": media_type}],
    ]
    query = {"name": "sparql_query", "args": {}, "id": "q", "status": "success", "output": rows}
    search = {**query, "name": "autocomplete_search", "id": "s"}
    assert quality(match_steps(groups, [query])) == (0.5, 1.0, 2 / 3, 1.0)
    assert quality(match_steps(groups, [search, query])) == (1.0, 1.0, 1.0, 1.0)
    assert quality(match_steps(groups, [query, search])) == (1.0, 1.0, 1.0, 0.0)


@pytest.mark.parametrize("groups", [[], [[]]])
def test_without_reference_steps_there_is_nothing_to_tell(groups: Any) -> None:
    for match in (match_steps(groups, looks("a")), match_steps(groups, looks("a"), grading="graded")):
        assert (match.steps_score, match.quality) == (None, None)


@given(st.lists(st.integers(0, 4), max_size=12), st.randoms())
def test_order_is_the_share_of_pairs_from_different_groups(groups: list[int], random: Any) -> None:
    actual = random.sample(range(20), len(groups))
    matched = list(zip(groups, actual, strict=True))
    pairs = [(one, other) for one, other in combinations(sorted(matched), 2) if one[0] != other[0]]
    expected = sum(one[1] < other[1] for one, other in pairs) / len(pairs) if pairs else 1.0
    assert order_share(matched) == expected


def test_whatever_was_asked_for_before_what_is_told_is_the_same() -> None:
    register_worths()
    calls: list[Mapping[str, float] | str] = ["b", {"cut": 1}, "a", "b"]
    first, second = (match_steps(references("a", "b"), looks(*calls)) for _ in range(2))
    assert (first.quality, first.cut, first.extra) == (second.quality, second.cut, second.extra)
    third = match_steps(references("a", "b"), looks(*calls))
    assert (third.cut, third.unreadable) == (first.cut, first.unreadable)
