import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import ANSWER_RELEVANCE, metric_spec
from graphrag_eval_lc.view.scores import bins_of, percentile

SCORE = MetricSpec(key="score")
numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)


@settings(deadline=None)
@given(numbers)
def test_every_value_falls_into_a_bin(values: list[float]) -> None:
    assert sum(bins_of(values, *SCORE.shown_range(values))) == len(values)


@settings(deadline=None)
@given(numbers, st.floats(0, 1))
def test_percentiles_agree_with_numpy(values: list[float], share: float) -> None:
    assert percentile(values, share) == pytest.approx(np.quantile(values, share), rel=1e-9, abs=1e-6)


def test_scores_use_their_range_and_others_that_of_their_values() -> None:
    assert SCORE.shown_range([0.4, 0.6]) == (0.0, 1.0)
    assert SCORE.shown_range([0, 3]) == (0, 3)
    assert SCORE.shown_range([]) == (0.0, 1.0)
    assert bins_of([5, 5], 5, 5) == [2, *[0] * 9]


def test_values_are_shown_over_their_declared_range_if_bounded() -> None:
    stars, seconds = MetricSpec(key="stars", range=(1, 10)), MetricSpec(key="wait", range=(0.0, None))
    assert stars.shown_range([3, 4]) == (1, 10)
    assert stars.shown_range([3, 40]) == (3, 40)
    assert seconds.shown_range([0.1, 0.2]) == (0.0, 0.2)
    assert metric_spec("mine").shown_range([0.1, 0.2]) == (0.0, 1.0)
    relevance = metric_spec(ANSWER_RELEVANCE)
    assert (relevance.shown_range([0.5]), relevance.shown_range([-0.1])) == ((0.0, 1.0), (-1.0, 1.0))
