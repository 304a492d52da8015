import random
import sys
from itertools import pairwise

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.metrics.difference import MeanDifference, lowest_p_value, permutation_p_value
from graphrag_eval_lc.metrics.intervals import cluster_robust_mean

SCORES = st.integers(-4, 4).map(lambda number: number / 4)
TOKENS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
CLUSTERS = st.one_of(
    *(st.lists(st.lists(each, min_size=1, max_size=4), min_size=1, max_size=9) for each in (SCORES, TOKENS))
)
CONFIDENCES = st.one_of(st.sampled_from((0.5, 0.8, 0.9, 0.95, 0.99, 0.999)), st.floats(0.01, 0.9999))
SKEWED = [[1.0], [1.0], [1.0], [1.0], [1.0], [1.0], [0.0], [0.0]]


@settings(deadline=None, max_examples=200)
@given(clusters=CLUSTERS, confidence=CONFIDENCES, scale=st.sampled_from((None, 1.0)))
def test_p_is_below_the_level_exactly_if_the_interval_excludes_0(
    clusters: list[list[float]], confidence: float, scale: float | None
) -> None:
    found = MeanDifference(clusters, scale=scale)
    interval = found.interval(confidence)
    if interval is not None:
        assert (found.p_value < 1 - confidence) is not (interval.low <= 0 <= interval.high)
        assert interval.low <= found.difference <= interval.high


@pytest.mark.full
@settings(deadline=None, max_examples=100)
@given(clusters=CLUSTERS, step=st.sampled_from((1e-2, 1e-4)))
def test_interval_at_the_level_of_p_ends_at_0(clusters: list[list[float]], step: float) -> None:
    found = MeanDifference(clusters)
    if found.p_value == 1.0 or found.p_value * (1 + step) >= 1:
        return
    narrow, wide = (found.interval(1 - found.p_value * (1 + each)) for each in (step, -step))
    assert narrow is not None
    assert wide is not None
    assert wide.low <= 0 <= wide.high
    # The nearer end is beyond 0 by a real margin, not only by the smallest float.
    assert 1e-300 < min(abs(narrow.low), abs(narrow.high)) <= abs(found.difference)


@settings(deadline=None, max_examples=60)
@given(clusters=CLUSTERS)
def test_intervals_are_nested_by_confidence(clusters: list[list[float]]) -> None:
    intervals = [MeanDifference(clusters, scale=1).interval(confidence) for confidence in (0.3, 0.8, 0.95, 0.999)]
    for inner, outer in pairwise(filter(None, intervals)):
        assert outer.low <= inner.low <= inner.high <= outer.high


@pytest.mark.full
@settings(deadline=None, max_examples=60)
@given(clusters=CLUSTERS)
def test_swapping_the_runs_does_not_matter(clusters: list[list[float]]) -> None:
    found, swapped = MeanDifference(clusters), MeanDifference([[-value for value in values] for values in clusters])
    assert swapped.p_value == pytest.approx(found.p_value)
    interval, mirror = found.interval(), swapped.interval()
    assert mirror == (None if interval is None else pytest.approx((-interval.high, -interval.low), abs=1e-9))


@pytest.mark.parametrize(
    "scores",
    [
        [-1, -1, 1, -1, -1, 1, -1, -1, 1, 0, 0, 0, 0, 0, 0, 0],
        [1, 0, 0, -1, 1, 1, 1, -1, -1, 1, -1, 1, 1, 1, 0, 0, 0],
        [0.5, 0.5, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.25, -0.25],  # no difference
        [1, -1, 0.5, -0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.25, -0.25],  # as many up as down
    ],
)
def test_swapping_the_runs_does_not_matter_if_templates_are_sampled(scores: list[float]) -> None:
    found, swapped = MeanDifference([[each] for each in scores]), MeanDifference([[-each] for each in scores])
    assert swapped.p_value == found.p_value
    interval, mirror = found.interval(0.9), swapped.interval(0.9)
    assert interval is not None
    assert mirror == pytest.approx((-interval.high, -interval.low), rel=1e-12)
    second = MeanDifference([[each] for each in scores[::-1]])
    assert (second.p_value, second.interval(0.9)) == (found.p_value, interval)


