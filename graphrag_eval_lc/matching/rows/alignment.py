"""One alignment of the rows of two results under chosen columns: which rows are missing, which are too many, and why.

Precision, recall, the reason, the near misses and the grade are all read from it. The grade is F1 over cells, times the
order's share:

    grade = 2 M ÷ (R x q + A x (p + s)) x order

- M: the cells that both sides share: those of equal rows, and of the rows left those that two of them share, as far
  as they tell which row of the reference is meant: shared by m of R different rows they count (1/m - 1/R) ÷ (1 - 1/R).
  Those of a column count times its trust (see ``_trusts``).
- R x q: the cells that are required: R rows of the reference, q required columns. M ÷ (R x q) is the recall.
- A x (p + s): the cells of A actual rows over p columns that stand for required ones and s columns that nobody asked
  for. M ÷ (A x (p + s)) is the precision. A column of the reference that is not required was asked for.
- order: if order counts, the share of the pairs of rows that fit which are in the order of the reference; else 1.

For example two rows (Oslo, 1), (Bergen, 2) are required, and there are (Oslo, 1, x), (Bergen, 3, x), (Paris, 9, x): M
is 2 + 1, as Bergen tells which row is meant; recall is 3 ÷ 4, precision 3 ÷ 9, and the grade 6 ÷ 13 = 0.46.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import prod
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.assignment import best_assignment
from graphrag_eval_lc.matching.rows.columns import Row, bare_name
from graphrag_eval_lc.matching.rows.terms import RowsAs

Way: TypeAlias = tuple[str | None, ...]
"""For each required column the actual one that is taken for it, or None."""

_MOST_TRIED: Final = 200
_MOST_CELLS_TRIED: Final = 200_000
_TRIES_OF_A_CHANGE: Final = 4
_MOST_WEIGHTS: Final = 5_000
"""If more pairs of columns have values in common, only the best few of each column are looked at."""

_MOST_AGREEMENTS: Final = 500_000
_FEW_VALUES: Final = 100
_MOST_ASSIGNED: Final = 1_600
"""So many pairs of rows that differ are assigned in the best way; more are paired one after the other."""


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
        left, actual_left = {row: self._left[row] for row in mine}, {row: self._actual_left[row] for row in others}
        return _Pairing(left, actual_left, list(self._distinct), self._width).pairs()

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
    """Pairs off rows that differ.

    Args:
        mine: The rows of the reference that are left, with how often each is.
        others: The actual rows, likewise.
        distinct: All different rows of the reference.
        width: The number of columns.
    """

    def __init__(self, mine: dict[Row, int], others: dict[Row, int], distinct: Sequence[Row], width: int) -> None:
        self._mine, self._others, self._distinct, self._width = mine, others, distinct, width
        self._counts: dict[tuple[int, ...], Counter[Row]] = {}

    def pairs(self) -> list[Pair]:
        """Return the pairs: the best ones if the rows are few."""
        sizes = sum(self._mine.values()) * sum(self._others.values())
        if sizes <= _MOST_ASSIGNED and len(self._distinct) * self._width <= 20 * _MOST_ASSIGNED:
            return self._assigned()
        columns = range(self._width)
        subsets = [tuple(at for at in columns if at != absent) for absent in columns if self._width > 1]
        subsets += [(at,) for at in columns if self._width != 2]
        subsets += [(at, at + 1) for at in columns[:-1] if self._width > 3]
        found = []
        for least in (1.0, 0.0):  # what tells for sure which row is meant goes before what may tell
            for subset in subsets:
                found += self._paired_by(subset, least) if self._mine and self._others else []
        return found

    def _share(self, columns: tuple[int, ...], row: Row) -> float:
        """Return how far the cells of a row in some columns tell which row of the reference is meant."""
        if columns not in self._counts:
            self._counts[columns] = Counter(tuple(each[at] for at in columns) for each in self._distinct)
        return identification(self._counts[columns][tuple(row[at] for at in columns)], len(self._distinct))

    def _assigned(self) -> list[Pair]:
        rows, others = (
            [row for row, times in left.items() for _ in range(times)] for left in (self._mine, self._others)
        )
        shared = [{at: columns for at, other in enumerate(others) if (columns := _shared(row, other))} for row in rows]
        scores = [
            {at: len(columns) * self._share(columns, row) for at, columns in found.items()}
            for row, found in zip(rows, shared, strict=True)
        ]
        return [
            Pair(row, others[at], shared[index][at], self._share(shared[index][at], row), 1)
            for index, (row, at) in enumerate(zip(rows, best_assignment(scores), strict=True))
            if at is not None and scores[index].get(at)
        ]

    def _paired_by(self, columns: tuple[int, ...], least: float) -> list[Pair]:
        """Pair off rows that share these columns, if these tell at least so far which row is meant."""
        cells = itemgetter(*columns)
        by_cells: defaultdict[object, deque[Row]] = defaultdict(deque)
        for other in self._others:
            by_cells[cells(other)].append(other)
        rows = [row for row in self._mine if cells(row) in by_cells]
        alike = Counter(map(cells, self._distinct)) if rows else Counter[object]()
        found = []
        for row in rows:
            share = identification(alike[cells(row)], len(self._distinct))
            waiting = by_cells[cells(row)] if share and share >= least else deque[Row]()
            while waiting and row in self._mine:
                other = waiting[0]
                times = min(self._mine[row], self._others[other])
                found.append(Pair(row, other, _shared(row, other), share, times))
                for left, each in ((self._mine, row), (self._others, other)):
                    left[each] -= times
                    if not left[each]:
                        del left[each]
                if other not in self._others:
                    waiting.popleft()
        return found


def _shared(row: Row, other: Row) -> tuple[int, ...]:
    return tuple(at for at, (one, two) in enumerate(zip(row, other, strict=True)) if one == two)


def identification(alike: int, rows: int) -> float:
    """Return how far cells that some different rows share tell which of all of them is meant, beyond chance; 0 to 1.

    Example:
        >>> identification(1, 9), identification(3, 9), identification(9, 9), identification(1, 1)
        (1.0, 0.25, 0.0, 1.0)
    """
    return 1.0 if alike == 1 else (1 / alike - 1 / rows) / (1 - 1 / rows)


def shares_of_values(
    required: Mapping[str, Sequence[int]], others: Mapping[str, Sequence[int]]
) -> list[dict[str, float]]:
    """Return for each required column the share of values that it has in common with each actual one that has some."""
    contents, other_contents = ({name: set(cells) for name, cells in each.items()} for each in (required, others))
    return [
        {
            other: 2 * len(common) / (len(content) + len(found))
            for other, found in other_contents.items()
            if (common := content & found)
        }
        for content in contents.values()
    ]


def best_columns(
    required: Mapping[str, Sequence[int]],
    others: Mapping[str, Sequence[int]],
    weights: Sequence[Mapping[str, float]],
    worth: Callable[[Way], tuple[float, ...]],
) -> Way:
    """Return the way to choose actual columns for the required ones that is worth most, if the results do not match.

    All ways to choose among columns with common values are tried if these are few; else the likeliest ones: by names,
    by values, and by the cells of rows that have the same key; and then ways that change one column of the best.

    Args:
        required: The keys of the required columns.
        others: Those of the actual ones.
        weights: Their ``shares_of_values``.
        worth: What a way is worth.
    """
    cells = sum(map(len, required.values())) + sum(map(len, others.values()))
    most = min(_MOST_TRIED, _MOST_CELLS_TRIED // max(1, cells))
    ways: list[Way] = [()]
    if prod(len(found) + 1 for found in weights) <= most:
        for found in weights:
            ways = [(*way, name) for way in ways for name in (*found, None) if name is None or name not in way]
        return max(ways, key=worth)
    counts, other_counts = ({name: Counter(cells) for name, cells in each.items()} for each in (required, others))
    finer: list[dict[str, float]] = []
    for name, found in zip(required, weights, strict=True):
        mine, rows = counts[name], len(required[name])
        finer.append({})
        for other, weight in found.items():
            few = len(mine) <= _FEW_VALUES  # how often few values come tells columns of the same values apart
            common = sum(min(times, other_counts[other][key]) for key, times in mine.items()) if few else 0
            finer[-1][other] = weight + common / (rows + len(others[other]))
    ways = [assigned_by_name(list(required), list(others), finer), _assigned(finer, list(others))]
    by_rows = [_by_rows(list(required.values()), others, way, finer) for way in ways]
    ways = list(dict.fromkeys([*filter(None, by_rows), *ways]))
    if not most and len(ways) == 1:
        return ways[0]
    best = max(ways, key=worth)
    changed = iter(_changed(best, weights))
    for _ in range(most // _TRIES_OF_A_CHANGE):
        way = next(changed, None)
        if way is None:
            break
        if worth(way) > worth(best):
            best, changed = way, iter(_changed(way, weights))
    return best


def _changed(way: Way, weights: Sequence[Mapping[str, float]]) -> Iterator[Way]:
    """Yield ways with one other column, of those with most in common first; if need be two change places."""
    likely = sorted((-weight, at, name) for at, found in enumerate(weights) for name, weight in found.items())
    for _, at, name in likely:
        if way[at] != name:
            changed = list(way)
            if name in way:
                place = way.index(name)
                changed[place] = way[at] if way[at] in weights[place] else None
            changed[at] = name
            yield tuple(changed)


def assigned_by_name(required: Sequence[str], others: Sequence[str], weights: Sequence[Mapping[str, float]]) -> Way:
    """Assign columns by their names, then by what they have in common."""
    by_name = [
        {other: weight + 2.0 * (bare_name(name) == bare_name(other)) for other, weight in found.items()}
        for name, found in zip(required, weights, strict=True)
    ]
    return _assigned(by_name, others)


def _assigned(weights: Sequence[Mapping[str, float]], names: Sequence[str]) -> Way:
    """Assign columns so that they have most in common."""
    place_of = {name: at for at, name in enumerate(names)}
    most = max(1, _MOST_WEIGHTS // len(weights))
    scores = [
        {place_of[name]: each[name] for name in sorted(each, key=each.__getitem__, reverse=True)[:most]}
        for each in weights
    ]
    return tuple(None if at is None else names[at] for at in best_assignment(scores))


def _by_rows(
    mine: Sequence[Sequence[int]],
    others: Mapping[str, Sequence[int]],
    way: Way,
    weights: Sequence[Mapping[str, float]],
) -> Way | None:
    """Assign columns by the cells that are equal in rows of the same key: a value that each side has once."""
    best: tuple[list[int], dict[int, int], dict[int, int]] = [], {}, {}
    for cells, name in zip(mine, way, strict=True):
        if name is not None:
            row_of, other_row_of = (
                {key: at for at, key in enumerate(column) if times[key] == 1}
                for column, times in ((cells, Counter(cells)), (others[name], Counter(others[name])))
            )
            common = sorted(row_of.keys() & other_row_of.keys())
            best = max(best, (common, row_of, other_row_of), key=lambda each: len(each[0]))
    common, row_of, other_row_of = best
    if not common:
        return None
    common = common[:: max(1, len(common) * sum(map(len, weights)) // _MOST_AGREEMENTS)]
    rows, other_rows = [row_of[key] for key in common], [other_row_of[key] for key in common]
    agreements: list[dict[str, float]] = []
    for cells, found in zip(mine, weights, strict=True):
        wanted = [cells[row] for row in rows]
        agreements.append({})
        for name, weight in found.items():
            column = others[name]
            equal = sum(key == column[row] for key, row in zip(wanted, other_rows, strict=True))
            agreements[-1][name] = equal / len(common) + 0.01 * weight
    return _assigned(agreements, list(others))
