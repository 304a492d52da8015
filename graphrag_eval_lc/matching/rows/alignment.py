"""One alignment of the rows of two results under chosen columns: which rows are missing, which are too many, and why.

Precision, recall, the reason, the near misses and the grade are all read from it. The grade is F1 over cells, times the
order's share:

    grade = 2 M ÷ (R x q + A x (p + s)) x order

- M: the cells that both sides share: those of equal rows, and of the rows left those that two of them share, as far
  as they show which row of the reference is meant: shared by m of R different rows they count (1/m - 1/R) ÷ (1 - 1/R).
- R x q: R rows of the reference, q required columns.
- A x (p + s): A actual rows, p columns that match required ones, s columns that were not required.
- order: if order counts, the share of the pairs of rows that fit which are in the order of the reference; else 1.

For example two rows (Oslo, 1), (Bergen, 2) are required, and there are (Oslo, 1, x), (Bergen, 3, x), (Paris, 9, x): M
is 2 + 1, as Bergen shows which row is meant; recall is 3 ÷ 4, precision 3 ÷ 9, and the grade 6 ÷ 13 = 0.46.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product
from math import prod
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.assignment import best_assignment, order_share
from graphrag_eval_lc.matching.rows.columns import Row, bare_name, namesakes
from graphrag_eval_lc.matching.rows.numbers_and_times import number_from
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.terms import Keys, RowsAs

_Way: TypeAlias = tuple[str | None, ...]
"""For each required column the actual one that is chosen, if any."""

_MOST_COMBINED: Final = 4
"""Of more columns rows that share all but one are paired, then those that share one."""

_MOST_WAYS: Final = 200
_MOST_CELLS_TRIED: Final = 200_000
_MOST_WEIGHTS: Final = 5_000
"""If more pairs of columns have values in common, only the best few of each column are looked at."""

_SAME_NAME: Final = 2.0
"""A name weighs more than all the values of a column, which weigh 1."""

_NEGLIGIBLE: Final = 1e-6
_SAMPLED: Final = 100


class Pair(NamedTuple):
    """Rows that share the cells of some columns, and how far these show which row is meant: above 0 to 1."""

    reference: Row
    actual: Row
    columns: tuple[int, ...]
    share: float


@dataclass(eq=False)
class Alignment:
    """Which rows of two results belong together under some columns, and what that is worth.

    Attributes:
        columns: For each required column, at least one, the actual one that matches it, or None.
        found: The columns without those that no actual one matches.
        terms, actual_terms: The columns of both sides.
        rows, actual_rows: The keys of their rows.
        total, actual_total: How many of these there are, as ``rows_as`` counts them.
        equal: How often each row is on both sides.
        unequal, actual_unequal: How often each row is left on its side alone.
    """

    reference: SparqlResults
    actual: SparqlResults
    keys: Keys
    rows_as: RowsAs
    columns: Mapping[str, str | None]

    def __post_init__(self) -> None:
        actual, keys, names = self.actual, self.keys, self.columns.values()
        self.found = {name: found for name, found in self.columns.items() if found is not None}
        self.terms = [self.reference.columns[name] for name in self.columns]
        self.actual_terms = [None if name is None else actual.columns[name] for name in names]
        absent = [-1] * actual.row_count
        self.rows: list[Row] = list(zip(*(keys.reference[name].keys for name in self.columns), strict=True))
        found = (absent if name is None else keys.actual(name).keys for name in names)
        self.actual_rows: list[Row] = list(zip(*found, strict=True))
        sides = self.rows, self.actual_rows
        counts, actual_counts = (dict.fromkeys(rows, 1) if self.rows_as == "set" else Counter(rows) for rows in sides)
        self.total, self.actual_total = sum(counts.values()), sum(actual_counts.values())
        self.equal = {row: min(times, actual_counts[row]) for row, times in counts.items() if row in actual_counts}
        self._distinct = counts.keys()
        self.unequal = _without(counts, self.equal)
        self.actual_unequal = _without(actual_counts, self.equal)

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
        """Whether all rows are on both sides, in the same order if it counts."""
        is_other_order = self.rows_as == "list" and self.rows != self.actual_rows
        return not self.unequal and not self.actual_unequal and not is_other_order

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pairs of missing and extra rows that share some of their cells."""
        columns = range(len(self.columns))
        common = [{row[at] for row in self.unequal} & {row[at] for row in self.actual_unequal} for at in columns]
        missing = _that_share(common, self.unequal, self.rows, self.terms)
        extra = _that_share(common, self.actual_unequal, self.actual_rows, self.actual_terms) if missing else []
        return _paired(missing, extra, list(self._distinct)) if missing else []

    @cached_property
    def shared(self) -> list[float]:
        """For each column how many of its cells are shared."""
        found = [float(sum(self.equal.values()))] * len(self.columns)
        for pair in self.pairs:
            for at in pair.columns:
                found[at] += pair.share
        return found

    @cached_property
    def order(self) -> float:
        """Of the pairs of rows that fit, the share that is in the order of the reference; 1 if no order counts.

        Rows fit if they are equal, or share cells that show which row is meant. Duplicates are paired in their order.
        """
        if self.rows_as != "list":
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
        """The number of shared cells, that of required cells, and that of actual cells."""
        required, actual = self.total * len(self.columns), self.actual_total * (len(self.found) + len(self.surplus))
        return sum(self.shared), required, actual

    @cached_property
    def grade(self) -> float:
        """What the rows are worth, 0 to 1."""
        shared, required, found = self.cells
        return min(1.0, 2 * shared / (required + found)) * self.order if shared else 0.0


