"""The search for actual columns that hold the rows of the required ones, as a set or a bag.

It chooses one column after another, depth first. The first few columns of two equal tables are equal too: their rows
fall into groups of equal cells, and each group of the actual rows must be as large as that of the reference. So most
choices turn out wrong after few columns. Blank nodes have no text to compare; they are coloured by the groups of the
rows that they stand in, and rows by the colours of their blank nodes, over and over.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from graphrag_eval_lc.matching.rows.coded_rows import STEPS_OF_A_CHOICE, STEPS_OF_A_LOOK, Budget, Column


class ColumnClass(NamedTuple):
    """Columns with the same contents.

    Attributes:
        required: Positions of the required columns.
        candidates: Positions of the actual columns, namesakes of the required ones first.
    """

    required: list[int]
    candidates: list[int]


ColumnMapping: TypeAlias = tuple[int, ...]
"""For each required column the position of the actual column that stands for it."""

Confirm: TypeAlias = Callable[[ColumnMapping], bool]
"""Tells whether rows of equal codes are equal in every detail."""

Duplicates: TypeAlias = dict[int, int]
"""For a column the one before it that is the same in every row, so that only one of them need be tried."""

MayAgree: TypeAlias = Callable[[Mapping[int, int]], bool]
"""Tells for some required columns, and the actual ones that stand for them, whether their rows may be equal in detail.

It is asked before all columns are chosen.
"""

_State = TypeVar("_State")


def depth_first(
    order: Sequence[int],
    candidates: Mapping[int, Sequence[int]],
    duplicates: Duplicates,
    start: _State,
    extended: Callable[[int, int, _State], _State | None],
    budget: Budget,
) -> Iterator[ColumnMapping]:
    """Yield the ways to choose a candidate of its own for each required column, in some order, depth first.

    A duplicate is tried only where the one that it equals is chosen. ``extended`` returns the state after choosing a
    candidate for the nth column, given the state before; None where the candidate does not fit.
    """
    chosen: dict[int, None] = {}
    states = [start]
    waiting = [iter(candidates[order[0]])]
    while waiting:
        candidate = next(waiting[-1], None)
        if candidate is None:
            waiting.pop()
            states.pop()
            if chosen:
                chosen.popitem()
            continue
        budget.spend(STEPS_OF_A_LOOK)
        if candidate in chosen or (candidate in duplicates and duplicates[candidate] not in chosen):
            continue
        state = extended(len(chosen), candidate, states[-1])
        if state is None:
            continue
        chosen[candidate] = None
        if len(chosen) == len(order):
            candidate_of = dict(zip(order, chosen, strict=True))
            yield tuple(candidate_of[at] for at in range(len(order)))
            chosen.popitem()
            continue
        states.append(state)
        waiting.append(iter(candidates[order[len(chosen)]]))


_CHUNK: Final = 128
"""So many rows are looked at before the rest of a long column is."""

_LOOKS_FOR_ORDER: Final = 16
"""So many columns are put in the best order; it is seldom that more are needed to tell all rows apart."""

_ROWS_FOR_ORDER: Final = 4_096
"""So many rows show well enough which order is best."""

_KEPT_ROUNDS: Final = 16
"""What the reference gives rise to is kept for so many ways to sort its columns."""

_ROUNDS: Final = 3
"""Blank nodes are coloured so many times for each column at most."""


_MANY_KEYS: Final = 4_096
"""So many keys and more are slow to look up, as they do not fit into the processor's caches."""


def _steps_of_a_key(keys: int) -> int:
    return 1 if keys < _MANY_KEYS else 3


