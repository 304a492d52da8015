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

from graphrag_eval_lc.matching.assignment import best_assignment
from graphrag_eval_lc.matching.rows_new.terms import KeyColumn, RowsAs

Row: TypeAlias = tuple[int, ...]
Candidates: TypeAlias = list[list[str]]
"""For each required column the actual ones that may stand for it, namesakes first."""

Nearest: TypeAlias = tuple[str | None, ...]
"""For each required column the actual one that comes nearest; None if no value of it is in any."""

MAX_STEPS: Final = 20_000_000
"""So many cells are looked at, which takes some seconds."""

_STEPS_OF_A_CHOICE: Final = 20
_MOST_SELECTIONS: Final = 5_000
"""If there are more ways to leave out actual columns, they are not tried one by one."""

_CHUNK: Final = 2_048
_MOST_TRIED: Final = 200
_MOST_CELLS_TRIED: Final = 1_000_000
_MOST_WEIGHTS: Final = 5_000
"""If more pairs of columns have values in common, they are not assigned in the best way."""

_MOST_AGREEMENTS: Final = 500_000


class SearchCutOff(Exception):
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
    found = {name: name for name in required if name in set(actual)}
    taken = set(found.values())
    by_bare_name: dict[str, str] = {}
    for name in actual:
        if name not in taken:
            by_bare_name.setdefault(bare_name(name), name)
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
    if len(same) == len(required):
        if _rows_are_equal(mine, list(map(actual, same.values())), rows_as, budget):
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
        found.append(sorted(alike, key=lambda other, name=name: (other != name, bare_name(other) != bare_name(name))))
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
    """Return cells with the number of times that their blank nodes are in the column, if that counts, in their place."""
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


