from itertools import product

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc.metrics.significance import differing_sums, lowest_p_value, permutation_p_value

DIFFERENCES = st.integers(-4, 4).map(lambda number: number / 4)
CLUSTERS = st.lists(st.lists(DIFFERENCES, min_size=1, max_size=3), min_size=2, max_size=7)


def test_p_value_is_that_of_scipy() -> None:
    differences = [0.3, -0.1, 0.4, 0.2, 0.6, -0.2, 0.1]
    expected = scipy.stats.permutation_test((differences,), sum, permutation_type="samples", vectorized=False).pvalue
    assert permutation_p_value([[difference] for difference in differences]) == pytest.approx(expected)


@settings(deadline=None, max_examples=60)
@given(clusters=CLUSTERS)
def test_p_value_is_the_share_of_all_signs_that_give_as_much(clusters: list[list[float]]) -> None:
    sums = [sum(values) for values in clusters]
    totals = [
        sum(sign * total for sign, total in zip(signs, sums, strict=True))
        for signs in product((1, -1), repeat=len(sums))
    ]
    as_much = sum(abs(total) >= abs(sum(sums)) - 1e-9 for total in totals)
    assert permutation_p_value(clusters) == pytest.approx(as_much / len(totals))


@settings(deadline=None, max_examples=40)
@given(clusters=CLUSTERS)
def test_it_does_not_matter_which_run_is_called_a(clusters: list[list[float]]) -> None:
    swapped = [[-difference for difference in values] for values in clusters]
    assert permutation_p_value(swapped) == pytest.approx(permutation_p_value(clusters))


def test_clusters_are_flipped_as_a_whole() -> None:
    assert permutation_p_value([[1.0] * 8]) == pytest.approx(2 / 2**8)
    assert permutation_p_value([[1.0] * 4, [1.0] * 4]) == pytest.approx(2 / 2**2)


@pytest.mark.parametrize("clusters", [[], [[0.0, 0.0]], {"t1": [0.0], "t2": [0.0]}, [[0.5]], [[0.5], [0.0]]])
def test_nothing_to_flip_is_no_evidence(clusters: list[list[float]]) -> None:
    assert permutation_p_value(clusters) == 1.0


def test_clusters_without_a_difference_change_nothing() -> None:
    clusters = [[0.5], [0.25], [0.75], [0.5]]
    assert permutation_p_value([*clusters, [0.0], [0.5, -0.5]]) == permutation_p_value(clusters)


def test_drawn_signs_are_the_same_each_time_and_never_give_zero() -> None:
    clusters = [[0.5]] * 60
    p_value = permutation_p_value(clusters)
    assert p_value == permutation_p_value(clusters) == pytest.approx(2 / 10_000)


@settings(deadline=None, max_examples=100)
@given(clusters=CLUSTERS)
def test_p_value_is_never_below_the_lowest(clusters: list[list[float]]) -> None:
    assert permutation_p_value(clusters) >= lowest_p_value(clusters) - 1e-12


@settings(deadline=None, max_examples=60)
@given(
    leading=st.lists(st.integers(4, 9), min_size=2, max_size=7),
    against=st.lists(st.just(-1.0), max_size=3),
    scale=st.sampled_from((1.0, 10.0)),
)
def test_larger_differences_do_not_change_a_p_value_that_is_at_its_lowest(
    leading: list[int], against: list[float], scale: float
) -> None:
    clusters = [*([scale * each] for each in leading), *([each] for each in against)]
    assert lowest_p_value(clusters) == 2 / 2 ** len(leading)
    assert permutation_p_value(clusters) == pytest.approx(lowest_p_value(clusters))


def test_six_clusters_that_differ_are_the_fewest_that_can_fall_below_5_percent() -> None:
    assert lowest_p_value([[1.0]] * 2 + [[0.0]] * 9) == 0.5
    assert lowest_p_value([[1.0, 1.0, 1.0]] * 5 + [[0.0]] * 6) == 0.0625
    assert lowest_p_value([[1.0]] * 6) == 0.03125
    assert lowest_p_value([[1.0] * 6]) == 0.03125
    assert lowest_p_value([[0.0], [0.0]]) == lowest_p_value([]) == 1.0


def test_lowest_of_drawn_signs_is_that_of_their_number() -> None:
    assert lowest_p_value([[0.5]] * 60) == permutation_p_value([[0.5]] * 60)


def test_what_rounding_leaves_is_no_difference() -> None:
    noise = [0.8 - 0.7, -0.1]
    assert sum(noise) != 0
    assert differing_sums([noise, [1e-7, 2e-7]]) == [3e-7]
    assert lowest_p_value([noise] * 6) == 1.0
    assert permutation_p_value([noise] * 6) == 1.0
