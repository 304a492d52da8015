"""Aligns the rows of two results under chosen columns: which rows are missing, which are extra, and why.

Precision, recall, the reason, the near misses and the grade are all computed from this alignment. The grade is F1 over
cells, times the share of rows in order:

    grade = 2 M ÷ (R x q + A x (p + s)) x order

- M: the cells that both sides share. All cells of equal rows count 1. The other rows are paired, and the cells that a
  pair shares count by how well they identify the reference row: (1/m - 1/R) ÷ (1 - 1/R) if m of R different rows have
  these cells.
- R x q: R rows of the reference, q required columns.
- A x (p + s): A actual rows, p columns that match required ones, s columns that were not required.
- order: if order counts, the share of the pairs of matched rows that are in the order of the reference; else 1.

Example: the reference has (Oslo, 1), (Bergen, 2), and the result (Oslo, 1, x), (Bergen, 3, x), (Paris, 9, x). M is
2 + 1, because Bergen identifies one row; recall is 3 ÷ 4, precision 3 ÷ 9, and the grade 6 ÷ 13 = 0.46.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from itertools import combinations, compress, count, filterfalse, product
from math import prod
from operator import itemgetter
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.assignment import best_assignment, order_share
from graphrag_eval_lc.matching.rows.columns import Budget, Row, SearchBoundError, bare_name, find_columns, namesakes
from graphrag_eval_lc.matching.rows.numbers_and_times import number_from
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.terms import Keys

_MOST_COMBINED: Final = 4
"""With more columns, only rows that share all cells but one are paired, then rows that share one cell."""

_MOST_WAYS: Final = 200
_MOST_CELLS_TRIED: Final = 200_000
_MOST_WEIGHTS: Final = 5_000
"""If more pairs of columns have common values, only the best few of each column are tried."""

_SAME_NAME: Final = 2.0
"""The weight of an equal name. All values of a column together weigh 1."""

_NEGLIGIBLE: Final = 1e-6
_NEARLY: Final = 1 - 1e-6
"""The upper bound for rows that differ only in their order or in blank nodes, because they do not match."""

_SAMPLED: Final = 100


class Pair(NamedTuple):
    """A missing and an extra row that share some cells, and how well these identify the row: above 0, up to 1."""

    reference: Row
    actual: Row
    share: float

    @property
    def columns(self) -> list[int]:
        """The positions of the columns."""
        return [at for at, (key, other) in enumerate(zip(self.reference, self.actual, strict=True)) if key == other]


class Alignment:
    """Which rows of two results belong together under given columns, and the grade that follows."""

    def __init__(self, keys: Keys, columns: Mapping[str, str | None]) -> None:
        self.reference, self.actual = keys.reference, keys.actual
        self.columns, self._rows_as = columns, keys.rules.rows_as
        self.found = {name: found for name, found in columns.items() if found is not None}
        self.terms = [self.reference.columns[name] for name in columns]
        self.actual_terms = [None if name is None else self.actual.columns[name] for name in columns.values()]
        absent = [-1] * self.actual.row_count
        self.rows: list[Row] = list(zip(*(keys.required[name].keys for name in columns), strict=True))
        found = (absent if name is None else keys.column(name).keys for name in columns.values())
        self.actual_rows: list[Row] = list(zip(*found, strict=True))
        sides = self.rows, self.actual_rows
        counts, actual_counts = (dict.fromkeys(rows, 1) if self._rows_as == "set" else Counter(rows) for rows in sides)
        self._counts, is_set = counts, self._rows_as == "set"
        self.total, self.actual_total = (len(of) if is_set else sum(of.values()) for of in (counts, actual_counts))
        self.unequal = _without(counts, actual_counts, is_set=is_set)
        self.actual_unequal = _without(actual_counts, counts, is_set=is_set)
        self.equal_total = self.total - sum(self.unequal.values())

    @cached_property
    def equal(self) -> dict[Row, int]:
        """The rows that both sides have, and how many times they count."""
        left = ((row, times - self.unequal.get(row, 0)) for row, times in self._counts.items())
        return {row: times for row, times in left if times}

    @cached_property
    def missing(self) -> list[int]:
        """The positions of the rows that the actual results lack."""
        return _first_positions(self.rows, self.unequal)

    @cached_property
    def extra(self) -> list[int]:
        """The positions of the actual rows that the reference lacks."""
        return _first_positions(self.actual_rows, self.actual_unequal)

    @property
    def are_equal(self) -> bool:
        """Whether both sides have the same rows, in the same order if order counts."""
        is_other_order = self._rows_as == "list" and self.rows != self.actual_rows
        return not self.unequal and not self.actual_unequal and not is_other_order

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pairs of missing and extra rows that share some of their cells."""
        columns = range(len(self.columns))
        common = [{row[at] for row in self.unequal} & {row[at] for row in self.actual_unequal} for at in columns]
        missing = _rows_that_share(common, self.unequal, self.rows, self.terms)
        extra = _rows_that_share(common, self.actual_unequal, self.actual_rows, self.actual_terms) if missing else []
        return _paired(missing, extra, list(self._counts)) if missing else []

    @cached_property
    def shared(self) -> list[float]:
        """For each column, how many of its cells are shared."""
        found = [float(self.equal_total)] * len(self.columns)
        for pair in self.pairs:
            for at in pair.columns:
                found[at] += pair.share
        return found

    @cached_property
    def order(self) -> float:
        """The share of the pairs of matched rows that are in the reference's order; 1 if order does not count."""
        if self._rows_as != "list":
            return 1.0
        places, actual_places = defaultdict[Row, deque[int]](deque), defaultdict[Row, deque[int]](deque)
        for places_of, rows in ((places, self.rows), (actual_places, self.actual_rows)):
            for at, row in enumerate(rows):
                places_of[row].append(at)
        equal = [(row, row) for row, times in self.equal.items() for _ in range(times)]
        near = [(pair.reference, pair.actual) for pair in self.pairs if pair.share == 1.0]
        return order_share([(places[row].popleft(), actual_places[other].popleft()) for row, other in equal + near])

    @cached_property
    def surplus(self) -> list[str]:
        """The actual columns that match no required one and were not required."""
        return surplus_columns(self.reference, self.actual, self.columns)

    @cached_property
    def cells(self) -> tuple[float, int, int]:
        """The numbers of shared, required and actual cells."""
        required, actual = self.total * len(self.columns), self.actual_total * (len(self.found) + len(self.surplus))
        return sum(self.shared), required, actual

    @cached_property
    def grade(self) -> float:
        """The grade of the rows, 0 to 1."""
        shared, required, found = self.cells
        return min(1.0, 2 * shared / (required + found)) * self.order if shared else 0.0


