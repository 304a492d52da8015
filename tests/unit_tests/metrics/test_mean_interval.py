"""The interval of a run's mean: known values, laws, and invalid input."""

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from graphrag_eval_lc.metrics.intervals import MeanInterval, cluster_robust_mean, mean_interval

scores = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])
runs = st.lists(st.tuples(scores, st.integers(0, 6)), min_size=2, max_size=40)


def interval_of(run: Sequence[tuple[float, int]], confidence: float = 0.95) -> MeanInterval:
    interval = mean_interval([score for score, _ in run], [template for _, template in run], confidence)
    assert interval is not None
    return interval


def wilson(successes: float, size: float, quantile: float) -> tuple[float, ...]:
    """Solve ``(p − m)² = q² p (1 − p) / n`` for p, as in Wilson's interval."""
    mean = successes / size
    roots = np.roots([1 + quantile**2 / size, -2 * mean - quantile**2 / size, mean**2])
    return tuple(sorted(float(root) for root in roots))


# --- known values -----------------------------------------------------------------------------------------------------


def test_one_right_question_per_template_has_wilsons_interval() -> None:
    interval = interval_of([(1.0, template) for template in range(6)])
    assert interval[:2] == pytest.approx(wilson(6, 6, stats.norm.ppf(0.975)), abs=1e-9)


def test_templates_that_are_all_right_count_as_one_question_each() -> None:
    interval = interval_of([(1.0, template) for template in range(8) for _ in range(5)])
    assert interval[:2] == pytest.approx(wilson(8, 8, stats.norm.ppf(0.975)), abs=1e-9)


def test_large_template_reduces_the_effective_number() -> None:
    alike = [(1.0, 0)] * 8 + [(1.0, template) for template in range(1, 9)]
    size = 16**2 / (64 + 8)
    assert interval_of(alike)[:2] == pytest.approx(wilson(size, size, stats.norm.ppf(0.975)), abs=1e-9)


def test_single_questions_have_wilsons_interval_with_students_quantile() -> None:
    run = [(1.0, 1), (0.0, 2), (1.0, 3), (1.0, 4), (1.0, 5), (1.0, 6), (1.0, 7), (0.0, 8)]
    interval = interval_of(run)
    # x̄ (1 − x̄) / SE² is n − 1 for the SE of a sample.
    assert interval[:2] == pytest.approx(wilson(0.75 * 7, 7, stats.t.ppf(0.975, 7)), abs=1e-9)


def test_values_without_bounds_have_a_t_interval_with_a_cluster_robust_standard_error() -> None:
    tokens, templates = [900.0, 1100.0, 400.0, 600.0, 1500.0, 1300.0], ["a", "a", "b", "b", "c", "c"]
    interval = mean_interval(tokens, templates, bounds=(None, None))
    alone = mean_interval([1000.0, 500.0, 1400.0], ["a", "b", "c"])
    assert interval is not None
    assert alone is not None
    assert interval.note is not None  # three templates
    half = stats.t.ppf(0.975, 2) * np.std([1000.0, 500.0, 1400.0], ddof=1) / math.sqrt(3)
    assert alone[:2] == pytest.approx((2900 / 3 - half, 2900 / 3 + half))


def test_cluster_robust_error_of_equal_clusters_is_that_of_their_means() -> None:
    groups = [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.5]]
    means = [0.5, 1.0, 0.0, 0.75]
    found = cluster_robust_mean(groups)
    assert found.standard_error == pytest.approx(np.std(means, ddof=1) / 2)
    assert found.degrees_of_freedom == pytest.approx(3)


def test_one_large_cluster_leaves_few_degrees_of_freedom() -> None:
    assert cluster_robust_mean([[1.0] * 20, *([0.0, 1.0] for _ in range(10))]).degrees_of_freedom < 4


# --- laws -------------------------------------------------------------------------------------------------------------


@given(runs, st.randoms())
def test_order_and_names_of_templates_do_not_matter(run: list[tuple[float, int]], random: Random) -> None:
    shuffled = [(score, -template) for score, template in run]
    random.shuffle(shuffled)
    assert interval_of(shuffled) == interval_of(run)


@given(runs)
def test_interval_contains_the_mean_within_the_bounds_and_has_a_width(run: list[tuple[float, int]]) -> None:
    interval = interval_of(run)
    assert 0 <= interval.low <= interval.mean <= interval.high <= 1
    assert interval.high - interval.low > 0.05


