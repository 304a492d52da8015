import itertools
from collections.abc import Mapping, Sequence
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.machine_speed import processor_seconds

from graphrag_eval_lc.matching.assignment import best_assignment

SCORES = [0.15, 0.25, 0.5, 1 / 3, 1.0]
ROWS = st.lists(st.dictionaries(st.integers(0, 5), st.sampled_from(SCORES), max_size=5), min_size=1, max_size=4)


def rank(row_scores: Sequence[Mapping[int, float]], assignment: Sequence[int | None]) -> tuple[float, int, list[int]]:
    """Return the total, the number of matches and the used steps; higher totals, more matches and later steps win."""
    pairs = [(row, index) for row, index in zip(row_scores, assignment, strict=True) if index is not None]
    return round(fsum(row[index] for row, index in pairs), 9), len(pairs), sorted(index for _, index in pairs)


@given(ROWS)
def test_no_other_assignment_is_better(row_scores: list[dict[int, float]]) -> None:
    found = best_assignment(row_scores)
    for choice in itertools.product(*[[None, *row] for row in row_scores]):
        used = [index for index in choice if index is not None]
        if len(set(used)) == len(used):
            assert rank(row_scores, found) >= rank(row_scores, choice)


@given(ROWS)
def test_swapping_two_rows_never_improves_the_order(row_scores: list[dict[int, float]]) -> None:
    found = best_assignment(row_scores)
    for row, later in itertools.combinations(range(len(found)), 2):
        swapped = list(found)
        swapped[row], swapped[later] = found[later], found[row]
        is_possible = all(index is None or index in scores for scores, index in zip(row_scores, swapped, strict=True))
        if is_possible and rank(row_scores, swapped) == rank(row_scores, found):
            assert (-1 if found[row] is None else found[row]) <= (-1 if found[later] is None else found[later])


@pytest.mark.parametrize(
    ("row_scores", "assignment"),
    [
        pytest.param([{}], [None], id="nothing fits"),
        pytest.param([{0: 1.0, 2: 1.0}], [2], id="later of equal steps"),
        pytest.param([{0: 0.5, 2: 0.4}], [0], id="better before later"),
        pytest.param([{0: 1.0, 1: 1.0}, {1: 1.0}], [0, 1], id="not the first that fits"),
        pytest.param([{0: 1.0}, {0: 1.0}], [None, 0], id="each actual step once, for the later reference step"),
        pytest.param([{0: 1.0, 1: 1.0}, {0: 1.0, 1: 1.0}], [0, 1], id="later steps for later reference steps"),
        pytest.param([{0: 1.0, 1: 0.5}, {0: 0.5}], [1, 0], id="more matches at the same total"),
        pytest.param([{0: 1.0, 3: 1.0}, {0: 1.0, 1: 1.0, 3: 1.0}], [3, 1], id="earliest as late as possible"),
    ],
)
def test_best_assignment(row_scores: list[dict[int, float]], assignment: list[int | None]) -> None:
    assert best_assignment(row_scores) == assignment


@pytest.mark.full
@pytest.mark.parametrize(
    "row_scores",
    [
        pytest.param([dict.fromkeys(range(1000), 0.15) for _ in range(300)], id="all equal"),
        pytest.param(
            [{index: (index + 1) / 1000 for index in range(1000)} for _ in range(300)], id="all prefer the same"
        ),
        pytest.param([dict.fromkeys(range(301 - row), 1.0) for row in range(300)], id="against the order"),
        pytest.param([dict.fromkeys(range(100), 1.0) for _ in range(300)], id="too few actual steps"),
    ],
)
def test_hundreds_of_steps_by_a_thousand_are_assigned_in_seconds(row_scores: list[dict[int, float]]) -> None:
    with processor_seconds(20):  # 73 s if a single number encodes all criteria
        chosen = [index for index in best_assignment(row_scores) if index is not None]
    assert len(chosen) == len(set(chosen)) == min(300, len(row_scores[0]))
