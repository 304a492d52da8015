"""What the statistics promise, measured on pairs of runs whose true difference is known."""

import numpy as np
import pytest

from graphrag_eval_lc.metrics.significance import permutation_p_value

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


@pytest.mark.full
def test_runs_that_do_not_differ_seldom_raise_an_alarm() -> None:
    random = np.random.default_rng(8)
    alarms = sum(permutation_p_value(template_differences(random, 0.0)) < 0.05 for _ in range(PAIRS))
    assert alarms / PAIRS <= 0.06


@pytest.mark.full
def test_difference_of_15_points_is_found_in_most_pairs() -> None:
    random = np.random.default_rng(9)
    found = sum(permutation_p_value(template_differences(random, 0.15)) < 0.05 for _ in range(200))
    assert found / 200 > 0.5
