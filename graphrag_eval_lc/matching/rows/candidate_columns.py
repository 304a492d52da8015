"""The actual columns that can stand for the required ones, and the search for those that do.

Columns are sorted into classes by their contents first; only columns of one class can stand for each other. Where
that leaves a choice, the names are tried, then a depth-first search compares more and more columns at a time.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Final

from graphrag_eval_lc.matching.rows.coded_rows import (
    BLANK_CODE,
    STEPS_OF_A_CHOICE,
    STEPS_OF_A_PAIR,
    Budget,
    Column,
    DetailedCodes,
    Row,
    RowsAs,
    rows_of,
)
from graphrag_eval_lc.matching.rows.column_choices import choices_of_columns, has_few_choices
from graphrag_eval_lc.matching.rows.column_search import (
    ColumnClass,
    ColumnMapping,
    Confirm,
    Duplicates,
    MayAgree,
    RowSearch,
    depth_first,
)
from graphrag_eval_lc.matching.rows.row_pairing import partner_of_each, rows_may_agree
from graphrag_eval_lc.matching.rows.tables import DetailedParts, Table, aligned_parts


def find_mapping(
    reference: Table, actual: Table, rows_as: RowsAs, codes: DetailedCodes, confirm: Confirm, budget: Budget
) -> ColumnMapping | None:
    """Find actual columns that have the same rows, as a set or a bag, as the required ones; those by name go first.

    ``confirm`` settles what the codes do not. Both tables have at least one row.

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
    if all(len(required) == len(candidates) == 1 for required, candidates in classes):
        return None
    duplicates = duplicates_of(classes, _detailed_contents(actual) if reference.needs_details else actual.columns)
    return _search(reference, actual, rows, classes, rows_as, duplicates, codes, confirm, budget)


