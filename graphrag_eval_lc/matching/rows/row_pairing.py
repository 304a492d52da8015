"""Pairing off the rows of two sides whose cells are equal within a tolerance, which is not transitive.

Only rows with the same coarse codes may be equal; in each group of such rows as many as possible are paired off. As a
bag each row needs a partner of its own. As a set rows of the same values are duplicates, which may share a partner;
rows of different values need different partners, however near they are to each other.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

from graphrag_eval_lc.matching.rows.coded_rows import STEPS_OF_A_PAIR, Budget, DetailedCodes, Row, RowsAs, rows_of


def row_groups_agree(
    reference: Sequence[Row], actual: Sequence[Row], rows_as: RowsAs, codes: DetailedCodes, budget: Budget
) -> bool:
    """Return whether detailed rows agree, as a set or a bag, whose coarse rows are known to agree.

    The blank nodes of the actual rows are renamed to those of the reference already.

    Raises:
        SearchCutOff: Where the budget is used up.
    """
    mine, others = Counter(reference), Counter(actual)
    if mine == others or (rows_as == "set" and mine.keys() == others.keys()):
        return True
    groups, other_groups = _by_coarse_row(mine, codes, budget), _by_coarse_row(others, codes, budget)
    for coarse, rows in groups.items():
        theirs = other_groups.get(coarse, {})
        if not codes.is_inexact_row(next(iter(rows))):
            if rows_as == "bag" and rows != theirs:
                return False
        elif not _group_agrees(rows, theirs, rows_as, codes, budget):
            return False
    return True


def rows_may_agree(
    reference: Iterable[Row], actual: Iterable[Row], rows_as: RowsAs, codes: DetailedCodes, budget: Budget
) -> bool:
    """Return False where detailed rows of a few columns show that those of all columns do not agree.

    Blank nodes are all alike. In a bag the rows must be paired off in these columns too. As a set rows that differ
    may be duplicates in these columns, so each row must only have an equal one on the other side.

    Raises:
        SearchCutOff: Where the budget is used up.
    """
    mine, others = Counter(reference), Counter(actual)
    if rows_as != "set":
        return row_groups_agree(list(mine.elements()), list(others.elements()), rows_as, codes, budget)
    groups, other_groups = _by_coarse_row(mine, codes, budget), _by_coarse_row(others, codes, budget)
    return groups.keys() == other_groups.keys() and all(
        _all_have_equals(rows, other_groups[coarse], codes, budget)
        and _all_have_equals(other_groups[coarse], rows, codes, budget)
        for coarse, rows in groups.items()
    )


def _all_have_equals(rows: dict[Row, int], others: dict[Row, int], codes: DetailedCodes, budget: Budget) -> bool:
    unlike = [row for row in rows if row not in others]
    if not unlike:
        return True
    neighbours = Neighbours(others, codes, budget)
    return all(neighbours.has_equal(row, budget) for row in unlike)


def rows_left_over(
    rows: Iterable[Row], others: Iterable[Row], rows_as: RowsAs, codes: DetailedCodes, budget: Budget
) -> Counter[Row]:
    """Return the rows that are left over after pairing off as many as possible, each as often as it is left.

    Raises:
        SearchCutOff: Where the budget is used up.
    """
    left: Counter[Row] = Counter()
    other_groups = _by_coarse_row(Counter(others), codes, budget)
    for coarse, group in _by_coarse_row(Counter(rows), codes, budget).items():
        theirs = other_groups.get(coarse, {})
        if rows_as == "set":
            if group.keys() != theirs.keys():
                left.update(_alone_as_set(group, theirs, codes, budget))
        elif group != theirs:
            items = [row for row, times in group.items() for _ in range(times)]
            unpaired = Neighbours(theirs, codes, budget).unpaired([[row] for row in items], budget)
            left.update(items[at] for at in unpaired)
    return left


def _group_agrees(
    rows: dict[Row, int], others: dict[Row, int], rows_as: RowsAs, codes: DetailedCodes, budget: Budget
) -> bool:
    if rows_as == "set":
        if len(rows) == len(others) and _agree_in_order(list(rows), list(others), codes, budget):
            return True
        alone = chain(_alone_as_set(rows, others, codes, budget), _alone_as_set(others, rows, codes, budget))
        return not any(alone)
    if sum(rows.values()) != sum(others.values()):
        return False
    mine, theirs = list(Counter(rows).elements()), list(Counter(others).elements())
    if _agree_in_order(mine, theirs, codes, budget):
        return True
    return not any(True for _ in Neighbours(others, codes, budget).unpaired([[row] for row in mine], budget))


def _agree_in_order(rows: list[Row], others: list[Row], codes: DetailedCodes, budget: Budget) -> bool:
    """Return whether rows are equal one by one in the order of their numbers; rows that can be paired mostly are."""
    budget.spend(STEPS_OF_A_PAIR * len(rows))
    if len(rows) > 1:
        columns = number_columns(rows, codes)
        rows, others = sorted_by(columns, rows, codes), sorted_by(columns, others, codes)
    return all(codes.rows_are_equal(row, other) for row, other in zip(rows, others, strict=True))


def _alone_as_set(rows: dict[Row, int], others: dict[Row, int], codes: DetailedCodes, budget: Budget) -> Iterator[Row]:
    """Yield the distinct rows that equal none of the others, then one row of each value that has to go without partner.

    Rows of the same values need one partner between them; each of the others is a partner, duplicates too.
    """
    neighbours = Neighbours(others, codes, budget)
    duplicates: defaultdict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        if row in others or neighbours.has_equal(row, budget):
            duplicates[codes.exact_row(row)].append(row)
        else:
            yield row
    if len(duplicates) > 1:
        classes = list(duplicates.values())
        yield from (classes[at][0] for at in neighbours.unpaired(classes, budget))


def _by_coarse_row(rows: Counter[Row], codes: DetailedCodes, budget: Budget) -> dict[Row, dict[Row, int]]:
    budget.spend(len(rows) * _STEPS_OF_A_ROW)
    groups: defaultdict[Row, dict[Row, int]] = defaultdict(dict)
    for row, times in rows.items():
        groups[codes.coarse_row(row)][row] = times
    return groups


_STEPS_OF_A_ROW: Final = 10
"""Sorting a row among others takes about as long as looking at so many."""


class Neighbours:
    """Detailed rows of one coarse row, each with how often it occurs, sorted by a number."""

    def __init__(self, rows: dict[Row, int], codes: DetailedCodes, budget: Budget) -> None:
        budget.spend(len(rows) * _STEPS_OF_A_ROW * 2)
        self._rows = list(rows)
        self._codes = codes
        self._column: int | None = None
        self._numbers: list[Any] = []
        columns = number_columns(self._rows, codes)
        if columns:
            self._column = columns[0]
            self._rows = sorted_by(columns, self._rows, codes)
            self._numbers = [codes.finite_number(row[self._column]) for row in self._rows]
        self._times = [rows[row] for row in self._rows]

    def has_equal(self, row: Row, budget: Budget) -> bool:
        """Return whether some row equals the one given."""
        return next(self._equal_to(row, budget), None) is not None

    def unpaired(self, classes: Sequence[Sequence[Row]], budget: Budget) -> Iterator[int]:
        """Pair off as many classes of rows as possible, and return the positions of those that are left.

        Any row of a class will do as its partner's equal.
        """
        columns = [] if self._column is None else [self._column]
        # In the order of the partners few have to change theirs.
        order = sorted(range(len(classes)), key=lambda at: _sort_key(classes[at][0], columns, self._codes))
        if self._lie_on_a_line(classes):
            return self._unpaired_on_a_line(classes, order, budget)
        known: dict[int, list[int]] = {}

        def partners_of(item: int) -> list[int]:
            if item not in known:
                known[item] = list(likely(item))
            return known[item]

        def likely(item: int) -> Iterator[int]:
            return chain.from_iterable(self._equal_to(row, budget) for row in classes[item])

        return unpaired_items(order, partners_of, budget, times=self._times, likely=likely)

    def _equal_to(self, row: Row, budget: Budget) -> Iterator[int]:
        """Return the positions of the rows that equal the one given, the nearest first."""
        return (at for at in self._from_nearest(row) if self._equals(row, at, budget))

    def _equals(self, row: Row, at: int, budget: Budget) -> bool:
        budget.spend(STEPS_OF_A_PAIR + len(row))
        return self._codes.rows_are_equal(row, self._rows[at])

    def _from_nearest(self, row: Row) -> Iterator[int]:
        """Yield the positions of the rows that may equal the one given, those of the nearest numbers first."""
        near, middle = self._near(row)
        below, above = middle - 1, middle
        while below >= near.start or above < near.stop:
            if above < near.stop:
                yield above
                above += 1
            if below >= near.start:
                yield below
                below -= 1

    def _near(self, row: Row) -> tuple[range, int]:
        """Return the positions of the rows that may equal the one given, and where it would stand among them."""
        number = None if self._column is None else self._codes.finite_number(row[self._column])
        if self._column is None or number is None:
            return range(len(self._rows)), 0
        low, high = self._codes.range_of_equals(row[self._column])
        near = range(bisect_left(self._numbers, low), bisect_right(self._numbers, high))
        return near, bisect_left(self._numbers, number, near.start, near.stop)

    def _lie_on_a_line(self, classes: Sequence[Sequence[Row]]) -> bool:
        """Return whether all rows differ in one column only, of numbers that all have the same tolerance."""
        at = self._column
        rows = [row for each in classes for row in each]
        if at is None or len({row[:at] + row[at + 1 :] for row in chain(self._rows, rows)}) != 1:
            return False
        return self._codes.has_one_tolerance({row[at] for row in rows}, {row[at] for row in self._rows})

    def _unpaired_on_a_line(
        self, classes: Sequence[Sequence[Row]], order: Sequence[int], budget: Budget
    ) -> Iterator[int]:
        """Pair each class in order with the first partner that is left; no other choice pairs off more."""
        left = list(self._times)
        first = 0
        for item in order:
            row = classes[item][0]
            near, middle = self._near(row)
            first = max(first, near.start)
            # A partner too small for this one is too small for all that follow.
            while first < near.stop and (not left[first] or (first < middle and not self._equals(row, first, budget))):
                first += 1
            if first < near.stop and self._equals(row, first, budget):
                left[first] -= 1
            else:
                yield item


def number_columns(rows: list[Row], codes: DetailedCodes) -> list[int]:
    """Return the columns that hold numbers only, and not just one, those with the most different ones first."""
    columns = {at: set(column) for at, column in enumerate(rows_of(rows))}
    numeric = [
        at
        for at, details in columns.items()
        if len(details) > 1 and all(codes.finite_number(detail) is not None for detail in details)
    ]
    return sorted(numeric, key=lambda at: -len(columns[at]))


def sorted_by(columns: Sequence[int], rows: list[Row], codes: DetailedCodes) -> list[Row]:
    """Return rows in the order of the numbers in some columns."""
    return sorted(rows, key=lambda row: _sort_key(row, columns, codes)) if columns else rows


def _sort_key(row: Row, columns: Sequence[int], codes: DetailedCodes) -> list[tuple[bool, Any]]:
    numbers = [codes.finite_number(row[at]) for at in columns]
    return [(number is None, 0 if number is None else number) for number in numbers]


PartnersOf: TypeAlias = Callable[[int], Iterable[int]]
"""Returns the possible partners of an item."""


def can_be_paired(partners: list[list[int]], budget: Budget) -> bool:
    """Return whether each item can have a partner of its own, given the possible partners of each.

    Example:
        >>> can_be_paired([[0, 1], [0]], Budget(2)), can_be_paired([[0], [0]], Budget(2))
        (True, False)
    """
    return partner_of_each(partners, budget) is not None


def partner_of_each(partners: Sequence[Sequence[int]], budget: Budget) -> list[int] | None:
    """Return a partner of its own for each item, the first possible one where that can be; None where it cannot.

    Example:
        >>> partner_of_each([[0, 1], [0]], Budget(2))
        [1, 0]
    """
    pairing = _Pairing(partners.__getitem__, None, budget)
    left = [item for item, possible in enumerate(partners) if not pairing.takes_free(item, possible)]
    return pairing.partners() if all(map(pairing.takes_freed, left)) else None


def unpaired_items(
    items: Iterable[int],
    partners_of: PartnersOf,
    budget: Budget,
    *,
    times: Sequence[int] | None = None,
    likely: PartnersOf | None = None,
) -> Iterator[int]:
    """Pair off as many items as possible with partners, and return those that are left.

    Args:
        items: The items.
        partners_of: All partners that an item can have.
        budget: Counts the pairs that are looked at.
        times: How many items each partner can have; one by default.
        likely: The same partners, the likeliest first.

    Example:
        >>> list(unpaired_items(range(3), [[0], [0], [0]].__getitem__, Budget(3), times=[2]))
        [2]
    """
    pairing = _Pairing(partners_of, times, budget)
    left = [item for item in items if not pairing.takes_free(item, (likely or partners_of)(item))]
    return (item for item in left if not pairing.takes_freed(item))


class _Pairing:
    def __init__(self, partners_of: PartnersOf, times: Sequence[int] | None, budget: Budget) -> None:
        self._partners_of = partners_of
        self._times = times
        self._budget = budget
        self._items_of: defaultdict[int, list[int]] = defaultdict(list)
        self._exhausted: set[int] = set()

    def takes_free(self, item: int, partners: Iterable[int]) -> bool:
        """Pair an item with the first partner that is free; return whether there is one."""
        for partner in partners:
            self._budget.spend(1)
            if self._is_free(partner):
                self._items_of[partner].append(item)
                return True
        return False

    def takes_freed(self, item: int) -> bool:
        """Pair one more item while others change their partners: along an augmenting path, found breadth first.

        Partners that were reached in vain are exhausted: no later search can free them.
        """
        came_from: dict[int, int] = {}
        partner_of: dict[int, int] = {}
        waiting = deque([item])
        while waiting:
            current = waiting.popleft()
            for partner in self._partners_of(current):
                self._budget.spend(1)
                if partner in came_from or partner in self._exhausted:
                    continue
                came_from[partner] = current
                if self._is_free(partner):
                    self._change_partners(partner, item, came_from, partner_of)
                    return True
                for other in self._items_of[partner]:
                    partner_of[other] = partner
                    waiting.append(other)
        self._exhausted.update(came_from)
        return False

    def partners(self) -> list[int]:
        """Return the partner of each item, where all have one."""
        found = {item: partner for partner, items in self._items_of.items() for item in items}
        return [found[item] for item in range(len(found))]

    def _is_free(self, partner: int) -> bool:
        return len(self._items_of[partner]) < (1 if self._times is None else self._times[partner])

    def _change_partners(self, partner: int, item: int, came_from: dict[int, int], partner_of: dict[int, int]) -> None:
        while True:
            owner = came_from[partner]
            self._items_of[partner].append(owner)
            if owner == item:
                return
            partner = partner_of[owner]
            self._items_of[partner].remove(owner)
