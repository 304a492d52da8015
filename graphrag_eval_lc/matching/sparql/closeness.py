"""How near two results come, by their terms as they are written: a cheap way to rank the steps that score 0."""

from collections.abc import Sequence, Set
from typing import Final

from graphrag_eval_lc.matching.sparql.near_numbers import share_of_near_numbers
from graphrag_eval_lc.matching.sparql.results import SparqlResults

_SAMPLE: Final = 1_000
"""So many rows are looked at."""


def closeness_of(reference: SparqlResults, actual: SparqlResults, required: Sequence[str]) -> float:
    """Give how much two results have in common, from a sample of their rows and by their texts.

    Returns:
        0 to below 1: mostly the share of common rows (F1) under the columns that have most in common, then the
        share of common cells, or of nearly the same numbers where a column has none in common.
    """
    if not required or not reference.row_count or not actual.row_count:
        return 0.0
    contents = {name: frozenset(column.texts[:_SAMPLE]) for name, column in actual.columns.items()}
    players: list[str] = []
    overlap = 0.0
    for name in required:
        wanted = frozenset(reference.columns[name].texts[:_SAMPLE])
        shares = {other: _share(wanted, found) for other, found in contents.items() if other not in players}
        if not any(shares.values()):  # at most half of what the same numbers would have in common
            column = reference.columns[name]
            shares = {other: share_of_near_numbers(column, actual.columns[other]) / 2 for other in shares}
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
