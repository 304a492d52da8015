"""The search for the actual columns that play the required ones, where the rows are a set or a bag.

Columns are sorted into classes by their contents first; only columns of one class can play each other. Where that
leaves a choice, the names are tried, then a depth-first search compares more and more columns at a time. Rows as a
set have an extra step before it: columns that are left out make duplicates, so the columns to keep are chosen by the
number of distinct rows among them, after which the two sides can be compared as bags.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Final

from graphrag_eval_lc.matching.sparql.bag_search import BagSearch, Confirm
from graphrag_eval_lc.matching.sparql.budget import Budget
from graphrag_eval_lc.matching.sparql.column_classes import (
    ColumnClass,
    ColumnMapping,
    column_classes,
    mapping_by_name,
    twins_of,
)
from graphrag_eval_lc.matching.sparql.rows import Column, Row, RowsAs, rows_of
from graphrag_eval_lc.matching.sparql.tables import Table

_CHUNK: Final = 2_048
"""So many rows are looked at, at the least, before a choice of columns is given up."""


def find_mapping(
    reference: Table, actual: Table, rows_as: RowsAs, confirm: Confirm, budget: Budget
) -> ColumnMapping | None:
    """Find actual columns that have the same rows as the required ones.

    Args:
        reference: The table of the required columns, of at least one column and row.
        actual: The table of the actual columns.
        rows_as: ``set`` or ``bag``.
        confirm: Settles what the codes do not.
        budget: Counts the rows that are looked at.

    Returns:
        A mapping that fits, the one by name if that does; None if there is none.

    Raises:
        SearchCutOff: Where the budget is used up.
    """
    if rows_as == "bag" and reference.row_count != actual.row_count:
        return None
    classes = column_classes(reference, actual, rows_as)
    if classes is None:
        return None
    as_collection: Callable[[Iterable[Row]], Collection[Row]] = set if rows_as == "set" else Counter
    guess = mapping_by_name(classes, reference, actual)
    rows = as_collection(rows_of(reference.columns))
    if rows == as_collection(rows_of([actual.columns[at] for at in guess])) and confirm(guess):
        return guess
    if all(len(required) == len(players) == 1 for required, players in classes):
        return None
    twins = twins_of(classes, actual.detailed_columns if reference.needs_details else actual.columns)
    if rows_as == "set":
        return _mapping_of_sets(list(rows), actual, classes, twins, confirm, budget)
    search = BagSearch(reference.columns, twins, budget)
    return search.mapping(dict(enumerate(actual.columns)), classes, confirm)


def _mapping_of_sets(
    rows: list[Row],
    actual: Table,
    classes: list[ColumnClass],
    twins: dict[int, int],
    confirm: Confirm,
    budget: Budget,
) -> ColumnMapping | None:
    """Choose the columns first; the distinct rows of a right choice are a bag without duplicates."""
    search = BagSearch(list(rows_of(rows)), twins, budget)
    for choice in _choices(classes, twins, budget):
        chosen = [at for _, players in choice for at in players]
        distinct = _distinct_rows([actual.columns[at] for at in chosen], len(rows), budget)
        if len(distinct) == len(rows):
            columns = dict(zip(chosen, rows_of(list(distinct)), strict=True))
            found = search.mapping(columns, choice, confirm)
            if found is not None:
                return found
    return None


def _distinct_rows(columns: list[Column], limit: int, budget: Budget) -> set[Row]:
    """Give the distinct rows; those from the start only where they are more than ``limit`` already."""
    row_count = len(columns[0])
    rows = iter(rows_of(columns))
    distinct: set[Row] = set()
    size = max(_CHUNK, limit)
    for start in range(0, row_count, size):
        budget.spend(min(size, row_count - start) * (1 + len(columns) // 8))
        distinct.update(islice(rows, size))
        if len(distinct) > limit:
            break
    return distinct


def _choices(classes: list[ColumnClass], twins: dict[int, int], budget: Budget) -> Iterator[list[ColumnClass]]:
    """Give the ways to keep as many players of each class as it has required columns."""

    def choices_of(at: int) -> Iterator[ColumnClass]:
        required, players = classes[at]
        return (ColumnClass(required, kept) for kept in _combinations(players, len(required), twins, budget))

    chosen: list[ColumnClass] = []
    waiting = [choices_of(0)]
    while waiting:
        choice = next(waiting[-1], None)
        if choice is None:
            waiting.pop()
            del chosen[-1:]
        elif len(waiting) == len(classes):
            yield [*chosen, choice]
        else:
            chosen.append(choice)
            waiting.append(choices_of(len(chosen)))


def _combinations(players: list[int], size: int, twins: dict[int, int], budget: Budget) -> Iterator[list[int]]:
    """Give the combinations of players, without those that differ by twins only."""
    kept: list[int] = []
    at = 0
    while True:
        if len(kept) < size and len(players) - at >= size - len(kept):
            budget.spend(1)
            twin = twins.get(players[at])
            if twin is None or any(players[other] == twin for other in kept):
                kept.append(at)
            at += 1
            continue
        if len(kept) == size:
            yield [players[other] for other in kept]
        if not kept:
            return
        at = kept.pop() + 1
