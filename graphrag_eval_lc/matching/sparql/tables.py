"""Two results side by side as columns of codes, ready to be compared."""

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Final

from graphrag_eval_lc.matching.sparql.cells import BLANK_CODE
from graphrag_eval_lc.matching.sparql.coding import Coding
from graphrag_eval_lc.matching.sparql.column_numbers import ColumnNumbers
from graphrag_eval_lc.matching.sparql.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.sparql.rows import Column, RowsAs

_SAMPLE: Final = 64
"""Rows of a column that show at a glance whether it can play a required one."""


class Table:
    """Some columns of a result, in codes.

    Args:
        columns: The columns by name.
        codes: Their codes.
        coding: What the codes mean.
    """

    def __init__(self, columns: dict[str, TermColumn], codes: list[list[int]], coding: Coding) -> None:
        self.names = tuple(columns)
        self.term_columns = list(columns.values())
        self.columns: Sequence[Column] = codes
        self._codes = codes
        self._coding = coding
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
    def detailed_columns(self) -> list[Column]:
        """The columns in codes that tell blank nodes and inexact cells apart."""
        blank_nodes: dict[str, int] = {}
        return [
            self._coding.detailed(terms, codes, blank_nodes)
            for terms, codes in zip(self.term_columns, self._codes, strict=True)
        ]

    def inexact_numbers(self, at: int) -> ColumnNumbers | None:
        """Give the numbers of a column that have inexact codes; None where it has none, or texts that have such."""
        if at not in self._numbers:
            self._numbers[at] = self._coding.details.numbers_of(self.detailed_columns[at])
        return self._numbers[at]

    @cached_property
    def needs_details(self) -> bool:
        """Whether the codes alone do not settle which rows are equal."""
        inexact = self._coding.inexact
        return any(BLANK_CODE in content or not inexact.isdisjoint(content) for content in self.contents)

    def signatures(self, rows_as: RowsAs) -> list[Hashable]:
        """Give for each column what must be equal in a column that can play it."""
        if rows_as == "set":
            return list(self.contents)
        if rows_as == "list":
            return list(map(tuple, self.columns))
        return [frozenset(Counter(column).items()) for column in self.columns]


def coded_tables(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], coding: Coding, *, all_columns: bool
) -> tuple[Table, Table]:
    """Give the tables of the required and of the actual columns.

    Args:
        reference: The results with the required columns.
        actual: The other results.
        required: The names of the required columns.
        coding: Gives the codes; a new one.
        all_columns: Whether actual columns are there too that cannot play a required one.
    """
    mine = {name: reference.columns[name] for name in required}
    codes = [coding.codes(column) for column in mine.values()]
    others = actual.columns
    if not all_columns:
        contents = list(map(frozenset, codes))
        others = {name: column for name, column in others.items() if coding.may_play(column, contents, _SAMPLE)}
    other_codes = [coding.codes(column) for column in others.values()]
    settled = coding.settled([*codes, *other_codes])
    return Table(mine, settled[: len(mine)], coding), Table(others, settled[len(mine) :], coding)
