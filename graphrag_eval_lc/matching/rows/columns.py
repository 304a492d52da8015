"""Which actual columns hold the rows of the required ones, and whether blank nodes can be renamed to make them equal.

Columns of the same names are tried first. Otherwise a column's content says which required columns it may stand for.
What is left to choose is searched depth first: the rows of the columns chosen so far fall into groups of equal cells,
and the groups of both sides must be the same. Blank nodes are compared last, by colour refinement. The search counts
its steps, so that it ends at the same bound on every machine.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import combinations, islice, product
from math import comb, prod
from typing import Final, TypeAlias

from graphrag_eval_lc.matching.rows.terms import KeyColumn, RowsAs

Row: TypeAlias = tuple[int, ...]
Candidates: TypeAlias = list[list[str]]
"""For each required column the actual ones that may stand for it, namesakes first."""

_Node: TypeAlias = tuple[int, int]

MAX_STEPS: Final = 20_000_000
"""So many cells are looked at, which takes some seconds."""

_STEPS_OF_A_CHOICE: Final = 20
_MOST_SELECTIONS: Final = 5_000
"""If there are more ways to leave out actual columns, they are not tried one by one."""

_CHUNK: Final = 2_048


class SearchCutOff(Exception):  # noqa: N818 - it is no error of the caller
    """The search ended at its bound before it could tell."""


class Budget:
    """Counts the steps of a search.

    Raises:
        SearchCutOff: More than ``MAX_STEPS`` were spent.
    """

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, steps: int) -> None:
        """Count some steps."""
        self.spent += steps
        if self.spent > MAX_STEPS:
            raise SearchCutOff(f"the search for matching columns and rows ended at its bound of {MAX_STEPS:,} steps")


def bare_name(name: str) -> str:
    """Return the name of a column without the sign of a variable, in lower case.

    Example:
        >>> bare_name("?Count")
        'count'
    """
    return name.lstrip("?$").casefold()


def namesakes(required: Sequence[str], actual: Sequence[str]) -> dict[str, str]:
    """Return for each required column the actual one of the same name, or of the same but for ``?``, ``$`` and case.

    Example:
        >>> namesakes(["n", "kv"], ["?KV", "n", "N"])
        {'n': 'n', 'kv': '?KV'}
    """
    found = {name: name for name in required if name in actual}
    if len(found) < len(required):
        by_bare_name = {bare_name(name): name for name in reversed(actual) if name not in found}
        for name in required:
            if name not in found and bare_name(name) in by_bare_name:
                found[name] = by_bare_name.pop(bare_name(name))
    return {name: found[name] for name in required if name in found}


def find_columns(
    reference: Mapping[str, KeyColumn],
    actual: Callable[[str], KeyColumn],
    names: Sequence[str],
    rows_as: RowsAs,
    budget: Budget,
    *,
    by_name_only: bool = False,
) -> dict[str, str] | None:
    """Return for each required column an actual one, so that the rows are equal; None if there are none.

    Args:
        reference: The required columns, at least one.
        actual: Returns the actual column of a name; columns that are not needed are never asked for.
        names: The names of the actual columns.
        rows_as: How rows count.
        budget: Counts the steps.
        by_name_only: Whether only columns of the same name stand for each other, as in a graph.

    Raises:
        SearchCutOff: The search ended before it could tell.
    """
    required, mine = list(reference), list(reference.values())
    same = namesakes(required, names)
    if len(same) == len(required) and _rows_are_equal(mine, list(map(actual, same.values())), rows_as, budget):
        return same
    if by_name_only or len(names) < len(required):
        return None
    others = {name: actual(name) for name in names}
    candidates = _candidates(required, mine, others, rows_as)
    if not all(candidates):
        return None
    for chosen in _choices(mine, others, candidates, rows_as, budget):
        budget.spend(_STEPS_OF_A_CHOICE + len(mine) * len(mine[0].keys) // 4)
        if _rows_are_equal(mine, [others[name] for name in chosen], rows_as, budget):
            return dict(zip(required, chosen, strict=True))
    return None


def _rows_are_equal(mine: Sequence[KeyColumn], others: Sequence[KeyColumn], rows_as: RowsAs, budget: Budget) -> bool:
    if rows_as != "set" and len(mine[0].keys) != len(others[0].keys):
        return False
    if rows_as == "list":
        are_equal = all(one.keys == other.keys for one, other in zip(mine, others, strict=True))
    elif rows_as == "set":
        are_equal = set(_rows(mine)) == set(_rows(others))
    else:
        are_equal = dict(Counter(_rows(mine))) == dict(Counter(_rows(others)))
    if not are_equal or not any(column.blanks for column in (*mine, *others)):
        return are_equal
    return BlankNodes(mine, others, rows_as, budget).can_be_renamed()


def _rows(columns: Sequence[KeyColumn]) -> Iterator[Row]:
    return zip(*(column.keys for column in columns), strict=True)


def _candidates(
    required: Sequence[str], mine: Sequence[KeyColumn], others: Mapping[str, KeyColumn], rows_as: RowsAs
) -> Candidates:
    by_content: defaultdict[Hashable, list[str]] = defaultdict(list)
    for name, column in others.items():
        by_content[_content(column, rows_as)].append(name)
    found = []
    for name, column in zip(required, mine, strict=True):
        alike = by_content.get(_content(column, rows_as), [])
        same = namesakes([name], alike).values() if len(alike) > 1 else ()
        found.append(list(dict.fromkeys([*same, *alike])))
    return found


def _content(column: KeyColumn, rows_as: RowsAs) -> Hashable:
    """Return what a column has in common with each that can stand for it."""
    blanks = Counter(label for labels in column.blanks.values() for label in labels)
    if rows_as == "set":
        return frozenset(column.keys), len(blanks)
    about_blanks = tuple(sorted(blanks.values()))
    if rows_as == "list":
        return tuple(column.keys), about_blanks
    return frozenset(Counter(column.keys).items()), about_blanks


def _choices(
    mine: Sequence[KeyColumn],
    others: Mapping[str, KeyColumn],
    candidates: Candidates,
    rows_as: RowsAs,
    budget: Budget,
) -> Iterator[Sequence[str]]:
    """Yield ways to choose columns under which the rows may be equal; the rows of the last step are yet to be seen."""
    kept = list(dict.fromkeys(name for names in candidates for name in names))
    if all(len(names) == 1 for names in candidates):
        if len(kept) == len(candidates):
            yield kept
        return
    columns: list[Sequence[Hashable]] = list(map(_labelled_cells, mine))
    cells: dict[str, Sequence[Hashable]] = {name: _labelled_cells(others[name]) for name in kept}
    same = _duplicates(cells)
    if rows_as != "set":
        yield from _depth_first(columns, cells, candidates, same, budget)
        return
    wanted, rows = list(set(zip(*columns, strict=True))), list(set(zip(*cells.values(), strict=True)))
    columns = list(zip(*wanted, strict=True))
    cells = dict(zip(kept, zip(*rows, strict=True), strict=True))
    if len(rows) == len(wanted):
        yield from _depth_first(columns, cells, candidates, same, budget)
        return
    classes = Counter(map(tuple, map(sorted, candidates)))
    if prod(comb(len(names), times) for names, times in classes.items()) > _MOST_SELECTIONS:
        yield from _depth_first(columns, cells, candidates, same, budget, is_exact=False)
        return
    # With some columns left out there are as many different rows as in the reference, of which each stands for one.
    for parts in product(*(combinations(names, times) for names, times in classes.items())):
        selection = {name for part in parts for name in part}
        if any(other not in selection for name, other in same.items() if name in selection):
            continue
        some = [name for name in kept if name in selection]
        distinct = _distinct_rows([cells[name] for name in some], len(wanted), budget)
        if len(distinct) == len(wanted):
            left = [[name for name in names if name in selection] for names in candidates]
            few = dict(zip(some, zip(*distinct, strict=True), strict=True))
            yield from _depth_first(columns, few, left, same, budget)


def _labelled_cells(column: KeyColumn) -> Sequence[Hashable]:
    """Return the keys of a column; of cells with blank nodes with these."""
    if not column.blanks:
        return column.keys
    return [(key, column.blanks[at]) if at in column.blanks else key for at, key in enumerate(column.keys)]


def _without_labels(cells: Sequence[Hashable], *, is_exact: bool) -> Sequence[Hashable]:
    """Return cells with how often their blank nodes are in the column, if that counts, in place of these."""
    times = {cell: count if is_exact else 0 for cell, count in Counter(cells).items() if isinstance(cell, tuple)}
    return [(cell[0], times[cell]) if isinstance(cell, tuple) else cell for cell in cells] if times else cells


def _duplicates(columns: Mapping[str, Sequence[Hashable]]) -> dict[str, str]:
    """Return for a column the one before it with the same cells, so that it is tried only after that one."""
    known: dict[Hashable, str] = {}
    found = {}
    for name, cells in columns.items():
        content = tuple(cells)
        if content in known:
            found[name] = known[content]
        known[content] = name
    return found


def _distinct_rows(columns: Sequence[Sequence[Hashable]], most: int, budget: Budget) -> set[tuple[Hashable, ...]]:
    """Return the different rows; if they are more than ``most``, not all of them."""
    rows = zip(*columns, strict=True)
    found: set[tuple[Hashable, ...]] = set()
    size = max(_CHUNK, most)
    for start in range(0, len(columns[0]), size):
        budget.spend(_STEPS_OF_A_CHOICE + min(size, len(columns[0]) - start))
        found.update(islice(rows, size))
        if len(found) > most:
            break
    return found


def _depth_first(
    mine: Sequence[Sequence[Hashable]],
    others: Mapping[str, Sequence[Hashable]],
    candidates: Candidates,
    same: Mapping[str, str],
    budget: Budget,
    *,
    is_exact: bool = True,
) -> Iterator[list[str]]:
    """Yield ways to choose a column for each required one, under which the groups of rows are the same.

    Args:
        mine: The required columns.
        others: The actual ones.
        candidates: Which may stand for which.
        same: For a column the one before it that is the same.
        budget: Counts the steps.
        is_exact: Whether groups have the same sizes too.
    """
    mine = [_without_labels(cells, is_exact=is_exact) for cells in mine]
    others = {name: _without_labels(cells, is_exact=is_exact) for name, cells in others.items()}
    if is_exact:
        counts = {name: dict(Counter(cells)) for name, cells in others.items()}
        wanted = [dict(Counter(cells)) for cells in mine]
        candidates = [
            [name for name in names if counts[name] == count] for names, count in zip(candidates, wanted, strict=True)
        ]
        budget.spend(len(others) * len(mine[0]))
        if not all(candidates):
            return
    order = sorted(range(len(mine)), key=lambda at: (len(candidates[at]), -len(set(mine[at]))))
    levels: list[tuple[dict[tuple[int, Hashable], int], dict[int, int]]] = []
    numbers: Sequence[int] = [0] * len(mine[0])
    for at in order:
        number_of: dict[tuple[int, Hashable], int] = {}
        numbers = [number_of.setdefault(pair, len(number_of)) for pair in zip(numbers, mine[at], strict=True)]
        levels.append((number_of, dict(Counter(numbers))))

    def extended(level: int, groups: Sequence[int], name: str) -> Sequence[int] | None:
        number_of, sizes = levels[level]
        budget.spend(_STEPS_OF_A_CHOICE + len(groups))
        found = list(map(number_of.get, zip(groups, others[name], strict=True)))
        found_sizes = dict(Counter(found))
        if None in found_sizes or len(found_sizes) < len(sizes) or (is_exact and found_sizes != sizes):
            return None
        return found  # type: ignore[return-value]  # there is no None in it

    chosen: dict[str, None] = {}
    states: list[Sequence[int]] = [[0] * len(next(iter(others.values())))]
    waiting = [iter(candidates[order[0]])]
    while waiting:
        name = next(waiting[-1], None)
        if name is None:
            waiting.pop()
            states.pop()
            if chosen:
                chosen.popitem()
            continue
        if name in chosen or same.get(name, name) not in (name, *chosen):
            continue
        groups = extended(len(chosen), states[-1], name)
        if groups is None:
            continue
        chosen[name] = None
        if len(chosen) == len(order):
            name_of = dict(zip(order, chosen, strict=True))
            yield [name_of[at] for at in range(len(order))]
            chosen.popitem()
            continue
        states.append(groups)
        waiting.append(iter(candidates[order[len(chosen)]]))


class BlankNodes:
    """The blank nodes of two results whose rows are the same but for these, coloured by the rows that they are in.

    Args:
        mine: The required columns.
        others: The actual columns that stand for them.
        rows_as: How rows count.
        budget: Counts the steps.
    """

    def __init__(self, mine: Sequence[KeyColumn], others: Sequence[KeyColumn], rows_as: RowsAs, budget: Budget) -> None:
        self._rows_as, self._budget = rows_as, budget
        self._labelled = [_with_labels(columns) for columns in (mine, others)]
        # Each different row is what it has next to its nodes, how often it counts, and its nodes: a side and a label.
        self._rows: list[tuple[Hashable, list[_Node]]] = []
        self._rows_of: defaultdict[_Node, list[int]] = defaultdict(list)
        for side, rows in enumerate(self._labelled):
            for (keys, labels), times in Counter(rows).items():
                nodes = [(side, label) for label in labels]
                for node in dict.fromkeys(nodes):
                    self._rows_of[node].append(len(self._rows))
                same = tuple(map(labels.index, labels))
                self._rows.append(((keys, same, 1 if rows_as == "set" else times), nodes))

    def can_be_renamed(self) -> bool:
        """Return whether one renaming makes all rows equal.

        Raises:
            SearchCutOff: The search ended before it could tell.
        """
        if self._rows_as == "list":
            rows = zip(*self._labelled, strict=True)
            pairs = {pair for (_, one), (_, other) in rows for pair in zip(one, other, strict=True)}
            return len(dict(pairs)) == len({other: one for one, other in pairs}) == len(pairs)
        waiting = [iter([self._refined(dict.fromkeys(self._rows_of, 0))])]
        while waiting:
            colours = next(waiting[-1], None)
            if colours is None:
                waiting.pop()
                continue
            sides = [Counter(colour for (of, _), colour in colours.items() if of == side) for side in (0, 1)]
            if sides[0] != sides[1]:
                continue
            several = {colour for colour, count in sides[0].items() if count > 1}
            # Nodes of one colour are interchangeable if no row has two nodes that share their colours with others.
            if all(sum(colours[node] in several for node in set(nodes)) < 2 for _, nodes in self._rows):
                return True
            waiting.append(self._with_one_more_partner(colours, min(several, key=sides[0].__getitem__)))
        return False

    def coloured_rows(self) -> tuple[list[Hashable], list[Hashable]]:
        """Return the rows of both sides with the colours of their blank nodes in place of labels."""
        colours = self._refined(dict.fromkeys(self._rows_of, 0), rounds=1)
        mine, others = (
            [(keys, *(colours[side, label] for label in labels)) for keys, labels in rows]
            for side, rows in enumerate(self._labelled)
        )
        return list(mine), list(others)

    def _refined(self, colours: dict[_Node, int], rounds: int | None = None) -> dict[_Node, int]:
        """Split colours until nodes of one colour are in rows of the same colours."""
        count = len(set(colours.values()))
        for _ in range(len(colours) if rounds is None else rounds):
            self._budget.spend(_STEPS_OF_A_CHOICE * len(self._rows))
            numbers: dict[Hashable, int] = {}
            colours = {
                node: numbers.setdefault((colours[node], self._surroundings(node, colours)), len(numbers))
                for node in colours
            }
            if len(numbers) == count:
                break
            count = len(numbers)
        return colours

    def _surroundings(self, node: _Node, colours: Mapping[_Node, int]) -> Hashable:
        rows = (self._rows[row] for row in self._rows_of[node])
        return frozenset(
            Counter((about, *((colours[other], other == node) for other in nodes)) for about, nodes in rows).items()
        )

    def _with_one_more_partner(self, colours: Mapping[_Node, int], colour: int) -> Iterator[dict[_Node, int]]:
        """Yield the colours after a node of a colour and each one that may be its partner have one of their own."""
        nodes = [node for node, each in colours.items() if each == colour]
        for other in nodes:
            if other[0] != nodes[0][0]:
                yield self._refined({**colours, nodes[0]: -1, other: -1})


def _with_labels(columns: Sequence[KeyColumn]) -> list[tuple[Row, tuple[int, ...]]]:
    """Return each row with the blank nodes in it, in their order."""
    labelled = [column.blanks for column in columns if column.blanks]
    return [
        (keys, tuple(label for blanks in labelled for label in blanks.get(at, ())))
        for at, keys in enumerate(_rows(columns))
    ]
