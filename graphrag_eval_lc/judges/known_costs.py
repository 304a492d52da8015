"""What answers once cost that are known from an earlier run, so that nothing is paid for them now."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_known: ContextVar[list[float] | None] = ContextVar("known_costs", default=None)


@contextmanager
def noted_known_costs() -> Iterator[list[float]]:
    """Give a list to which the USD of each such answer are added, in this task and in those that it starts.

    Example:
        >>> with noted_known_costs() as known:
        ...     note_known_cost(0.25)
        >>> known
        [0.25]
    """
    costs: list[float] = []
    token = _known.set(costs)
    try:
        yield costs
    finally:
        _known.reset(token)


def note_known_cost(cost: float | None) -> None:
    """Note what an answer once cost; None: not known."""
    costs = _known.get()
    if costs is not None and cost is not None:
        costs.append(cost)
