"""Pairing off the rows of two sides whose cells are equal within a tolerance, which is not passed on from row to row.

Rows with the same codes are in doubt together; in each such group the most rows are paired off that can be. As a bag
each row has a partner of its own. As a set rows of the same values are duplicates, of which one or more may count:
each row has an equal one on the other side, and rows of different values have different partners, however near they
are to each other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from graphrag_eval_lc.matching.sparql.budget import Budget
from graphrag_eval_lc.matching.sparql.cells import DetailedCodes
from graphrag_eval_lc.matching.sparql.neighbours import STEPS_OF_A_PAIR, Neighbours, number_columns, sorted_by
from graphrag_eval_lc.matching.sparql.rows import Row, RowsAs


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
            unpaired = Neighbours(theirs, codes).unpaired([[row] for row in items], budget)
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
    return not any(True for _ in Neighbours(others, codes).unpaired([[row] for row in mine], budget))


def _agree_in_order(rows: list[Row], others: list[Row], codes: DetailedCodes, budget: Budget) -> bool:
    """Tell whether rows are equal one by one in the order of their numbers: nearly always if they can be paired."""
    budget.spend(STEPS_OF_A_PAIR * len(rows))
    if len(rows) > 1:
        columns = number_columns(rows, codes)
        rows, others = sorted_by(columns, rows, codes), sorted_by(columns, others, codes)
    return all(codes.rows_are_equal(row, other) for row, other in zip(rows, others, strict=True))


def _alone_as_set(rows: dict[Row, int], others: dict[Row, int], codes: DetailedCodes, budget: Budget) -> Iterator[Row]:
    """Give the distinct rows that equal none of the others, then those that share a partner with rows of other values.

    Rows of the same values need one partner between them, and others of the same values are as many partners as
    they occur.
    """
    neighbours = Neighbours(others, codes)
    duplicates: defaultdict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        if row in others or neighbours.has_equal(row, budget):
            duplicates[codes.exact_row(row)].append(row)
        else:
            yield row
    if len(duplicates) > 1:
        classes = list(duplicates.values())
        yield from (classes[at][0] for at in neighbours.unpaired(classes, budget))


def _by_coarse_row(rows: Counter[Row], codes: DetailedCodes) -> dict[Row, dict[Row, int]]:
    groups: defaultdict[Row, dict[Row, int]] = defaultdict(dict)
    for row, times in rows.items():
        groups[codes.coarse_row(row)][row] = times
    return groups
