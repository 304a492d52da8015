"""The search for the columns under which two bags of rows are equal."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from graphrag_eval_lc.matching.sparql.budget import Budget
from graphrag_eval_lc.matching.sparql.column_classes import ColumnClass, ColumnMapping
from graphrag_eval_lc.matching.sparql.rows import Column, Row, rows_of

Confirm: TypeAlias = Callable[[ColumnMapping], bool]
"""Tells whether rows of equal codes are equal in every detail."""


class _Level(NamedTuple):
    """The rows of the first columns of a bag: a number for each distinct row, and how often each one occurs."""

    number_of: dict[tuple[int, int], int]
    counts: Counter[int | None]


class BagSearch:
    """Finds a mapping between bags of rows, depth first; the first columns must fit before the next is tried."""

    def __init__(self, reference: Sequence[Column], twins: dict[int, int], budget: Budget) -> None:
        self.reference = reference
        self.twins = twins
        self.budget = budget
        self.counts = [Counter(column) for column in reference]
        self.row_contents = self._contents_of_rows(reference)
        self._levels: dict[tuple[int, ...], list[_Level]] = {}

    def mapping(
        self, columns: Mapping[int, Column], classes: list[ColumnClass], confirm: Confirm
    ) -> ColumnMapping | None:
        """Give a mapping under which the bags are equal and that is confirmed, or None."""
        players = self._players(columns, classes)
        kept = dict.fromkeys(at for candidates in players.values() for at in candidates)
        order = sorted(players, key=lambda at: (len(players[at]), -len(self.counts[at])))
        if not players[order[0]]:
            return None
        contents = self._contents_of_rows([columns[at] for at in kept])
        if contents is not None and contents != self.row_contents:
            return None
        levels = self._levels_in(tuple(order))
        played: list[int] = []
        groups: list[Sequence[int]] = [[0] * len(self.reference[0])]
        waiting = [iter(players[order[0]])]
        while waiting:
            player = next(waiting[-1], None)
            if player is None:
                waiting.pop()
                groups.pop()
                del played[-1:]
                continue
            if player in played or (player in self.twins and self.twins[player] not in played):
                continue
            grouped = self._grouped(levels[len(played)], groups[-1], columns[player])
            if grouped is None:
                continue
            if len(played) + 1 < len(order):
                played.append(player)
                groups.append(grouped)
                waiting.append(iter(players[order[len(played)]]))
                continue
            player_of = dict(zip(order, [*played, player], strict=True))
            found = tuple(player_of[at] for at in range(len(order)))
            if confirm(found):
                return found
        return None

    def _players(self, columns: Mapping[int, Column], classes: list[ColumnClass]) -> dict[int, list[int]]:
        """Give for each required column the players that have each value as often as it."""
        counts = {at: Counter(columns[at]) for _, players in classes for at in players}
        self.budget.spend(len(self.reference[0]) * len(counts) // 4)
        return {
            column: [at for at in players if counts[at] == self.counts[column]]
            for required, players in classes
            for column in required
        }

    def _contents_of_rows(self, columns: Sequence[Column]) -> Counter[Row] | None:
        """Give the cells of each row whatever their columns; None where it is open which columns count."""
        if len(columns) != len(self.reference):
            return None
        self.budget.spend(len(columns) * len(columns[0]))
        return Counter(map(tuple, map(sorted, rows_of(columns))))

    def _levels_in(self, order: tuple[int, ...]) -> list[_Level]:
        if order not in self._levels:
            levels = []
            groups: Sequence[int] = [0] * len(self.reference[0])
            for at in order:
                number_of: dict[tuple[int, int], int] = {}
                groups = [
                    number_of.setdefault(pair, len(number_of)) for pair in zip(groups, self.reference[at], strict=True)
                ]
                levels.append(_Level(number_of, Counter(groups)))
            self._levels[order] = levels
        return self._levels[order]

    def _grouped(self, level: _Level, groups: Sequence[int], column: Column) -> list[int] | None:
        self.budget.spend(len(column))
        grouped = list(map(level.number_of.get, zip(groups, column, strict=True)))
        return grouped if Counter(grouped) == level.counts else None  # type: ignore[return-value]  # no None in it
