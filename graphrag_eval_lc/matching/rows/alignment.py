"""One alignment of the rows of two results under chosen columns: which rows are missing, which are too many, and why.

Precision, recall, the reason, the near misses and the grade are all read from it. The grade is F1 over cells, times the
order's share:

    grade = 2 M ÷ (R x q + A x (p + s)) x order

- M: the cells that both sides share: those of equal rows, and of the rows left those that two of them share, as far
  as they tell which row of the reference is meant: shared by m of R different rows they count (1/m - 1/R) ÷ (1 - 1/R).
- R x q: R rows of the reference, q required columns.
- A x (p + s): A actual rows, p columns that stand for required ones, s columns that nobody asked for.
- order: if order counts, the share of the pairs of rows that fit which are in the order of the reference; else 1.

The cells of a column count times its trust, 1 - (n + 1) ÷ 2^b, as far as chance does not explain them: a query that
returns 300 numbers has the one that was asked for. Its values have b bits, and n rivals are surplus columns of such
values, less the required ones that no column stands for. A column with the name of the required one has none.

For example two rows (Oslo, 1), (Bergen, 2) are required, and there are (Oslo, 1, x), (Bergen, 3, x), (Paris, 9, x): M
is 2 + 1, as Bergen tells which row is meant; recall is 3 ÷ 4, precision 3 ÷ 9, and the grade 6 ÷ 13 = 0.46.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product
from math import log2, prod
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.assignment import best_assignment, order_share
from graphrag_eval_lc.matching.rows.columns import Row, bare_name, namesakes
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.terms import Keys, RowsAs

_Way: TypeAlias = tuple[str | None, ...]

_MOST_COMBINED: Final = 4
"""Of more columns rows that share all but one are paired, then those that share one."""

_MOST_TRIED: Final = 200
_MOST_CELLS_TRIED: Final = 200_000
_MOST_WEIGHTS: Final = 5_000
"""If more pairs of columns have values in common, only the best few of each column are looked at."""

_SAMPLED: Final = 1_000
_NUMBER: Final = re.compile(r"\s*[+-]?([0-9.]+)(?:[eE][+-]?[0-9]+)?\s*")
_MOST_BITS: Final = 80.0
_NEGLIGIBLE: Final = 1e-6


class Pair(NamedTuple):
    """Rows that share the cells of some columns, and how far these tell which row is meant: above 0 to 1."""

    reference: Row
    actual: Row
    columns: tuple[int, ...]
    share: float


@dataclass(eq=False)
class Alignment:
    """Which rows of two results belong together under some columns, and what that is worth.

    Attributes:
        columns: For each required column, at least one, the actual one that stands for it, or None.
        terms, actual_terms: The columns of both sides.
        rows, actual_rows: The keys of their rows, as ``rows_as`` counts them.
        total, actual_total: How many of these there are.
        full: How often each row is paired with one that is equal in full.
        closeness: How near the results come, if they do not match, for ranking steps.
        found: The columns without those for which none stands.
    """

    reference: SparqlResults
    actual: SparqlResults
    keys: Keys
    rows_as: RowsAs
    columns: Mapping[str, str | None]
    closeness: float = 1.0

    def __post_init__(self) -> None:
        actual, keys, names = self.actual, self.keys, self.columns.values()
        self.found = {name: found for name, found in self.columns.items() if found is not None}
        self.terms = [self.reference.columns[name] for name in self.columns]
        self.actual_terms = [None if name is None else actual.columns[name] for name in names]
        absent = [-1] * actual.row_count
        self.rows: list[Row] = list(zip(*(keys.reference(name).keys for name in self.columns), strict=True))
        found = (absent if name is None else keys.actual(name).keys for name in names)
        self.actual_rows: list[Row] = list(zip(*found, strict=True))
        sides = self.rows, self.actual_rows
        mine, others = (dict.fromkeys(rows, 1) if self.rows_as == "set" else dict(Counter(rows)) for rows in sides)
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
        is_other_order = self.rows_as == "list" and self.rows != self.actual_rows
        return not self._left and not self._actual_left and not is_other_order

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pairs of rows that share some of their cells, of those that are left."""
        columns = range(len(self.columns))
        common = [{row[at] for row in self._left} & {row[at] for row in self._actual_left} for at in columns]
        mine = _that_share(common, self._left, self.rows, self.terms)
        others = _that_share(common, self._actual_left, self.actual_rows, self.actual_terms) if mine else []
        return _paired(mine, others, list(self._distinct)) if mine else []

    @cached_property
    def shared(self) -> list[float]:
        """For each column how many of its cells are shared."""
        found = [float(sum(self.full.values()))] * len(self.columns)
        for pair in self.pairs:
            for at in pair.columns:
                found[at] += pair.share
        return found

    @cached_property
    def order(self) -> float:
        """Of the pairs of rows that fit, the share that is in the order of the reference; 1 if no order counts.

        Rows fit if they are equal, or share cells that tell which row is meant. Duplicates are paired in their order.
        """
        if self.rows_as != "list":
            return 1.0
        mine, others = defaultdict[Row, deque[int]](deque), defaultdict[Row, deque[int]](deque)
        for places, rows in ((mine, self.rows), (others, self.actual_rows)):
            for at, row in enumerate(rows):
                places[row].append(at)
        equal = [(row, row) for row, times in self.full.items() for _ in range(times)]
        near = [(pair.reference, pair.actual) for pair in self.pairs if pair.share == 1.0]
        return order_share([(mine[row].popleft(), others[other].popleft()) for row, other in equal + near])

    @cached_property
    def surplus(self) -> list[str]:
        """The actual columns that stand for no required one and that nobody asked for."""
        return surplus_columns(self.reference, self.actual, self.columns)

    @cached_property
    def trusts(self) -> list[float]:
        """How far each column is trusted, 0 to 1."""
        trusts = [1.0] * len(self.columns)
        if not self.surplus:
            return trusts
        names = Counter(map(bare_name, self.actual.variables))
        left = [_kinds(self.actual.columns[name]) for name in self.surplus if name in self.actual.columns]
        absent = [_kinds(self.reference.columns[name]) for name in self.columns if name not in self.found]
        for at, (name, found) in enumerate(self.columns.items()):
            is_named = found is not None and bare_name(name) == bare_name(found) and names[bare_name(name)] == 1
            kinds = _kinds(self.reference.columns[name])
            rivals = sum(bool(kinds & each) for each in left) - sum(bool(kinds & each) for each in absent)
            if found is not None and not is_named and rivals > 0:
                trusts[at] = max(0.0, 1.0 - (rivals + 1) * 2.0 ** -self._bits(at))
        return trusts

    def _bits(self, at: int) -> float:
        """Return the bits of the values that a column shares, or of how they lie over the rows if these are more."""
        shared = Counter(map(itemgetter(at), self.full))
        shared.update(pair.reference[at] for pair in self.pairs if at in pair.columns)
        column, row_of = self.terms[at], {row[at]: place for place, row in enumerate(self.rows)}
        few = list(shared.items())[:_SAMPLED]
        by_values = sum(_kind_and_bits(column, row_of[key])[1] for key, _ in few)
        cells = shared.total()
        by_rows = sum(times * log2(cells / times) for _, times in few) if len(self.columns) > 1 else 0.0
        return min(_MOST_BITS, max(by_values, by_rows))

    @cached_property
    def cells(self) -> tuple[float, int, int]:
        """The number of shared cells, each by the trust in its column; that of required, and that of actual cells."""
        shared = sum(map(float.__mul__, self.shared, self.trusts))
        return shared, self.total * len(self.columns), self.actual_total * (len(self.found) + len(self.surplus))

    @cached_property
    def grade(self) -> float:
        """What the rows are worth, 0 to 1."""
        shared, required, found = self.cells
        return min(1.0, 2 * shared / (required + found)) * self.order if shared else 0.0


