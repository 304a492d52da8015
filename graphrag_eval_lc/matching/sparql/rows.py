"""Rows of codes, and how the rows of two results are compared."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.sparql.numbers import Tolerances

RowsAs: TypeAlias = Literal["set", "bag", "list"]
"""How the rows of a result count: without duplicates, with them, or with their order too."""

Column: TypeAlias = Sequence[int]
Row: TypeAlias = tuple[int, ...]


class Rules(NamedTuple):
    """How two results are compared.

    Attributes:
        rows_as: How rows count.
        strict: Whether RDF terms are compared, not values alone.
        tolerances: Those of numbers.
    """

    rows_as: RowsAs
    strict: bool
    tolerances: Tolerances


def rows_of(columns: Sequence[Column]) -> Iterable[Row]:
    """Give the rows of one or more columns."""
    return zip(*columns, strict=True)
