"""Assigns actual steps to reference steps, each used once, for the highest total score; and rates their order."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import combinations, groupby

# Scores are compared to 12 digits, so that sums of floats that should be equal are.
_SCALE = 10**12


def best_assignment(scores: Sequence[Mapping[int, float]]) -> list[int | None]:
    """Assign at most one actual step to each reference step, so that the total score is the highest.

    No actual step is used twice. If totals are equal, the assignment that fulfils more reference steps wins. If these
    are equal too, the one with the later actual steps wins: its earliest actual step is the latest possible, then its
    second earliest, and so on. If two reference steps can swap their actual steps, the earlier one gets the earlier.

    Args:
        scores: For each reference step, its scores above 0 by the index of the actual step.

    Returns:
        For each reference step, the index of its actual step, or None.
    """
    worths = [{index: max(1, round(score * _SCALE)) for index, score in row.items() if score > 0} for row in scores]
    if len(worths) == 1:
        row = worths[0]
        return [max(row, key=lambda index: (row[index], index), default=None)]
    return _in_order(worths, _heaviest_matching(_lexicographic_weights(worths)))


def _lexicographic_weights(worths: Sequence[Mapping[int, int]]) -> list[dict[int, int]]:
    """Return one integer for each pair. Its highest digits are the score, then 1 for a match, then how late it is.

    Lateness has one bit for each actual step, and the earliest step has the highest bit: a set of steps whose first
    step is later is better, whatever follows. A row keeps only as many of its best columns as there are rows: the
    other rows cannot occupy all of them.
    """
    best = [sorted(row, key=lambda index: (row[index], index), reverse=True)[: len(worths)] for row in worths]
    columns = sorted({index for row in best for index in row}, reverse=True)
    earliness = {index: 1 << at for at, index in enumerate(columns)}
    return [
        {index: ((row[index] * (len(worths) + 1) + 1) << len(columns)) - earliness[index] for index in kept}
        for row, kept in zip(worths, best, strict=True)
    ]


def _heaviest_matching(weights: Sequence[Mapping[int, int]]) -> list[int | None]:
    """Return the column of each row, or None, so that the sum of the weights is the highest.

    This is the Hungarian method (Kuhn, 1955): row after row is matched along the cheapest alternating path. The
    potential of a row and the price of a column add up to at least their weight, and to no more if they are
    matched. A path ends at a free column, or at a row that stays without one.
    """
    prices = {column: 0 for row in weights for column in row}
    potentials = [max(row.values(), default=0) for row in weights]
    column_of: list[int | None] = [None] * len(weights)
    row_of: dict[int, int] = {}
    for start in sorted(range(len(weights)), key=potentials.__getitem__, reverse=True):
        costs: dict[int, int] = {}
        came_from: dict[int, int] = {}
        passed = {start: 0}  # by row: the cost of the path so far
        waiting: list[tuple[int, int]] = []
        row, cost = start, 0
        end, last_row, last_column = potentials[start], start, None
        while True:
            base = cost + potentials[row]
            if base < end:
                end, last_row, last_column = base, row, None
            for column, weight in weights[row].items():
                there = base + prices[column] - weight
                if there < end and there < costs.get(column, end):
                    costs[column], came_from[column] = there, row
                    if column in row_of:
                        heappush(waiting, (there, column))
                    else:
                        end, last_row, last_column = there, row, column
            while waiting and row_of[waiting[0][1]] in passed:
                heappop(waiting)
            if not waiting or waiting[0][0] >= end:
                break
            cost, column = heappop(waiting)
            row = row_of[column]
            passed[row] = cost
        for each, at in passed.items():
            potentials[each] -= end - at
            if (matched := column_of[each]) is not None:
                prices[matched] += end - at
        while True:  # walk back from the end of the path; each row gets the column after it
            before, column_of[last_row] = column_of[last_row], last_column
            if last_column is not None:
                row_of[last_column] = last_row
            if before is None:
                break
            last_column, last_row = before, came_from[before]
    return column_of


def _in_order(worths: Sequence[Mapping[int, int]], column_of: list[int | None]) -> list[int | None]:
    """Let any two rows swap their columns if the total stays and the later row then has the later column."""
    places = [-1 if column is None else column for column in column_of]
    gains = [{-1: 0, **row} for row in worths]
    is_changed = True
    while is_changed:
        is_changed = False
        for row, later in combinations(range(len(places)), 2):
            column, other = places[row], places[later]
            if column <= other or column not in gains[later] or other not in gains[row]:
                continue
            if gains[row][column] + gains[later][other] == gains[row][other] + gains[later][column]:
                places[row], places[later] = other, column
                is_changed = True
    return [None if column < 0 else column for column in places]


def order_share(matched: Sequence[tuple[int, int]]) -> float:
    """Return the share of pairs of matches from different groups that are in order; 1 without pairs."""
    before: list[int] = []
    pairs = in_order = 0
    for _, each in groupby(sorted(matched), key=lambda pair: pair[0]):
        indices = [index for _, index in each]
        pairs += len(before) * len(indices)
        in_order += sum(bisect_left(before, index) for index in indices)
        for index in indices:
            insort(before, index)
    return in_order / pairs if pairs else 1.0
