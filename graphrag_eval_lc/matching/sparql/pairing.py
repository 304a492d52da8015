"""Pairing off as many items as can be with partners of their own."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from graphrag_eval_lc.matching.sparql.budget import Budget

PartnersOf: TypeAlias = Callable[[int], Iterable[int]]
"""Gives the possible partners of an item."""


def can_be_paired(partners: list[list[int]], budget: Budget) -> bool:
    """Tell whether each item can have a partner of its own.

    Args:
        partners: For each item the numbers of its possible partners.
        budget: Counts the pairs that are looked at.

    Example:
        >>> can_be_paired([[0, 1], [0]], Budget(2)), can_be_paired([[0], [0]], Budget(2))
        (True, False)
    """
    return not any(True for _ in unpaired_items(range(len(partners)), partners.__getitem__, budget))


def unpaired_items(
    items: Iterable[int],
    partners_of: PartnersOf,
    budget: Budget,
    *,
    times: Sequence[int] | None = None,
    likely: PartnersOf | None = None,
) -> Iterator[int]:
    """Give the items that are left where as many as can be have a partner.

    Args:
        items: The items.
        partners_of: Gives all partners that an item can have.
        budget: Counts the pairs that are looked at.
        times: How many items each partner can have; one where it is not given.
        likely: Gives the same one by one, the likeliest first.

    Example:
        >>> list(unpaired_items(range(3), [[0], [0], [0]].__getitem__, Budget(3), times=[2]))
        [2]
    """
    pairing = _Pairing(partners_of, times, budget)
    left = [item for item in items if not pairing.takes_free(item, (likely or partners_of)(item))]
    return (item for item in left if not pairing.takes_by_turns(item))


class _Pairing:
    def __init__(self, partners_of: PartnersOf, times: Sequence[int] | None, budget: Budget) -> None:
        self._partners_of = partners_of
        self._times = times
        self._budget = budget
        self._items_of: defaultdict[int, list[int]] = defaultdict(list)
        self._exhausted: set[int] = set()

    def takes_free(self, item: int, partners: Iterable[int]) -> bool:
        """Give an item the first partner that is free."""
        for partner in partners:
            self._budget.spend(1)
            if self._is_free(partner):
                self._items_of[partner].append(item)
                return True
        return False

    def takes_by_turns(self, item: int) -> bool:
        """Find a partner for one more item, for which others change theirs: an augmenting path, breadth first.

        What was reached in vain is exhausted: no later search can change it.
        """
        came_from: dict[int, int] = {}
        partner_of: dict[int, int] = {}
        waiting = deque([item])
        while waiting:
            current = waiting.popleft()
            for partner in self._partners_of(current):
                self._budget.spend(1)
                if partner in came_from or partner in self._exhausted:
                    continue
                came_from[partner] = current
                if self._is_free(partner):
                    self._turn_path(partner, item, came_from, partner_of)
                    return True
                for other in self._items_of[partner]:
                    partner_of[other] = partner
                    waiting.append(other)
        self._exhausted.update(came_from)
        return False

    def _is_free(self, partner: int) -> bool:
        return len(self._items_of[partner]) < (1 if self._times is None else self._times[partner])

    def _turn_path(self, partner: int, item: int, came_from: dict[int, int], partner_of: dict[int, int]) -> None:
        while True:
            owner = came_from[partner]
            self._items_of[partner].append(owner)
            if owner == item:
                return
            partner = partner_of[owner]
            self._items_of[partner].remove(owner)
