"""The numbers of a column, and whether they lie within the tolerance of those of another column."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Self

from graphrag_eval_lc.matching.sparql.numbers import NumberKind, Tolerances, numbers_are_equal
from graphrag_eval_lc.matching.sparql.rows import RowsAs


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
        """Tell whether two columns may hold the same rows: if not, some number is too far from all others.

        In order, numbers within one tolerance can be paired off if any order will do.
        """
        relative = self.tolerances.loosest(self.kinds, other.kinds)
        if rows_as == "bag":
            return all(numbers_are_equal(*pair, relative) for pair in zip(self.numbers, other.numbers, strict=True))
        return _lie_near(self.numbers, other.numbers, relative) and _lie_near(other.numbers, self.numbers, relative)


def _lie_near(numbers: Sequence[Any], others: Sequence[Any], relative: Decimal) -> bool:
    """Tell whether each number equals one of the others; both are in order."""
    at = 0
    for number in dict.fromkeys(numbers):
        while at < len(others) and others[at] < number:
            at += 1
        near = others[max(at - 1, 0) : at + 1]
        if not any(numbers_are_equal(number, other, relative) for other in near):
            return False
    return True