def _first_positions(rows: Sequence[Row], wanted: Mapping[Row, int]) -> list[int]:
    left, found = dict(wanted), []
    for at, row in enumerate(rows) if left else ():
        if left.get(row):
            left[row] -= 1
            found.append(at)
    return found


def _that_share(
    common: Sequence[set[int]], left: Mapping[Row, int], rows: Sequence[Row], columns: Sequence[TermColumn | None]
) -> list[Row]:
    """Return the rows with common cells, by their texts, so that it does not matter in which order they came."""
    some = {row for row in left if any(map(set.__contains__, common, row))}
    row_of = {row: at for at, row in enumerate(rows) if row in some}
    by_text = sorted(row_of, key=lambda row: [column.texts[row_of[row]] for column in columns if column])
    return [row for row in by_text for _ in range(left[row])]


def _paired(mine: Sequence[Row], others: Sequence[Row], distinct: Sequence[Row]) -> list[Pair]:
    """Pair off rows of the reference, of which ``distinct`` are all different ones, and actual rows."""

    @cache
    def counts(columns: tuple[int, ...]) -> Counter[Row]:
        return Counter(tuple(row[at] for at in columns) for row in distinct)

    def share(columns: tuple[int, ...], row: Row) -> float:
        """Return how far cells of a row tell, beyond chance, which row of the reference is meant; 0 to 1."""
        alike, rows = counts(columns)[tuple(row[at] for at in columns)], len(distinct)
        return 1.0 if alike == 1 else (1 / alike - 1 / rows) / (1 - 1 / rows)

    def shared(row: Row, other: Row) -> tuple[int, ...]:
        return tuple(at for at, (one, two) in enumerate(zip(row, other, strict=True)) if one == two)

    # First rows of which it is clear which row is meant; of these, and of the others, those that share more cells.
    width = len(mine[0])
    sizes = range(width - 1, 0, -1) if width <= _MOST_COMBINED else (width - 1, 1)
    subsets = [subset for size in sizes for subset in combinations(range(width), size)] or [(0,)]
    pairs, left, free = [], dict(enumerate(mine)), dict(enumerate(others))
    for least, subset in product((1.0, _NEGLIGIBLE), subsets):
        waiting = defaultdict[object, deque[int]](deque)
        cells = itemgetter(*subset)
        for at, other in free.items():
            waiting[cells(other)].append(at)
        for at, row in list(left.items()):
            if (alike := waiting.get(cells(row))) and (of_row := share(subset, row)) >= least:
                other = free.pop(alike.popleft())
                pairs.append(Pair(left.pop(at), other, shared(row, other), of_row))
    return pairs


