"""Equality of single cells, where codes do not settle it.

Equality within a tolerance is not transitive (0 and 1e-8 are equal, 1e-8 and 2e-8 too), nor is that of numbers and
texts ("5" as an integer equals 5.0 and the text "5", which differ). A code therefore stands for a whole chain of
equal cells. Nearly always all cells of a chain are equal; where they may not be, the code is called inexact, and its
cells have detailed codes of their own.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.sparql.numbers import Number, numbers_are_equal

UNBOUND_CODE: Final = 0
BLANK_CODE: Final = 1
"""The code of all blank nodes; as a detailed code each one has a negative number of its own."""


class Cell(NamedTuple):
    """A term with an inexact code, as far as its equality with others goes.

    Attributes:
        value: The number or boolean; None for a text.
        is_boolean: Whether ``value`` is a boolean.
        text: The lexical form.
    """

    value: Number | None
    is_boolean: bool
    text: str


def cells_are_equal(one: Cell, other: Cell) -> bool:
    """Tell whether two cells are equal: numbers and booleans by value, unlike kinds by their text.

    Example:
        >>> cells_are_equal(Cell(5, False, "5"), Cell(5, False, "+5"))
        True
        >>> cells_are_equal(Cell(5, False, "+5"), Cell(None, False, "5"))
        False
    """
    if one.value is None or other.value is None or one.is_boolean != other.is_boolean:
        return one.text == other.text
    return numbers_are_equal(one.value, other.value)


class DetailedCodes:
    """Codes for cells of which others with the same code may differ, and the equality of rows of them.

    Args:
        next_code: Gives a code that is not in use.
    """

    def __init__(self, next_code: Callable[[], int]) -> None:
        self._next_code = next_code
        self._detail_of: dict[Cell, int] = {}
        self._cell_of: dict[int, Cell] = {}
        self._code_of: dict[int, int] = {}
        self._equal: dict[tuple[int, int], bool] = {}

    def detail(self, cell: Cell, code: int) -> int:
        """Give the detailed code of a cell with an inexact code."""
        detail = self._detail_of.get(cell)
        if detail is None:
            detail = self._detail_of[cell] = self._next_code()
            self._cell_of[detail] = cell
            self._code_of[detail] = code
        return detail

    def coarse_row(self, row: tuple[int, ...]) -> tuple[int, ...]:
        """Give the row of codes for a row of detailed codes; blank nodes stay as they are."""
        coarse = self._code_of.get
        return tuple(coarse(detail, detail) for detail in row)

    def is_inexact_row(self, row: tuple[int, ...]) -> bool:
        """Tell whether a row of detailed codes holds a cell with an inexact code."""
        return not self._cell_of.keys().isdisjoint(row)

    def finite_number(self, detail: int) -> int | Decimal | None:
        """Give the number that a detailed code stands for; None if it stands for anything else."""
        cell = self._cell_of.get(detail)
        if cell is None or cell.is_boolean or isinstance(cell.value, str):
            return None
        return cell.value

    def rows_are_equal(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        """Tell whether two rows of detailed codes with the same coarse row are equal, cell by cell."""
        return all(x == y or self.are_equal(x, y) for x, y in zip(one, other, strict=True))

    def are_equal(self, one: int, other: int) -> bool:
        """Tell whether two detailed codes stand for equal cells."""
        if one not in self._cell_of or other not in self._cell_of:
            return one == other
        equal = self._equal.get((one, other))
        if equal is None:
            equal = self._equal[one, other] = cells_are_equal(self._cell_of[one], self._cell_of[other])
        return equal
