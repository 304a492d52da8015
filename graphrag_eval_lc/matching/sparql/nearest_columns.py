"""The actual columns that come nearest to the required ones, where none fit."""

from collections import Counter
from itertools import islice
from typing import Final

from graphrag_eval_lc.matching.sparql.near_numbers import share_of_near_numbers
from graphrag_eval_lc.matching.sparql.rows import rows_of
from graphrag_eval_lc.matching.sparql.tables import Table

_SAMPLE: Final = 1_000
"""So many distinct cells of a column are looked up in another one."""

_PROBED_CELLS: Final = 2_000_000
"""In larger tables columns with the same contents are told apart by their names alone."""


def overlaps_of(reference: Table, actual: Table) -> list[list[float]]:
    """Give the share of contents that each required and each actual column have in common, from a sample."""
    samples = [_sample(content) for content in reference.contents]
    actual_samples = [_sample(content) for content in actual.contents]
    return [
        [
            (_share(sample, other) + _share(other_sample, content)) / 2
            for other, other_sample in zip(actual.contents, actual_samples, strict=True)
        ]
        for content, sample in zip(reference.contents, samples, strict=True)
    ]


def _sample(content: frozenset[int]) -> frozenset[int]:
    return content if len(content) <= _SAMPLE else frozenset(islice(content, _SAMPLE))


def _share(sample: frozenset[int], content: frozenset[int]) -> float:
    return len(sample & content) / len(sample)


def nearest_players(reference: Table, actual: Table, overlaps: list[list[float]]) -> dict[int, int]:
    """Choose an actual column for each required one, the surest first.

    Columns with the same contents are told apart by the rows that they make with the columns chosen before, as far
    as that is cheap, then by their names. Where nothing else is left a column of nearly the same numbers is taken,
    then a namesake without a common value.
    """
    players: dict[int, int] = {}
    cells = len(overlaps) * len(actual.names) * (reference.row_count + actual.row_count)
    for at in sorted(
        range(len(overlaps)), key=lambda at: (-max(overlaps[at], default=0), -len(reference.contents[at]))
    ):
        free = [player for player in range(len(actual.names)) if player not in players.values()]
        best = max((overlaps[at][player] for player in free), default=0.0)
        if best > 0:
            ties = [player for player in free if overlaps[at][player] == best]
            common = Counter(
                {player: _common_rows(reference, actual, {**players, at: player}) for player in ties}
                if len(ties) > 1 and cells <= _PROBED_CELLS
                else {}
            )
            name = reference.names[at]
            players[at] = max(ties, key=lambda player: (common[player], actual.names[player] == name))
    _add_columns_of_near_numbers(reference, actual, players)
    for at, name in enumerate(reference.names):
        if at not in players and name in actual.names and actual.names.index(name) not in players.values():
            players[at] = actual.names.index(name)
    return players


def _add_columns_of_near_numbers(reference: Table, actual: Table, players: dict[int, int]) -> None:
    for at, name in enumerate(reference.names):
        if at in players:
            continue
        shares = {
            player: share_of_near_numbers(reference.term_columns[at], actual.term_columns[player])
            for player in range(len(actual.names))
            if player not in players.values()
        }
        best = max(shares, key=lambda player: (shares[player], actual.names[player] == name), default=None)
        if best is not None and shares[best]:
            players[at] = best


def _common_rows(reference: Table, actual: Table, players: dict[int, int]) -> int:
    mine = Counter(rows_of([reference.columns[at] for at in players]))
    return (mine & Counter(rows_of([actual.columns[player] for player in players.values()]))).total()
