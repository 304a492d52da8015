from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.aggregation.statistics import Column


def column_of(values: list[float]) -> Column:
    column = Column()
    column.add(0, values)
    return column


@given(st.lists(st.integers(-(2**53), 2**53)))
def test_whole_numbers_come_out_whole(values: list[float]) -> None:
    found = column_of(values).values()
    assert found == values
    assert all(isinstance(value, int) for value in found)


@given(st.lists(st.floats(-1e100, 1e100) | st.integers(-(2**53), 2**53)))
def test_mixed_numbers_keep_their_values(values: list[float]) -> None:
    assert column_of(values).values() == values


def test_whole_number_beyond_the_exact_ones_becomes_the_nearest_float() -> None:
    assert column_of([2**53 + 1, 1]).values() == [float(2**53), 1.0]
