"""Assigning actual steps to reference steps, each used once, so that the total score is the highest.

The assignment problem is solved by the Hungarian method (Kuhn, 1955) with the scores and the number of matches alone,
as small whole numbers. Its potentials tell which pairs stand in some best assignment: those that they make tight
(complementary slackness). What else decides, the lateness of the actual steps and their order, is chosen among these
pairs. So numbers stay small, and equal scores, which are common, cost no search.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush

# Scores are compared to 12 digits, so that sums of floats that should be equal are.
_SCALE = 10**12

_Edges = Sequence[Mapping[int, int]]
"""For each row the weights by column."""


def best_assignment(scores: Sequence[Mapping[int, float]]) -> list[int | None]:
    """Assign to each reference step at most one actual step, each used once, with the highest total score.

    Of assignments with equal totals the one that fulfils more reference steps wins; of those the one with the later
    actual steps (its earliest actual step is the latest possible, then its second earliest, and so on); of those the
    one that gives later reference steps the later actual steps.

    Args:
        scores: For each reference step the scores above 0 by the index of the actual step.

    Returns:
        For each reference step the index of its actual step, or None.

    Example:
        >>> best_assignment([{0: 1.0, 1: 1.0}, {1: 1.0}])
        [0, 1]
    """
    if len(scores) == 1:
        row = {index: score for index, score in scores[0].items() if score > 0}
        return [max(row, key=lambda index: (_whole(row[index]), index), default=None)]
    weights = [_best_weights(row, len(scores)) for row in scores]
    if not any(weights):
        return [None] * len(scores)
    solved = _Hungarian(weights, len(scores), may_drop=True)
    solved.fill()
    columns = _latest_columns(solved)
    places = sorted({index for row in scores for index, score in row.items() if score > 0})
    rank_of = {index: rank for rank, index in enumerate(places, start=1)}
    return _in_order(solved, columns, rank_of)


def _whole(score: float) -> int:
    return max(1, round(score * _SCALE))


def _best_weights(row: Mapping[int, float], rows: int) -> dict[int, int]:
    """Return the weights of one row: the score in the higher digits, a match in the lowest.

    No row needs more columns than there are rows: of its best ones the other rows leave one free.
    """
    weights = {index: _whole(score) * (rows + 1) + 1 for index, score in row.items() if score > 0}
    if len(weights) <= rows:
        return weights
    best = sorted(weights, key=lambda index: (weights[index], index), reverse=True)[:rows]
    return {index: weights[index] for index in best}


class _Hungarian:
    """A maximum-weight matching, with potentials: those of a row and a column add up to at least their weight.

    Args:
        weights: For each row the weights by column.
        rows: Number of rows.
        may_drop: Whether rows may stay without a column, at the weight 0. Else all rows get one.
        prices: The potentials that columns start with; 0 by default, and needed where rows may be dropped.
    """

    def __init__(self, weights: _Edges, rows: int, *, may_drop: bool, prices: Mapping[int, int] | None = None) -> None:
        self.weights = weights
        self.column_of: list[int | None] = [None] * rows
        self.row_of: dict[int, int] = {}
        self.prices = {column: 0 for row in weights for column in row} | dict(prices or {})
        self._may_drop = may_drop
        self.potentials = [
            max((weight - self.prices[column] for column, weight in row.items()), default=0) for row in weights
        ]

    def fill(self) -> None:
        """Match all rows: first those that find a tight column free, then those with the most to gain."""
        waiting = []
        for row in range(len(self.weights)):
            column = next((column for column in self.tight(row) if column not in self.row_of), None)
            if column is None:
                waiting.append(row)
            else:
                self._match(row, column)
        for row in sorted(waiting, key=self.potentials.__getitem__, reverse=True):
            self._augment(row)

    def tight(self, row: int) -> Iterable[int]:
        """Yield the columns that some best matching may give to a row."""
        potential, prices = self.potentials[row], self.prices
        return (column for column, weight in self.weights[row].items() if potential + prices[column] == weight)

    def _match(self, row: int, column: int) -> None:
        self.column_of[row] = column
        self.row_of[column] = row

    def _augment(self, start: int) -> None:
        """Match one more row along the cheapest alternating path, found as by Dijkstra.

        It ends at a column that is free, or at a row that is left without one.
        """
        prices, potentials = self.prices, self.potentials
        distance_of: dict[int, int] = {}
        reached_from: dict[int, int] = {}
        row_distances = {start: 0}
        closed: dict[int, int] = {}
        waiting: list[tuple[int, int]] = []
        row, distance = start, 0
        end: int | None = None  # the cost of the best end known, the free column there, and the row before it
        end_column: int | None = None
        end_row = start
        while True:
            potential = potentials[row]
            if self._may_drop and (end is None or distance + potential < end):
                end, end_column, end_row = distance + potential, None, row
            base = distance + potential
            for column, weight in self.weights[row].items():
                cost = base + prices[column] - weight
                if (end is not None and cost >= end) or cost >= distance_of.get(column, cost + 1):
                    continue
                distance_of[column] = cost
                if column in self.row_of:
                    reached_from[column] = row
                    heappush(waiting, (cost, column))
                else:
                    end, end_column, end_row = cost, column, row
            while waiting and (waiting[0][1] in closed):
                heappop(waiting)
            if not waiting or (end is not None and waiting[0][0] >= end):
                break
            distance, column = heappop(waiting)
            closed[column] = distance
            row = self.row_of[column]
            row_distances[row] = distance
        if end is None:
            raise ValueError("no matching gives a column to each row")
        for each, at in row_distances.items():
            potentials[each] -= end - at
        for each, at in closed.items():
            prices[each] += end - at
        self._flip(start, end_row, end_column, reached_from)

    def _flip(self, start: int, row: int, column: int | None, reached_from: Mapping[int, int]) -> None:
        """Give each row of a path, from its end back, the column after it."""
        while True:
            before = self.column_of[row]
            self.column_of[row] = column
            if column is not None:
                self.row_of[column] = row
            if row == start or before is None:
                return
            column, row = before, reached_from[before]


def _latest_columns(solved: _Hungarian) -> list[int]:
    """Return the columns of the best matching whose earliest column is the latest, then its second earliest, and so on.

    The columns that best matchings can use together are the bases of a matroid: taking the latest that still fits,
    again and again, is best. Whether one more fits is asked by a search for an alternating path.
    """
    rows_of: dict[int, int] = {}  # by column the rows of its tight pairs, as bits
    for row in range(len(solved.weights)):
        for column in solved.tight(row):
            rows_of[column] = rows_of.get(column, 0) | 1 << row
    needed = [column for column, price in solved.prices.items() if price > 0]
    others = sorted((column for column in rows_of if solved.prices[column] == 0), reverse=True)
    matching = _BitMatching(rows_of, len(solved.weights))
    chosen: list[int] = []
    for column in (*needed, *others):
        if len(chosen) == len(solved.row_of):
            break
        if matching.add(column):
            chosen.append(column)
    return sorted(chosen)


class _BitMatching:
    """A matching that grows by columns, each of which may have any of some rows."""

    def __init__(self, rows_of: Mapping[int, int], rows: int) -> None:
        self._rows_of = rows_of
        self._column_of: list[int] = [0] * rows
        self._free = self._open = (1 << rows) - 1

    def add(self, start: int) -> bool:
        """Match one more column, and say whether that was possible with those already matched."""
        unseen, columns = self._open, [start]
        reached_from: dict[int, int] = {}
        while columns:
            column = columns.pop()
            found = self._rows_of[column] & unseen
            free = found & self._free
            if free:
                row = free.bit_length() - 1
                self._free ^= 1 << row
                self._take(row, column, start, reached_from)
                return True
            unseen ^= found
            while found:
                row = found.bit_length() - 1
                found ^= 1 << row
                reached_from[row] = column
                columns.append(self._column_of[row])
        self._open = unseen  # no path leads out of the rows seen, and none ever will
        return False

    def _take(self, row: int, column: int, start: int, reached_from: Mapping[int, int]) -> None:
        row_before = {self._column_of[each]: each for each in reached_from}
        while True:
            self._column_of[row] = column
            if column == start:
                return
            row = row_before[column]
            column = reached_from[row]


def _in_order(solved: _Hungarian, columns: Sequence[int], rank_of: Mapping[int, int]) -> list[int | None]:
    """Give the columns to rows so that later rows have later columns, by pairs that are tight.

    The sum of row × rank is the highest. Rows without a column share as many places of rank 0, which only those can
    have that best matchings may leave out: the ones with potential 0.
    """
    rows = len(solved.weights)
    without = rows - len(columns)
    ranks = [0] * without + [rank_of[column] for column in columns]
    place_of = {column: place for place, column in enumerate(columns, start=without)}
    weights = []
    for row in range(rows):
        tight = {place_of[column] for column in solved.tight(row) if column in place_of}
        if solved.potentials[row] == 0:
            tight.update(range(without))
        # The place that the row has in the plain order comes first: where it can be had, it costs no search.
        ordered = [place for place in (row,) if place in tight] + sorted(tight - {row})
        weights.append({place: 2 * (row + 1) * ranks[place] for place in ordered})
    prices = [0]
    for row in range(1, rows):  # with these prices each row likes best the place that it has in the plain order
        prices.append(prices[-1] + (ranks[row] - ranks[row - 1]) * (2 * row + 1))
    ordered_rows = _Hungarian(weights, rows, may_drop=False, prices=dict(enumerate(prices)))
    ordered_rows.fill()
    return [None if place is None or place < without else columns[place - without] for place in ordered_rows.column_of]