def _without(counts: Mapping[Row, int], other: Mapping[Row, int], *, is_set: bool) -> dict[Row, int]:
    """Return the rows that the other side lacks, or has fewer times, and how many times it lacks each."""
    if is_set:
        return dict.fromkeys(filterfalse(other.__contains__, counts), 1)
    return {row: times - other.get(row, 0) for row, times in counts.items() if other.get(row, 0) < times}


def _first_positions(rows: Sequence[Row], wanted: Mapping[Row, int]) -> list[int]:
    left, found, most = dict(wanted), [], sum(wanted.values())
    for at in compress(count(), map(left.__contains__, rows)) if left else ():
        if left[rows[at]]:
            left[rows[at]] -= 1
            found.append(at)
            if len(found) == most:  # as a rule, few rows are missing
                break
    return found


def _rows_that_share(
    common: Sequence[set[int]], left: Mapping[Row, int], rows: Sequence[Row], columns: Sequence[TermColumn | None]
) -> list[Row]:
    """Return the rows with common cells, sorted by their texts, so that the order of the input does not matter."""
    some = {row for row in left if any(map(set.__contains__, common, row))} if any(common) else set()
    by_text = list(some)
    if len(some) > 1:
        row_of = {rows[at]: at for at in compress(count(), map(some.__contains__, rows))}
        by_text = sorted(row_of, key=lambda row: [column.texts[row_of[row]] for column in columns if column])
    return [row for row in by_text for _ in range(left[row])]