def _distinct_rows(
    columns: Sequence[Sequence[Hashable]], most: int, budget: Budget
) -> set[tuple[Hashable, ...]]:
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
    """The blank nodes of two results with rows of the same skeletons, coloured by the rows that they are in.

    Args:
        mine: The required columns.
        others: The actual columns that stand for them.
        rows_as: How rows count.
        budget: Counts the steps.
    """

    def __init__(
        self, mine: Sequence[KeyColumn], others: Sequence[KeyColumn], rows_as: RowsAs, budget: Budget
    ) -> None:
        self._rows_as = rows_as
        self._budget = budget
        self.labelled = [_with_labels(columns) for columns in (mine, others)]
        # A node is a pair of a side and a label; a row is its skeleton, how often it counts, and its nodes.
        self._nodes_of: list[list[tuple[int, int]]] = []
        self._skeletons: list[Hashable] = []
        self._rows_of: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for side, rows in enumerate(self.labelled):
            for (keys, labels), times in ({row: 1 for row in rows} if rows_as == "set" else Counter(rows)).items():
                nodes = [(side, label) for label in labels]
                for node in dict.fromkeys(nodes):
                    self._rows_of[node].append(len(self._nodes_of))
                self._nodes_of.append(nodes)
                self._skeletons.append((keys, tuple(map(labels.index, labels)), times))

    def can_be_renamed(self) -> bool:
        """Return whether one renaming makes all rows equal.

        Raises:
            SearchCutOff: The search ended before it could tell.
        """
        if self._rows_as == "list":
            pairs = [
                pair
                for (_, mine), (_, others) in zip(*self.labelled, strict=True)
                for pair in zip(mine, others, strict=True)
            ]
            return len(dict(pairs)) == len({other: mine for mine, other in pairs}) == len(set(pairs))
        colours = dict.fromkeys(self._rows_of, 0)
        if not self._refined(colours, list(colours)):
            return False
        if self._is_settled(colours):
            return True
        waiting = [self._with_one_more_partner(colours)]
        while waiting:
            found = next(waiting[-1], None)
            if found is None:
                waiting.pop()
            elif self._is_settled(found):
                return True
            else:
                waiting.append(self._with_one_more_partner(found))
        return False

    def coloured_rows(self) -> tuple[list[Hashable], list[Hashable]]:
        """Return the rows of both sides with the colours of their blank nodes in place of labels."""
        colours = dict.fromkeys(self._rows_of, 0)
        self._refined(colours, list(colours), to_the_end=False)
        mine, others = (
            [(keys, tuple(colours[side, label] for label in labels)) for keys, labels in rows]
            for side, rows in enumerate(self.labelled)
        )
        return list(mine), list(others)

    def _refined(
        self, colours: dict[tuple[int, int], int], changed: list[tuple[int, int]], *, to_the_end: bool = True
    ) -> bool:
        """Split colours until nodes of one colour stand in rows of the same colours; False if the sides differ."""
        members: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for node, colour in colours.items():
            members[colour].append(node)
        next_colour = max(members, default=0) + 1
        while changed:
            touched = dict.fromkeys(row for node in changed for row in self._rows_of[node])
            self._budget.spend(10 * len(touched))
            near = dict.fromkeys(node for row in touched for node in self._nodes_of[row])
            parts: defaultdict[int, defaultdict[Hashable, list[tuple[int, int]]]] = defaultdict(
                lambda: defaultdict(list)
            )
            for node in near:
                parts[colours[node]][self._signature(node, colours)].append(node)
            changed, is_even = [], True
            for colour, by_signature in parts.items():
                groups = list(by_signature.values())
                if sum(map(len, groups)) == len(members[colour]):
                    members[colour] = groups.pop(0)  # the first part keeps the colour
                else:
                    moved = {node for group in groups for node in group}
                    members[colour] = [node for node in members[colour] if node not in moved]
                for group in groups:
                    members[next_colour] = group
                    colours.update(dict.fromkeys(group, next_colour))
                    changed += group
                    next_colour += 1
                for group in (members[colour], *groups):
                    is_even = is_even and 2 * sum(side for side, _ in group) == len(group)
            if not (is_even and to_the_end):
                return is_even
        return True

    def _signature(self, node: tuple[int, int], colours: Mapping[tuple[int, int], int]) -> Hashable:
        self._budget.spend(10 * len(self._rows_of[node]))
        return frozenset(
            Counter(
                (
                    self._skeletons[row],
                    tuple((colours[other], other == node) for other in self._nodes_of[row]),
                )
                for row in self._rows_of[node]
            ).items()
        )

    def _is_settled(self, colours: Mapping[tuple[int, int], int]) -> bool:
        """Return whether nodes of one colour are interchangeable: no row has two nodes that share their colours."""
        times = Counter(colours.values())
        self._budget.spend(len(colours) + len(self._nodes_of))
        return all(sum(times[colours[node]] > 2 for node in set(nodes)) < 2 for nodes in self._nodes_of)

    def _with_one_more_partner(self, colours: Mapping[tuple[int, int], int]) -> Iterator[dict[tuple[int, int], int]]:
        """Yield the colours after a node and each one that may be its partner have a colour of their own."""
        members: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for node, colour in colours.items():
            members[colour].append(node)
        nodes = min((nodes for nodes in members.values() if len(nodes) > 2), key=len)
        mine, fresh = nodes[0], max(members) + 1
        for other in nodes:
            if other[0] != mine[0]:
                self._budget.spend(5 * len(colours))
                tried = {**colours, mine: fresh, other: fresh}
                if self._refined(tried, [mine, other]):
                    yield tried


def _with_labels(columns: Sequence[KeyColumn]) -> list[tuple[Row, tuple[int, ...]]]:
    """Return each row with the blank nodes in it, in their order."""
    labelled = [column.blanks for column in columns if column.blanks]
    return [
        (keys, tuple(label for blanks in labelled for label in blanks.get(at, ())))
        for at, keys in enumerate(_rows(columns))
    ]


def shares_of_values(
    required: Mapping[str, Sequence[int]], others: Mapping[str, Sequence[int]]
) -> list[dict[str, float]]:
    """Return for each required column the share of values that it has in common with each actual one that has some."""
    contents, other_contents = ({name: set(cells) for name, cells in each.items()} for each in (required, others))
    return [
        {
            other: 2 * len(common) / (len(content) + len(found))
            for other, found in other_contents.items()
            if (common := content & found)
        }
        for content in contents.values()
    ]


