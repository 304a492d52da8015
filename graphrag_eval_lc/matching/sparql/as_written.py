"""Comparing results by their terms as they are written, before any value is read: quick, and often enough."""

from collections import Counter
from collections.abc import Sequence, Set
from typing import Final

from graphrag_eval_lc.matching.sparql.numbers import XSD_BOOLEAN, is_numeric_datatype
from graphrag_eval_lc.matching.sparql.results import Shape, SparqlResults, TermColumn
from graphrag_eval_lc.matching.sparql.rows import RowsAs

_SAMPLE: Final = 1_000
"""So many rows are looked at to see how close two results are."""

Cells = Sequence[str] | Sequence[tuple[str, Shape]]


def identical_columns(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rows_as: RowsAs
) -> dict[str, str] | None:
    """Find actual columns that hold the required rows to the letter.

    Terms that are written alike are equal in every mode, so what is found here is a match. What is not found may
    still be one, under other lexical forms, other blank node labels, or columns that look alike.

    Returns:
        For each required column the actual one; None where the terms differ or several columns look alike.
    """
    players: dict[str, str] = {}
    others = {name: _fingerprint(column) for name, column in actual.columns.items()}
    for name in required:
        wanted = _fingerprint(reference.columns[name])
        alike = [other for other, found in others.items() if found == wanted]
        if len(alike) != 1 or alike[0] in players.values():
            return None
        players[name] = alike[0]
    mine = zip(*(_cells(reference.columns[name]) for name in required), strict=True)
    theirs = zip(*(_cells(actual.columns[player]) for player in players.values()), strict=True)
    if rows_as == "set":
        return players if set(mine) == set(theirs) else None
    if reference.row_count != actual.row_count:
        return None
    are_equal = list(mine) == list(theirs) if rows_as == "list" else Counter(mine) == Counter(theirs)
    return players if are_equal else None


def lacks_texts(reference: SparqlResults, actual: SparqlResults, required: Sequence[str]) -> bool:
    """Tell whether some required column of IRIs or texts has contents that no actual column has.

    Such cells equal only what has the same text, in every mode, so then there is no match. Columns of numbers,
    booleans, blank nodes or unbound cells tell nothing here.
    """
    contents = [frozenset(column.texts) for column in actual.columns.values()]
    return any(
        _is_of_texts(column) and frozenset(column.texts) not in contents
        for column in (reference.columns[name] for name in required)
    )


def _is_of_texts(column: TermColumn) -> bool:
    shapes = column.shapes if isinstance(column.shapes, list) else [column.shapes]
    return all(
        kind == "uri" or (kind == "literal" and datatype != XSD_BOOLEAN and not is_numeric_datatype(datatype))
        for kind, datatype, _ in shapes
    )


def _fingerprint(column: TermColumn) -> tuple[Shape | frozenset[Shape], frozenset[str]]:
    shapes = frozenset(column.shapes) if isinstance(column.shapes, list) else column.shapes
    return shapes, frozenset(column.texts)


def _cells(column: TermColumn) -> Cells:
    """Give the cells of a column so that equal ones are written alike; its shape is equal where it has just one."""
    if isinstance(column.shapes, list):
        return list(zip(column.texts, column.shapes, strict=True))
    return column.texts


def closeness_of(reference: SparqlResults, actual: SparqlResults, required: Sequence[str]) -> float:
    """Give how much two results have in common, from a sample of their rows and by their texts alone.

    Returns:
        0 to below 1: mostly the share of common rows (F1) under the columns that have most in common, then the
        share of common cells.
    """
    if not required or not reference.row_count or not actual.row_count:
        return 0.0
    contents = {name: frozenset(column.texts[:_SAMPLE]) for name, column in actual.columns.items()}
    players: list[str] = []
    overlap = 0.0
    for name in required:
        wanted = frozenset(reference.columns[name].texts[:_SAMPLE])
        shares = {other: _share(wanted, found) for other, found in contents.items() if other not in players}
        best = max(shares, key=lambda other: (shares[other], other == name), default=None)
        if best is None:
            break
        players.append(best)
        overlap += shares[best]
    mine = set(zip(*(reference.columns[name].texts[:_SAMPLE] for name in required[: len(players)]), strict=True))
    theirs = set(zip(*(actual.columns[player].texts[:_SAMPLE] for player in players), strict=True))
    return 0.9 * _share(mine, theirs) + 0.09 * overlap / len(required)


def _share(mine: Set[object], theirs: Set[object]) -> float:
    """Give what two sets share as F1, the Dice coefficient."""
    total = len(mine) + len(theirs)
    return 2 * len(mine & theirs) / total if total else 0.0