def _without(counts: Mapping[Row, int], equal: Mapping[Row, int]) -> dict[Row, int]:
    """Return the rows that are not on both sides, or less often on the other one."""
    return {row: left for row, times in counts.items() if (left := times - equal.get(row, 0))}


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


def _paired(missing: Sequence[Row], extra: Sequence[Row], distinct: Sequence[Row]) -> list[Pair]:
    """Pair missing rows with extra ones; ``distinct`` are all different rows of the reference."""

    @cache
    def counts(columns: tuple[int, ...]) -> Counter[Row]:
        return Counter(tuple(row[at] for at in columns) for row in distinct)

    def share(columns: tuple[int, ...], row: Row) -> float:
        """Return how far cells of a row show, beyond chance, which row of the reference is meant; 0 to 1."""
        alike, rows = counts(columns)[tuple(row[at] for at in columns)], len(distinct)
        return 1.0 if alike == 1 else (1 / alike - 1 / rows) / (1 - 1 / rows)

    def shared(row: Row, other: Row) -> tuple[int, ...]:
        return tuple(at for at, (one, two) in enumerate(zip(row, other, strict=True)) if one == two)

    # Rows that show clearly which row is meant come first; of these, and of the rest, those that share more cells.
    width = len(missing[0])
    sizes = range(width - 1, 0, -1) if width <= _MOST_COMBINED else (width - 1, 1)
    subsets = [subset for size in sizes for subset in combinations(range(width), size)] or [(0,)]
    pairs, left, free = [], dict(enumerate(missing)), dict(enumerate(extra))
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
    """Return the actual columns that match no required one and were not required.

    A column of the reference that is not required excuses one: that of its name, or any other.
    """
    optional = [name for name in reference.variables if name not in columns]
    left = [name for name in actual.variables if name not in columns.values()]
    same = namesakes(optional, left)
    left = [name for name in left if name not in same.values()]
    return left[len(optional) - len(same) :]


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
    kind of its values.
    """
    overlaps = _overlaps(reference, actual, keys, required, by_name_only=by_name_only)
    weights = _weights(required, overlaps)

    def aligned(way: Sequence[str | None]) -> Alignment:
        return Alignment(reference, actual, keys, rows_as, dict(zip(required, way, strict=True)))

    def worth(best: Alignment) -> tuple[float, float]:
        chosen = zip(weights, best.columns.values(), strict=True)
        return round(best.grade, 9), sum(found[name] for found, name in chosen if name is not None)

    cells = reference.row_count * len(required) + actual.row_count * len(actual.columns)
    ways = [_likely_way(list(actual.columns), weights)]
    if prod(len(found) + 1 for found in overlaps) <= min(_MOST_WAYS, _MOST_CELLS_TRIED // cells):
        ways = _all_ways(overlaps)
    best = max(map(aligned, ways), key=worth) if len(ways) > 1 else aligned(ways[0])
    columns = dict(best.columns)
    absent = [name for name, found in columns.items() if found is None]
    columns |= namesakes(absent, [other for other in actual.columns if other not in columns.values()])
    for name in absent if not by_name_only else ():
        if columns[name] is None:
            free = (other for other in actual.columns if other not in columns.values())
            kinds = _kinds(reference.columns[name])
            columns[name] = next((other for other in free if kinds & _kinds(actual.columns[other])), None)
    return best if columns == best.columns else aligned(list(columns.values()))


def common_share(
    reference: SparqlResults,
    actual: SparqlResults,
    keys: Keys,
    rows_as: RowsAs,
    required: Sequence[str],
    *,
    by_name_only: bool,
) -> float:
    """Return how much results that do not match have in common under the likely columns; from 0 to below 1.

    It is the mean share of equal rows, and of cells of equal values in each required column, in whatever rows.
    """
    overlaps = _overlaps(reference, actual, keys, required, by_name_only=by_name_only)
    likely = _likely_way(list(actual.columns), _weights(required, overlaps))
    aligned = Alignment(reference, actual, keys, rows_as, dict(zip(required, likely, strict=True)))
    equal = (len(required) + 1) * sum(aligned.equal.values())
    for at in range(len(required)):
        left, actual_left = Counter[int](), Counter[int]()
        for cells, rows in ((left, aligned.unequal), (actual_left, aligned.actual_unequal)):
            for row, times in rows.items():
                cells[row[at]] += times
        equal += (left & actual_left).total()
    every = (len(required) + 1) * (aligned.total + aligned.actual_total)
    return 2 * equal / (every + 1)  # one more, for what is in another order or has other blank nodes


def _overlaps(
    reference: SparqlResults, actual: SparqlResults, keys: Keys, required: Sequence[str], *, by_name_only: bool
) -> list[dict[str, float]]:
    """Return for each required column the share of cells of equal values that actual columns have, if they have any."""
    counts = {name: Counter(keys.actual(name).keys) for name in actual.columns}
    # Columns without common values have other ranges of keys, as a rule.
    ranges = {name: (min(count), max(count)) for name, count in counts.items()}
    overlaps: list[dict[str, float]] = []
    for name in required:
        count, found = Counter(keys.reference[name].keys), {}
        least, most = min(count), max(count)
        for other, (other_least, other_most) in ranges.items():
            if least <= other_most and other_least <= most and (not by_name_only or other == name):
                common = count.keys() & counts[other].keys()
                cells = sum(map(min, map(count.__getitem__, common), map(counts[other].__getitem__, common)))
                if cells:
                    found[other] = 2 * cells / (reference.row_count + actual.row_count)
        overlaps.append(found)
    return overlaps


def _weights(required: Sequence[str], overlaps: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Return what speaks for each column: what it has in common with the required one, and its name."""
    return [
        {other: overlap + _SAME_NAME * (bare_name(name) == bare_name(other)) for other, overlap in found.items()}
        for name, found in zip(required, overlaps, strict=True)
    ]


def _all_ways(overlaps: Sequence[Mapping[str, float]]) -> list[_Way]:
    """Return the ways to choose columns, except those that leave out a column for which another one is free."""
    ways: list[_Way] = [()]
    for found in overlaps:
        ways = [(*way, name) for way in ways for name in (*found, None) if name is None or name not in way]
    return [way for way in ways if all(name or {*found} <= {*way} for name, found in zip(way, overlaps, strict=True))]


def _likely_way(names: Sequence[str], weights: Sequence[Mapping[str, float]]) -> _Way:
    """Assign columns by their names and by what they have in common."""
    most = max(1, _MOST_WEIGHTS // len(weights))
    likely = [sorted(found, key=found.__getitem__, reverse=True)[:most] for found in weights]
    scores = [{names.index(name): found[name] for name in some} for found, some in zip(weights, likely, strict=True)]
    return tuple(None if at is None else names[at] for at in best_assignment(scores))


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
