"""Comparing results of plain cells whose columns differ in content: most results, and quickly."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from graphrag_eval_lc.matching.sparql.numbers import NumberKind, Tolerances
from graphrag_eval_lc.matching.sparql.plain_cells import PlainCells
from graphrag_eval_lc.matching.sparql.rows import RowsAs


@dataclass(frozen=True, slots=True)
class PlainVerdict:
    """Whether two results match, and by which columns.

    Attributes:
        players: For each required column the place of the actual one that plays it; None where they do not match.
    """

    players: list[int] | None


def plain_verdict(
    required: Sequence[PlainCells], actual: Sequence[PlainCells], rows_as: RowsAs, tolerances: Tolerances
) -> PlainVerdict | None:
    """Compare rows, where the contents of the columns leave no choice which actual column plays which required one.

    Args:
        required: The cells of the required columns of the reference.
        actual: The cells of all actual columns.
        rows_as: How rows are compared.
        tolerances: Those of numbers.

    Returns:
        The verdict; None where several actual columns have the contents of a required one, or where rows that differ
        may be equal within a tolerance.
    """
    found = frozenset[NumberKind]().union(*(column.kinds for column in actual))
    is_tolerant = [bool(tolerances.loosest(column.kinds, found)) for column in required]
    contents = [_content(column, rows_as) for column in actual]
    players: list[int] = []
    for at, column in enumerate(required):
        wanted = _content(column, rows_as)
        alike = [player for player, content in enumerate(contents) if content == wanted]
        if not alike:
            return None if is_tolerant[at] else PlainVerdict(None)
        if len(alike) > 1 or alike[0] in players:
            return None
        players.append(alike[0])
    if rows_as == "list":
        return PlainVerdict(players)  # equal columns in order are equal rows in order
    mine = zip(*(column.cells for column in required), strict=True)
    others = zip(*(actual[at].cells for at in players), strict=True)
    if _gathered(mine, rows_as) == _gathered(others, rows_as):
        return PlainVerdict(players)
    return None if any(is_tolerant) else PlainVerdict(None)


def _content(column: PlainCells, rows_as: RowsAs) -> object:
    return column.cells if rows_as == "list" else _gathered(column.cells, rows_as)


def _gathered(items: Iterable[Hashable], rows_as: RowsAs) -> object:
    return set(items) if rows_as == "set" else Counter(items)
