"""How many cells the rows of two tables share, where each row is paired with one row of the other side at most.

Rows that are equal in full are paired first, then those that share most. A cell that rows share although they differ
elsewhere counts as far as the shared cells tell which row of the reference is meant: shared by m of R different
reference rows they count (1/m - 1/R) ÷ (1 - 1/R), in full where m is 1 and nothing where m is R. So a name that stands
in one row counts although the number beside it is wrong, and a class or a year that stands in all of them does not.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations, islice
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.assignment import best_assignment
from graphrag_eval_lc.matching.rows.coded_rows import Row, RowsAs

NOT_PLAYED: Final = -1
"""The code of the actual cells of a required column that no column plays; it equals no other."""

_Columns: TypeAlias = tuple[int, ...]

_MOST_ASSIGNED: Final = 1_600
"""So many pairs of rows that differ are assigned in the best way; more are paired greedily."""

_MOST_COUNTED: Final = 2_000_000
"""So many cells of rows are looked at to tell how many rows share some of them."""

_MOST_SUBSETS: Final = 63
_MOST_CELLS_FOLLOWED: Final = 3
_BAND: Final = 4
"""Where no cell of a row is rare, so many neighbours together may be."""

_RARE: Final = 8
"""A cell that at most so many rows of the reference have leads to these rows."""


class PartialPair(NamedTuple):
    """Rows that share some of their cells.

    Attributes:
        reference: The row of the reference.
        actual: The actual row.
        columns: The positions of the cells that they share.
        share: How far these tell which row is meant, above 0 to 1.
        times: How many such pairs there are.
    """

    reference: Row
    actual: Row
    columns: _Columns
    share: float
    times: int


class SharedCells:
    """The cells that two tables share.

    Args:
        reference: The rows of the reference in codes of 0 or more.
        actual: The actual rows, likewise; ``NOT_PLAYED`` stands for cells that are not there.
        rows_as: How rows count.

    Attributes:
        reference_rows: The number of rows of the reference that count.
        actual_rows: That of the actual rows.
        full: How often each row is paired with one that is equal in full.
    """

    def __init__(self, reference: Sequence[Row], actual: Sequence[Row], rows_as: RowsAs) -> None:
        self._reference, self._actual = reference, actual
        mine, others = (_counted(rows, rows_as) for rows in (reference, actual))
        self.reference_rows, self.actual_rows = sum(mine.values()), sum(others.values())
        self._is_ordered = rows_as == "list"
        self._width = len(reference[0]) if reference else 0
        self.full = {row: min(times, others[row]) for row, times in mine.items() if row in others}
        self._distinct = mine.keys()
        self._left = {row: left for row, times in mine.items() if (left := times - self.full.get(row, 0))}
        self._actual_left = {row: left for row, times in others.items() if (left := times - self.full.get(row, 0))}

    @property
    def is_short(self) -> bool:
        """Whether some row of the reference has no row that is equal in full."""
        return bool(self._left)

    @property
    def are_equal(self) -> bool:
        """Whether all rows are paired in full, in the same order where it counts."""
        return not self._left and not self._actual_left and self.order == 1.0

    @cached_property
    def partial(self) -> list[PartialPair]:
        """The pairs of rows that share some of their cells."""
        mine, others = _with_common_cells(self._left, self._actual_left, self._width)
        if not mine or not others:
            return []
        pairing = _Pairing(mine, others, self._distinct, self._width)
        assigned = pairing.assigned()
        return pairing.greedily_paired() if assigned is None else assigned

    @cached_property
    def by_column(self) -> list[float]:
        """For each column how many of its cells are shared."""
        shared = [float(sum(self.full.values()))] * self._width
        for pair in self.partial:
            for at in pair.columns:
                shared[at] += pair.share * pair.times
        return shared

    def values(self, at: int) -> Counter[int]:
        """Return the codes that are shared in a column, each with the number of different rows in which it is."""
        found = Counter(map(itemgetter(at), self.full))
        found.update(pair.reference[at] for pair in self.partial if at in pair.columns)
        return found

    @cached_property
    def order(self) -> float:
        """Of the pairs of rows that fit, the share that stands in the order of the reference; 1 where rows are a set.

        That is Kendall's tau, from -1 to 1, as (tau + 1) ÷ 2. Rows fit where they are equal, or share cells that tell
        which row is meant. Duplicates are paired in their order; fewer than two rows that fit are in order.
        """
        if not self._is_ordered:
            return 1.0
        mine, others = _positions(self._reference), _positions(self._actual)
        pairs = chain(
            ((row, row, times) for row, times in self.full.items()),
            ((pair.reference, pair.actual, pair.times) for pair in self.partial if pair.share == 1.0),
        )
        places = [(others[other].popleft(), mine[row].popleft()) for row, other, times in pairs for _ in range(times)]
        count = len(places)
        if count < 2:
            return 1.0
        return 1.0 - inversions([place for _, place in sorted(places)]) / (count * (count - 1) // 2)


def _counted(rows: Iterable[Row], rows_as: RowsAs) -> Mapping[Row, int]:
    return dict.fromkeys(rows, 1) if rows_as == "set" else Counter(rows)


def _positions(rows: Iterable[Row]) -> defaultdict[Row, deque[int]]:
    positions: defaultdict[Row, deque[int]] = defaultdict(deque)
    for at, row in enumerate(rows):
        positions[row].append(at)
    return positions


def inversions(order: Sequence[int]) -> int:
    """Return how many pairs of different numbers stand in falling order, by a merge sort.

    Example:
        >>> inversions([0, 1, 2]), inversions([2, 1, 0])
        (0, 3)
    """
    found, runs = 0, [[number] for number in order]
    while len(runs) > 1:
        merged = []
        for at in range(0, len(runs) - 1, 2):
            low, high = runs[at], runs[at + 1]
            run: list[int] = []
            first = second = 0
            while first < len(low) and second < len(high):
                if high[second] < low[first]:
                    found += len(low) - first
                    run.append(high[second])
                    second += 1
                else:
                    run.append(low[first])
                    first += 1
            merged.append(run + low[first:] + high[second:])
        runs = merged + (runs[-1:] if len(runs) % 2 else [])
    return found


def _with_common_cells(
    mine: Mapping[Row, int], others: Mapping[Row, int], width: int
) -> tuple[dict[Row, int], dict[Row, int]]:
    """Leave out the rows none of whose cells stands in the same column of the other side; put the rest in order."""
    common = [set(map(itemgetter(at), mine)) & set(map(itemgetter(at), others)) for at in range(width)]
    if not any(common):
        return {}, {}
    kept, other_kept = (
        {row: rows[row] for row in sorted(rows) if any(map(set.__contains__, common, row))} for rows in (mine, others)
    )
    return kept, other_kept


class _Pairing:
    """Pairs off rows that differ.

    Args:
        mine: The rows of the reference, with how often each is left.
        others: The actual rows, likewise.
        distinct: All different rows of the reference.
        width: Number of columns.
    """

    def __init__(self, mine: dict[Row, int], others: dict[Row, int], distinct: Iterable[Row], width: int) -> None:
        self._mine, self._others = mine, others
        self._distinct = list(distinct)
        self._width = width
        self._counts: dict[_Columns, Counter[Any]] = {}

    def _share(self, columns: _Columns, row: Row) -> float:
        """Return how far the cells of a row in some columns tell which row of the reference is meant."""
        if columns not in self._counts:
            self._counts[columns] = Counter(map(_cells_in(columns), self._distinct))
        return identification(self._counts[columns][_cells_in(columns)(row)], len(self._distinct))

    def assigned(self) -> list[PartialPair] | None:
        """Pair off few rows in the best way; None where they are too many."""
        rows = [row for row, times in self._mine.items() for _ in range(times)][: _MOST_ASSIGNED + 1]
        others = [row for row, times in self._others.items() for _ in range(times)][: _MOST_ASSIGNED + 1]
        if len(rows) * len(others) > _MOST_ASSIGNED:
            return None
        shared = [{at: columns for at, other in enumerate(others) if (columns := _shared(row, other))} for row in rows]
        kinds = {columns for row in shared for columns in row.values()}
        if len(kinds) * len(self._distinct) * self._width > _MOST_COUNTED:
            return None
        scores = [
            {at: len(columns) * self._share(columns, row) for at, columns in of_row.items()}
            for row, of_row in zip(rows, shared, strict=True)
        ]
        return [
            PartialPair(row, others[at], shared[index][at], self._share(shared[index][at], row), 1)
            for index, (row, at) in enumerate(zip(rows, best_assignment(scores), strict=True))
            if at is not None and scores[index].get(at)
        ]

    def greedily_paired(self) -> list[PartialPair]:
        """Pair off many rows: those first that share most columns, then by the cells that few rows have."""
        alike = tuple(
            at
            for at in range(self._width)
            if not set(map(itemgetter(at), self._mine)).isdisjoint(map(itemgetter(at), self._others))
        )
        cells = self._width * (len(self._mine) + len(self._others) + len(self._distinct))
        most = min(_MOST_SUBSETS, max(1, 5 * _MOST_COUNTED // cells))
        subsets = chain.from_iterable(combinations(alike, size) for size in range(len(alike), 0, -1))
        pairs = [pair for columns in islice(subsets, most) for pair in self._paired_by(columns)]
        return pairs if 2 ** len(alike) - 1 <= most else pairs + list(self._paired_by_rare_cells())

    def _paired_by(self, columns: _Columns) -> Iterator[PartialPair]:
        """Pair off rows that share these columns."""
        cells = _cells_in(columns)
        by_cells: defaultdict[Any, list[Row]] = defaultdict(list)
        for other in self._others:
            by_cells[cells(other)].append(other)
        rows = [row for row in self._mine if cells(row) in by_cells]
        alike = Counter(map(cells, self._distinct)) if rows else Counter[Any]()
        for row in rows:
            found = by_cells[cells(row)]
            share = identification(alike[cells(row)], len(self._distinct))
            while share and found and row in self._mine:
                other = found[-1]
                times = self._take(row, other)
                if other not in self._others:
                    found.pop()
                yield PartialPair(row, other, columns, share, times)

    def _take(self, row: Row, other: Row) -> int:
        times = min(self._mine[row], self._others[other])
        for left, each in ((self._mine, row), (self._others, other)):
            left[each] -= times
            if not left[each]:
                del left[each]
        return times

    def _paired_by_rare_cells(self) -> Iterator[PartialPair]:
        """Pair off the rows that are left by the cells that few rows of the reference have, as many as time allows."""
        others = list(islice(self._others, max(1, _MOST_COUNTED // self._width)))
        likely: list[tuple[float, Row, Row, _Columns, float]] = []
        for size in (1, _BAND):
            bands = [tuple(range(at, min(at + size, self._width))) for at in range(0, self._width, size)]
            cells = [_RareCells(band, self._distinct) for band in bands if others]
            followed = {other: _fewest_rows(cells, other) for other in others}
            likely += [pair for other, rarest in followed.items() for pair in self._likely_pairs(other, rarest)]
            others = [other for other, rarest in followed.items() if not rarest]
        for worth, row, other, columns, share in sorted(likely, reverse=True):
            if worth and row in self._mine and other in self._others:
                yield PartialPair(row, other, columns, share, self._take(row, other))

    def _likely_pairs(
        self, other: Row, rarest: Sequence[Sequence[Row]]
    ) -> Iterator[tuple[float, Row, Row, _Columns, float]]:
        """Yield pairs of an actual row and those that rare cells lead to, what each is worth first."""
        for row in dict.fromkeys(chain.from_iterable(rarest)):
            if row in self._mine:
                columns = _shared(row, other)
                shared = _cells_in(columns)
                fewest = next(rows for rows in rarest if row in rows)
                share = identification(sum(shared(each) == shared(row) for each in fewest), len(self._distinct))
                yield len(columns) * share, row, other, columns, share


class _RareCells:
    """The rows of the reference by their cells in some columns, where few rows have the same."""

    def __init__(self, columns: _Columns, rows: Sequence[Row]) -> None:
        self._cells = _cells_in(columns)
        cells = list(map(self._cells, rows))
        times = Counter(cells)
        self._rows: defaultdict[Any, list[Row]] = defaultdict(list)
        for row, cell in zip(rows, cells, strict=True):
            if times[cell] <= _RARE:
                self._rows[cell].append(row)

    def rows_like(self, row: Row) -> list[Row]:
        """Return the rows that have the same cells, where these are few."""
        return self._rows.get(self._cells(row), [])


def _fewest_rows(cells: Sequence[_RareCells], row: Row) -> list[list[Row]]:
    found = [rows for each in cells if (rows := each.rows_like(row))]
    return sorted(found, key=len)[:_MOST_CELLS_FOLLOWED]


def _shared(row: Row, other: Row) -> _Columns:
    return tuple(at for at, (one, two) in enumerate(zip(row, other, strict=True)) if one == two)


def _cells_in(columns: _Columns) -> Callable[[Row], Any]:
    return itemgetter(*columns)


def identification(alike: int, rows: int) -> float:
    """Return how far cells that some different rows share tell which of all of them is meant, beyond chance; 0 to 1.

    Example:
        >>> identification(1, 9), identification(3, 9), identification(9, 9), identification(1, 1)
        (1.0, 0.25, 0.0, 1.0)
    """
    return 1.0 if alike == 1 else (1 / alike - 1 / rows) / (1 - 1 / rows)
