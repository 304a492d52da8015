"""Columns sorted by their contents: only columns of one class can play each other."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from graphrag_eval_lc.matching.sparql.rows import Column, Row, RowsAs
from graphrag_eval_lc.matching.sparql.tables import Table

ColumnMapping: TypeAlias = tuple[int, ...]
"""For each required column the position of the actual column that plays it."""


class ColumnClass(NamedTuple):
    """Columns with the same contents.

    Attributes:
        required: Positions of the required columns.
        players: Positions of the actual columns, namesakes of the required ones first.
    """

    required: list[int]
    players: list[int]


def column_classes(reference: Table, actual: Table, rows_as: RowsAs) -> list[ColumnClass] | None:
    """Sort the columns of two tables by their contents.

    Columns of which the codes are equal, but whose numbers do not lie within the tolerance of each other, are told
    apart: where numbers lie close together, a code stands for many of them.

    Returns:
        The classes that have a required column; None where one of them has too few actual columns.
    """
    players: defaultdict[Hashable, list[int]] = defaultdict(list)
    for at, signature in enumerate(actual.signatures(rows_as)):
        players[signature].append(at)
    required: defaultdict[Hashable, list[int]] = defaultdict(list)
    for at, signature in enumerate(reference.signatures(rows_as)):
        required[signature].append(at)
    classes = []
    for signature, columns in required.items():
        if len(columns) > len(players.get(signature, ())):
            return None
        for part in _told_apart(ColumnClass(columns, players[signature]), reference, actual, rows_as):
            if len(part.required) > len(part.players):
                return None
            names = {reference.names[column] for column in part.required}
            namesakes_first = sorted(part.players, key=lambda at: actual.names[at] not in names)
            classes.append(ColumnClass(part.required, namesakes_first))
    return classes


def _told_apart(columns: ColumnClass, reference: Table, actual: Table, rows_as: RowsAs) -> list[ColumnClass]:
    """Split a class into those of which the numbers are near each other."""
    if rows_as == "list" or len(columns.players) == 1 or not reference.needs_details:
        return [columns]
    parts: list[ColumnClass] = []
    for required in columns.required:
        mine = reference.inexact_numbers(required)
        players = {
            player
            for player in columns.players
            if not mine or not (others := actual.inexact_numbers(player)) or mine.may_equal(others, rows_as)
        }
        joined = [part for part in parts if not players.isdisjoint(part.players)]
        parts = [part for part in parts if part not in joined]
        together = ColumnClass([required], [])
        for part in joined:
            together.required.extend(part.required)
            players.update(part.players)
        together.players.extend(player for player in columns.players if player in players)
        parts.append(together)
    return parts


def mapping_by_name(classes: Iterable[ColumnClass], reference: Table, actual: Table) -> ColumnMapping:
    """Give each required column its namesake, or else the first free column of its class."""
    played: dict[int, int] = {}
    for required, players in classes:
        position = {actual.names[player]: player for player in players}
        namesakes = {at: position[reference.names[at]] for at in required if reference.names[at] in position}
        taken = set(namesakes.values())
        free = (player for player in players if player not in taken)
        played |= {at: namesakes[at] if at in namesakes else next(free) for at in required}
    return tuple(played[at] for at in range(len(played)))


def twins_of(classes: Iterable[ColumnClass], columns: Sequence[Column]) -> dict[int, int]:
    """Give for a column the one before it that is the same in every row: it need not be tried as well."""
    twins = {}
    for _, players in classes:
        last: dict[Row, int] = {}
        for at in players if len(players) > 1 else ():
            content = tuple(columns[at])
            if content in last:
                twins[at] = last[content]
            last[content] = at
    return twins
