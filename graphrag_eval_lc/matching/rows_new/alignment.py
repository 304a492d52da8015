"""One alignment of the rows of two results under chosen columns: which rows are missing, which are too many, and why.

Precision, recall, the reason, the near misses and the grade are all read from it. The grade is F1 over cells, times the
order's share:

    grade = 2 M ÷ (R x q + A x (p + s)) x order

- M: the cells that both sides share: those of equal rows, and of the rows left those that two of them share, as far
  as they tell which row of the reference is meant: shared by m of R different rows they count (1/m - 1/R) ÷ (1 - 1/R).
  Those of a column count times its trust (``column_trusts``).
- R x q: the cells that are required: R rows of the reference, q required columns. M ÷ (R x q) is the recall.
- A x (p + s): the cells of A actual rows over p columns that stand for required ones and s columns that nobody asked
  for. M ÷ (A x (p + s)) is the precision. A column of the reference that is not required was asked for.
- order: if order counts, the share of the pairs of rows that fit which are in the order of the reference; else 1.

For example two rows (Oslo, 1), (Bergen, 2) are required, and there are (Oslo, 1, x), (Bergen, 3, x), (Paris, 9, x): M
is 2 + 1, as Bergen tells which row is meant; recall is 3 ÷ 4, precision 3 ÷ 9, and the grade 6 ÷ 13 = 0.46.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.assignment import best_assignment
from graphrag_eval_lc.matching.rows_new.columns import Row
from graphrag_eval_lc.matching.rows_new.terms import RowsAs

_MOST_ASSIGNED: Final = 1_600
"""So many pairs of rows that differ are assigned in the best way; more are paired one after the other."""

_RARE: Final = 8
_MOST_CELLS_FOLLOWED: Final = 3


class Pair(NamedTuple):
    """Rows that share some of their cells.

    Attributes:
        reference: The row of the reference.
        actual: The actual row.
        columns: The positions of the cells that they share.
        share: How far these tell which row is meant; above 0 to 1.
        times: How many such pairs there are.
    """

    reference: Row
    actual: Row
    columns: tuple[int, ...]
    share: float
    times: int


class Alignment:
    """Which rows of two results belong together.

    Args:
        reference: The keys of the required columns, at least one.
        actual: For each of them those of the actual column; None if there is none.
        texts: The texts of the required columns, by which ties are decided.
        actual_texts: Likewise.
        rows_as: How rows count.
        actual_count: The number of actual rows.

    Attributes:
        full: How often each row is paired with one that is equal in full.
        total: The number of rows of the reference that count.
        actual_total: That of the actual rows.
    """

    def __init__(
        self,
        reference: Sequence[Sequence[int]],
        actual: Sequence[Sequence[int] | None],
        texts: Sequence[Sequence[str]],
        actual_texts: Sequence[Sequence[str] | None],
        rows_as: RowsAs,
        actual_count: int,
    ) -> None:
        absent = [-1] * actual_count
        self.rows: list[Row] = list(zip(*reference, strict=True))
        self.actual_rows: list[Row] = list(zip(*(absent if each is None else each for each in actual), strict=True))
        self._texts, self._actual_texts = texts, actual_texts
        self._is_ordered = rows_as == "list"
        self._width = len(reference)
        mine, others = (
            dict.fromkeys(rows, 1) if rows_as == "set" else dict(Counter(rows))
            for rows in (self.rows, self.actual_rows)
        )
        self._distinct = mine.keys()
        self.total, self.actual_total = sum(mine.values()), sum(others.values())
        self.full = {row: min(times, others[row]) for row, times in mine.items() if row in others}
        self._left = {row: left for row, times in mine.items() if (left := times - self.full.get(row, 0))}
        self._actual_left = {row: left for row, times in others.items() if (left := times - self.full.get(row, 0))}

    @cached_property
    def missing(self) -> list[int]:
        """The positions of the rows that the actual results lack."""
        return _first_positions(self.rows, self._left)

    @cached_property
    def extra(self) -> list[int]:
        """The positions of the actual rows that the reference lacks."""
        return _first_positions(self.actual_rows, self._actual_left)

    @property
    def are_equal(self) -> bool:
        """Whether all rows are paired in full, in the same order if it counts."""
        return not self._left and not self._actual_left and (not self._is_ordered or self.rows == self.actual_rows)

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pairs of rows that share some of their cells, of those that are left."""
        columns = range(self._width)
        common = [set(map(itemgetter(at), self._left)) & set(map(itemgetter(at), self._actual_left)) for at in columns]
        mine, others = (
            [row for row in _sorted(left, rows, texts) if any(map(set.__contains__, common, row))]
            for left, rows, texts in (
                (self._left, self.rows, self._texts),
                (self._actual_left, self.actual_rows, self._actual_texts),
            )
        )
        if not mine:
            return []
        pairing = _Pairing({row: self._left[row] for row in mine}, {row: self._actual_left[row] for row in others})
        return pairing.pairs(list(self._distinct), self._width)

    @cached_property
    def shared(self) -> list[float]:
        """For each column how many of its cells are shared."""
        found = [float(sum(self.full.values()))] * self._width
        for pair in self.pairs:
            for at in pair.columns:
                found[at] += pair.share * pair.times
        return found

    def shared_keys(self, at: int) -> Counter[int]:
        """Return the keys that are shared in a column, each with the number of different rows that have it."""
        found = Counter(map(itemgetter(at), self.full))
        found.update(pair.reference[at] for pair in self.pairs if at in pair.columns)
        return found

    @cached_property
    def order(self) -> float:
        """Of the pairs of rows that fit, the share that is in the order of the reference; 1 if no order counts.

        Rows fit if they are equal, or share cells that tell which row is meant. Duplicates are paired in their order.
        """
        if not self._is_ordered:
            return 1.0
        positions: list[defaultdict[Row, deque[int]]] = []
        for rows in (self.rows, self.actual_rows):
            positions.append(defaultdict(deque))
            for at, row in enumerate(rows):
                positions[-1][row].append(at)
        equal = ((row, row, times) for row, times in self.full.items())
        near = ((pair.reference, pair.actual, pair.times) for pair in self.pairs if pair.share == 1.0)
        places = sorted(
            (positions[1][other].popleft(), positions[0][row].popleft())
            for row, other, times in chain(equal, near)
            for _ in range(times)
        )
        seen: list[int] = []
        falling = 0
        for _, place in places:
            falling += len(seen) - bisect_left(seen, place)
            insort(seen, place)
        count = len(places)
        return 1.0 if count < 2 else 1.0 - falling / (count * (count - 1) // 2)


def _first_positions(rows: Sequence[Row], wanted: Mapping[Row, int]) -> list[int]:
    left, found = dict(wanted), []
    for at, row in enumerate(rows) if left else ():
        if left.get(row):
            left[row] -= 1
            found.append(at)
    return found


def _sorted(left: Mapping[Row, int], rows: Sequence[Row], texts: Sequence[Sequence[str] | None]) -> list[Row]:
    """Return rows in the order of their texts, so that it does not matter in which order they came."""
    row_of = {row: at for at, row in enumerate(rows) if row in left}
    columns = [column for column in texts if column is not None]
    return sorted(left, key=lambda row: [column[row_of[row]] for column in columns])


class _Pairing:
    """Pairs off rows that differ: those of the reference and the actual ones, each with how often it is left."""

    def __init__(self, mine: dict[Row, int], others: dict[Row, int]) -> None:
        self._mine, self._others = mine, others

    def pairs(self, distinct: Sequence[Row], width: int) -> list[Pair]:
        """Return the pairs, given all different rows of the reference."""
        found = self._assigned(distinct, width)
        if found is None:
            found = [*self._but_for_one_cell(distinct, width), *self._by_rare_cells(distinct, width)]
        return found

    def _assigned(self, distinct: Sequence[Row], width: int) -> list[Pair] | None:
        """Pair off few rows in the best way; None if they are too many."""
        if sum(self._mine.values()) * sum(self._others.values()) > _MOST_ASSIGNED or len(distinct) * width > 50_000:
            return None
        rows, others = ([row for row, times in left.items() for _ in range(times)] for left in (self._mine, self._others))
        counts: dict[tuple[int, ...], Counter[Row]] = {}

        def share(columns: tuple[int, ...], row: Row) -> float:
            if columns not in counts:
                counts[columns] = Counter(tuple(each[at] for at in columns) for each in distinct)
            return identification(counts[columns][tuple(row[at] for at in columns)], len(distinct))

        shared = [{at: columns for at, other in enumerate(others) if (columns := _shared(row, other))} for row in rows]
        scores = [
            {at: len(columns) * share(columns, row) for at, columns in found.items()}
            for row, found in zip(rows, shared, strict=True)
        ]
        return [
            Pair(row, others[at], shared[index][at], share(shared[index][at], row), 1)
            for index, (row, at) in enumerate(zip(rows, best_assignment(scores), strict=True))
            if at is not None and scores[index].get(at)
        ]

    def _but_for_one_cell(self, distinct: Sequence[Row], width: int) -> Iterator[Pair]:
        """Pair off rows that share all cells but one."""
        for absent in range(width if width > 1 else 0):
            columns = tuple(at for at in range(width) if at != absent)
            cells = itemgetter(*columns)
            by_cells: defaultdict[object, list[Row]] = defaultdict(list)
            for other in self._others:
                by_cells[cells(other)].append(other)
            rows = [row for row in self._mine if cells(row) in by_cells]
            alike = Counter(map(cells, distinct)) if rows else Counter[object]()
            for row in rows:
                share = identification(alike[cells(row)], len(distinct))
                for other in by_cells[cells(row)] if share else ():
                    if row in self._mine and other in self._others:
                        yield Pair(row, other, columns, share, self._take(row, other))

    def _by_rare_cells(self, distinct: Sequence[Row], width: int) -> Iterator[Pair]:
        """Pair off the rows that are left by cells that few rows of the reference have, the surest first."""
        by_cell: list[defaultdict[int, list[Row]]] = [defaultdict(list) for _ in range(width)]
        for at, rows_of in enumerate(by_cell):
            times = Counter(map(itemgetter(at), distinct))
            for row in distinct:
                if times[row[at]] <= _RARE:
                    rows_of[row[at]].append(row)
        likely: list[tuple[float, int, Row, Row, tuple[int, ...], float]] = []
        for other in self._others:
            found = [rows for key, rows_of in zip(other, by_cell, strict=True) if (rows := rows_of.get(key))]
            rarest = sorted(found, key=len)[:_MOST_CELLS_FOLLOWED]
            for row in dict.fromkeys(chain.from_iterable(rarest)):
                if row in self._mine:
                    columns = _shared(row, other)
                    fewest = next(rows for rows in rarest if row in rows)
                    alike = sum(all(row[at] == each[at] for at in columns) for each in fewest)
                    share = identification(alike, len(distinct))
                    likely.append((-len(columns) * share, len(likely), row, other, columns, share))
        for worth, _, row, other, columns, share in sorted(likely):
            if worth and row in self._mine and other in self._others:
                yield Pair(row, other, columns, share, self._take(row, other))

    def _take(self, row: Row, other: Row) -> int:
        times = min(self._mine[row], self._others[other])
        for left, each in ((self._mine, row), (self._others, other)):
            left[each] -= times
            if not left[each]:
                del left[each]
        return times


def _shared(row: Row, other: Row) -> tuple[int, ...]:
    return tuple(at for at, (one, two) in enumerate(zip(row, other, strict=True)) if one == two)


def identification(alike: int, rows: int) -> float:
    """Return how far cells that some different rows share tell which of all of them is meant, beyond chance; 0 to 1.

    Example:
        >>> identification(1, 9), identification(3, 9), identification(9, 9), identification(1, 1)
        (1.0, 0.25, 0.0, 1.0)
    """
    return 1.0 if alike == 1 else (1 / alike - 1 / rows) / (1 - 1 / rows)
