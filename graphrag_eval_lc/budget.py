"""The budget of a run: limits its cost and tokens, and is checked before each request."""

import threading
from typing import Literal

from graphrag_eval_lc.prices import dollars

Limit = Literal["max_tokens", "max_cost"]


class BudgetSpentError(Exception):
    """A request was not sent because the budget is used up; the message says why."""


class Budget:
    """What a run may spend, and what it has spent.

    Call ``check`` before each request and ``spend`` after it. Requests that are in flight when the budget is used up
    are completed and paid for: only they can exceed the budget. A used up budget stays used up. Thread-safe.

    Example:
        >>> budget = Budget(max_cost=1.0)
        >>> budget.spend(0.75)
        >>> budget.check()
        >>> budget.spend(0.5)
        >>> budget.limit, budget.message
        ('max_cost', 'the budget of $1.00 is spent: $1.25 with requests that were in flight')
    """

    def __init__(self, max_cost: float | None = None, max_tokens: int | None = None) -> None:
        self.max_cost = max_cost
        self.max_tokens = max_tokens
        self.spent = 0.0
        self.tokens = 0
        self.limit: Limit | None = None
        self.message = ""
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise a BudgetSpentError if nothing is left."""
        if self.limit is not None:
            raise BudgetSpentError(self.message)

    def spend(self, cost: float = 0.0, tokens: int = 0) -> None:
        """Count what was spent."""
        with self._lock:
            self.spent += cost
            self.tokens += tokens
            if self.max_cost is not None and self.spent >= self.max_cost:
                self._end("max_cost", _spent_text(dollars(self.max_cost), dollars(self.spent)))
            if self.max_tokens is not None and self.tokens >= self.max_tokens:
                self._end("max_tokens", _spent_text(f"{self.max_tokens:,} tokens", f"{self.tokens:,}"))

    def end(self, limit: Limit, message: str) -> None:
        """Stop all spending because a limit cannot be kept; the first reason is kept."""
        with self._lock:
            self._end(limit, message)

    def _end(self, limit: Limit, message: str) -> None:
        if self.limit is None:
            self.limit, self.message = limit, message


def _spent_text(most: str, spent: str) -> str:
    return f"the budget of {most} is spent: {spent} with requests that were in flight"
