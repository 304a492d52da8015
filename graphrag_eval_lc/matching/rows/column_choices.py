"""The ways to leave out actual columns, where these are few, so that as many rows as in the reference are left.

Columns that are left out make duplicates. The rows of the columns that stand for the required ones are, as a set, as
many as the reference has; so each of them stands for one row of the reference, which makes the search much narrower.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import comb, prod
from typing import Final

from graphrag_eval_lc.matching.rows.coded_rows import STEPS_OF_A_CHOICE, STEPS_OF_A_LOOK, Budget, Column
from graphrag_eval_lc.matching.rows.column_search import ColumnClass, Duplicates

_FEW_STEPS: Final = 5_000_000
"""Where all choices of columns can be looked at in so many steps, they are."""

_ROWS_OF_A_CHOICE: Final = 2_048
"""At least so many rows are looked at before a choice of columns is given up."""


def has_few_choices(classes: Sequence[ColumnClass], row_count: int) -> bool:
    """Return whether the ways to keep as many candidates as there are required columns can all be looked at."""
    choices = prod(comb(len(candidates), len(required)) for required, candidates in classes)
    width = sum(len(required) for required, _ in classes)
    return choices * (STEPS_OF_A_CHOICE + min(row_count, _ROWS_OF_A_CHOICE) * (1 + width // 8)) <= _FEW_STEPS


def choices_of_columns(
    columns: Mapping[int, Column],
    classes: Sequence[ColumnClass],
    duplicates: Duplicates,
    row_count: int,
    budget: Budget,
) -> Iterator[tuple[dict[int, Column], list[ColumnClass]]]:
    """Yield the ways to keep as many candidates of each class as it has required columns that leave so many rows.

    Returns:
        The columns that are kept, without duplicate rows, and their classes.
    """
    for choice in _choices(classes, duplicates, budget):
        chosen = [at for _, candidates in choice for at in candidates]
        distinct = _distinct_rows([columns[at] for at in chosen], row_count, budget)
        if len(distinct) == row_count:
            yield dict(zip(chosen, zip(*distinct, strict=True), strict=True)), choice


def _distinct_rows(columns: Sequence[Column], limit: int, budget: Budget) -> set[tuple[int, ...]]:
    """Return the distinct rows; once they are more than ``limit`` the rest is not looked at."""
    row_count = len(columns[0])
    rows = zip(*columns, strict=True)
    distinct: set[tuple[int, ...]] = set()  # whole numbers have the same hashes, and so order, in every run
    size = max(_ROWS_OF_A_CHOICE, limit)
    for start in range(0, row_count, size):
        budget.spend(STEPS_OF_A_CHOICE + min(size, row_count - start) * (1 + len(columns) // 8))
        distinct.update(islice(rows, size))
        if len(distinct) > limit:
            break
    return distinct


def _choices(classes: Sequence[ColumnClass], duplicates: Duplicates, budget: Budget) -> Iterator[list[ColumnClass]]:
    """Yield the ways to keep as many candidates of each class as it has required columns."""

    def choices_of(at: int) -> Iterator[ColumnClass]:
        required, candidates = classes[at]
        return (ColumnClass(required, kept) for kept in _combinations(candidates, len(required), duplicates, budget))

    chosen: list[ColumnClass] = []
    waiting = [choices_of(0)]
    while waiting:
        choice = next(waiting[-1], None)
        if choice is None:
            waiting.pop()
            del chosen[-1:]
        elif len(waiting) == len(classes):
            yield [*chosen, choice]
        else:
            chosen.append(choice)
            waiting.append(choices_of(len(chosen)))


def _combinations(candidates: list[int], size: int, duplicates: Duplicates, budget: Budget) -> Iterator[list[int]]:
    """Yield the combinations of candidates, without those that differ by duplicates only."""
    kept: list[int] = []
    at = 0
    while True:
        if len(kept) < size and len(candidates) - at >= size - len(kept):
            budget.spend(STEPS_OF_A_LOOK)
            duplicate = duplicates.get(candidates[at])
            if duplicate is None or any(candidates[other] == duplicate for other in kept):
                kept.append(at)
            at += 1
            continue
        if len(kept) == size:
            yield [candidates[other] for other in kept]
        if not kept:
            return
        at = kept.pop() + 1
