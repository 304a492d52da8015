"""The actual columns that can stand for the required ones, and the search for those that do.

Columns are sorted into classes by their contents first; only columns of one class can stand for each other. Where
that leaves a choice, the names are tried, then a depth-first search compares more and more columns at a time. Rows
as a set have an extra step before it: columns that are left out make duplicates, so the columns to keep are chosen
by the number of distinct rows among them, after which the two sides can be compared as bags.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias, TypeVar

from graphrag_eval_lc.matching.sparql.encoding import Table, aligned_parts
from graphrag_eval_lc.matching.sparql.rows import Budget, Column, DetailedCodes, Row, RowsAs, rows_of

ColumnMapping: TypeAlias = tuple[int, ...]
"""For each required column the position of the actual column that stands for it."""


class ColumnClass(NamedTuple):
    """Columns with the same contents.

    Attributes:
        required: Positions of the required columns.
        candidates: Positions of the actual columns, namesakes of the required ones first.
    """

    required: list[int]
    candidates: list[int]


Confirm: TypeAlias = Callable[[ColumnMapping], bool]
"""Tells whether rows of equal codes are equal in every detail."""

Duplicates: TypeAlias = dict[int, int]
"""For a column the one before it that is the same in every row, so that only one of them need be tried."""

_CHUNK: Final = 2_048
"""At least so many rows are looked at before a choice of columns is given up."""


def find_mapping(
    reference: Table, actual: Table, rows_as: RowsAs, confirm: Confirm, budget: Budget
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
    if rows_as == "set":
        return _mapping_of_sets(list(rows), actual, classes, duplicates, confirm, budget)
    search = BagSearch(reference.columns, duplicates, budget)
    return search.mapping(dict(enumerate(actual.columns)), classes, confirm)


def _mapping_of_sets(
    rows: list[Row],
    actual: Table,
    classes: list[ColumnClass],
    duplicates: Duplicates,
    confirm: Confirm,
    budget: Budget,
) -> ColumnMapping | None:
    """Choose the columns first; the distinct rows of the right ones are a bag without duplicates."""
    search = BagSearch(list(rows_of(rows)), duplicates, budget)
    for choice in _choices(classes, duplicates, budget):
        chosen = [at for _, candidates in choice for at in candidates]
        distinct = _distinct_rows([actual.columns[at] for at in chosen], len(rows), budget)
        if len(distinct) == len(rows):
            columns = dict(zip(chosen, rows_of(list(distinct)), strict=True))
            found = search.mapping(columns, choice, confirm)
            if found is not None:
                return found
    return None


def _distinct_rows(columns: list[Column], limit: int, budget: Budget) -> set[Row]:
    """Return the distinct rows; once they are more than ``limit`` the rest is not looked at."""
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


def _choices(classes: list[ColumnClass], duplicates: Duplicates, budget: Budget) -> Iterator[list[ColumnClass]]:
    """Yield the ways to keep as many candidates of each class as it has required columns."""

    def choices_of(at: int) -> Iterator[ColumnClass]:
        required, candidates = classes[at]
        return (ColumnClass(required, kept) for kept in _combinations(candidates, len(required), duplicates, budget))

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


def _combinations(candidates: list[int], size: int, duplicates: Duplicates, budget: Budget) -> Iterator[list[int]]:
    """Yield the combinations of candidates, without those that differ by duplicates only."""
    kept: list[int] = []
    at = 0
    while True:
        if len(kept) < size and len(candidates) - at >= size - len(kept):
            budget.spend(1)
            duplicate = duplicates.get(candidates[at])
            if duplicate is None or any(candidates[other] == duplicate for other in kept):
                kept.append(at)
            at += 1
            continue
        if len(kept) == size:
            yield [candidates[other] for other in kept]
        if not kept:
            return
        at = kept.pop() + 1


_State = TypeVar("_State")


def _mappings(
    order: Sequence[int],
    candidates: Mapping[int, Sequence[int]],
    duplicates: Duplicates,
    start: _State,
    extended: Callable[[int, int, _State], _State | None],
) -> Iterator[ColumnMapping]:
    """Yield the ways to choose a candidate of its own for each required column, in some order, depth first.

    A duplicate is tried only where the one that it equals is chosen. ``extended`` returns the state after choosing a
    candidate for the nth column, given the state before; None where the candidate does not fit.
    """
    chosen: list[int] = []
    states = [start]
    waiting = [iter(candidates[order[0]])]
    while waiting:
        candidate = next(waiting[-1], None)
        if candidate is None:
            waiting.pop()
            states.pop()
            del chosen[-1:]
            continue
        if candidate in chosen or (candidate in duplicates and duplicates[candidate] not in chosen):
            continue
        state = extended(len(chosen), candidate, states[-1])
        if state is None:
            continue
        if len(chosen) + 1 == len(order):
            candidate_of = dict(zip(order, [*chosen, candidate], strict=True))
            yield tuple(candidate_of[at] for at in range(len(order)))
            continue
        chosen.append(candidate)
        states.append(state)
        waiting.append(iter(candidates[order[len(chosen)]]))


class _Level(NamedTuple):
    """The rows of the first columns of a bag: a number for each distinct row, and how often each one occurs."""

    number_of: dict[tuple[int, int], int]
    counts: Counter[int | None]


class BagSearch:
    """Finds a mapping between bags of rows, depth first; the first columns must fit before the next is tried."""

    def __init__(self, reference: Sequence[Column], duplicates: Duplicates, budget: Budget) -> None:
        self.reference = reference
        self.duplicates = duplicates
        self.budget = budget
        self.counts = [Counter(column) for column in reference]
        self.row_contents = self._contents_of_rows(reference)
        self._levels: dict[tuple[int, ...], list[_Level]] = {}

    def mapping(
        self, columns: Mapping[int, Column], classes: list[ColumnClass], confirm: Confirm
    ) -> ColumnMapping | None:
        """Return a mapping under which the bags are equal and that is confirmed, or None."""
        candidates = self._candidates(columns, classes)
        kept = dict.fromkeys(at for candidates in candidates.values() for at in candidates)
        order = sorted(candidates, key=lambda at: (len(candidates[at]), -len(self.counts[at])))
        if not candidates[order[0]]:
            return None
        contents = self._contents_of_rows([columns[at] for at in kept])
        if contents is not None and contents != self.row_contents:
            return None
        levels = self._levels_in(tuple(order))

        def grouped(at: int, candidate: int, groups: Sequence[int]) -> list[int] | None:
            """Number the rows up to a column as in the reference; None where they do not occur as often there."""
            column = columns[candidate]
            self.budget.spend(len(column))
            found = list(map(levels[at].number_of.get, zip(groups, column, strict=True)))
            return found if Counter(found) == levels[at].counts else None  # type: ignore[return-value]  # no None in it

        start: Sequence[int] = [0] * len(self.reference[0])
        return next(filter(confirm, _mappings(order, candidates, self.duplicates, start, grouped)), None)

    def _candidates(self, columns: Mapping[int, Column], classes: list[ColumnClass]) -> dict[int, list[int]]:
        """Return for each required column the candidates that have each value as often as it."""
        counts = {at: Counter(columns[at]) for _, candidates in classes for at in candidates}
        self.budget.spend(len(self.reference[0]) * len(counts) // 4)
        return {
            column: [at for at in candidates if counts[at] == self.counts[column]]
            for required, candidates in classes
            for column in required
        }

    def _contents_of_rows(self, columns: Sequence[Column]) -> Counter[Row] | None:
        """Return the cells of each row whatever their columns; None where there are more columns than required."""
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
    order = sorted(candidates, key=lambda column: (len(candidates[column]), column))

    def renamed(at: int, candidate: int, renaming: _Renaming) -> _Renaming | None:
        for parts in aligned_parts(reference.detailed_columns[order[at]], actual.detailed_columns[candidate]):
            budget.spend(reference.row_count)
            extended = renaming.with_columns(*parts, codes)
            if extended is None:
                return None
            renaming = extended
        return renaming

    duplicates = duplicates_of(classes, _detailed_contents(actual))
    return next(_mappings(order, candidates, duplicates, _Renaming({}, {}), renamed), None)


class _Renaming:
    """A one-to-one renaming of blank nodes that grows column by column."""

    def __init__(self, to: dict[int, int], back: dict[int, int]) -> None:
        self.to = to
        self.back = back

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
