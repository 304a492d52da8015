from itertools import product

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc.metrics.difference import (
    cohens_dz,
    differing_sums,
    holm,
    lowest_p_value,
    permutation_p_value,
    questions_needed,
)

CLUSTERS = st.lists(
    st.lists(st.integers(-4, 4).map(lambda number: number / 4), min_size=1, max_size=3), min_size=2, max_size=7
)
P_VALUES = st.lists(st.floats(0, 1), max_size=8)


@settings(deadline=None, max_examples=60)
@given(clusters=CLUSTERS)
def test_p_value_is_the_share_of_sign_flips_at_least_as_extreme(clusters: list[list[float]]) -> None:
    sums = [sum(values) for values in clusters]
    totals = [
        sum(sign * total for sign, total in zip(signs, sums, strict=True))
        for signs in product((1, -1), repeat=len(sums))
    ]
    at_least_as_extreme = sum(abs(total) >= abs(sum(sums)) - 1e-9 for total in totals)
    assert permutation_p_value(clusters) == pytest.approx(at_least_as_extreme / len(totals))
    assert permutation_p_value(clusters) >= lowest_p_value(clusters) - 1e-12


def test_clusters_are_flipped_as_a_whole() -> None:
    assert permutation_p_value([[1.0] * 8]) == pytest.approx(2 / 2**8)
    assert permutation_p_value([[1.0] * 4, [1.0] * 4]) == pytest.approx(2 / 2**2)


@pytest.mark.parametrize("clusters", [[], [[0.0, 0.0]], {"t1": [0.0], "t2": [0.0]}, [[0.5]], [[0.5], [0.0]]])
def test_without_clusters_to_flip_p_is_1(clusters: list[list[float]]) -> None:
    assert permutation_p_value(clusters) == 1.0


def test_sampled_signs_are_deterministic_and_p_is_never_0() -> None:
    clusters = [[0.5]] * 60
    p_value = permutation_p_value(clusters)
    assert p_value == permutation_p_value(clusters) == pytest.approx(2 / 10_000)
    assert p_value == lowest_p_value(clusters)


@settings(deadline=None, max_examples=60)
@given(
    leading=st.lists(st.integers(4, 9), min_size=2, max_size=7),
    against=st.lists(st.just(-1.0), max_size=3),
    scale=st.sampled_from((1.0, 10.0)),
)
def test_larger_differences_do_not_lower_a_minimal_p_value(
    leading: list[int], against: list[float], scale: float
) -> None:
    clusters = [*([scale * each] for each in leading), *([each] for each in against)]
    assert lowest_p_value(clusters) == 2 / 2 ** len(leading)
    assert permutation_p_value(clusters) == pytest.approx(lowest_p_value(clusters))


@pytest.mark.parametrize(
    ("clusters", "lowest"),
    [
        ([[1.0]] * 2 + [[0.0]] * 9, 0.5),
        ([[1.0, 1.0, 1.0]] * 5 + [[0.0]] * 6, 0.0625),
        ([[1.0]] * 6, 0.03125),
        ([[1.0] * 6], 0.03125),
        ([[0.0], [0.0]], 1.0),
        ([], 1.0),
    ],
)
def test_at_least_six_differing_clusters_are_needed_for_5_percent(clusters: list[list[float]], lowest: float) -> None:
    assert lowest_p_value(clusters) == lowest


def test_rounding_errors_are_not_differences() -> None:
    noise = [0.8 - 0.7, -0.1]
    assert sum(noise) != 0
    assert differing_sums([noise, [1e-7, 2e-7]]) == [3e-7]
    assert lowest_p_value([noise] * 6) == 1.0
    assert permutation_p_value([noise] * 6) == 1.0


@pytest.mark.parametrize(
    ("p_values", "adjusted"), [([0.01, 0.02, 0.03, 0.04], [0.04, 0.06, 0.06, 0.06]), ([0.03], [0.03]), ([], [])]
)
def test_textbook_example_of_adjusted_values(p_values: list[float], adjusted: list[float]) -> None:
    assert holm(p_values) == pytest.approx(adjusted)


@given(p_values=P_VALUES)
def test_adjusted_values_are_bounded_by_bonferroni_and_keep_the_order(
    p_values: list[float],
) -> None:
    adjusted = holm(p_values)
    assert all(p_value <= value <= 1 for p_value, value in zip(p_values, adjusted, strict=True))
    assert not p_values or min(adjusted) == min(1, len(p_values) * min(p_values))
    ranks = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[index] for index in ranks] == sorted(adjusted)


def test_effect_size_is_t_over_the_root_of_n() -> None:
    differences = [0.1, 0.4, -0.2, 0.3, 0.25]
    statistic = scipy.stats.ttest_1samp(differences, 0).statistic
    assert cohens_dz(differences) == pytest.approx(statistic / 5**0.5)
    assert [cohens_dz(each) for each in ([], [0.5], [0.1, 0.1, 0.1], [0.0, 0.0])] == [None] * 4


@pytest.mark.parametrize("significance", [0.05, 0.05 / 18])
def test_needed_questions_have_a_power_of_80_percent(significance: float) -> None:
    difference, standard_error, number = 0.05, 0.04, 100
    needed = questions_needed(difference, standard_error, number, significance=significance)
    assert needed is not None
    error_then = standard_error * (number / needed) ** 0.5
    quantile = scipy.stats.norm.isf(significance / 2)
    assert scipy.stats.norm.sf(quantile - difference / error_then) == pytest.approx(0.8, abs=0.002)
    assert questions_needed(0.0, 0.04, 100) is None


@given(difference=st.floats(0.01, 1), error=st.floats(0, 1), number=st.integers(1, 1000))
def test_half_the_difference_needs_four_times_as_many(difference: float, error: float, number: int) -> None:
    whole, half = (questions_needed(size, error, number) or 0 for size in (difference, -difference / 2))
    assert 1 <= whole <= half <= 4 * whole
