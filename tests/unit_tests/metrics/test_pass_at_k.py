from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.metrics import pass_at_k, pass_hat_k


@st.composite
def outcomes(draw: st.DrawFn) -> tuple[int, int]:
    number_of_samples = draw(st.integers(1, 8))
    return number_of_samples, draw(st.integers(0, number_of_samples))


@pytest.mark.parametrize(
    ("n", "c", "k", "at_k", "hat_k"),
    [
        (5, 0, 3, 0.0, 0.0),
        (5, 5, 3, 1.0, 1.0),
        (5, 3, 1, 0.6, 0.6),
        (5, 3, 2, 0.9, 0.3),
        (5, 3, 3, 1.0, 0.1),
        (5, 3, 5, 1.0, 0.0),
        (1, 1, 1, 1.0, 1.0),
        (3, 2, 3, 1.0, 0.0),
    ],
)
def test_worked_examples(n: int, c: int, k: int, at_k: float, hat_k: float) -> None:
    assert (pass_at_k(n, c, k), pass_hat_k(n, c, k)) == (at_k, hat_k)


def test_thousands_of_samples_neither_overflow_nor_lose_digits() -> None:
    assert pass_at_k(10_000, 1, 1) == 1 / 10_000
    assert pass_at_k(10_000, 1, 5_000) == 0.5
    assert pass_hat_k(10_000, 9_999, 5_000) == 0.5


@given(outcomes(), st.data())
def test_both_are_shares_of_the_selections_of_k_samples(outcome: tuple[int, int], data: Any) -> None:
    n, c = outcome
    k = data.draw(st.integers(1, n))
    choices = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, choices)) / len(choices))


@given(outcomes())
def test_at_k_1_both_equal_the_pass_rate(outcome: tuple[int, int]) -> None:
    n, c = outcome
    assert pass_at_k(n, c, 1) == pass_hat_k(n, c, 1) == c / n


@given(outcomes())
def test_pass_at_k_never_decreases_and_pass_hat_k_never_increases(outcome: tuple[int, int]) -> None:
    n, c = outcome
    at = [pass_at_k(n, c, k) for k in range(1, n + 1)]
    hat = [pass_hat_k(n, c, k) for k in range(1, n + 1)]
    assert at == sorted(at)
    assert hat == sorted(hat, reverse=True)


@given(outcomes(), st.data())
def test_pass_at_k_and_all_failing_add_up_to_1(outcome: tuple[int, int], data: Any) -> None:
    n, c = outcome
    k = data.draw(st.integers(1, n))
    assert pass_at_k(n, c, k) == pytest.approx(1 - pass_hat_k(n, n - c, k))


@pytest.mark.parametrize("measure", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize(
    ("n", "c", "k", "complaint"),
    [
        (3, 4, 1, "0 to 3 can pass, not 4"),
        (3, -1, 1, "not -1"),
        (3, 1, 0, "1 to the number of samples, 3, not 0"),
        (3, 1, 4, "not 4"),
        (0, 0, 1, "not 1"),
    ],
)
def test_number_outside_its_range_is_an_error(measure: Any, n: int, c: int, k: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        measure(n, c, k)