def surplus_columns(reference: SparqlResults, actual: SparqlResults, columns: Mapping[str, str | None]) -> list[str]:
    """Return the actual columns that stand for no required one and that nobody asked for.

    A column was asked for that has the name of a column of the reference, or of which at least half the different
    values are those of one, each of which asks for one column.
    """
    optional = [name for name in reference.variables if name not in columns]
    left = [name for name in actual.variables if name not in columns.values()]
    same = namesakes(optional, left)
    left = [name for name in left if name not in same.values()]
    for name in optional:
        if name not in same and name in reference.columns:
            mine = set(reference.columns[name].texts)
            texts = {other: set(actual.columns[other].texts) for other in left if other in actual.columns}
            shares = {other: len(mine & found) / len(found) for other, found in texts.items() if found}
            best = max(shares, key=shares.__getitem__, default=None)
            if best is not None and shares[best] >= 0.5:
                left.remove(best)
    return left


def _kinds(column: TermColumn) -> set[str]:
    """Return the kinds of values in a column, of the first different ones."""
    cells = {text: row for row, text in enumerate(column.texts[:_SAMPLED])}
    return {_kind_and_bits(column, row)[0] for row in cells.values()} - {""}


def _kind_and_bits(column: TermColumn, row: int) -> tuple[str, float]:
    """Return the kind of value of a cell, and how many bits a guess would have to hit."""
    text, kind = column.texts[row], column.kind(row)
    if kind in ("", "bnode") or text in ("true", "false"):
        return kind if kind in ("", "bnode") else "boolean", 1.0
    if (number := _NUMBER.fullmatch(text)) is not None:
        digits = number[1].replace(".", "").strip("0")
        return "number", log2(10) * max(1, len(digits))
    return "text", 5.0 * max(1, len(text))