def _search(
    reference: Table,
    actual: Table,
    rows: Iterable[Row],
    classes: list[ColumnClass],
    rows_as: RowsAs,
    duplicates: Duplicates,
    codes: DetailedCodes,
    confirm: Confirm,
    budget: Budget,
) -> ColumnMapping | None:
    positions = [at for _, candidates in classes for at in candidates]
    budget.spend(actual.row_count * (3 + len(positions) // 2) + reference.row_count)
    mine = _with_blank_nodes(reference, range(len(reference.columns)))
    others = _with_blank_nodes(actual, positions)
    if rows_as == "set":
        mine = _without_duplicates(mine) if reference.has_blank_nodes else list(rows_of(list(rows)))
        others = _without_duplicates(others)
        if len(others[0]) < len(mine[0]):
            return None
    columns = dict(zip(positions, others, strict=True))
    inexact: set[int] = set()
    may_agree: MayAgree | None = None
    if reference.needs_details:
        inexact = {
            at
            for at, parts in enumerate(reference.detailed_columns)
            if any(codes.is_inexact_row(part) for part in parts.values())
        }

        def agree_so_far(chosen: Mapping[int, int]) -> bool:
            pairs = [
                pair
                for at, found in chosen.items()
                for pair in aligned_parts(reference.detailed_columns[at], actual.detailed_columns[found])
            ]
            one = rows_of([_without_blank_nodes(mine) for mine, _ in pairs])
            other = rows_of([_without_blank_nodes(found) for _, found in pairs])
            return rows_may_agree(one, other, rows_as, codes, budget)

        may_agree = agree_so_far

    def found_among(
        search: RowSearch, columns: dict[int, Column], classes: Sequence[ColumnClass]
    ) -> ColumnMapping | None:
        parts = search.parts_of_classes(columns, classes)
        if parts is None:
            return None
        candidates = {at: part.candidates for part in parts for at in part.required}
        if inexact:
            candidates = _near_candidates(candidates, reference, actual, rows_as, budget)
        if not all(candidates.values()):
            return None
        return search.mapping(columns, candidates, duplicates, confirm, may_agree, inexact)

    if len(others[0]) == len(mine[0]) or not has_few_choices(classes, len(others[0])):
        return found_among(RowSearch(mine, len(others[0]), budget), columns, classes)
    # Columns that are left out make duplicates; the rows of the right ones are as many as in the reference.
    search = RowSearch(mine, len(mine[0]), budget)
    for chosen, choice in choices_of_columns(columns, classes, duplicates, len(mine[0]), budget):
        found = found_among(search, chosen, choice)
        if found is not None:
            return found
    return None


def _without_blank_nodes(column: Column) -> Column:
    return [BLANK_CODE if code < 0 else code for code in column] if min(column) < 0 else column


def _with_blank_nodes(table: Table, positions: Iterable[int]) -> list[Column]:
    """Return columns of codes in which each blank node has the negative code of its own."""
    return [
        [
            detail if code == BLANK_CODE else code
            for code, detail in zip(table.columns[at], table.detailed_columns[at][""], strict=True)
        ]
        if BLANK_CODE in table.contents[at]
        else table.columns[at]
        for at in positions
    ]


def _without_duplicates(columns: Sequence[Column]) -> list[Column]:
    return list(rows_of(list(dict.fromkeys(rows_of(columns)))))


def _near_candidates(
    candidates: dict[int, list[int]], reference: Table, actual: Table, rows_as: RowsAs, budget: Budget
) -> dict[int, list[int]]:
    """Leave out the candidates whose numbers do not lie near those of the required column."""
    near: dict[int, list[int]] = {}
    for required, possible in candidates.items():
        mine = reference.inexact_numbers(required)
        if mine is not None:
            budget.spend(STEPS_OF_A_PAIR * len(mine.numbers) * len(possible))
        near[required] = [
            at
            for at in possible
            if mine is None or (others := actual.inexact_numbers(at)) is None or mine.may_equal(others, rows_as)
        ]
    return near


def find_ordered_mapping(reference: Table, actual: Table, codes: DetailedCodes, budget: Budget) -> ColumnMapping | None:
    """Find actual columns that equal the required ones row by row.

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
    by_name = mapping_by_name(classes, reference, actual)
    candidates = {
        column: [by_name[column], *(at for at in candidates if at != by_name[column])]
        for required, candidates in classes
        for column in required
    }
    fitting: dict[int, list[int]] = {}
    has_blank_nodes = False
    for required, possible in candidates.items():
        parts = reference.detailed_columns[required]
        has_blank_nodes |= any(min(part) < 0 for part in parts.values())
        steps = _STEPS_OF_A_RENAMING * len(parts) * reference.row_count
        budget.spend(len(possible) * (STEPS_OF_A_CHOICE + steps))
        alone = _Renaming({}, {})
        fitting[required] = [
            at for at in possible if alone.with_parts(parts, actual.detailed_columns[at], codes) is not None
        ]
    partners = partner_of_each([fitting[at] for at in range(len(fitting))], budget)
    if partners is None or not has_blank_nodes:
        return None if partners is None else tuple(partners)
    order = sorted(fitting, key=lambda column: (len(fitting[column]), column))

    def renamed(at: int, candidate: int, renaming: _Renaming) -> _Renaming | None:
        one, other = reference.detailed_columns[order[at]], actual.detailed_columns[candidate]
        budget.spend(STEPS_OF_A_CHOICE + _STEPS_OF_A_RENAMING * len(one) * reference.row_count + len(renaming.to))
        return renaming.with_parts(one, other, codes)

    duplicates = duplicates_of(classes, _detailed_contents(actual))
    return next(depth_first(order, fitting, duplicates, _Renaming({}, {}), renamed, budget), None)


_STEPS_OF_A_RENAMING: Final = 2
"""Comparing two cells in a renaming takes about as long as looking at so many rows."""


class _Renaming:
    """A one-to-one renaming of blank nodes that grows column by column."""

    def __init__(self, to: dict[int, int], back: dict[int, int]) -> None:
        self.to = to
        self.back = back

    def with_parts(self, required: DetailedParts, candidate: DetailedParts, codes: DetailedCodes) -> "_Renaming | None":
        """Return a renaming that makes these columns and the parts of their triples equal too, or None."""
        renaming: _Renaming | None = self
        for parts in aligned_parts(required, candidate):
            renaming = None if renaming is None else renaming.with_columns(*parts, codes)
        return renaming

    def with_columns(self, required: Column, candidate: Column, codes: DetailedCodes) -> "_Renaming | None":
        """Return a renaming that makes these columns equal too, or None."""
        to, back = dict(self.to), dict(self.back)
        for one, other in dict.fromkeys(zip(required, candidate, strict=True)):
            if one >= 0:
                if one != other and not codes.are_equal(one, other):
                    return None
            elif to.setdefault(one, other) != other or back.setdefault(other, one) != one:
                return None
        return _Renaming(to, back)


def column_classes(reference: Table, actual: Table, rows_as: RowsAs) -> list[ColumnClass] | None:
    """Return the classes that have a required column; None where one of them has too few actual columns.

    Columns of equal codes are told apart where their numbers do not lie within the tolerance of each other, as a code
    may stand for many numbers that lie close together.
    """
    candidates: defaultdict[Hashable, list[int]] = defaultdict(list)
    for at, signature in enumerate(actual.signatures(rows_as)):
        candidates[signature].append(at)
    required: defaultdict[Hashable, list[int]] = defaultdict(list)
    for at, signature in enumerate(reference.signatures(rows_as)):
        required[signature].append(at)
    classes = []
    for signature, columns in required.items():
        if len(columns) > len(candidates.get(signature, ())):
            return None
        for part in _told_apart(ColumnClass(columns, candidates[signature]), reference, actual, rows_as):
            if len(part.required) > len(part.candidates):
                return None
            names = {reference.names[column] for column in part.required}
            namesakes_first = sorted(part.candidates, key=lambda at: actual.names[at] not in names)
            classes.append(ColumnClass(part.required, namesakes_first))
    return classes


def _told_apart(columns: ColumnClass, reference: Table, actual: Table, rows_as: RowsAs) -> list[ColumnClass]:
    """Split a class into those whose numbers lie near each other."""
    if rows_as == "list" or len(columns.candidates) == 1 or not reference.needs_details:
        return [columns]
    parts: list[ColumnClass] = []
    for required in columns.required:
        mine = reference.inexact_numbers(required)
        candidates = {
            candidate
            for candidate in columns.candidates
            if not mine or not (others := actual.inexact_numbers(candidate)) or mine.may_equal(others, rows_as)
        }
        joined = [part for part in parts if not candidates.isdisjoint(part.candidates)]
        parts = [part for part in parts if part not in joined]
        together = ColumnClass([required], [])
        for part in joined:
            together.required.extend(part.required)
            candidates.update(part.candidates)
        together.candidates.extend(candidate for candidate in columns.candidates if candidate in candidates)
        parts.append(together)
    return parts


def mapping_by_name(classes: Iterable[ColumnClass], reference: Table, actual: Table) -> ColumnMapping:
    """Map each required column to its namesake, or else to the first free column of its class."""
    found: dict[int, int] = {}
    for required, candidates in classes:
        position = {actual.names[candidate]: candidate for candidate in candidates}
        namesakes = {at: position[reference.names[at]] for at in required if reference.names[at] in position}
        taken = set(namesakes.values())
        free = (candidate for candidate in candidates if candidate not in taken)
        found |= {at: namesakes[at] if at in namesakes else next(free) for at in required}
    return tuple(found[at] for at in range(len(found)))


def _detailed_contents(table: Table) -> list[tuple[Column, ...]]:
    """Return each column with its parts."""
    return [tuple(parts.values()) for parts in table.detailed_columns]


def duplicates_of(classes: Iterable[ColumnClass], columns: Sequence[Sequence[Hashable]]) -> Duplicates:
    """Return the duplicates among the candidates of each class."""
    duplicates = {}
    for _, candidates in classes:
        last: dict[Hashable, int] = {}
        for at in candidates if len(candidates) > 1 else ():
            content = tuple(columns[at])
            if content in last:
                duplicates[at] = last[content]
            last[content] = at
    return duplicates
