"""What the statistics promise, measured on pairs of runs whose true difference is known."""

import numpy as np
import pytest

from graphrag_eval_lc.stats import bootstrap_interval, permutation_p_value

PAIRS = 1_000
TEMPLATES = 40
Generator = np.random.Generator


def template_differences(random: Generator, effect: float) -> list[list[float]]:
    """Give the differences of two runs by template.

    Templates have 1 to 12 questions. How hard a template is for either run is skewed and differs by template; a
    question is right (1), wrong (0) or half right.
    """
    clusters = []
    for _ in range(TEMPLATES):
        size = int(random.integers(1, 13))
        ease = random.beta(2, 1)
        of_a, of_b = np.clip(ease + random.normal(0, 0.15, 2), 0, 1) * (1 - abs(effect))
        scores = [random.binomial(2, chance, size) / 2 for chance in (of_a, of_b + max(effect, 0))]
        clusters.append(list(scores[1] - scores[0]))
    return clusters


def true_difference(effect: float) -> float:
    random = np.random.default_rng(99)
    values = [value for _ in range(2_000) for cluster in template_differences(random, effect) for value in cluster]
    return float(np.mean(values))


@pytest.mark.full
@pytest.mark.parametrize("effect", [0.0, 0.1])
def test_intervals_hold_the_true_difference_as_often_as_they_say(effect: float) -> None:
    truth = true_difference(effect)
    random = np.random.default_rng(7)
    held = 0
    for _ in range(PAIRS):
        low, high = bootstrap_interval(template_differences(random, effect), resamples=1999) or (0, 0)
        held += low <= truth <= high
    assert 0.93 <= held / PAIRS <= 0.97


@pytest.mark.full
def test_runs_that_do_not_differ_seldom_raise_an_alarm() -> None:
    random = np.random.default_rng(8)
    alarms = sum(permutation_p_value(template_differences(random, 0.0), resamples=1999) < 0.05 for _ in range(PAIRS))
    assert alarms / PAIRS <= 0.06


@pytest.mark.full
def test_difference_of_15_points_is_found_in_most_pairs() -> None:
    random = np.random.default_rng(9)
    found = sum(permutation_p_value(template_differences(random, 0.15), resamples=1999) < 0.05 for _ in range(200))
    assert found / 200 > 0.5