@given(runs)
def test_mirrored_scores_have_the_mirrored_interval(run: list[tuple[float, int]]) -> None:
    low, high = interval_of(run)[:2]
    mirrored = interval_of([(1 - score, template) for score, template in run])
    assert mirrored[:2] == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(runs, st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_higher_confidence_is_wider(run: list[tuple[float, int]], one: float, other: float) -> None:
    less, more = (interval_of(run, confidence) for confidence in sorted((one, other)))
    assert more.low <= less.low + 1e-12
    assert less.high <= more.high + 1e-12


@given(runs)
def test_interval_scales_with_the_scores(run: list[tuple[float, int]]) -> None:
    stars = mean_interval([1 + 4 * score for score, _ in run], [template for _, template in run], bounds=(1, 5))
    low, high = interval_of(run)[:2]
    assert stars is not None
    assert stars[:2] == pytest.approx((1 + 4 * low, 1 + 4 * high), abs=1e-9)


@given(st.lists(st.tuples(st.floats(2, 1e6), st.integers(0, 9)), min_size=2, max_size=30))
def test_interval_does_not_cross_the_bounds(run: list[tuple[float, int]]) -> None:
    interval = mean_interval([value for value, _ in run], [template for _, template in run], bounds=(0, None))
    assert interval is None or 0 <= interval.low <= interval.mean <= interval.high


# --- notes and errors -------------------------------------------------------------------------------------------------


def test_with_fewer_than_five_templates_questions_count_separately_with_a_note() -> None:
    run = [(1.0, 1), (1.0, 1), (0.0, 2), (1.0, 2), (0.5, 3), (1.0, 3), (1.0, 4), (1.0, 4)]
    interval = interval_of(run)
    assert interval.note is not None
    assert interval.note.startswith("4 templates are too few to show how templates differ, so each question")
    assert interval[:2] == interval_of([(score, index) for index, (score, _) in enumerate(run)])[:2]
    assert interval_of([(1.0, 1), (0.0, 1)]).note is not None
    assert interval_of([*run, (1.0, 5)]).note is None


def test_uninformative_values_have_no_interval() -> None:
    assert mean_interval([], []) is None
    assert mean_interval([0.5], ["t"]) is None
    assert mean_interval([7.0, 7.0, 7.0], ["a", "b", "c"]) is None


@pytest.mark.parametrize(
    ("values", "clusters", "options", "complaint"),
    [
        ([1.0, 0.0], ["a"], {}, "each value needs its cluster, and there are 2 values and 1 clusters"),
        ([1.0, math.nan], ["a", "b"], {}, "nan is not a finite number; leave out what was not measured"),
        ([1.0, math.inf], ["a", "b"], {}, "inf is not a finite number"),
        ([1.0, -1e300], ["a", "b"], {}, r"-1e\+300 is too large; the limit is 1e\+120"),
        ([1.0, 0.0], ["a", "b"], {"confidence": 95}, "the confidence level is between 0 and 1, not 95"),
        ([1.0, 6.0], ["a", "b"], {"bounds": (1, 5)}, r"6.0 lies beyond the bounds \(1, 5\)"),
        ([1.0, 1.0], ["a", "b"], {"bounds": (5, 1)}, "the bounds are the least and the greatest value"),
    ],
)
def test_invalid_input_is_rejected(
    values: list[float], clusters: list[str], options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        mean_interval(values, clusters, **options)


def test_numpy_values_and_labels_are_accepted() -> None:
    values: Any = np.array([1.0, 0.0, 1.0])
    labels: Any = np.array(["a", "b", "c"])
    interval = mean_interval(values, labels)
    assert interval == mean_interval([1, 0, 1], [1, 2, 3])


# --- coverage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("templates", "mean", "correlation"), [(5, 0.97, 0.5), (10, 0.9, 0.3)])
def test_interval_has_its_nominal_coverage(templates: int, mean: float, correlation: float) -> None:
    random = np.random.default_rng(4)
    strength = (1 - correlation) / correlation
    labels = [template for template in range(templates) for _ in range(4)]
    covered = 0
    for _ in range(400):
        chances = np.repeat(random.beta(mean * strength, (1 - mean) * strength, templates), 4)
        interval = mean_interval((random.random(4 * templates) < chances).tolist(), labels)
        assert interval is not None
        covered += interval.low <= mean <= interval.high
    assert covered / 400 >= 0.93