class _Numbering:
    """Numbers for the keys of the reference's items, and how many items each number has.

    Attributes:
        numbers: The number of each item of the reference.
    """

    def __init__(self, keys: Iterable[Hashable]) -> None:
        self._number_of: dict[Hashable, int] = {}
        number_of = self._number_of
        self.numbers = [number_of.setdefault(key, len(number_of)) for key in keys]
        self._counts = dict(Counter(self.numbers))  # dictionaries are compared quickly

    def __len__(self) -> int:
        return len(self._number_of)

    def of(
        self, keys: Iterator[Any], count: int, budget: Budget, *, is_exact: bool, steps: int = 1
    ) -> list[int] | None:
        """Return the numbers of the other side's items; None where they are not the same, or are too few of one.

        Args:
            keys: The keys of its items.
            count: How many there are.
            budget: Counts the steps.
            is_exact: Whether each number has as many items as in the reference, or may have more.
            steps: The steps of an item.
        """
        number_of: Callable[[Any], int | None] = self._number_of.get
        steps *= _steps_of_a_key(len(self))
        budget.spend(STEPS_OF_A_CHOICE + steps * min(count, _CHUNK))
        found = list(map(number_of, islice(keys, _CHUNK)))
        if None in found:
            return None
        if count > _CHUNK:
            budget.spend(steps * (count - _CHUNK))
            found += map(number_of, keys)
        counts = dict(Counter(found))
        if is_exact:
            return found if counts == self._counts else None  # type: ignore[return-value]  # no None in it
        if len(counts) != len(self._counts) or any(counts[number] < count for number, count in self._counts.items()):
            return None
        return found  # type: ignore[return-value]  # None would be one number more, or in place of one


class _Groups(NamedTuple):
    """The rows of the columns chosen so far.

    Attributes:
        of_rows: A number for each row; rows that have equal cells, and blank nodes of the same colours, have the same.
        colours: A number for each blank node.
        with_blank_nodes: The columns that hold blank nodes.
    """

    of_rows: Sequence[int]
    colours: dict[int, int]
    with_blank_nodes: tuple[Column, ...]


class _Choice(NamedTuple):
    """What the columns chosen so far come to: the groups of rows, and the inexact columns among them."""

    groups: _Groups
    inexact: dict[int, int]


class _Level(NamedTuple):
    """How the rows are numbered once a column more is chosen, first by its cells, then by the blank nodes."""

    rows: _Numbering
    rounds: list[tuple[_Numbering, _Numbering]]


