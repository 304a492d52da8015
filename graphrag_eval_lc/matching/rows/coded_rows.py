"""Rows of codes: how they count, when they are equal in detail, and how many of them a search may look at.

Equality within a tolerance is not transitive (0 equals 1e-8, which equals 2e-8), nor is that of values and texts (the
integer "5" equals 5.0 and the text "5", which differ). A code therefore stands for a whole chain of equal cells. Nearly
always all cells of a chain are equal; where they may not be, or where it matters that they have different values, the
code is called inexact, and its cells have detailed codes of their own.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from graphrag_eval_lc.matching.rows.values import Family, ValueRules
from graphrag_eval_lc.matching.rows.wkt import Geometry, geometries_are_equal
from graphrag_eval_lc.matching.rows.xsd_numbers import (
    NumberKind,
    Tolerances,
    numbers_are_equal,
    tolerated_range,
)

RowsAs: TypeAlias = Literal["set", "bag", "list"]
"""How rows count: without duplicates, with them, or with their order too."""

Column: TypeAlias = Sequence[int]
Row: TypeAlias = tuple[int, ...]


class Rules(NamedTuple):
    """How two results are compared; if strictly, by RDF terms and not by values alone."""

    rows_as: RowsAs
    strict: bool
    tolerances: Tolerances
    values: ValueRules


def rows_of(columns: Sequence[Column]) -> Iterable[Row]:
    """Return the rows of one or more columns."""
    return zip(*columns, strict=True)


class ColumnNumbers(NamedTuple):
    """The numbers of a column whose codes do not settle which are equal.

    Attributes:
        numbers: The numbers in order, each as often as it occurs.
        kinds: What they are.
        tolerances: The tolerances of these kinds.
    """

    numbers: list[Any]
    kinds: frozenset[NumberKind]
    tolerances: Tolerances

    def may_equal(self, other: Self, rows_as: RowsAs) -> bool:
        """Return whether two columns may hold equal numbers; if not, some number is too far from all of the other side.

        Numbers with one tolerance can be paired off in order, if at all.
        """
        relative = self.tolerances.loosest(self.kinds, other.kinds)
        if rows_as == "bag":
            return all(numbers_are_equal(*pair, relative) for pair in zip(self.numbers, other.numbers, strict=True))
        return _lie_near(self.numbers, other.numbers, relative) and _lie_near(other.numbers, self.numbers, relative)


def _lie_near(numbers: Sequence[Any], others: Sequence[Any], relative: Decimal) -> bool:
    """Return whether each number equals one of the others; both are in order."""
    at = 0
    for number in dict.fromkeys(numbers):
        while at < len(others) and others[at] < number:
            at += 1
        near = others[max(at - 1, 0) : at + 1]
        if not any(numbers_are_equal(number, other, relative) for other in near):
            return False
    return True


UNBOUND_CODE: Final = 0
BLANK_CODE: Final = 1
"""The code of all blank nodes; in detailed codes each has a negative number of its own."""


class Cell(NamedTuple):
    """A term with an inexact code, as far as its equality with others goes.

    Attributes:
        text: The lexical form.
        family: What kind of value it has; None for a text.
        value: The value; None for a text.
        kind: What ``value`` is if it is a number; else None.
    """

    text: str
    family: Family | None = None
    value: Any = None
    kind: NumberKind | None = None


def cells_are_equal(one: Cell, other: Cell, tolerances: Tolerances) -> bool:
    """Return whether two cells are equal: those of one family by value, all others by their text.

    Example:
        >>> five = Cell("5", Family.NUMBER, 5, NumberKind.INTEGER)
        >>> cells_are_equal(five, Cell("+5", Family.NUMBER, 5, NumberKind.INTEGER), Tolerances())
        True
        >>> cells_are_equal(five, Cell("5"), Tolerances()), cells_are_equal(five, Cell("+5"), Tolerances())
        (True, False)
    """
    if one.family is None or one.family != other.family:
        return one.text == other.text
    if one.kind is not None and other.kind is not None:
        return numbers_are_equal(one.value, other.value, tolerances.between(one.kind, other.kind))
    if one.family == Family.GEOMETRY:
        return geometries_are_equal(one.value, other.value, tolerances.double)
    return bool(one.value == other.value)


class DetailedCodes:
    """Detailed codes for cells with inexact codes, and the equality of rows of them.

    Args:
        next_code: Returns a code that is not in use.
        tolerances: Those of numbers.
    """

    def __init__(self, next_code: Callable[[], int], tolerances: Tolerances) -> None:
        self._next_code = next_code
        self._tolerances = tolerances
        self._detail_of: dict[Cell, int] = {}
        self._cell_of: dict[int, Cell] = {}
        self._code_of: dict[int, int] = {}
        self._exact_code_of: dict[int, int] = {}
        self._equal: dict[tuple[int, int], bool] = {}
        self._kinds: set[NumberKind] = set()

    def detail(self, cell: Cell, code: int, exact_code: int) -> int:
        """Return the detailed code of a cell with an inexact code; its exact code stands for just its value."""
        detail = self._detail_of.get(cell)
        if detail is None:
            detail = self._detail_of[cell] = self._next_code()
            self._cell_of[detail] = cell
            self._code_of[detail] = code
            self._exact_code_of[detail] = exact_code
            if cell.kind is not None:
                self._kinds.add(cell.kind)
        return detail

    def coarse_row(self, row: tuple[int, ...]) -> tuple[int, ...]:
        """Return the codes of a row of detailed codes; blank nodes stay as they are."""
        coarse = self._code_of.get
        return tuple(coarse(detail, detail) for detail in row)

    def exact_row(self, row: tuple[int, ...]) -> tuple[int, ...]:
        """Return what a row of detailed codes has in common with its duplicates: the exact values of numbers."""
        exact = self._exact_code_of.get
        return tuple(exact(detail, detail) for detail in row)

    def is_inexact_row(self, row: Sequence[int]) -> bool:
        """Return whether a row, or a column, of detailed codes holds a cell with an inexact code."""
        return not self._cell_of.keys().isdisjoint(row)

    def finite_number(self, detail: int) -> int | Decimal | None:
        """Return the number of a detailed code, the first one of a geometry; None if it stands for anything else."""
        cell = self._cell_of.get(detail)
        if cell is None:
            return None
        if isinstance(cell.value, Geometry):
            return cell.value.first_number
        if cell.kind is None or isinstance(cell.value, str):
            return None
        number: int | Decimal = cell.value
        return number

    def numbers_of(self, column: Iterable[int]) -> ColumnNumbers | None:
        """Return the finite numbers among detailed codes; None where there are none, or other inexact cells too."""
        times = Counter(detail for detail in column if detail in self._cell_of)
        cells = [(self._cell_of[detail], count) for detail, count in times.items()]
        if not cells or any(cell.kind is None or isinstance(cell.value, str) for cell, _ in cells):
            return None
        numbers: list[Any] = [cell.value for cell, count in cells for _ in range(count)]
        kinds = frozenset(cell.kind for cell, _ in cells if cell.kind is not None)
        return ColumnNumbers(sorted(numbers), kinds, self._tolerances)

    def has_one_tolerance(self, details: Collection[int], others: Collection[int]) -> bool:
        """Return whether all are finite numbers, and any of the first has the same tolerance with any of the others."""
        cells = [self._cell_of.get(detail) for detail in chain(details, others)]
        if any(cell is None or cell.kind is None or isinstance(cell.value, str) for cell in cells):
            return False
        kinds, other_kinds = ({self._cell_of[detail].kind for detail in each} for each in (details, others))
        pairs = ((one, other) for one in kinds for other in other_kinds if one is not None and other is not None)
        return len({self._tolerances.between(*pair) for pair in pairs}) == 1

    def range_of_equals(self, detail: int) -> tuple[Decimal, Decimal]:
        """Return bounds around all numbers that equal the finite number of a detailed code.

        Raises:
            ValueError: There is none.
        """
        number, kind = self.finite_number(detail), self._cell_of[detail].kind
        if number is None:
            raise ValueError(f"{self._cell_of[detail].text:.40} is no finite number")
        relative = self._tolerances.double if kind is None else self._tolerances.loosest({kind}, self._kinds)
        return tolerated_range(number, relative)

    def rows_are_equal(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        """Return whether two rows of detailed codes are equal whose codes are."""
        return all(x == y or self.are_equal(x, y) for x, y in zip(one, other, strict=True))

    def are_equal(self, one: int, other: int) -> bool:
        """Return whether two detailed codes stand for equal cells."""
        if one not in self._cell_of or other not in self._cell_of:
            return one == other
        equal = self._equal.get((one, other))
        if equal is None:
            equal = cells_are_equal(self._cell_of[one], self._cell_of[other], self._tolerances)
            self._equal[one, other] = equal
        return equal


MAX_STEPS: Final = 20_000_000
"""Steps that a search may take, over all column mappings and blank node renamings: some seconds of work."""

MAX_PASSES: Final = 20
"""A search may look so many times at all rows, however long the table is."""

MAX_SEC: Final = 60.0
"""Wall time after which a search stops although it has steps left, on a machine that is slow or busy."""

_STEPS_BETWEEN_LOOKS: Final = 100_000
"""The clock is read so seldom that it costs nothing."""

STEPS_OF_A_LOOK: Final = 2
"""Skipping a column costs about as much as looking at so many rows."""

STEPS_OF_A_CHOICE: Final = 20
"""Trying a column costs about as much as looking at so many rows, however few it has."""

STEPS_OF_A_PAIR: Final = 12
"""Comparing two cells exactly takes about as long as looking at so many rows."""


class SearchCutOff(Exception):  # noqa: N818 - an outcome of a search, not a fault
    """A search reached its bound before it could tell; the text says which one."""


class Budget:
    """Counts the steps of one search: a step is the work of looking at a row, about 0.1 µs.

    The bound in steps makes the outcome the same on every machine. The one in wall time is for a machine that is so
    slow that the first one is of no use; its text says so.

    Args:
        rows: Rows of the longer table; a long table gets a larger bound.
        max_steps: Steps for tables that are not long.
        max_sec: Seconds of wall time; above 0.
        clock: Tells the time in seconds.

    Attributes:
        limit: The bound in steps.
        spent: The steps so far.

    Example:
        >>> budget = Budget(rows=100)
        >>> budget.spend(100)
        >>> budget.limit
        20000000
    """

    __slots__ = ("_clock", "_max_sec", "_next_look", "_started", "limit", "spent")

    def __init__(
        self,
        rows: int,
        *,
        max_steps: int | None = None,
        max_sec: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = max(MAX_STEPS if max_steps is None else max_steps, MAX_PASSES * rows)
        self.spent = 0
        self._max_sec = MAX_SEC if max_sec is None else max_sec
        self._clock = clock
        self._started = clock()
        self._next_look = min(self.limit, _STEPS_BETWEEN_LOOKS)

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises:
            SearchCutOff: Where they are more than the bound, or take longer than the bound in wall time.
        """
        self.spent += steps
        if self.spent > self._next_look:
            self._look()

    def _look(self) -> None:
        if self.spent > self.limit:
            raise SearchCutOff(f"was cut off at its bound of {self.limit:,} steps")
        if self._clock() - self._started > self._max_sec:
            seconds = f"{self._max_sec:g} seconds of wall time"
            raise SearchCutOff(f"was stopped after {seconds}; on another machine it may be decided")
        self._next_look = min(self.limit, self.spent + _STEPS_BETWEEN_LOOKS)
