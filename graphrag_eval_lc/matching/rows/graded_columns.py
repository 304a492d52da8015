"""The columns of two results in codes for grading, and which actual ones may stand for the required ones.

Unlike in the comparison, equality is transitive here: a number that equals several of the reference within the
tolerance counts as the nearest of them, and blank nodes are all alike.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import prod
from typing import Any, Final, TypeAlias

from graphrag_eval_lc.matching.assignment import best_assignment
from graphrag_eval_lc.matching.rows.coded_rows import (
    BLANK_CODE,
    UNBOUND_CODE,
    Column,
    DetailedCodes,
    Row,
    Rules,
    rows_of,
)
from graphrag_eval_lc.matching.rows.encoding import encoding_for
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.shared_cells import NOT_PLAYED
from graphrag_eval_lc.matching.rows.tables import Table, encoded_tables
from graphrag_eval_lc.matching.rows.terms import Shape

PlayedBy: TypeAlias = tuple[int | None, ...]
"""For each required column the position of the actual one that plays it; None where none does."""

_MOST_TRIED: Final = 200
_MOST_LIKELY_TRIED: Final = 20
_MOST_CELLS_TRIED: Final = 1_000_000
"""So many cells are looked at while ways to choose the columns are tried, each of which looks at all rows."""

_MOST_CELLS_COMPARED: Final = 5_000_000
_FEWEST_COMPARED: Final = 50
_MOST_AGREEMENTS: Final = 500_000
"""So many cells are compared to see which columns agree."""

_MOST_KEY_COLUMNS: Final = 3
_LIKELY: Final = 0.5
"""Where not all ways can be tried, columns with less of the most common values are not."""


class GradedColumns:
    """The required columns of a reference and all actual columns in codes, both sides with at least one row.

    Args:
        reference: The expected results.
        actual: The actual ones.
        required: The names of the required columns.
        rules: How cells are compared.

    Attributes:
        names: The names of the required columns.
        actual_names: Those of the actual columns.
        is_doubtful: Whether rows that seem equal may not be: they have blank nodes, or cells near several others.
    """

    def __init__(self, reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules) -> None:
        encoding = encoding_for(reference, actual, required, rules)
        mine, others = encoded_tables(reference, actual, required, encoding, all_columns=True)
        self.names, self.actual_names = mine.names, others.names
        self.is_doubtful = mine.needs_details
        self._terms = mine.term_columns
        self._actual_row_count = actual.row_count
        columns, actual_columns = _told_apart(mine, others, encoding.inexact, encoding.details)
        ranks = _ranks(
            [*zip(columns, mine.term_columns, strict=True), *zip(actual_columns, others.term_columns, strict=True)]
        )
        self.columns, self.actual_columns = (
            [list(map(ranks.__getitem__, column)) for column in each] for each in (columns, actual_columns)
        )
        self.rows: list[Row] = list(rows_of(self.columns))

    def actual_rows(self, mapping: PlayedBy) -> list[Row]:
        """Return the actual rows over the columns that play the required ones."""
        absent = [NOT_PLAYED] * self._actual_row_count
        return list(rows_of([absent if at is None else self.actual_columns[at] for at in mapping]))

    def terms_of(self, at: int, codes: Mapping[int, int]) -> dict[tuple[str, Shape], int]:
        """Return the texts and shapes of some codes of a required column, with the number that each code has."""
        terms = self._terms[at]
        place_of = {code: row for row, code in enumerate(self.columns[at]) if code in codes}
        return {
            (terms.texts[row], terms.shapes[row] if isinstance(terms.shapes, list) else terms.shapes): codes[code]
            for code, row in place_of.items()
        }

    def mappings(self) -> Iterator[PlayedBy]:
        """Yield ways to choose actual columns for the required ones: all that share values where these are few.

        Else those that agree best in rows of the same key, and that have most values in common, with and without
        regard to the names; and ways to change these. In large tables only the first.
        """
        shares = self._common_values()
        cells = len(self.names) * (len(self.rows) + self._actual_row_count)
        most = max(1, min(_MOST_TRIED, _MOST_CELLS_TRIED // cells))
        if prod(len(found) + 1 for found in shares) <= most:
            yield from _all_mappings(shares)
            return
        yield from islice(dict.fromkeys(self._likely_mappings(shares)), min(most, _MOST_LIKELY_TRIED))

    def _common_values(self) -> list[dict[int, float]]:
        """Return for each required column the share of values in common with each actual one that has some."""
        contents, actual_contents = (list(map(set, each)) for each in (self.columns, self.actual_columns))
        cells = sum(map(len, actual_contents)) * len(contents) + sum(map(len, contents)) * len(actual_contents)
        if cells > _MOST_CELLS_COMPARED:
            size = max(_FEWEST_COMPARED, _MOST_CELLS_COMPARED // (2 * len(contents) * len(actual_contents)))
            # By their texts some of the values are nearly the same of both sides, in whatever order the rows are.
            contents, actual_contents = (
                [set(sorted(content)[:size]) for content in each] for each in (contents, actual_contents)
            )
        return [
            {
                at: 2 * len(common) / (len(content) + len(other))
                for at, other in enumerate(actual_contents)
                if (common := content & other)
            }
            for content in contents
        ]

    def _likely_mappings(self, shares: list[dict[int, float]]) -> Iterator[PlayedBy]:
        same = {
            (at, found): 1.0
            for at, name in enumerate(self.names)
            for found, other in enumerate(self.actual_names)
            if are_same_name(name, other)
        }
        by_values = tuple(best_assignment(shares))
        by_name = tuple(
            best_assignment(
                [
                    {found: share + 2.0 * same.get((at, found), 0.0) for found, share in of_column.items()}
                    for at, of_column in enumerate(shares)
                ]
            )
        )
        by_rows = [found for mapping in (by_name, by_values) if (found := self._by_rows(mapping, shares)) is not None]
        likely = (*by_rows, by_name, by_values)
        yield from likely
        for mapping in likely:
            yield from _changed(mapping, shares)

    def _by_rows(self, mapping: PlayedBy, shares: Sequence[Mapping[int, float]]) -> PlayedBy | None:
        """Return the mapping that agrees best in rows that have the same key; None where no column tells such rows.

        A key is a value that one row of each side has, in the column with most of them.
        """
        played = [(at, found) for at, found in enumerate(mapping) if found is not None]
        keys = [
            (len(common), at, found, common)
            for at, found in sorted(played, key=lambda pair: -len(set(self.columns[pair[0]])))[:_MOST_KEY_COLUMNS]
            if (common := _once(self.columns[at]) & _once(self.actual_columns[found]))
        ]
        if not keys:
            return None
        count, key, key_column, common = max(keys)
        pairs = sum(map(len, shares))
        step = max(1, count * pairs // _MOST_AGREEMENTS)
        sample = sorted(common)[::step]
        row_of, actual_row_of = (
            {code: row for row, code in enumerate(column)}
            for column in (self.columns[key], self.actual_columns[key_column])
        )
        rows, actual_rows = ([rows_of[code] for code in sample] for rows_of in (row_of, actual_row_of))
        agreements: list[dict[int, float]] = []
        for at, of_column in enumerate(shares):
            cells = [self.columns[at][row] for row in rows]
            agreements.append({})
            for found, share in of_column.items():
                column = self.actual_columns[found]
                equal = sum(cell == column[row] for cell, row in zip(cells, actual_rows, strict=True))
                agreements[at][found] = equal / len(sample) + 0.01 * share
        return tuple(best_assignment(agreements))


def _once(column: Column) -> set[int]:
    """Return the codes that a column has once."""
    return {code for code, times in Counter(column).items() if times == 1}


def _all_mappings(shares: Sequence[Mapping[int, float]]) -> Iterator[PlayedBy]:
    if not shares:
        yield ()
        return
    for others in _all_mappings(shares[1:]):
        yield (None, *others)
        for found in shares[0]:
            if found not in others:
                yield (found, *others)


def _changed(mapping: PlayedBy, shares: Sequence[Mapping[int, float]]) -> Iterator[PlayedBy]:
    """Yield mappings with one other column, that with the most in common first; two change places where need be."""
    changes = [
        (share, -at, -found)
        for at, of_column in enumerate(shares)
        for found, share in of_column.items()
        if mapping[at] != found and share >= _LIKELY * max(of_column.values())
    ]
    for _, at, found in sorted(changes, reverse=True):
        changed = list(mapping)
        if -found in mapping:
            other = mapping.index(-found)
            changed[other] = mapping[-at] if mapping[-at] in shares[other] else None
        changed[-at] = -found
        yield tuple(changed)


def are_same_name(one: str, other: str) -> bool:
    """Return whether two columns have the same name, whatever its case and without the sign of a variable.

    Example:
        >>> are_same_name("?Count", "count")
        True
    """
    return one.lstrip("?$").casefold() == other.lstrip("?$").casefold()


def _ranks(columns: Sequence[tuple[Sequence[int], TermColumn]]) -> dict[int, int]:
    """Return a number for each code by the order of their texts, so that it does not depend on that of the rows."""
    cells = {cell for codes, terms in columns for cell in zip(codes, terms.texts, strict=True)}
    ranks = {UNBOUND_CODE: UNBOUND_CODE, BLANK_CODE: BLANK_CODE}
    for code, _ in sorted(cells, key=lambda cell: cell[1]):
        ranks.setdefault(code, len(ranks))
    return ranks


def _told_apart(
    mine: Table, others: Table, inexact: set[int], details: DetailedCodes
) -> tuple[list[Column], list[Column]]:
    """Return the columns of both sides with codes that tell the cells of a chain apart."""
    if not any(not inexact.isdisjoint(content) for content in mine.contents):
        return list(mine.columns), list(others.columns)
    nearest = _NearestCells(details)
    columns: list[Column] = []
    for at, codes in enumerate(mine.columns):
        detailed = mine.detailed_columns[at][""]
        columns.append(
            [
                nearest.add(detail, code) if code in inexact else code
                for code, detail in zip(codes, detailed, strict=True)
            ]
        )
    actual_columns: list[Column] = []
    for at, codes in enumerate(others.columns):
        detailed = others.detailed_columns[at][""]
        actual_columns.append(
            [
                nearest.of(detail, code) if code in inexact else code
                for code, detail in zip(codes, detailed, strict=True)
            ]
        )
    return columns, actual_columns


class _NearestCells:
    """The inexact cells of the reference, and which of them is the nearest to one of the actual results."""

    _COMPARED = 20

    def __init__(self, codes: DetailedCodes) -> None:
        self._codes = codes
        self._details: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._sorted: dict[int, tuple[list[Any], list[int], list[int]]] = {}
        self._known: dict[int, int] = {}

    def add(self, detail: int, code: int) -> int:
        """Take up a cell of the reference; return its code, the same for cells of the same value."""
        exact = self._codes.exact_row((detail,))[0]
        self._details[code].setdefault(detail, exact)
        return exact

    def of(self, detail: int, code: int) -> int:
        """Return the code of the cell of the reference that an actual cell equals, else a code of its own."""
        if detail not in self._known:
            likely = self._likely(detail, code) if code in self._details else []
            equal = (each for each in likely if self._codes.are_equal(each, detail))
            found = next(equal, None)
            self._known[detail] = detail if found is None else self._details[code][found]
        return self._known[detail]

    def _likely(self, detail: int, code: int) -> list[int]:
        """Return some cells of the reference, the nearest first."""
        if detail in self._details[code]:
            return [detail]
        if code not in self._sorted:
            numbers = [(self._codes.finite_number(each), each) for each in self._details[code]]
            finite = sorted((number, each) for number, each in numbers if number is not None)
            rest = sorted(each for number, each in numbers if number is None)
            self._sorted[code] = [number for number, _ in finite], [each for _, each in finite], rest
        numbers_of, finite_cells, rest = self._sorted[code]
        number = self._codes.finite_number(detail)
        if number is None:
            return (rest + finite_cells)[: self._COMPARED]
        at = bisect_left(numbers_of, number)
        near = range(max(0, at - self._COMPARED // 2), min(len(numbers_of), at + self._COMPARED // 2))
        nearest = sorted(near, key=lambda place: (abs(numbers_of[place] - number), place))
        return [finite_cells[place] for place in nearest] + rest[: self._COMPARED]
