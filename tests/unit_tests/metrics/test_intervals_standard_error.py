import math
from statistics import mean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.metrics import clustered_standard_error

scores = st.floats(0, 1)
clusters_of_scores = st.lists(st.lists(scores, min_size=1, max_size=4), min_size=2, max_size=6)


@pytest.mark.parametrize(
    ("clusters", "error"),
    [
        ([[0.0], [1.0]], 0.5),
        ([[1.0, 1.0], [0.0, 0.0]], 0.5),
        ([[1.0, 0.0], [0.0, 1.0]], 0.0),
        ([[0.7, 0.7], [0.7]], 0.0),
        ([[1, 1, 1], [0], [1, 0]], math.sqrt((1 + 4 / 9 + 1 / 9) * 3 / 2) / 6),
    ],
)
def test_worked_examples(clusters: list[list[float]], error: float) -> None:
    assert clustered_standard_error(clusters) == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("clusters", [[], [[]], [[0.0, 1.0]], [[0.0, 1.0], []]])
def test_fewer_than_two_clusters_have_no_error(clusters: list[list[float]]) -> None:
    assert clustered_standard_error(clusters) is None


@given(st.lists(scores, min_size=2, max_size=20))
def test_clusters_of_one_value_have_the_plain_standard_error(values: list[float]) -> None:
    found = clustered_standard_error([value] for value in values)
    assert found == pytest.approx(stdev(values) / math.sqrt(len(values)), abs=1e-12)


@given(clusters_of_scores)
def test_error_agrees_with_the_formula_over_pairs(clusters: list[list[float]]) -> None:
    values = [value for cluster in clusters for value in cluster]
    centre = mean(values)
    pairs = sum((one - centre) * (other - centre) for cluster in clusters for one in cluster for other in cluster)
    variance = pairs / len(values) ** 2 * len(clusters) / (len(clusters) - 1)
    assert clustered_standard_error(clusters) == pytest.approx(math.sqrt(max(variance, 0.0)), abs=1e-7)


@given(clusters_of_scores, st.randoms())
def test_order_does_not_matter(clusters: list[list[float]], random: Any) -> None:
    before = clustered_standard_error(clusters)
    random.shuffle(clusters)
    for cluster in clusters:
        random.shuffle(cluster)
    assert clustered_standard_error(clusters) == before


def test_repeating_each_question_does_not_reduce_the_error() -> None:
    single = [[1.0, 0.0, 1.0], [0.5], [0.0, 0.0]]
    doubled = [cluster * 2 for cluster in single]
    assert clustered_standard_error(doubled) == pytest.approx(clustered_standard_error(single))