def nearest_alignment(
    reference: SparqlResults,
    actual: SparqlResults,
    keys: Keys,
    rows_as: RowsAs,
    required: Sequence[str],
    *,
    by_name_only: bool,
) -> Alignment:
    """Return the rows of results that do not match under the columns that come nearest.

    The nearest columns are those under which the rows are worth most, of all ways to choose among columns with common
    values; if these are many, those that have most values in common. Then what is left is assigned by names, and by the
    kind of its values. The closeness, 0 to below 1, counts shared cells first, then the values in common.
    """
    counts = {name: Counter(keys.actual(name).keys) for name in actual.columns}
    weights: list[dict[str, float]] = []
    for name in required:
        count = Counter(keys.reference(name).keys)
        likely = [other for other in counts if not by_name_only or other == name]
        overlaps = {other: _overlap(count, counts[other]) for other in likely}
        weights.append({other: overlap for other, overlap in overlaps.items() if overlap})
    by_name = [
        {other: overlap + 2 * (bare_name(name) == bare_name(other)) for other, overlap in found.items()}
        for name, found in zip(required, weights, strict=True)
    ]

    def aligned(way: _Way) -> Alignment:
        return Alignment(reference, actual, keys, rows_as, dict(zip(required, way, strict=True)))

    def worth(way: _Way) -> tuple[float, float]:
        likeness = sum(found[name] for found, name in zip(by_name, way, strict=True) if name is not None)
        return round(tried[way].grade, 9), likeness

    cells = reference.row_count * len(required) + actual.row_count * len(actual.columns)
    ways = [_likely_way(list(actual.columns), by_name)]
    if prod(len(found) + 1 for found in weights) <= min(_MOST_TRIED, _MOST_CELLS_TRIED // cells):
        ways = _all_ways(weights)
    tried = {way: aligned(way) for way in ways}
    way = max(ways, key=worth) if len(ways) > 1 else ways[0]
    best, columns = tried[way], dict(zip(required, way, strict=True))
    absent = [name for name, found in columns.items() if found is None]
    columns |= namesakes(absent, [other for other in actual.columns if other not in columns.values()])
    for name in absent if not by_name_only else ():
        if columns[name] is None:
            free = (other for other in actual.columns if other not in columns.values())
            kinds = _kinds(reference.columns[name])
            columns[name] = next((other for other in free if kinds & _kinds(actual.columns[other])), None)
    if columns != best.columns:
        best = aligned(tuple(columns.values()))
    rows = 2 * sum(best.shared) / ((best.total + best.actual_total) * len(required))
    values = sum(found[name] for found, name in zip(weights, way, strict=True) if name is not None)
    best.closeness = 0.9 * rows + 0.09 * values / len(required)
    return best


def _overlap(count: Counter[int], other: Counter[int]) -> float:
    """Return the share of cells of equal values that two columns have in common."""
    common = count.keys() & other.keys()
    return 2 * sum(min(count[key], other[key]) for key in common) / (count.total() + other.total())


def _all_ways(weights: Sequence[Mapping[str, float]]) -> list[_Way]:
    """Return the ways to choose columns, but those that leave one free which may stand for a required one."""
    ways: list[_Way] = [()]
    for found in weights:
        ways = [(*way, name) for way in ways for name in (*found, None) if name is None or name not in way]
    return [way for way in ways if all(name or {*found} <= {*way} for name, found in zip(way, weights, strict=True))]


def _likely_way(names: Sequence[str], weights: Sequence[Mapping[str, float]]) -> _Way:
    """Assign columns by their names and by what they have in common."""
    most = max(1, _MOST_WEIGHTS // len(weights))
    likely = [sorted(found, key=found.__getitem__, reverse=True)[:most] for found in weights]
    scores = [{names.index(name): found[name] for name in some} for found, some in zip(weights, likely, strict=True)]
    return tuple(None if at is None else names[at] for at in best_assignment(scores))