class RowSearch:
    """Finds columns that have the rows of the reference.

    What the reference gives rise to is worked out once for all searches among actual columns.

    Args:
        reference: The required columns, in codes of which the negative ones are blank nodes. Of rows as a set each
            comes once.
        actual_row_count: The number of actual rows. Of rows as a set each comes once, so that there are as many as in
            the reference, or more.
        budget: Counts the steps.
    """

    def __init__(self, reference: Sequence[Column], actual_row_count: int, budget: Budget) -> None:
        self._reference = reference
        self._budget = budget
        self._row_count = len(reference[0])
        self._actual_row_count = actual_row_count
        # With as many rows each actual row stands for one of the reference; else some stand for the same.
        self._is_exact = self._row_count == self._actual_row_count
        self._rounds: dict[tuple[int, ...], tuple[_Numbering, _Numbering]] = {}
        self._last_levels: tuple[list[int], list[tuple[int, _Level]]] = ([], [])

    @cached_property
    def _signatures(self) -> list[Hashable]:
        return list(map(self._signature, self._reference))

    def parts_of_classes(
        self, actual: Mapping[int, Column], classes: Sequence[ColumnClass]
    ) -> Sequence[ColumnClass] | None:
        """Sort columns into smaller classes: by how often they hold each code, then by the rows that they stand in.

        Args:
            actual: The columns that can be chosen.
            classes: The columns that can stand for each other.

        Returns:
            The smaller classes; None where some class has too few actual columns, or the rows cannot be the same.

        Raises:
            SearchCutOff: Where the budget is used up.
        """
        parts: list[ColumnClass] = []
        for required, candidates in classes:
            alike: defaultdict[Hashable, ColumnClass] = defaultdict(lambda: ColumnClass([], []))
            for at in required:
                alike[self._signatures[at]].required.append(at)
            for at in candidates:
                signature = self._signature(actual[at])
                if signature in alike:
                    alike[signature].candidates.append(at)
            parts.extend(alike.values())
        if any(len(part.required) > len(part.candidates) for part in parts):
            return None
        if all(len(part.candidates) == 1 for part in parts):
            return parts
        kept = [at for part in parts for at in part.candidates]
        return self._parts_by_rows({at: actual[at] for at in kept}, parts)

    def _signature(self, column: Column) -> Hashable:
        """Return what a column that stands for another has in common with it."""
        counts = Counter(column)
        self._budget.spend(len(column) // 2 if len(counts) < _MANY_KEYS else 3 * len(column))
        if min(counts) >= 0:
            return frozenset(counts.items() if self._is_exact else counts)
        known = {code: count for code, count in counts.items() if code >= 0}
        blank = [count for code, count in counts.items() if code < 0]
        if self._is_exact:
            return frozenset(known.items()), tuple(sorted(blank))
        return frozenset(known), len(blank)

    def _parts_by_rows(
        self, actual: Mapping[int, Column], classes: Sequence[ColumnClass]
    ) -> Sequence[ColumnClass] | None:
        """Tell columns apart by their rows and rows by their columns, where all columns have to be paired off.

        The classes stay the same where some actual columns will be left over.
        """
        mine = self._reference
        if len(actual) > len(mine) or not self._is_exact:
            return classes
        order = [at for _, candidates in classes for at in candidates]
        others = [_without_labels(actual[at]) for at in order]
        colour_of = {at: number for number, (required, _) in enumerate(classes) for at in required}
        colours = [colour_of[at] for at in range(len(mine))]
        other_colours = [number for number, (_, candidates) in enumerate(classes) for _ in candidates]
        sizes = (len(classes), 0)
        while sizes[0] < len(mine):
            rows, columns = self._round(tuple(colours))
            count, steps = len(mine[0]), _STEPS_OF_A_CELL * len(mine)
            keys = _row_signatures(others, other_colours)
            other_rows = rows.of(keys, count, self._budget, is_exact=True, steps=steps)
            if other_rows is None:
                return None
            self._budget.spend(steps * count)
            keys = _column_signatures(others, other_colours, other_rows)
            found = columns.of(keys, len(mine), self._budget, is_exact=True)
            if found is None:
                return None
            colours, other_colours = columns.numbers, found
            if sizes == (len(columns), len(rows)):
                break
            sizes = len(columns), len(rows)
        parts = [ColumnClass([], []) for _ in range(sizes[0])]
        for at, colour in enumerate(colours):
            parts[colour].required.append(at)
        for at, colour in zip(order, other_colours, strict=True):
            parts[colour].candidates.append(at)
        return parts

    def _round(self, colours: tuple[int, ...]) -> "tuple[_Numbering, _Numbering]":
        """Number the reference's rows by the colours of its columns, and these by their rows."""
        known = self._rounds.get(colours)
        if known is None:
            self._budget.spend(2 * _STEPS_OF_A_CELL * len(self._reference) * self._row_count)
            mine = self._reference_without_labels
            rows = _Numbering(_row_signatures(mine, colours))
            known = rows, _Numbering(_column_signatures(mine, colours, rows.numbers))
            if len(self._rounds) == _KEPT_ROUNDS:
                self._rounds.clear()
            self._rounds[colours] = known
        return known

    @cached_property
    def _reference_without_labels(self) -> list[Column]:
        return list(map(_without_labels, self._reference))

    def mapping(
        self,
        actual: Mapping[int, Column],
        candidates: Mapping[int, Sequence[int]],
        duplicates: Duplicates,
        confirm: Confirm,
        may_agree: MayAgree | None = None,
        inexact: Collection[int] = (),
    ) -> ColumnMapping | None:
        """Return the first mapping under which the rows are equal and that is confirmed, or None.

        Args:
            actual: The columns that can be chosen.
            candidates: For each required column the actual ones that may stand for it.
            duplicates: The actual columns that are the same as others.
            confirm: Settles what the codes do not.
            may_agree: Looks at the columns whose cells differ although their codes are equal.
            inexact: These required columns.

        Raises:
            SearchCutOff: Where the budget is used up.
        """
        counts = [len(candidates[at]) for at in range(len(self._reference))]
        if self._last_levels[0] != counts:
            self._last_levels = counts, list(self._levels(counts))
        order, levels = zip(*self._last_levels[1], strict=True)

        def extended(at: int, candidate: int, state: _Choice) -> _Choice | None:
            groups = self._found(levels[at], actual[candidate], state.groups)
            if groups is None or may_agree is None or order[at] not in inexact:
                return None if groups is None else _Choice(groups, state.inexact)
            chosen = {**state.inexact, order[at]: candidate}
            return _Choice(groups, chosen) if len(chosen) == 1 or may_agree(chosen) else None

        start = _Choice(_Groups([0] * self._actual_row_count, {}, ()), {})
        mappings = depth_first(order, candidates, duplicates, start, extended, self._budget)
        return next(filter(confirm, mappings), None)

    def _levels(self, counts: Sequence[int]) -> Iterator[tuple[int, _Level]]:
        """Yield the required columns, given how many candidates each has, in the order to choose in.

        Those that leave no choice go first.

        Then those that split the most groups of rows for the fewest candidates, until each row is a group of its own.
        """
        left = sorted(range(len(counts)), key=counts.__getitem__)
        groups = _Groups([0] * self._row_count, {}, ())
        values = [] if self._is_exact else [len(set(column)) for column in self._reference]
        looks = _LOOKS_FOR_ORDER
        while left:
            column = left[0]
            if counts[column] > 1 and len(left) > 1 and looks:
                size = len(set(groups.of_rows[:_ROWS_FOR_ORDER]))
                sizes = {at: self._group_count(groups, at) for at in left}
                if self._is_exact:
                    looks = looks - 1 if any(found > size for found in sizes.values()) else 0
                    column = min(left, key=lambda at: (counts[at] - 1) / (sizes[at] - size or 1e-9))
                else:
                    looks -= 1
                    column = min(left, key=lambda at: (sizes[at] / size / values[at], counts[at]))
            left.remove(column)
            level, groups = self._learned(self._reference[column], groups)
            yield column, level

    def _group_count(self, groups: _Groups, column: int) -> int:
        rows = min(_ROWS_FOR_ORDER, self._row_count)
        self._budget.spend(STEPS_OF_A_CHOICE + rows)
        return len(set(zip(groups.of_rows[:rows], self._reference[column][:rows], strict=True)))

    def _learned(self, column: Column, groups: _Groups) -> tuple[_Level, _Groups]:
        """Number the reference's rows by a column more."""
        has_blank_nodes = min(column) < 0
        steps = _steps_of_a_cell(groups, has_blank_nodes=has_blank_nodes)
        self._budget.spend(STEPS_OF_A_CHOICE + steps * self._row_count)
        rows = _Numbering(self._keys_of_rows(column, groups, has_blank_nodes=has_blank_nodes))
        columns = (*groups.with_blank_nodes, column) if has_blank_nodes else groups.with_blank_nodes
        level = _Level(rows, [])
        of_rows, colours = rows.numbers, groups.colours
        for _ in range(_ROUNDS if columns else 0):
            self._budget.spend(_STEPS_OF_A_ROUND * len(columns) * len(column))
            signatures = self._signatures_of_nodes(of_rows, columns, colours)
            nodes = _Numbering(signatures.values())
            known = len(set(colours.values()))
            colours = dict(zip(signatures, nodes.numbers, strict=True))
            before = len(level.rounds[-1][1] if level.rounds else rows)
            rows_by_colour = _Numbering(_keys_by_colour(of_rows, columns, colours))
            of_rows = rows_by_colour.numbers
            level.rounds.append((nodes, rows_by_colour))
            if len(nodes) == known and len(rows_by_colour) == before:
                break
        self._budget.spend(2 * self._row_count * _steps_of_a_key(len(rows)))
        return level, _Groups(of_rows, colours, columns)

    def _found(self, level: _Level, column: Column, groups: _Groups) -> _Groups | None:
        """Number the actual rows as in the reference; None where the column does not fit."""
        has_blank_nodes = bool(level.rounds) and min(column) < 0
        keys = self._keys_of_rows(column, groups, has_blank_nodes=has_blank_nodes)
        steps = _steps_of_a_cell(groups, has_blank_nodes=has_blank_nodes)
        count, budget = self._actual_row_count, self._budget
        of_rows = level.rows.of(iter(keys), count, budget, is_exact=self._is_exact, steps=steps)
        if of_rows is None:
            return None
        columns = (*groups.with_blank_nodes, column) if has_blank_nodes else groups.with_blank_nodes
        colours = groups.colours
        for nodes, rows_by_colour in level.rounds:
            budget.spend(_STEPS_OF_A_ROUND * len(columns) * count)
            signatures = self._signatures_of_nodes(of_rows, columns, colours)
            of_nodes = nodes.of(iter(signatures.values()), len(signatures), budget, is_exact=True)
            if of_nodes is None:
                return None
            colours = dict(zip(signatures, of_nodes, strict=True))
            keys = _keys_by_colour(of_rows, columns, colours)
            of_rows = rows_by_colour.of(iter(keys), count, budget, is_exact=self._is_exact)
            if of_rows is None:
                return None
        return _Groups(of_rows, colours, columns)

    def _keys_of_rows(self, column: Column, groups: _Groups, *, has_blank_nodes: bool) -> Iterable[Hashable]:
        """Return for each row its group, its cell and whether a blank node stood in the row before."""
        if not has_blank_nodes:
            return zip(groups.of_rows, column, strict=True)
        colours, columns = groups.colours, groups.with_blank_nodes
        return (
            (group, cell)
            if cell >= 0
            else (
                group,
                -2 - colours.get(cell, -1),
                next((at for at, other in enumerate(columns) if other[row] == cell), -1),
            )
            for row, (group, cell) in enumerate(zip(groups.of_rows, column, strict=True))
        )

    def _signatures_of_nodes(
        self, of_rows: Sequence[int], columns: Sequence[Column], colours: Mapping[int, int]
    ) -> dict[int, Hashable]:
        """Return for each blank node its colour and the groups of its rows, with its columns."""
        rows_of_node: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for at, column in enumerate(columns):
            for group, cell in zip(of_rows, column, strict=True):
                if cell < 0:
                    rows_of_node[cell].append((at, group))
        return {
            node: (colours.get(node, -1), tuple(sorted(rows if self._is_exact else set(rows))))
            for node, rows in rows_of_node.items()
        }


_STEPS_OF_A_ROUND: Final = 12
"""Colouring by a cell that may be a blank node takes about as long as looking at so many rows."""

_STEPS_OF_A_CELL: Final = 4
"""Telling rows and columns apart by a cell takes about as long as looking at so many rows."""


def _steps_of_a_cell(groups: _Groups, *, has_blank_nodes: bool) -> int:
    return _STEPS_OF_A_ROUND + len(groups.with_blank_nodes) if has_blank_nodes else 1


def _keys_by_colour(
    of_rows: Sequence[int], columns: Sequence[Column], colours: Mapping[int, int]
) -> Iterator[tuple[int, ...]]:
    """Yield for each row its group and the colours of its blank nodes."""
    return zip(of_rows, *([colours.get(cell, -1) for cell in column] for column in columns), strict=True)


def _without_labels(column: Column) -> Column:
    return [max(cell, -1) for cell in column] if min(column) < 0 else column


def _row_signatures(columns: Sequence[Column], colours: Sequence[int]) -> Iterator[Hashable]:
    """Yield for each row its cells, as a bag among columns of the same colour."""
    of_colour: defaultdict[int, list[Column]] = defaultdict(list)
    for colour, column in zip(colours, columns, strict=True):
        of_colour[colour].append(column)
    cells: list[Iterable[Hashable]] = [
        same[0] if len(same) == 1 else map(tuple, map(sorted, zip(*same, strict=True)))
        for _, same in sorted(of_colour.items())
    ]
    return zip(*cells, strict=True)


def _column_signatures(columns: Sequence[Column], colours: Sequence[int], rows: Sequence[int]) -> Iterator[Hashable]:
    """Yield for each column its colour and, where others have it too, how often each cell stands in each row."""
    times = Counter(colours)
    return (
        (colour, frozenset(Counter(zip(rows, column, strict=True)).items()) if times[colour] > 1 else None)
        for colour, column in zip(colours, columns, strict=True)
    )
