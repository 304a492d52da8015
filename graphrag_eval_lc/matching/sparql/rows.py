"""Equality of rows: as sets, as bags, with cells of which equality is not transitive."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

from graphrag_eval_lc.matching.sparql.budget import Budget
from graphrag_eval_lc.matching.sparql.cells import DetailedCodes
from graphrag_eval_lc.matching.sparql.numbers import tolerated_range

RowsAs: TypeAlias = Literal["set", "bag", "list"]
"""How the rows of a result count: without duplicates, with them, or with their order too."""

_STEPS_OF_A_PAIR: Final = 8
"""Comparing two cells exactly takes about as long as looking at so many rows."""

Column: TypeAlias = Sequence[int]
Row: TypeAlias = tuple[int, ...]


def rows_of(columns: Sequence[Column]) -> Iterable[Row]:
    """Give the rows of one or more columns."""
    return zip(*columns, strict=True)


def row_groups_agree(
    reference: Sequence[Row], actual: Sequence[Row], rows_as: RowsAs, codes: DetailedCodes, budget: Budget
) -> bool:
    """Tell whether detailed rows agree whose coarse rows are known to agree.

    Args:
        reference: Rows of detailed codes.
        actual: Rows of detailed codes; blank nodes are renamed to those of the reference already.
        rows_as: ``set``: each row has an equal one on the other side; ``bag``: the rows can be paired off.
        codes: Tells which codes are equal.
        budget: Counts the pairs that are compared.

    Raises:
        SearchCutOff: Where the budget is used up.
    """
    if rows_as == "set":
        return not without_partner(reference, actual, codes, budget) and not without_partner(
            actual, reference, codes, budget
        )
    if Counter(reference) == Counter(actual):
        return True
    mine, others = _by_coarse_row(reference, codes), _by_coarse_row(actual, codes)
    return all(
        _can_be_paired(rows, others.get(coarse, []), codes, budget)
        for coarse, rows in mine.items()
        if codes.is_inexact_row(rows[0]) or len(rows) != len(others.get(coarse, []))
    )


def without_partner(rows: Iterable[Row], others: Iterable[Row], codes: DetailedCodes, budget: Budget) -> list[Row]:
    """Give the distinct rows that equal none of the others, in order."""
    present = set(others)
    alone = [row for row in dict.fromkeys(rows) if row not in present]
    if not any(map(codes.is_inexact_row, alone)):
        return alone
    candidates = {coarse: _Neighbours(near, codes) for coarse, near in _by_coarse_row(present, codes).items()}
    left = []
    for row in alone:
        neighbours = candidates.get(codes.coarse_row(row))
        if neighbours is None or not neighbours.equal_to(row, budget):
            left.append(row)
    return left


class _Neighbours:
    """Rows of one coarse row, sorted by a number so that only those near a row are compared with it.

    Args:
        rows: The rows, of detailed codes.
        codes: Tells which codes are equal.
    """

    def __init__(self, rows: list[Row], codes: DetailedCodes) -> None:
        self.rows = rows
        self.codes = codes
        self.order = list(range(len(rows)))
        self.numbers: list[Any] = []
        columns = list(rows_of(rows))
        self.column = max(range(len(columns)), key=lambda at: len(set(columns[at])))
        numbers = [codes.finite_number(detail) for detail in columns[self.column]]
        if None not in numbers:
            self.order.sort(key=numbers.__getitem__)  # type: ignore[arg-type]  # there is no None
            self.numbers = [numbers[at] for at in self.order]

    def equal_to(self, row: Row, budget: Budget) -> list[int]:
        """Give the positions of the rows that equal one with the same coarse row."""
        near = self.order
        number = self.codes.finite_number(row[self.column]) if self.numbers else None
        if number is not None:
            low, high = tolerated_range(number)
            near = near[bisect_left(self.numbers, low) : bisect_right(self.numbers, high)]
        budget.spend(_STEPS_OF_A_PAIR * len(near) * len(row))
        return [at for at in near if self.codes.rows_are_equal(row, self.rows[at])]


def _by_coarse_row(rows: Iterable[Row], codes: DetailedCodes) -> dict[Row, list[Row]]:
    groups: defaultdict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        groups[codes.coarse_row(row)].append(row)
    return groups


def _can_be_paired(rows: list[Row], others: list[Row], codes: DetailedCodes, budget: Budget) -> bool:
    if len(rows) != len(others):
        return False
    neighbours = _Neighbours(others, codes)
    partners = [neighbours.equal_to(row, budget) for row in rows]
    return can_be_paired(partners, budget)


def can_be_paired(partners: list[list[int]], budget: Budget) -> bool:
    """Tell whether each item can have a partner of its own.

    Args:
        partners: For each item the numbers of its possible partners.
        budget: Counts the pairs that are looked at.

    Example:
        >>> can_be_paired([[0, 1], [0]], Budget(2)), can_be_paired([[0], [0]], Budget(2))
        (True, False)
    """
    item_of: dict[int, int] = {}
    return all(_pair(item, partners, item_of, budget) for item in range(len(partners)))


def _pair(item: int, partners: list[list[int]], item_of: dict[int, int], budget: Budget) -> bool:
    """Find a partner for one more item along an augmenting path, breadth first."""
    came_from: dict[int, int] = {}
    partner_of: dict[int, int] = {}
    waiting = deque([item])
    while waiting:
        current = waiting.popleft()
        budget.spend(len(partners[current]))
        for partner in partners[current]:
            if partner in came_from:
                continue
            came_from[partner] = current
            if partner in item_of:
                partner_of[item_of[partner]] = partner
                waiting.append(item_of[partner])
                continue
            _turn_path(partner, item, came_from, partner_of, item_of)
            return True
    return False


def _turn_path(
    partner: int, item: int, came_from: dict[int, int], partner_of: dict[int, int], item_of: dict[int, int]
) -> None:
    while True:
        owner = came_from[partner]
        item_of[partner] = owner
        if owner == item:
            return
        partner = partner_of[owner]