def _paired(missing: Sequence[Row], extra: Sequence[Row], distinct: Sequence[Row]) -> list[Pair]:
    """Pair missing rows with extra ones; ``distinct`` has all different rows of the reference."""

    @cache
    def counts(columns: tuple[int, ...]) -> Counter[object]:
        return Counter(map(itemgetter(*columns), distinct))

    rows, width = len(distinct), len(missing[0])
    sizes = range(width - 1, 0, -1) if width <= _MOST_COMBINED else (width - 1, 1)
    subsets = [subset for size in sizes for subset in combinations(range(width), size)] or [(0,)]
    pairs, left, free = [], dict(enumerate(missing)), dict(enumerate(extra))
    for least, subset in product((1.0, _NEGLIGIBLE), subsets):
        cells, waiting = itemgetter(*subset), defaultdict[object, deque[int]](deque)
        for at, other in free.items():
            waiting[cells(other)].append(at)
        for at, row in list(left.items()):
            if alike := waiting.get(cells(row)):
                times = counts(subset)[cells(row)]
                share = 1.0 if times == 1 else (1 / times - 1 / rows) / (1 - 1 / rows)
                if share >= least:
                    pairs.append(Pair(left.pop(at), free.pop(alike.popleft()), share))
    return pairs


def surplus_columns(reference: SparqlResults, actual: SparqlResults, columns: Mapping[str, str | None]) -> list[str]:
    """Return the actual columns that match no required one and were not required.

    Each column of the reference that is not required excuses one of them: the one of the same name, else any other.
    """
    optional = [name for name in reference.variables if name not in columns]
    left = [name for name in actual.variables if name not in columns.values()]
    same = namesakes(optional, left)
    left = [name for name in left if name not in same.values()]
    return left[len(optional) - len(same) :]


