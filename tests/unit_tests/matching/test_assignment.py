import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.assignment import best_assignment

scores = st.sampled_from([0.25, 0.5, 1 / 3, 1.0])
rows = st.lists(st.dictionaries(st.integers(0, 5), scores, max_size=5), min_size=1, max_size=4)


def rank(row_scores: list[dict[int, float]], assignment: list[int | None]) -> tuple[Fraction, int, list[int]]:
    used = sorted(index for index in assignment if index is not None)
    total = sum(
        (
            Fraction(row[index]).limit_denominator(100)
            for row, index in zip(row_scores, assignment, strict=True)
            if index is not None
        ),
        Fraction(0),
    )
    return total, len(used), used


@pytest.mark.parametrize(
    ("row_scores", "assignment"),
    [
        pytest.param([{}], [None], id="nothing fits"),
        pytest.param([{0: 1.0, 2: 1.0}], [2], id="of equal ones the later"),
        pytest.param([{0: 0.5, 2: 0.4}], [0], id="the better goes before the later"),
        pytest.param([{0: 1.0, 1: 1.0}, {1: 1.0}], [0, 1], id="not the first that fits"),
        pytest.param([{0: 1.0}, {0: 1.0}], [None, 0], id="each actual step once, and for the later reference step"),
        pytest.param([{0: 1.0, 1: 1.0}, {0: 1.0, 1: 1.0}], [0, 1], id="later steps for later reference steps"),
        pytest.param([{0: 1.0, 1: 0.5}, {0: 0.5}], [1, 0], id="of equal totals the one that fulfils more"),
        pytest.param([{0: 1.0, 3: 1.0}, {0: 1.0, 1: 1.0, 3: 1.0}], [3, 1], id="the earliest as late as can be"),
    ],
)
def test_best_assignment(row_scores: list[dict[int, float]], assignment: list[int | None]) -> None:
    assert best_assignment(row_scores) == assignment


@given(rows)
def test_no_other_assignment_is_better(row_scores: list[dict[int, float]]) -> None:
    every = itertools.product(*[[None, *row] for row in row_scores])
    possible = [
        list(choice)
        for choice in every
        if len({index for index in choice if index is not None}) == sum(index is not None for index in choice)
    ]
    assert rank(row_scores, best_assignment(row_scores)) == max(rank(row_scores, choice) for choice in possible)


@given(rows, st.randoms())
def test_order_inside_a_group_does_not_matter(row_scores: list[dict[int, float]], random: object) -> None:
    shuffled = list(row_scores)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert rank(shuffled, best_assignment(shuffled)) == rank(row_scores, best_assignment(row_scores))


def test_many_steps_are_no_problem() -> None:
    row_scores = [dict.fromkeys(range(200), 1.0) for _ in range(20)]
    assert sorted(index for index in best_assignment(row_scores) if index is not None) == list(range(180, 200))
