import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.metrics.significance import holm

P_VALUES = st.lists(st.floats(0, 1), max_size=8)


def test_example_of_a_textbook() -> None:
    assert holm([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04, 0.06, 0.06, 0.06])


def test_one_p_value_stays_as_it_is() -> None:
    assert holm([0.03]) == [0.03]


@given(p_values=P_VALUES)
def test_adjusted_values_lie_between_the_given_ones_and_those_of_bonferroni(p_values: list[float]) -> None:
    for given_value, adjusted in zip(p_values, holm(p_values), strict=True):
        assert given_value <= adjusted <= 1
    if p_values:
        assert min(holm(p_values)) == min(1, len(p_values) * min(p_values))


@given(p_values=P_VALUES)
def test_order_of_the_values_is_kept(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    ranks = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[index] for index in ranks] == sorted(adjusted)
