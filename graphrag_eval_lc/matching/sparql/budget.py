"""A bound on the work of a search, counted in steps so that the outcome does not depend on the machine."""

from typing import Final

MAX_STEPS: Final = 20_000_000
"""Rows that a search may look at, over all column mappings and blank node renamings: some seconds of work."""

MAX_PASSES: Final = 50
"""So many times a search may look at all rows of a table, however long it is."""


class SearchCutOff(Exception):  # noqa: N818 - an outcome of a search, not a fault
    """A search reached its bound before it could tell."""


class Budget:
    """Counts the steps of one search.

    Args:
        rows: Rows of the longer table; a long table gets a larger bound.

    Example:
        >>> budget = Budget(rows=100)
        >>> budget.spend(100)
        >>> budget.limit
        20000000
    """

    __slots__ = ("limit", "spent")

    def __init__(self, rows: int) -> None:
        self.limit = max(MAX_STEPS, MAX_PASSES * rows)
        self.spent = 0

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises:
            SearchCutOff: Where they are more than the bound.
        """
        self.spent += steps
        if self.spent > self.limit:
            raise SearchCutOff