def likely_columns(
    required: Mapping[str, Sequence[int]], others: Mapping[str, Sequence[int]], weights: Sequence[Mapping[str, float]]
) -> list[Nearest]:
    """Return ways to choose actual columns for the required ones, if the results do not match.

    All ways to choose among columns with common values if these are few; else the likeliest ones: by names, by values,
    and by the cells of rows that have the same key.

    Args:
        required: The keys of the required columns.
        others: Those of the actual ones.
        weights: Their ``shares_of_values``.
    """
    cells = sum(map(len, required.values())) + sum(map(len, others.values()))
    if prod(len(found) + 1 for found in weights) <= min(_MOST_TRIED, _MOST_CELLS_TRIED // max(1, cells)):
        return list(_all_ways(weights))
    counts, other_counts = ({name: Counter(cells) for name, cells in each.items()} for each in (required, others))
    finer: list[dict[str, float]] = []
    for name, found in zip(required, weights, strict=True):
        mine, rows = counts[name], len(required[name])
        finer.append({})
        for other, weight in found.items():
            few = len(mine) <= _CHUNK // 16  # how often few values come tells columns of the same values apart
            common = sum(min(times, other_counts[other][key]) for key, times in mine.items()) if few else 0
            finer[-1][other] = weight + common / (rows + len(others[other]))
    ways = [assigned_by_name(list(required), list(others), finer), _assigned(finer, list(others))]
    by_rows = [_by_rows(list(required.values()), others, way, finer) for way in ways]
    return list(dict.fromkeys([*filter(None, by_rows), *ways]))


def assigned_by_name(
    required: Sequence[str], others: Sequence[str], weights: Sequence[Mapping[str, float]]
) -> Nearest:
    """Assign columns by their names, then by what they have in common."""
    by_name = [
        {other: weight + 2.0 * (bare_name(name) == bare_name(other)) for other, weight in found.items()}
        for name, found in zip(required, weights, strict=True)
    ]
    return _assigned(by_name, others)


def _all_ways(weights: Sequence[Mapping[str, float]]) -> Iterator[Nearest]:
    if not weights:
        yield ()
        return
    for rest in _all_ways(weights[1:]):
        yield (None, *rest)
        yield from ((name, *rest) for name in weights[0] if name not in rest)


def _assigned(weights: Sequence[Mapping[str, float]], names: Sequence[str]) -> Nearest:
    """Assign columns so that they have most in common; if they are many, the best pairs first."""
    if sum(map(len, weights)) <= _MOST_WEIGHTS:
        place_of = {name: at for at, name in enumerate(names)}
        found = best_assignment([{place_of[name]: weight for name, weight in each.items()} for each in weights])
        return tuple(None if at is None else names[at] for at in found)
    pairs = sorted((-weight, at, name) for at, each in enumerate(weights) for name, weight in each.items())
    chosen: dict[int, str] = {}
    taken: set[str] = set()
    for _, at, name in pairs:
        if at not in chosen and name not in taken:
            chosen[at] = name
            taken.add(name)
    return tuple(map(chosen.get, range(len(weights))))


def _by_rows(
    mine: Sequence[Sequence[int]],
    others: Mapping[str, Sequence[int]],
    way: Nearest,
    weights: Sequence[Mapping[str, float]],
) -> Nearest | None:
    """Assign columns by the cells that are equal in rows of the same key: a value that each side has once."""
    best: tuple[list[int], dict[int, int], dict[int, int]] = [], {}, {}
    for cells, name in zip(mine, way, strict=True):
        if name is not None:
            row_of, other_row_of = (
                {key: at for at, key in enumerate(column) if times[key] == 1}
                for column, times in ((cells, Counter(cells)), (others[name], Counter(others[name])))
            )
            common = sorted(row_of.keys() & other_row_of.keys())
            best = max(best, (common, row_of, other_row_of), key=lambda each: len(each[0]))
    common, row_of, other_row_of = best
    if not common:
        return None
    common = common[:: max(1, len(common) * sum(map(len, weights)) // _MOST_AGREEMENTS)]
    rows, other_rows = [row_of[key] for key in common], [other_row_of[key] for key in common]
    agreements: list[dict[str, float]] = []
    for cells, found in zip(mine, weights, strict=True):
        wanted = [cells[row] for row in rows]
        agreements.append({})
        for name, weight in found.items():
            column = others[name]
            equal = sum(key == column[row] for key, row in zip(wanted, other_rows, strict=True))
            agreements[-1][name] = equal / len(common) + 0.01 * weight
    return _assigned(agreements, list(others))
