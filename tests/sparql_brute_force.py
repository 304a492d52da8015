"""SPARQL rows compared slowly and plainly, by trying everything: what the quick comparison must agree with."""

from collections.abc import Callable, Iterable, Iterator
from itertools import permutations, product

Cell = tuple[str, str, str] | None
"""Type, text and datatype of a term; None where it is unbound."""

Rows = list[tuple[Cell, ...]]
Equal = Callable[[Cell, Cell, bool], bool]
"""Tells whether two cells are equal; exactly, or within the tolerance."""


class Rules:
    """How rows are compared."""

    def __init__(self, cells: Iterable[Cell], equal: Equal) -> None:
        known = set(cells)
        self.equal = {(one, other): equal(one, other, False) for one in known for other in known}
        self.values: dict[Cell, int] = {}
        for cell in known:  # cells of the same value, or of a chain of the same values
            joined = {self.values[other] for other in self.values if equal(cell, other, True)}
            number = min(joined, default=len(self.values))
            self.values = {other: number if value in joined else value for other, value in self.values.items()}
            self.values[cell] = number

    def rows_equal(self, one: tuple[Cell, ...], other: tuple[Cell, ...]) -> bool:
        return all(map(self.equal.__getitem__, zip(one, other, strict=True)))

    def kept_of(self, rows: Rows) -> Iterator[Rows]:
        """Return the ways to leave out rows that have the values of another one."""
        values = [tuple(map(self.values.__getitem__, row)) for row in rows]
        for kept in product([True, False], repeat=len(rows)):
            if {value for value, keep in zip(values, kept, strict=True) if keep} == set(values):
                yield [row for row, keep in zip(rows, kept, strict=True) if keep]

    def bags_match(self, mine: Rows, others: Rows) -> bool:
        if len(mine) != len(others):
            return False
        if not mine:
            return True
        return any(
            self.rows_equal(mine[0], other) and self.bags_match(mine[1:], others[:at] + others[at + 1 :])
            for at, other in enumerate(others)
        )

    def sets_match(self, mine: Rows, others: Rows) -> bool:
        if not all(any(self.rows_equal(row, other) for other in others) for row in mine):
            return False
        if not all(any(self.rows_equal(row, other) for row in mine) for other in others):
            return False
        kept = list(self.kept_of(others))
        return any(self.bags_match(rows, other_rows) for rows in self.kept_of(mine) for other_rows in kept)

    def rows_match(self, mine: Rows, others: Rows, ordered: bool, ignore_duplicates: bool) -> bool:
        if ordered:
            return len(mine) == len(others) and all(map(self.rows_equal, mine, others))
        return self.sets_match(mine, others) if ignore_duplicates else self.bags_match(mine, others)


def renamings(mine: Rows, others: Rows) -> Iterator[Rows]:
    """Return the other rows under every one-to-one renaming of their blank nodes to mine."""
    labels, other_labels = (
        sorted({cell[1] for row in rows for cell in row if cell is not None and cell[0] == "bnode"})
        for rows in (mine, others)
    )
    if len(labels) != len(other_labels):
        return
    for order in permutations(labels):
        new = dict(zip(other_labels, order, strict=True))
        yield [
            tuple(("bnode", new[cell[1]], "") if cell is not None and cell[0] == "bnode" else cell for cell in row)
            for row in others
        ]


def brute_force_score(
    mine: Rows, others: Rows, equal: Equal, *, ordered: bool = False, ignore_duplicates: bool = True
) -> float:
    """Return 1.0 if some columns of the others hold the rows of mine, else 0.0."""
    rules = Rules((cell for row in (*mine, *others) for cell in row), equal)
    for columns in permutations(range(len(others[0])), len(mine[0])):
        projected = [tuple(row[at] for at in columns) for row in others]
        for renamed in renamings(mine, projected):
            if rules.rows_match(mine, renamed, ordered, ignore_duplicates):
                return 1.0
    return 0.0
