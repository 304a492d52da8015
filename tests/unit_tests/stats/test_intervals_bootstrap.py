import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc.stats import bootstrap_interval

SCORES = st.lists(st.floats(0, 1).map(lambda score: round(score, 3)), min_size=1, max_size=5)
CLUSTERS = st.lists(SCORES, min_size=2, max_size=12)
RESAMPLES = 500


def test_interval_of_single_values_is_near_that_of_students_t() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.1, 60)
    low, high = bootstrap_interval([[value] for value in values]) or (0, 0)
    expected = scipy.stats.t.interval(0.95, 59, values.mean(), values.std(ddof=1) / 60**0.5)
    assert (low, high) == pytest.approx(expected, abs=0.003)


def test_interval_is_that_of_scipy_at_the_expanded_level() -> None:
    clusters = [[0.0, 1.0], [1.0], [0.5, 0.5, 1.0], [0.0]]
    sums, sizes = zip(*sorted((sum(values), len(values)) for values in clusters), strict=True)
    level = 1 - 2 * scipy.stats.norm.cdf(-((4 / 3) ** 0.5) * scipy.stats.t.ppf(0.975, 3))
    expected = scipy.stats.bootstrap(
        (sums, sizes),
        lambda drawn, counts, axis: drawn.sum(axis) / counts.sum(axis),
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=level,
        rng=0,
    ).confidence_interval
    assert bootstrap_interval(clusters) == pytest.approx((expected.low, expected.high))


def test_values_that_resemble_each_other_within_clusters_are_less_sure() -> None:
    scores = [1.0, 0.0] * 10
    alone = bootstrap_interval([[score] for score in scores])
    alike = bootstrap_interval([[score] * 5 for score in scores[:4]])
    assert alone is not None
    assert alike is not None
    assert alike.high - alike.low > 1.5 * (alone.high - alone.low)


def test_fewer_clusters_give_a_wider_interval_than_the_plain_percentiles() -> None:
    clusters = [[0.2], [0.4], [0.6], [0.9]]
    plain = scipy.stats.bootstrap((np.ravel(clusters),), np.mean, method="percentile", rng=0).confidence_interval
    low, high = bootstrap_interval(clusters) or (0, 0)
    assert low < plain.low
    assert high > plain.high


def test_higher_level_is_wider() -> None:
    clusters = [[value / 20] for value in range(20)]
    low, high = bootstrap_interval(clusters) or (0, 0)
    lower, higher = bootstrap_interval(clusters, level=0.99) or (0, 0)
    assert lower < low < high < higher


@pytest.mark.parametrize("clusters", [[], [[]], {"t": [0.5]}, [[], [0.5]]])
def test_fewer_than_two_values_have_no_interval(clusters: list[list[float]]) -> None:
    assert bootstrap_interval(clusters) is None


def test_values_of_one_cluster_count_each() -> None:
    assert bootstrap_interval({"t": [0.0, 0.5, 1.0]}) == bootstrap_interval([[0.0], [0.5], [1.0]])


@pytest.mark.parametrize("level", [0, 1, -0.5, 95])
def test_level_outside_its_range_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="the level is between 0 and 1"):
        bootstrap_interval([[0.0], [1.0]], level=level)


@settings(deadline=None, max_examples=40)
@given(clusters=CLUSTERS)
def test_bounds_stay_within_the_means_of_the_clusters(clusters: list[list[float]]) -> None:
    low, high = bootstrap_interval(clusters, resamples=RESAMPLES) or (0, 0)
    means = [sum(values) / len(values) for values in clusters]
    assert min(means) - 1e-9 <= low <= high <= max(means) + 1e-9


@settings(deadline=None, max_examples=40)
@given(clusters=CLUSTERS, order=st.randoms(use_true_random=False))
def test_neither_the_order_of_clusters_nor_of_values_matters(clusters: list[list[float]], order: object) -> None:
    mixed = [sorted(values) for values in clusters]
    order.shuffle(mixed)  # type: ignore[attr-defined]
    interval = bootstrap_interval(clusters, resamples=RESAMPLES)
    assert bootstrap_interval(mixed, resamples=RESAMPLES) == interval


@settings(deadline=None, max_examples=40)
@given(value=st.floats(-1, 1), sizes=st.lists(st.integers(1, 5), min_size=2, max_size=10))
def test_equal_values_leave_no_doubt(value: float, sizes: list[int]) -> None:
    interval = bootstrap_interval([[value] * size for size in sizes], resamples=RESAMPLES)
    assert interval == pytest.approx((value, value), abs=1e-12)