@settings(deadline=None, max_examples=60)
@given(clusters=st.lists(st.lists(SCORES, min_size=1, max_size=4), min_size=2, max_size=9))
def test_p_is_never_below_the_sign_flip_test(clusters: list[list[float]]) -> None:
    p_value = MeanDifference(clusters).p_value
    assert p_value >= permutation_p_value(clusters) - 1e-9
    assert p_value >= lowest_p_value(clusters) - 1e-9


def test_p_for_many_symmetric_differences_approaches_the_t_test() -> None:
    differences = [0.5, 0.9, 0.7, 0.3, 0.1] * 4 + [-0.5, -0.9, -0.7, -0.3, -0.1] * 2 + [0.2]
    robust = cluster_robust_mean([[each] for each in differences])
    statistic = robust.mean / robust.standard_error
    expected = 2 * scipy.stats.t.sf(statistic, robust.degrees_of_freedom)
    assert MeanDifference([[each] for each in differences]).p_value == pytest.approx(expected, rel=0.4)


def test_six_equally_improved_templates_are_significant_but_five_are_not() -> None:
    assert MeanDifference([[1.0] * 4] * 6).p_value == 2 / 2**6
    assert MeanDifference([[1.0] * 4] * 5).p_value == 2 / 2**5
    interval = MeanDifference([[1.0] * 4] * 5).interval()
    assert interval is not None
    assert interval.low == 0.0


@pytest.mark.parametrize("number", [6, 8, 12, 29])
def test_equal_differences_still_have_an_interval_with_width(number: int) -> None:
    interval = MeanDifference([[0.25]] * number).interval()
    assert interval is not None
    assert 0 < interval.low < 0.25 < interval.high


def test_one_differing_question_among_many_is_not_evidence() -> None:
    found = MeanDifference([[0.0] * 4] * 10 + [[0.0, 1.0, 0.0, 0.0]], scale=1)
    assert found.p_value == 1.0
    interval = found.interval()
    assert interval is not None
    assert interval.low < 0 < found.difference < interval.high < 0.2


def test_no_difference_is_as_uncertain_as_one_question() -> None:
    found = MeanDifference([[0.0] * 4] * 11, scale=1)
    assert (found.p_value, found.standard_error) == (1.0, 1 / 44)
    assert found.interval() == pytest.approx((-0.0506, 0.0506), abs=1e-4)
    unknown = MeanDifference([[0.0] * 4] * 11)
    assert (unknown.p_value, unknown.interval(), unknown.power(0.05)) == (1.0, None, None)


def test_skewness_never_increases_significance() -> None:
    assert MeanDifference(SKEWED).p_value > permutation_p_value(SKEWED) == 2 / 2**6
    against = [[1.0], *[[-0.25]] * 12]
    assert MeanDifference(against).p_value >= permutation_p_value(against)


def test_questions_of_a_single_cluster_count_separately() -> None:
    assert MeanDifference([[1.0] * 8]).p_value == MeanDifference([[1.0]] * 8).p_value == 2 / 2**8


def test_sampling_for_many_clusters_is_deterministic() -> None:
    clusters = [[0.1 * (index % 7) - 0.25] for index in range(200)]
    first, second = MeanDifference(clusters), MeanDifference(clusters)
    assert (first.p_value, first.interval()) == (second.p_value, second.interval())
    assert MeanDifference(clusters[::-1]).p_value == first.p_value


def test_one_value_has_no_interval() -> None:
    found = MeanDifference([[0.5]])
    assert (found.difference, found.p_value, found.interval(), found.power(0.05)) == (0.5, 1.0, None, None)
    assert (found.standard_error, found.questions_needed(), found.questions_needed_range()) == (None, None, None)


@pytest.mark.parametrize("clusters", [[], [[]], [[float("nan"), 1.0]], [[float("inf")], [1.0]]])
def test_values_must_be_finite(clusters: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="a mean difference needs finite numbers, at least one"):
        MeanDifference(clusters)


