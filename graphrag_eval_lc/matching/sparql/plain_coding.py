"""Codes for results in which cells can be compared as texts and floats, so that no value has to be read."""

from collections import defaultdict
from collections.abc import Sequence

from graphrag_eval_lc.matching.sparql.coding import Coding
from graphrag_eval_lc.matching.sparql.numbers import NumberKind, Tolerances
from graphrag_eval_lc.matching.sparql.plain_rows import plain_columns
from graphrag_eval_lc.matching.sparql.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.sparql.rows import Rules


class PlainCoding(Coding):
    """Codes for columns that all have ``TermColumn.plain_by_value``, of numbers that have no tolerance."""

    def __init__(self) -> None:
        super().__init__(strict=False, tolerances=Tolerances())
        self._code_of: defaultdict[str | float, int] = defaultdict(self._next_code)

    def codes(self, column: TermColumn, rows: slice = slice(None)) -> list[int]:
        """Give the codes of a column, or of some rows of it."""
        return list(map(self._code_of.__getitem__, _cells(column)[rows]))

    def may_play(self, column: TermColumn, contents: Sequence[frozenset[int]], sample: int) -> bool:
        """Tell from a sample of rows whether a column can have the contents of one that is coded already."""
        codes = {self._code_of.get(cell) for cell in _cells(column)[:sample]}
        return any(codes <= content for content in contents)

    def settled(self, columns: Sequence[list[int]]) -> list[list[int]]:
        """Give the codes as they are."""
        return list(columns)


def _cells(column: TermColumn) -> list[str] | list[float]:
    return column.texts if column.plain_by_value is None else column.plain_by_value.cells


def coding_for(reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules) -> Coding:
    """Give the quickest coding that tells the cells of two results apart."""
    plain = None if rules.strict else plain_columns(reference, actual, required, by_value=True)
    if plain is not None:
        mine, others = (frozenset[NumberKind]().union(*(column.kinds for column in columns)) for columns in plain)
        if not rules.tolerances.loosest(mine, others):
            return PlainCoding()
    return Coding(rules.strict, rules.tolerances, counts_values=rules.rows_as == "set")
