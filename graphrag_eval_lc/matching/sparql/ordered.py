"""The search for the actual columns that play the required ones, where the order of the rows counts."""

from collections.abc import Iterator

from graphrag_eval_lc.matching.sparql.budget import Budget
from graphrag_eval_lc.matching.sparql.cells import DetailedCodes
from graphrag_eval_lc.matching.sparql.column_classes import (
    ColumnMapping,
    column_classes,
    mapping_by_name,
    twins_of,
)
from graphrag_eval_lc.matching.sparql.rows import Column
from graphrag_eval_lc.matching.sparql.tables import Table


def find_ordered_mapping(reference: Table, actual: Table, codes: DetailedCodes, budget: Budget) -> ColumnMapping | None:
    """Find actual columns that equal the required ones row by row.

    Args:
        reference: The table of the required columns, of at least one column and row.
        actual: The table of the actual columns.
        codes: What the codes of both mean.
        budget: Counts the rows that are looked at.

    Returns:
        A mapping that fits, or None if there is none.

    Raises:
        SearchCutOff: Where the budget is used up.
    """
    if reference.row_count != actual.row_count:
        return None
    classes = column_classes(reference, actual, "list")
    if classes is None:
        return None
    if not reference.needs_details:
        return mapping_by_name(classes, reference, actual)
    twins = twins_of(classes, actual.detailed_columns)
    players = {column: players for required, players in classes for column in required}
    by_name = mapping_by_name(classes, reference, actual)
    return _OrderedSearch(reference, actual, codes, budget).mapping(
        [sorted(players[column], key=lambda at: at != by_name[column]) for column in range(len(players))], twins
    )


class _Renaming:
    """A one-to-one renaming of blank nodes that grows column by column."""

    def __init__(self, to: dict[int, int], back: dict[int, int]) -> None:
        self.to = to
        self.back = back

    def with_columns(self, required: Column, player: Column, codes: DetailedCodes) -> "_Renaming | None":
        """Give a renaming that makes these columns equal too, or None."""
        to, back = dict(self.to), dict(self.back)
        for one, other in dict.fromkeys(zip(required, player, strict=True)):
            if one >= 0:
                if one != other and not codes.are_equal(one, other):
                    return None
            elif to.setdefault(one, other) != other or back.setdefault(other, one) != one:
                return None
        return _Renaming(to, back)


class _OrderedSearch:
    def __init__(self, reference: Table, actual: Table, codes: DetailedCodes, budget: Budget) -> None:
        self.reference = reference
        self.actual = actual
        self.codes = codes
        self.budget = budget

    def mapping(self, players: list[list[int]], twins: dict[int, int]) -> ColumnMapping | None:
        order = sorted(range(len(players)), key=lambda column: len(players[column]))
        played: list[int] = []
        renamings = [_Renaming({}, {})]
        waiting: list[Iterator[int]] = [iter(players[order[0]])]
        while waiting:
            player = next(waiting[-1], None)
            if player is None:
                waiting.pop()
                renamings.pop()
                del played[-1:]
                continue
            if player in played or (player in twins and twins[player] not in played):
                continue
            required = self.reference.detailed_columns[order[len(played)]]
            self.budget.spend(len(required))
            renaming = renamings[-1].with_columns(required, self.actual.detailed_columns[player], self.codes)
            if renaming is None:
                continue
            played.append(player)
            if len(played) == len(order):
                player_of = dict(zip(order, played, strict=True))
                return tuple(player_of[column] for column in range(len(order)))
            renamings.append(renaming)
            waiting.append(iter(players[order[len(played)]]))
        return None
