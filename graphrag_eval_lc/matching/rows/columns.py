"""Finds the actual columns that hold the required rows, and checks whether blank nodes can be renamed to fit.

Columns of the same names are tried first. Otherwise the content of a column shows which required columns it can match.
If several choices remain, they are searched depth first: the columns chosen so far divide the rows into groups of equal
cells, and both sides must have the same groups. Blank nodes are compared last, by colour refinement. The search counts
its steps, so that it stops at the same bound on every machine.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain, combinations, repeat
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.rows.terms import KeyColumn, Keys, RowsAs

Row: TypeAlias = tuple[int, ...]

_Cells: TypeAlias = Sequence[Hashable]
_Group: TypeAlias = int | None
"""The number of a group of equal rows; None if the reference has no such group."""

_Node: TypeAlias = int
"""The label of a blank node; below 0 on the side of the actual results."""

MAX_STEPS: Final = 20_000_000
"""The number of cells that the search may look at, which takes a few seconds."""

_STEPS_OF_A_CHOICE: Final = 20


class SearchBoundError(Exception):
    """The search reached its bound before the result was known."""


class Budget:
    """Counts the steps of a search; raises ``SearchBoundError`` after ``MAX_STEPS``."""

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, steps: int) -> None:
        """Add to the count of steps; raise ``SearchBoundError`` above ``MAX_STEPS``."""
        self.spent += steps
        if self.spent > MAX_STEPS:
            raise SearchBoundError(
                f"the search for matching columns and rows ended at its bound of {MAX_STEPS:,} steps"
            )


def bare_name(name: str) -> str:
    """Return the name of a column in lower case, without the ``?`` or ``$`` of a variable."""
    return name.lstrip("?$").casefold()


def namesakes(required: Sequence[str], actual: Sequence[str]) -> dict[str, str]:
    """Return for each required column the actual one of the same name; else ``?``, ``$`` and case are ignored."""
    found = {name: name for name in required if name in actual}
    if len(found) == len(required):
        return found
    by_bare_name = {bare_name(name): name for name in reversed(actual) if name not in found}
    all_found = {name: found[name] if name in found else by_bare_name.pop(bare_name(name), None) for name in required}
    return {name: other for name, other in all_found.items() if other is not None}


def find_columns(keys: Keys, budget: Budget) -> dict[str, str] | None:
    """Return an actual column for each required one, so that the rows are equal; None if that is impossible."""
    names, rows_as = list(keys.actual.columns), keys.rules.rows_as
    same = namesakes(keys.names, names)
    if len(same) == len(keys.names):
        if _have_same_texts(keys, same):
            return same
        if _rows_are_equal(list(keys.required.values()), list(map(keys.column, same.values())), rows_as, budget):
            return same
    elif not keys.are_graphs and (found := _columns_of_same_texts(keys)) is not None:
        return found
    if keys.are_graphs or len(names) < len(keys.names):
        return None
    columns = {name: keys.column(name) for name in names}
    by_content: dict[Hashable, list[str]] = {}
    for name, column in columns.items():
        by_content.setdefault(_content(column, rows_as), []).append(name)
    required, candidates = list(keys.required.values()), []
    for name, column in keys.required.items():
        candidates.append(_by_name_first(name, by_content.get(_content(column, rows_as), [])))
        if not candidates[-1]:
            return None
    choices = iter([[alike[0] for alike in candidates]])
    if any(len(alike) > 1 for alike in candidates):
        choices = _choices(required, columns, candidates, rows_as, budget)
    for chosen in choices:
        budget.spend(_STEPS_OF_A_CHOICE + len(required) * len(required[0].keys) // 4)
        is_choice = len(set(chosen)) == len(chosen)
        if is_choice and _rows_are_equal(required, [columns[name] for name in chosen], rows_as, budget):
            return dict(zip(keys.names, chosen, strict=True))
    return None


def _have_same_texts(keys: Keys, columns: Mapping[str, str]) -> bool:
    """Return whether columns have exactly the texts of the required rows; a fast check that most matches pass."""
    required = [keys.reference.columns[name] for name in columns]
    found = [keys.actual.columns[name] for name in columns.values()]
    if not all(one.is_plain and one.shapes == other.shapes for one, other in zip(required, found, strict=True)):
        return False
    return _same_rows([column.texts for column in required], [column.texts for column in found], keys.rules.rows_as)


def _columns_of_same_texts(keys: Keys) -> dict[str, str] | None:
    """Return the actual columns with the same texts as the required ones, if their rows are also the same."""
    by_content: dict[Hashable, list[str]] = {}  # each column is hashed once, however many are required
    for name, column in keys.actual.columns.items():
        if column.is_plain:
            by_content.setdefault((column.shapes, frozenset(column.texts)), []).append(name)
    found: dict[str, str] = {}
    for name in keys.names:
        column = keys.reference.columns[name]
        alike = by_content.get((column.shapes, frozenset(column.texts)), []) if column.is_plain else []
        if not alike:
            return None
        found[name] = _by_name_first(name, alike)[0]
        alike.remove(found[name])
    return found if _have_same_texts(keys, found) else None


def _by_name_first(name: str, columns: Sequence[str]) -> list[str]:
    return [*dict.fromkeys([*namesakes([name], columns).values(), *columns])]


def _same_rows(cells: Sequence[_Cells], actual: Sequence[_Cells], rows_as: RowsAs) -> bool:
    if rows_as == "list":
        return cells == actual
    rows, actual_rows = zip(*cells, strict=True), zip(*actual, strict=True)
    if rows_as == "set":
        return set(rows) == set(actual_rows)
    return dict(Counter(rows)) == dict(Counter(actual_rows))  # Counter's own == is slow


def _rows_are_equal(
    reference: Sequence[KeyColumn], actual: Sequence[KeyColumn], rows_as: RowsAs, budget: Budget
) -> bool:
    if not _same_rows([column.keys for column in reference], [column.keys for column in actual], rows_as):
        return False
    has_blanks = any(column.blanks for column in (*reference, *actual))
    return not has_blanks or BlankNodes(reference, actual, rows_as, budget).can_be_renamed()


def _content(column: KeyColumn, rows_as: RowsAs) -> Hashable:
    """Return what any two columns that match have in common."""
    blanks = Counter(label for labels in column.blanks.values() for label in labels) if column.blanks else {}
    if rows_as == "set":
        return frozenset(column.keys), len(blanks)
    cells = tuple(column.keys) if rows_as == "list" else frozenset(Counter(column.keys).items())
    return cells, tuple(sorted(blanks.values()))


def _choices(
    required: Sequence[KeyColumn],
    columns: Mapping[str, KeyColumn],
    candidates: list[list[str]],
    rows_as: RowsAs,
    budget: Budget,
) -> Iterator[list[str]]:
    """Yield choices of an actual column for each required one under which both sides have the same groups of rows."""
    kept = list(dict.fromkeys(name for names in candidates for name in names))
    wanted = [_labelled_cells(column) for column in required]
    cells = {name: _labelled_cells(columns[name]) for name in kept}
    # Columns with the same cells are interchangeable, so they are only tried in their order.
    last: dict[Hashable, str] = {}
    before = {}
    for name in kept:
        content = tuple(cells[name])
        before[name], last[content] = last.get(content), name
    tables = iter([cells])
    if rows_as == "set":
        distinct, rows = (list(dict.fromkeys(zip(*side, strict=True))) for side in (wanted, cells.values()))
        wanted, cells = list(zip(*distinct, strict=True)), dict(zip(kept, zip(*rows, strict=True), strict=True))
        # If the numbers of rows are equal, each different row of one side corresponds to one of the other.
        tables = iter([cells]) if len(rows) == len(distinct) else _tables(cells, len(wanted), len(distinct), budget)
    for table in tables:
        if all(before[name] in (None, *table) for name in table):
            some = [[name for name in names if name in table] for names in candidates]
            yield from _depth_first(wanted, table, some, before, budget)


def _tables(cells: Mapping[str, _Cells], width: int, row_count: int, budget: Budget) -> Iterator[dict[str, _Cells]]:
    """Yield selections of ``width`` columns that have as many different rows as the reference.

    Leaving out columns may make rows equal: (a, x, 1), (a, y, 1), (b, x, 2) are two rows without the middle column.
    """
    every = len(next(iter(cells.values())))
    first = min(2 * row_count, every)
    heads = {name: column[:first] for name, column in cells.items()}
    for some in combinations(cells, width):
        budget.spend(_STEPS_OF_A_CHOICE + first)
        if len(set(zip(*map(heads.__getitem__, some), strict=True))) > row_count:
            continue
        budget.spend(every - first)
        different = dict.fromkeys(zip(*map(cells.__getitem__, some), strict=True))
        if len(different) == row_count:
            yield dict(zip(some, zip(*different, strict=True), strict=True))


class _Level(NamedTuple):
    """The groups of reference rows with equal cells in the first few columns of the search."""

    numbers: dict[tuple[_Group, Hashable], _Group]
    sizes: dict[_Group, int]


def _depth_first(
    wanted: Sequence[_Cells],
    columns: Mapping[str, _Cells],
    candidates: list[list[str]],
    before: Mapping[str, str | None],
    budget: Budget,
) -> Iterator[list[str]]:
    """Yield choices of columns under which rows fall into the same groups, of the same sizes.

    Example: the reference has the rows (a, 1), (a, 2), (b, 1), and the actual columns are p = (a, b, a), q = (1, 1, 2)
    and r = (1, 2, 1). Only p has two cells a and one b, so it matches the first column. For the second, q makes the
    groups (a, 1), (b, 1), (a, 2), which are those of the reference. With r there is (b, 2): it is not tried further.
    """
    wanted = [_without_labels(cells) for cells in wanted]
    columns = {name: _without_labels(cells) for name, cells in columns.items()}
    counts = {name: dict(Counter(cells)) for name, cells in columns.items()}
    found = [(names, dict(Counter(cells))) for names, cells in zip(candidates, wanted, strict=True)]
    candidates = [[name for name in names if counts[name] == count] for names, count in found]
    budget.spend(len(columns) * len(wanted[0]))
    if not all(candidates):
        return
    order = sorted(range(len(wanted)), key=lambda at: (len(candidates[at]), -len(set(wanted[at]))))
    levels: list[_Level] = []
    groups: Sequence[_Group] = [0] * len(wanted[0])
    for at in order:
        numbers: dict[tuple[_Group, Hashable], _Group] = {}
        groups = [numbers.setdefault(pair, len(numbers)) for pair in zip(groups, wanted[at], strict=True)]
        levels.append(_Level(numbers, dict(Counter(groups))))
    chosen: list[str] = []
    groups_of_chosen: list[Sequence[_Group]] = [[0] * len(next(iter(columns.values())))]
    waiting = [iter(candidates[order[0]])]
    while waiting:
        name = next(waiting[-1], None)
        if name is None:
            waiting.pop()
            groups_of_chosen.pop()
            del chosen[-1:]
        elif name not in chosen and before[name] in (None, *chosen):
            level = levels[len(chosen)]
            budget.spend(_STEPS_OF_A_CHOICE + len(groups_of_chosen[-1]))
            groups = list(map(level.numbers.get, zip(groups_of_chosen[-1], columns[name], strict=True)))
            if dict(Counter(groups)) != level.sizes:
                continue
            if len(chosen) + 1 == len(order):
                name_of = dict(zip(order, [*chosen, name], strict=True))
                yield [name_of[at] for at in range(len(order))]
                continue
            chosen.append(name)
            groups_of_chosen.append(groups)
            waiting.append(iter(candidates[order[len(chosen)]]))


def _labelled_cells(column: KeyColumn) -> _Cells:
    """Return the keys of a column, with the labels of their blank nodes for cells that have some."""
    if not column.blanks:
        return column.keys
    return [(key, column.blanks[at]) if at in column.blanks else key for at, key in enumerate(column.keys)]


def _without_labels(cells: _Cells) -> _Cells:
    """Return cells in which each blank node is replaced by the number of its occurrences in the column."""
    times = {cell: count for cell, count in Counter(cells).items() if isinstance(cell, tuple)}
    return [(cell[0], times[cell]) if isinstance(cell, tuple) else cell for cell in cells] if times else cells


class BlankNodes:
    """The blank nodes of two results whose rows are otherwise equal, coloured by the rows in which they occur."""

    def __init__(
        self, reference: Sequence[KeyColumn], actual: Sequence[KeyColumn], rows_as: RowsAs, budget: Budget
    ) -> None:
        self._rows_as, self._budget = rows_as, budget
        self._sides: list[list[tuple[Row, tuple[_Node, ...]]]] = []  # each row, and the nodes in it in their order
        for columns in (reference, actual):
            of_columns = [map(column.blanks.get, range(len(column.keys)), repeat(())) for column in columns]
            nodes_of = map(tuple, map(chain.from_iterable, zip(*of_columns, strict=True)))
            self._sides.append(list(zip(zip(*(column.keys for column in columns), strict=True), nodes_of, strict=True)))
        self._rows: list[tuple[_Node, ...]] = []  # the nodes of each different row
        self._rows_of: defaultdict[_Node, list[tuple[int, tuple[_Node, ...]]]] = defaultdict(list)
        numbers: dict[Hashable, int] = {}  # of the rows without their nodes, and the places of a node in them
        for (keys, nodes), times in Counter(chain(*self._sides)).items():
            self._rows.append(nodes)
            for node in dict.fromkeys(nodes):
                about = keys, 1 if rows_as == "set" else times, *map(node.__eq__, nodes)
                self._rows_of[node].append((numbers.setdefault(about, len(numbers)), nodes))

    def can_be_renamed(self) -> bool:
        """Return whether one renaming makes all rows equal; raise if the budget is used up before that is known."""
        if self._rows_as == "list":
            rows = zip(*self._sides, strict=True)
            pairs = {pair for (_, nodes), (_, actual) in rows for pair in zip(nodes, actual, strict=True)}
            return len(dict(pairs)) == len({other: node for node, other in pairs}) == len(pairs)
        waiting = [iter([self._refined(dict.fromkeys(self._rows_of, 0))])]
        while waiting:
            colours = next(waiting[-1], None)
            if colours is None:
                waiting.pop()
                continue
            sides = [Counter(colour for node, colour in colours.items() if (node < 0) == side) for side in (0, 1)]
            if sides[0] != sides[1]:
                continue
            several = {colour for colour, count in sides[0].items() if count > 1}
            # Nodes of one colour are interchangeable if no row has two nodes whose colours are not unique.
            if not several or all(sum(colours[node] in several for node in set(nodes)) < 2 for nodes in self._rows):
                return True
            waiting.append(self._with_one_more_partner(colours, min(several, key=sides[0].__getitem__)))
        return False

    def _with_one_more_partner(self, colours: Mapping[_Node, int], colour: int) -> Iterator[dict[_Node, int]]:
        """Give a node and one possible partner a new colour; yield the refined colours for each such partner."""
        first, *nodes = (node for node, each in colours.items() if each == colour)
        for other in nodes:
            if (other < 0) != (first < 0):
                yield self._refined({**colours, first: -1, other: -1})

    def _refined(self, colours: dict[_Node, int]) -> dict[_Node, int]:
        """Split colours until all nodes of one colour occur in rows of the same colours."""
        count = len(set(colours.values()))
        for _ in range(len(colours)):
            self._budget.spend(_STEPS_OF_A_CHOICE * len(self._rows))
            numbers: dict[Hashable, int] = {}
            refined = {}
            for node, rows in self._rows_of.items():
                around = [(about, *map(colours.__getitem__, nodes)) for about, nodes in rows]
                surroundings = colours[node], around[0] if len(around) == 1 else frozenset(Counter(around).items())
                refined[node] = numbers.setdefault(surroundings, len(numbers))
            colours = refined
            if len(numbers) == count:
                break
            count = len(numbers)
        return colours