class Search:
    """Finds the columns under which two results are compared: those that match, else those that come nearest."""

    def __init__(self, keys: Keys) -> None:
        self.keys, self.cut_off, budget = keys, "", Budget()
        try:
            self.columns = find_columns(keys, budget)
        except SearchBoundError as problem:
            self.cut_off = str(problem)
            is_match = self._nearest.are_equal and not any(column.blanks for column in keys.required.values())
            self.columns = self._nearest.found if is_match else None
        self.steps = budget.spent

    @cached_property
    def alignment(self) -> Alignment:
        """The alignment under the columns that the search found."""
        return self._nearest if self.columns is None else Alignment(self.keys, self.columns)

    @property
    def common_share(self) -> float:
        """How much two results that do not match have in common under the likely columns; from 0 to below 1.

        It is the mean of the share of equal rows and, for each required column, the share of cells with equal values
        in any row.
        """
        rows = self._likely()  # not cached, as there may be thousands of comparisons
        columns = rows.columns.values()
        shares = [found[name] for found, name in zip(self._overlaps, columns, strict=True) if name is not None]
        of_rows = 2 * rows.equal_total / (rows.total + rows.actual_total)
        return (sum(shares) + of_rows) / (len(columns) + 1) * _NEARLY

    def _likely(self) -> Alignment:
        """Return the alignment under the columns that fit best by their names and common values."""
        names, weights = list(self.keys.actual.columns), self._weights()
        most = max(1, _MOST_WEIGHTS // len(weights))
        likely = [sorted(found, key=found.__getitem__, reverse=True)[:most] for found in weights]
        scores = [
            {names.index(name): found[name] for name in some} for found, some in zip(weights, likely, strict=True)
        ]
        way = (None if at is None else names[at] for at in best_assignment(scores))
        return Alignment(self.keys, dict(zip(self.keys.names, way, strict=True)))

    @cached_property
    def _nearest(self) -> Alignment:
        """The alignment under the columns that come nearest.

        All ways to choose among columns with common values are tried, and the one with the best grade wins. If there
        are too many ways, the columns with the most common values are chosen. The remaining columns are assigned by
        their names, then by the kinds of their values.
        """
        keys, best = self.keys, self._likely()
        reference, actual = keys.reference, keys.actual
        cells = reference.row_count * len(keys.names) + actual.row_count * len(actual.columns)
        if prod(len(found) + 1 for found in self._overlaps) <= min(_MOST_WAYS, _MOST_CELLS_TRIED // cells):
            ways: list[tuple[str | None, ...]] = [()]
            for found in self._overlaps:
                ways = [(*way, name) for way in ways for name in (*found, None) if name is None or name not in way]
            # A way that leaves a column unassigned although another one is free is not tried.
            ways = [
                way
                for way in ways
                if all(name or {*found} <= {*way} for name, found in zip(way, self._overlaps, strict=True))
            ]
            if len(ways) > 1:  # a single way is the likely one
                weights = self._weights()

                def worth(aligned: Alignment) -> tuple[float, float]:
                    chosen = zip(weights, aligned.columns.values(), strict=True)
                    return round(aligned.grade, 9), sum(found[name] for found, name in chosen if name is not None)

                best = max((Alignment(keys, dict(zip(keys.names, way, strict=True))) for way in ways), key=worth)
        columns = dict(best.columns)
        absent = [name for name, found in columns.items() if found is None]
        columns |= namesakes(absent, [other for other in actual.columns if other not in columns.values()])
        for name in reversed(absent) if not keys.are_graphs else ():  # queries return keys first, then what was asked
            if columns[name] is None:
                free = (other for other in reversed(actual.columns) if other not in columns.values())
                kinds = _kinds(reference.columns[name])
                columns[name] = next((other for other in free if kinds & _kinds(actual.columns[other])), None)
        return best if columns == best.columns else Alignment(keys, columns)

    def _weights(self) -> list[dict[str, float]]:
        """Return for each required column the weight of each actual column, by common values and the name."""
        return [
            {other: overlap + _SAME_NAME * (bare_name(name) == bare_name(other)) for other, overlap in found.items()}
            for name, found in zip(self.keys.names, self._overlaps, strict=True)
        ]

    @cached_property
    def _overlaps(self) -> list[dict[str, float]]:
        """For each required column: the share of cells with equal values in actual columns that have any."""
        keys = self.keys
        counts = {name: dict(Counter(keys.column(name).keys)) for name in keys.actual.columns}
        # Columns without common values usually have different ranges of keys: a quick way to exclude them.
        ranges = {name: (min(count), max(count)) for name, count in counts.items()}
        overlaps: list[dict[str, float]] = []
        for name, column in keys.required.items():
            own, found = dict(Counter(column.keys)), {}
            least, most = min(own), max(own)
            for other, (other_least, other_most) in ranges.items():
                if least <= other_most and other_least <= most and (not keys.are_graphs or other == name):
                    cells = _common_cells(own, counts[other])
                    if cells:
                        found[other] = 2 * cells / (keys.reference.row_count + keys.actual.row_count)
            overlaps.append(found)
        return overlaps


def _common_cells(counts: Mapping[int, int], other: Mapping[int, int]) -> int:
    if counts == other:  # as a rule, if a column matches
        return sum(counts.values())
    common = counts.keys() & other.keys()
    return sum(map(min, map(counts.__getitem__, common), map(other.__getitem__, common)))


def _kinds(column: TermColumn) -> set[str]:
    """Return the kinds of the first values of a column: numbers, truth values, blank nodes, triples, texts."""
    kinds = set()
    for row, text in enumerate(column.texts[:_SAMPLED]):
        kind = column.kind(row)
        if kind not in ("", "bnode", "triple"):
            is_number = number_from(text, None) is not None
            kind = "number" if is_number else "boolean" if text in ("true", "false") else "text"
        kinds.add(kind)
    return kinds - {""}