@pytest.mark.parametrize("value", [1e200, -1e300, 1.7e308])
def test_values_too_large_to_square_are_an_error(value: float) -> None:
    with pytest.raises(ValueError, match=r"is too large; the limit is 1e\+120"):
        MeanDifference([[value, value], [0.0]])
    assert MeanDifference([[-2e100], [0.0]], scale=2e100).interval() is not None


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_confidence_must_be_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ValueError, match="the confidence level is between 0 and 1"):
        MeanDifference([[1.0], [0.0]]).interval(confidence)


def test_power_grows_with_the_effect_and_the_questions() -> None:
    clusters = [[0.0, 1.0, -1.0, 0.0], [0.0] * 4, [1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0]] * 5
    few, many = MeanDifference(clusters, scale=1), MeanDifference(clusters * 4, scale=1)
    powers = [found.power(effect) for effect in (0.05, 0.2) for found in (few, many)]
    assert all(power is not None and 0 < power <= 1 for power in powers)
    assert powers == sorted(powers, key=lambda power: power or 0)
    assert few.power(-0.05) == few.power(0.05)
    assert (few.power(0.05, 0.01) or 1.0) < (few.power(0.05) or 0.0)


def test_power_agrees_with_the_noncentral_t_distribution() -> None:
    clusters = [[0.25, 0.0], [-0.5, 0.0], [0.0, 0.75], [-0.75, 0.0], [0.0, -0.25], [0.0, 0.5]] * 5
    found = MeanDifference(clusters)
    error = cluster_robust_mean(clusters).standard_error
    assert found.standard_error is not None
    quantile = scipy.stats.t.ppf(0.975, 29) * found.standard_error / error
    assert found.power(0.1) == pytest.approx(scipy.stats.nct.sf(quantile, 29, 0.1 / error))


@pytest.mark.parametrize("deviation", [0.02, 0.05])
def test_power_depends_on_the_deviation_of_graded_scores(deviation: float) -> None:
    draw = random.Random(1)
    shifts = [[draw.gauss(-0.05, deviation) for _ in range(4)] for _ in range(11)]
    graded = MeanDifference(shifts, scale=1)
    binary = MeanDifference([[float(-(index == 0)) for _ in range(4)] for index in range(11)], scale=1)
    assert graded.p_value < 0.001
    assert (graded.power(0.05) or 0) > 0.95 > 0.1 > (binary.power(0.05) or 1)


def test_undetectable_difference_has_no_power() -> None:
    assert MeanDifference([[0.1] * 100] * 5, scale=1).power(0.05) == 0.0


def test_power_of_equal_runs_to_detect_5_percent_grows_with_the_questions() -> None:
    powers = [MeanDifference([[0.0] * 4] * number, scale=1).power(0.05) for number in (11, 30, 100)]
    assert powers == pytest.approx([0.01, 0.43, 0.99], abs=0.05)  # counted as in benchmarks/difference_tests.py


def test_needed_questions_are_a_range_around_the_single_number() -> None:
    found = MeanDifference([[0.0], [0.5], [-0.25], [0.5], [0.0], [0.5]] * 5)
    single, needed = found.questions_needed(), found.questions_needed_range()
    assert single is not None
    assert needed is not None
    assert needed.high is not None
    assert needed.low < single < needed.high
    assert {str(end)[1:].strip("0") for end in needed if end} == {""}


def test_needed_questions_have_no_upper_end_if_there_may_be_no_difference() -> None:
    needed = MeanDifference([[0.0], [0.5], [-0.5], [0.25], [0.0], [-0.2]] * 5).questions_needed_range()
    assert needed is not None
    assert (needed.low > 30, needed.high) == (True, None)


def test_missing_scipy_is_an_error_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    found = MeanDifference([[0.0], [1.0], [0.5]] * 3)
    for ask in (lambda: found.p_value, found.interval, lambda: found.power(0.05)):
        with pytest.raises(MissingExtraError, match=r"needs the package scipy, .*graphrag-eval-lc\[stats\]"):
            ask()
