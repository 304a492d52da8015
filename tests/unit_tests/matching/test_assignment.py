import itertools
from collections.abc import Sequence
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_speed import processor_seconds

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


def packed_weight(score: float, row: int, place: int, rows: int, columns: int) -> int:
    """Return one number that says all: the score, then a match, then how late it is, then the order."""
    match = 1 << columns
    weight = max(1, round(score * 10**12)) * match * (rows + 1) + match - (1 << (columns - 1 - place))
    return weight * (rows * rows * columns + 1) + (row + 1) * (place + 1)


def packed_total(row_scores: list[dict[int, float]], assignment: Sequence[int | None]) -> int:
    columns = sorted({index for row in row_scores for index in row})
    return sum(
        packed_weight(scores[index], row, columns.index(index), len(row_scores), len(columns))
        for row, (scores, index) in enumerate(zip(row_scores, assignment, strict=True))
        if index is not None
    )


def best_packed_total(row_scores: list[dict[int, float]]) -> int:
    """Try all assignments: for each set of columns that the first rows may take, keep the best total."""
    columns = sorted({index for row in row_scores for index in row})
    best = {0: 0}
    for row, scores in enumerate(row_scores):
        grown = dict(best)
        for taken, total in best.items():
            for index, score in scores.items():
                place = columns.index(index)
                if not taken >> place & 1:
                    weight = packed_weight(score, row, place, len(row_scores), len(columns))
                    key = taken | 1 << place
                    grown[key] = max(grown.get(key, 0), total + weight)
        best = grown
    return max(best.values())


few_scores = st.sampled_from([0.15, 0.2, 0.4, 1 / 3, 1.0])
tied_rows = st.lists(st.dictionaries(st.integers(0, 8), few_scores, max_size=9), min_size=1, max_size=7)
any_rows = st.lists(
    st.dictionaries(st.integers(0, 6), st.floats(1e-9, 1.0), max_size=7),
    min_size=1,
    max_size=6,
)


@given(tied_rows | any_rows)
def test_score_matches_lateness_and_order_are_the_best_of_all_in_turn(row_scores: list[dict[int, float]]) -> None:
    assert packed_total(row_scores, best_assignment(row_scores)) == best_packed_total(row_scores)


@given(st.integers(1, 7), st.integers(1, 9), st.lists(few_scores, min_size=1, max_size=2), st.randoms())
def test_ties_all_over_are_broken_as_in_a_trial_of_all(
    rows: int, columns: int, scores: list[float], random: Random
) -> None:
    row_scores = [
        {index: random.choice(scores) for index in range(columns) if random.random() < 0.7} for _ in range(rows)
    ]
    assert packed_total(row_scores, best_assignment(row_scores)) == best_packed_total(row_scores)


@pytest.mark.full
@pytest.mark.parametrize(
    "row_scores",
    [
        pytest.param([dict.fromkeys(range(1000), 0.15) for _ in range(300)], id="all equal"),
        pytest.param(
            [{index: (index + 1) / 1000 for index in range(1000)} for _ in range(300)], id="all want the same"
        ),
        pytest.param([dict.fromkeys(range(301 - row), 1.0) for row in range(300)], id="against the order"),
        pytest.param([dict.fromkeys(range(100), 1.0) for _ in range(300)], id="too few actual steps"),
    ],
)
def test_hundreds_of_steps_by_a_thousand_take_seconds_at_most(row_scores: list[dict[int, float]]) -> None:
    with processor_seconds(20):  # 73 s with all that decides in one number
        chosen = [index for index in best_assignment(row_scores) if index is not None]
    assert len(chosen) == len(set(chosen)) == min(300, len(row_scores[0]))
