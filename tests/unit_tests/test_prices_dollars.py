import pytest

from graphrag_eval_lc.prices import dollars


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (0.1, "$0.10"),
        (0.0999, "$0.100"),
        (0.012, "$0.012"),
        (0.000345, "$0.00034"),
        (1e-15, "$0.0000000000"),
        (12.345, "$12.35"),
        (1e6, "$1,000,000.00"),
    ],
)
def test_small_amounts_keep_two_digits(amount: float, text: str) -> None:
    assert dollars(amount) == text
