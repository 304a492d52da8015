"""Rows in the order of their numbers, so that only those near a row are compared with it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

from graphrag_eval_lc.matching.sparql.budget import Budget
from graphrag_eval_lc.matching.sparql.cells import DetailedCodes
from graphrag_eval_lc.matching.sparql.pairing import unpaired_items
from graphrag_eval_lc.matching.sparql.rows import Row, rows_of

STEPS_OF_A_PAIR: Final = 8
"""Comparing two cells exactly takes about as long as looking at so many rows."""


class Neighbours:
    """Rows of one coarse row, sorted by a number.

    Args:
        rows: The distinct rows, of detailed codes, each with how often it occurs.
        codes: Tells which codes are equal.
    """

    def __init__(self, rows: dict[Row, int], codes: DetailedCodes) -> None:
        self._rows = list(rows)
        self._codes = codes
        self._column: int | None = None
        self._numbers: list[Any] = []
        columns = number_columns(self._rows, codes)
        if columns:
            self._column = columns[0]
            self._rows = sorted_by(columns, self._rows, codes)
            self._numbers = [codes.finite_number(row[self._column]) for row in self._rows]
        self._times = [rows[row] for row in self._rows]

    def has_equal(self, row: Row, budget: Budget) -> bool:
        """Tell whether some row equals one with the same coarse row."""
        return next(self._equal_to(row, budget), None) is not None

    def unpaired(self, classes: Sequence[Sequence[Row]], budget: Budget) -> Iterator[int]:
        """Give the positions of the classes, each of one or more rows, that are left where the most are paired off."""
        columns = [] if self._column is None else [self._column]
        # In the order of the partners few have to change theirs.
        order = sorted(range(len(classes)), key=lambda at: _sort_key(classes[at][0], columns, self._codes))
        if self._lie_on_a_line(classes):
            return self._unpaired_on_a_line(classes, order, budget)
        known: dict[int, list[int]] = {}

        def partners_of(item: int) -> list[int]:
            if item not in known:
                known[item] = list(likely(item))
            return known[item]

        def likely(item: int) -> Iterator[int]:
            return chain.from_iterable(self._equal_to(row, budget) for row in classes[item])

        return unpaired_items(order, partners_of, budget, times=self._times, likely=likely)

    def _equal_to(self, row: Row, budget: Budget) -> Iterator[int]:
        """Give the positions of the rows that equal one with the same coarse row, the nearest first."""
        return (at for at in self._from_nearest(row) if self._equals(row, at, budget))

    def _equals(self, row: Row, at: int, budget: Budget) -> bool:
        budget.spend(STEPS_OF_A_PAIR * len(row))
        return self._codes.rows_are_equal(row, self._rows[at])

    def _from_nearest(self, row: Row) -> Iterator[int]:
        """Give the positions of the rows that may equal one, those of the nearest numbers first."""
        near, middle = self._near(row)
        below, above = middle - 1, middle
        while below >= near.start or above < near.stop:
            if above < near.stop:
                yield above
                above += 1
            if below >= near.start:
                yield below
                below -= 1

    def _near(self, row: Row) -> tuple[range, int]:
        """Give the positions of the rows that may equal one, and where it would stand among them."""
        number = None if self._column is None else self._codes.finite_number(row[self._column])
        if self._column is None or number is None:
            return range(len(self._rows)), 0
        low, high = self._codes.range_of_equals(row[self._column])
        near = range(bisect_left(self._numbers, low), bisect_right(self._numbers, high))
        return near, bisect_left(self._numbers, number, near.start, near.stop)

    def _lie_on_a_line(self, classes: Sequence[Sequence[Row]]) -> bool:
        """Tell whether rows differ only in one column, of numbers that all have the same tolerance."""
        at = self._column
        rows = [row for each in classes for row in each]
        if at is None or len({row[:at] + row[at + 1 :] for row in chain(self._rows, rows)}) != 1:
            return False
        return self._codes.has_one_tolerance({row[at] for row in rows}, {row[at] for row in self._rows})

    def _unpaired_on_a_line(
        self, classes: Sequence[Sequence[Row]], order: Sequence[int], budget: Budget
    ) -> Iterator[int]:
        """Give each class in order the first partner that is left: no other choice pairs off more."""
        left = list(self._times)
        first = 0
        for item in order:
            row = classes[item][0]
            near, middle = self._near(row)
            first = max(first, near.start)
            # What is too small for this one is so for all that follow.
            while first < near.stop and (not left[first] or (first < middle and not self._equals(row, first, budget))):
                first += 1
            if first < near.stop and self._equals(row, first, budget):
                left[first] -= 1
            else:
                yield item


def number_columns(rows: list[Row], codes: DetailedCodes) -> list[int]:
    """Give the columns that hold different numbers and nothing else, those with the most different ones first."""
    columns = {at: set(column) for at, column in enumerate(rows_of(rows))}
    numeric = [
        at
        for at, details in columns.items()
        if len(details) > 1 and all(codes.finite_number(detail) is not None for detail in details)
    ]
    return sorted(numeric, key=lambda at: -len(columns[at]))


def sorted_by(columns: Sequence[int], rows: list[Row], codes: DetailedCodes) -> list[Row]:
    """Give rows in the order of the numbers in some columns."""
    return sorted(rows, key=lambda row: _sort_key(row, columns, codes)) if columns else rows


def _sort_key(row: Row, columns: Sequence[int], codes: DetailedCodes) -> list[tuple[bool, Any]]:
    numbers = [codes.finite_number(row[at]) for at in columns]
    return [(number is None, 0 if number is None else number) for number in numbers]
