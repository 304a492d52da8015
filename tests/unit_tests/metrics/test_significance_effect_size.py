import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.metrics.significance import cohens_dz, questions_needed


def test_effect_size_is_the_t_statistic_over_the_root_of_the_number() -> None:
    differences = [0.1, 0.4, -0.2, 0.3, 0.25]
    statistic = scipy.stats.ttest_1samp(differences, 0).statistic
    assert cohens_dz(differences) == pytest.approx(statistic / 5**0.5)


@pytest.mark.parametrize("differences", [[], [0.5], [0.1, 0.1, 0.1], [0.0, 0.0]])
def test_without_spread_there_is_no_effect_size(differences: list[float]) -> None:
    assert cohens_dz(differences) is None


def test_needed_questions_have_a_power_of_80_percent() -> None:
    difference, standard_error, number = 0.05, 0.04, 100
    needed = questions_needed(difference, standard_error, number)
    assert needed is not None
    error_then = standard_error * (number / needed) ** 0.5
    assert scipy.stats.norm.sf(1.96 - difference / error_then) == pytest.approx(0.8, abs=0.002)


def test_one_of_many_tests_needs_more_questions_for_the_same_power() -> None:
    difference, standard_error, number, significance = 0.05, 0.04, 100, 0.05 / 18
    needed = questions_needed(difference, standard_error, number, significance=significance)
    assert needed is not None
    error_then = standard_error * (number / needed) ** 0.5
    quantile = scipy.stats.norm.isf(significance / 2)
    assert scipy.stats.norm.sf(quantile - difference / error_then) == pytest.approx(0.8, abs=0.002)


def test_no_number_of_questions_shows_a_difference_that_is_none() -> None:
    assert questions_needed(0.0, 0.04, 100) is None


@given(difference=st.floats(0.01, 1), error=st.floats(0, 1), number=st.integers(1, 1000))
def test_half_the_difference_takes_four_times_as_many(difference: float, error: float, number: int) -> None:
    whole, half = (questions_needed(size, error, number) or 0 for size in (difference, -difference / 2))
    assert 1 <= whole <= half <= 4 * whole
