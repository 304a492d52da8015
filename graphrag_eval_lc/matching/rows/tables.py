"""Tables of codes: the columns of two results, and their rows, as they are compared."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from graphrag_eval_lc.matching.rows.coded_rows import (
    BLANK_CODE,
    UNBOUND_CODE,
    Column,
    ColumnNumbers,
    Row,
    RowsAs,
    rows_of,
)
from graphrag_eval_lc.matching.rows.encoding import Encoding, PartCodes
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn

DetailedParts: TypeAlias = dict[str, tuple[int, ...]]
"""The same in codes that tell blank nodes and inexact cells apart."""


_SAMPLE: Final = 64
"""So many rows of a column show quickly whether it may stand for a required one."""


class Table:
    """Some columns of a result, in codes."""

    def __init__(self, columns: dict[str, TermColumn], codes: list[PartCodes], encoding: Encoding) -> None:
        self.names = tuple(columns)
        self.term_columns = list(columns.values())
        self.columns: Sequence[Column] = list(map(encoding.with_triples, codes))
        self._codes = codes
        self._encoding = encoding
        self._numbers: dict[int, ColumnNumbers | None] = {}

    @property
    def row_count(self) -> int:
        """Number of rows; 0 where there is no column."""
        return len(self.columns[0]) if self.columns else 0

    @cached_property
    def contents(self) -> list[frozenset[int]]:
        """The distinct codes of each column."""
        return list(map(frozenset, self.columns))

    @cached_property
    def _contents_of_parts(self) -> list[frozenset[int]]:
        """The distinct codes of each column and of the parts of triples."""
        parts = (codes for each in self._codes for path, codes in each.items() if path)
        return [*self.contents, *map(frozenset, parts)]

    @cached_property
    def detailed_columns(self) -> list[DetailedParts]:
        """The columns and their parts in codes that tell blank nodes and inexact cells apart."""
        blank_nodes: dict[str, int] = {}
        return [
            {
                path: tuple(self._encoding.detailed(cells, codes[path], blank_nodes))
                for path, cells in terms.with_parts.items()
            }
            for terms, codes in zip(self.term_columns, self._codes, strict=True)
        ]

    def inexact_numbers(self, at: int) -> ColumnNumbers | None:
        """Return the numbers of a column that have inexact codes; None where it has none, or other such cells too."""
        if at not in self._numbers:
            detailed = self.detailed_columns[at]
            has_triples = len(detailed) > 1
            self._numbers[at] = None if has_triples else self._encoding.details.numbers_of(detailed[""])
        return self._numbers[at]

    @cached_property
    def needs_details(self) -> bool:
        """Whether the codes alone do not settle which rows are equal."""
        inexact = self._encoding.inexact
        return self.has_blank_nodes or any(not inexact.isdisjoint(content) for content in self._contents_of_parts)

    @cached_property
    def has_blank_nodes(self) -> bool:
        """Whether a cell is a blank node, or a triple with one."""
        return any(BLANK_CODE in content for content in self._contents_of_parts)

    def signatures(self, rows_as: RowsAs) -> list[Hashable]:
        """Return for each column what a column that stands for it must have in common with it."""
        if rows_as == "set":
            return list(self.contents)
        if rows_as == "list":
            return list(map(tuple, self.columns))
        return [frozenset(Counter(column).items()) for column in self.columns]


def detailed_rows(reference: Table, actual: Table, mapping: Sequence[int]) -> tuple[list[Row], list[Row]]:
    """Return the rows of both sides in detailed codes, where the mapping gives the actual column for each required one.

    A triple term makes its parts cells of the row.
    """
    pairs = [
        pair
        for at, found in enumerate(mapping)
        for pair in aligned_parts(reference.detailed_columns[at], actual.detailed_columns[found])
    ]
    return list(rows_of([mine for mine, _ in pairs])), list(rows_of([other for _, other in pairs]))


def aligned_parts(one: DetailedParts, other: DetailedParts) -> Iterator[tuple[Column, Column]]:
    """Yield two columns, then each part beside its like; a part that one side never has is unbound there."""
    for path in dict.fromkeys((*one, *other)):
        mine, others = (parts[path] if path in parts else (UNBOUND_CODE,) * len(parts[""]) for parts in (one, other))
        yield mine, others


def encoded_tables(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], encoding: Encoding, *, all_columns: bool
) -> tuple[Table, Table]:
    """Return the tables of the required and of the actual columns, in a new encoding.

    Actual columns that cannot stand for a required one are left out, unless all columns are wanted.
    """
    mine = {name: reference.columns[name] for name in required}
    codes = [_part_codes(column, encoding) for column in mine.values()]
    others = actual.columns
    if not all_columns:
        contents = [frozenset(parts[""]) for parts in codes]
        others = {name: column for name, column in others.items() if encoding.can_stand_for(column, contents, _SAMPLE)}
    codes += [_part_codes(column, encoding) for column in others.values()]
    settled = iter(encoding.settled([column for parts in codes for column in parts.values()]))
    codes = [{path: next(settled) for path in parts} for parts in codes]
    return Table(mine, codes[: len(mine)], encoding), Table(others, codes[len(mine) :], encoding)


def _part_codes(column: TermColumn, encoding: Encoding) -> PartCodes:
    return {path: encoding.codes(cells) for path, cells in column.with_parts.items()}
