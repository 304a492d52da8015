"""Pairing off the rows of two sides whose cells are equal within a tolerance, which is not passed on from row to row.

Rows with the same codes are in doubt together; in each such group the most rows are paired off that can be. As a bag
each row has a partner of its own. As a set rows of the same values are duplicates, of which one or more may count:
each row has an equal one on the other side, and rows of different values have different partners, however near they
are to each other.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from graphrag_eval_lc.matching.sparql.budget import Budget
from graphrag_eval_lc.matching.sparql.cells import DetailedCodes
from graphrag_eval_lc.matching.sparql.rows import Row, RowsAs, rows_of

_STEPS_OF_A_PAIR: Final = 8
"""Comparing two cells exactly takes about as long as looking at so many rows."""


def row_groups_agree(
    reference: Sequence[Row], actual: Sequence[Row], rows_as: RowsAs, codes: DetailedCodes, budget: Budget
) -> bool:
    """Tell whether detailed rows agree whose coarse rows are known to agree.

    Args:
        reference: Rows of detailed codes, duplicates too.
        actual: The same of the other side; blank nodes are renamed to those of the reference already.
        rows_as: ``set`` or ``bag``.
        codes: Tells which codes are equal.
        budget: Counts the pairs that are compared.

    Raises:
        SearchCutOff: Where the budget is used up.
    """
    mine, others = Counter(reference), Counter(actual)
    if mine == others or (rows_as == "set" and mine.keys() == others.keys()):
        return True
    groups, other_groups = _by_coarse_row(mine, codes), _by_coarse_row(others, codes)
    for coarse, rows in groups.items():
        theirs = other_groups.get(coarse, {})
        if not codes.is_inexact_row(next(iter(rows))):
            if rows_as == "bag" and rows != theirs:
                return False
        elif not _group_agrees(rows, theirs, rows_as, codes, budget):
            return False
    return True


def rows_left_over(
    rows: Iterable[Row], others: Iterable[Row], rows_as: RowsAs, codes: DetailedCodes, budget: Budget
) -> Counter[Row]:
    """Give the rows that have no partner where the most of them are paired off, each as often as it is left.

    Raises:
        SearchCutOff: Where the budget is used up.
    """
    left: Counter[Row] = Counter()
    other_groups = _by_coarse_row(Counter(others), codes)
    for coarse, group in _by_coarse_row(Counter(rows), codes).items():
        theirs = other_groups.get(coarse, {})
        if rows_as == "set":
            if group.keys() != theirs.keys():
                left.update(_alone_as_set(group, theirs, codes, budget))
        elif group != theirs:
            items = [row for row, times in group.items() for _ in range(times)]
            unpaired = _Neighbours(theirs, codes).unpaired([[row] for row in items], budget)
            left.update(items[at] for at in unpaired)
    return left


def _group_agrees(
    rows: dict[Row, int], others: dict[Row, int], rows_as: RowsAs, codes: DetailedCodes, budget: Budget
) -> bool:
    if rows_as == "set":
        if len(rows) == len(others) and _agree_in_order(list(rows), list(others), codes, budget):
            return True
        return not any(_alone_as_set(rows, others, codes, budget)) and not any(
            _alone_as_set(others, rows, codes, budget)
        )
    if sum(rows.values()) != sum(others.values()):
        return False
    mine, theirs = list(Counter(rows).elements()), list(Counter(others).elements())
    if _agree_in_order(mine, theirs, codes, budget):
        return True
    return not any(True for _ in _Neighbours(others, codes).unpaired([[row] for row in mine], budget))


def _agree_in_order(rows: list[Row], others: list[Row], codes: DetailedCodes, budget: Budget) -> bool:
    """Tell whether rows are equal one by one in the order of their numbers: nearly always if they can be paired."""
    budget.spend(_STEPS_OF_A_PAIR * len(rows))
    if len(rows) > 1:
        columns = _number_columns(rows, codes)
        rows, others = _sorted_by(columns, rows, codes), _sorted_by(columns, others, codes)
    return all(codes.rows_are_equal(row, other) for row, other in zip(rows, others, strict=True))


def _alone_as_set(rows: dict[Row, int], others: dict[Row, int], codes: DetailedCodes, budget: Budget) -> Iterator[Row]:
    """Give the distinct rows that equal none of the others, then those that share a partner with rows of other values.

    Rows of the same values need one partner between them, and others of the same values are as many partners as
    they occur.
    """
    neighbours = _Neighbours(others, codes)
    duplicates: defaultdict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        if row in others or neighbours.equal_to(row, budget):
            duplicates[codes.exact_row(row)].append(row)
        else:
            yield row
    if len(duplicates) > 1:
        classes = list(duplicates.values())
        yield from (classes[at][0] for at in neighbours.unpaired(classes, budget))


class _Neighbours:
    """Rows of one coarse row, sorted by a number so that only those near a row are compared with it.

    Args:
        rows: The distinct rows, of detailed codes, each with how often it occurs.
        codes: Tells which codes are equal.
    """

    def __init__(self, rows: dict[Row, int], codes: DetailedCodes) -> None:
        self.rows = list(rows)
        self.codes = codes
        self.column: int | None = None
        self.numbers: list[Any] = []
        columns = _number_columns(self.rows, codes)
        if columns:
            self.column = columns[0]
            self.rows = _sorted_by(columns, self.rows, codes)
            self.numbers = [codes.finite_number(row[self.column]) for row in self.rows]
        self.times = [rows[row] for row in self.rows]

    def equal_to(self, row: Row, budget: Budget) -> Sequence[int]:
        """Give the positions of the rows that equal one with the same coarse row."""
        near: Sequence[int] = range(len(self.rows))
        if self.column is not None and self.codes.finite_number(row[self.column]) is not None:
            low, high = self.codes.range_of_equals(row[self.column])
            near = range(bisect_left(self.numbers, low), bisect_right(self.numbers, high))
        budget.spend(_STEPS_OF_A_PAIR * len(near) * len(row))
        return [at for at in near if self.codes.rows_are_equal(row, self.rows[at])]

    def unpaired(self, classes: Sequence[Sequence[Row]], budget: Budget) -> Iterator[int]:
        """Give the positions of the classes, each of one or more rows, that are left where the most are paired off."""
        columns = [] if self.column is None else [self.column]
        # In the order of the partners few have to change theirs.
        order = sorted(range(len(classes)), key=lambda at: _sort_key(classes[at][0], columns, self.codes))
        known: dict[Row, Sequence[int]] = {}
        partners = []
        for at in order:
            found = dict.fromkeys(
                partner
                for row in classes[at]
                for partner in (known[row] if row in known else known.setdefault(row, self.equal_to(row, budget)))
            )
            partners.append(list(found))
        return (order[at] for at in unpaired_items(partners, budget, self.times))


def _number_columns(rows: list[Row], codes: DetailedCodes) -> list[int]:
    """Give the columns that hold different numbers and nothing else, those with the most different ones first."""
    columns = {at: set(column) for at, column in enumerate(rows_of(rows))}
    numeric = [
        at
        for at, details in columns.items()
        if len(details) > 1 and all(codes.finite_number(detail) is not None for detail in details)
    ]
    return sorted(numeric, key=lambda at: -len(columns[at]))


def _sorted_by(columns: Sequence[int], rows: list[Row], codes: DetailedCodes) -> list[Row]:
    return sorted(rows, key=lambda row: _sort_key(row, columns, codes)) if columns else rows


def _sort_key(row: Row, columns: Sequence[int], codes: DetailedCodes) -> list[tuple[bool, Any]]:
    numbers = [codes.finite_number(row[at]) for at in columns]
    return [(number is None, 0 if number is None else number) for number in numbers]


def _by_coarse_row(rows: Counter[Row], codes: DetailedCodes) -> dict[Row, dict[Row, int]]:
    groups: defaultdict[Row, dict[Row, int]] = defaultdict(dict)
    for row, times in rows.items():
        groups[codes.coarse_row(row)][row] = times
    return groups


def can_be_paired(partners: list[list[int]], budget: Budget) -> bool:
    """Tell whether each item can have a partner of its own.

    Args:
        partners: For each item the numbers of its possible partners.
        budget: Counts the pairs that are looked at.

    Example:
        >>> can_be_paired([[0, 1], [0]], Budget(2)), can_be_paired([[0], [0]], Budget(2))
        (True, False)
    """
    return next(unpaired_items(partners, budget), None) is None


def unpaired_items(
    partners: Sequence[Sequence[int]], budget: Budget, times: Sequence[int] | None = None
) -> Iterator[int]:
    """Give the items that are left where as many as can be have a partner.

    Args:
        partners: For each item the numbers of its possible partners.
        budget: Counts the pairs that are looked at.
        times: How many items each partner can have; one where it is not given.

    Example:
        >>> list(unpaired_items([[0], [0], [0]], Budget(2), [2]))
        [2]
    """
    items_of: defaultdict[int, list[int]] = defaultdict(list)
    exhausted: set[int] = set()
    for item in range(len(partners)):
        if not _pair(item, partners, items_of, times, exhausted, budget):
            yield item


def _pair(
    item: int,
    partners: Sequence[Sequence[int]],
    items_of: defaultdict[int, list[int]],
    times: Sequence[int] | None,
    exhausted: set[int],
    budget: Budget,
) -> bool:
    """Find a partner for one more item along an augmenting path, breadth first.

    What was reached in vain is ``exhausted``: no later search can change it.
    """
    came_from: dict[int, int] = {}
    partner_of: dict[int, int] = {}
    waiting = deque([item])
    while waiting:
        current = waiting.popleft()
        budget.spend(len(partners[current]))
        for partner in partners[current]:
            if partner in came_from or partner in exhausted:
                continue
            came_from[partner] = current
            if len(items_of[partner]) < (1 if times is None else times[partner]):
                _turn_path(partner, item, came_from, partner_of, items_of)
                return True
            for other in items_of[partner]:
                partner_of[other] = partner
                waiting.append(other)
    exhausted.update(came_from)
    return False


def _turn_path(
    partner: int,
    item: int,
    came_from: dict[int, int],
    partner_of: dict[int, int],
    items_of: defaultdict[int, list[int]],
) -> None:
    while True:
        owner = came_from[partner]
        items_of[partner].append(owner)
        if owner == item:
            return
        partner = partner_of[owner]
        items_of[partner].remove(owner)
