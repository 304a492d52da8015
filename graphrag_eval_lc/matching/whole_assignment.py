"""Which actual steps fulfil the reference steps of all groups: the best total, and of equal totals the best order."""

from collections.abc import Mapping, Sequence
from typing import Final

from graphrag_eval_lc.matching.assignment import best_assignment
from graphrag_eval_lc.matching.candidates import Candidates
from graphrag_eval_lc.matching.steps_quality import Place, order_share

# Divided by the number of reference steps: how many changes of an assignment are weighed at most to better its order.
_EFFORT: Final = 200_000
# Totals that differ by no more are equal.
_EQUAL: Final = 1e-12


def whole_assignment(candidates: Sequence[Sequence[Candidates]]) -> dict[Place, int]:
    """Assign actual steps to the reference steps of all groups, each used once, so that their total worth is the best.

    Of equal totals one is chosen that keeps the order of the groups: where all reference steps can have what is worth
    most for them in that order, they have it; else the order is bettered step by step. The last steps that will do
    are taken, so that few comparisons are made where the agent repaired what it had.
    """
    groups = [group for group in candidates if group]
    places = [(at, index) for at, group in enumerate(candidates) for index in range(len(group))]
    flat = {place: candidates[place[0]][place[1]] for place in places}
    best = {place: worth for place, each in flat.items() if (worth := _best_worth(each)) > 0}
    walked = _Walk(flat, best)
    if walked.is_in_order:
        return walked.actual_of
    if walked.is_best and len(groups) == 1:
        return walked.actual_of
    if walked.is_best and (in_order := _walked_by_groups(candidates, best)) is not None:
        return in_order
    worths = {
        place: {index: worth for index in each.indices if (worth := each.worth(index)) > 0}
        for place, each in flat.items()
    }
    if walked.is_best:
        found = walked.actual_of
    else:
        assigned = best_assignment(list(worths.values()))
        found = {place: actual for place, actual in zip(worths, assigned, strict=True) if actual is not None}
    return _Order(worths, found).bettered()


def best_total(candidates: Sequence[Sequence[Candidates]], *, of_undecided: float) -> dict[Place, float]:
    """Return what the reference steps get where an undecided comparison is worth at least so much."""
    flat = {(at, index): each for at, group in enumerate(candidates) for index, each in enumerate(group)}
    worths: dict[Place, dict[int, float]] = {}
    for place, each in flat.items():
        row = {index: each.worth(index) for index in each.indices}
        row |= {index: max(row[index], of_undecided) for index in each.undecided()}
        worths[place] = {index: worth for index, worth in row.items() if worth > 0}
    assigned = best_assignment(list(worths.values()))
    return {place: worths[place][actual] for place, actual in zip(worths, assigned, strict=True) if actual is not None}


def _best_worth(candidates: Candidates) -> float:
    return max(map(candidates.worth, candidates.latest_best()), default=0.0)


class _Walk:
    """From the last reference step back each takes the last step that is worth most for it, before later groups' steps.

    Attributes:
        actual_of: The steps taken.
        is_best: Whether each reference step has what is worth most for it, so that no total is higher.
        is_in_order: Whether they are the best and stand in the order of the groups.
    """

    def __init__(self, flat: Mapping[Place, Candidates], best: Mapping[Place, float]) -> None:
        self.actual_of: dict[Place, int] = {}
        self.is_best = self.is_in_order = True
        taken: set[int] = set()
        before: int | None = None
        earliest: int | None = None
        walked: int | None = None
        for place in sorted(best, reverse=True):
            if place[0] != walked:
                walked, before = place[0], earliest
            actual = flat[place].latest_worth(best[place], before, taken)
            if actual is None:
                self.is_in_order = False
                actual = flat[place].latest_worth(best[place], None, taken)
            elif earliest is None or actual < earliest:
                earliest = actual
            if actual is None:
                self.is_best = False
                return
            taken.add(actual)
            self.actual_of[place] = actual


def _walked_by_groups(
    candidates: Sequence[Sequence[Candidates]], best: Mapping[Place, float]
) -> dict[Place, int] | None:
    """Return an assignment in order that gives each reference step what is worth most for it; None if there is none.

    Each group takes such steps as leave the most room to those before it.
    """
    actual_of: dict[Place, int] = {}
    before: int | None = None
    for at in reversed(range(len(candidates))):
        wanted = {place: best[place] for place in best if place[0] == at}
        rows = [
            {
                index: 1.0
                for index in candidates[at][place[1]].indices
                if (before is None or index < before) and candidates[at][place[1]].worth(index) == worth
            }
            for place, worth in wanted.items()
        ]
        if not all(rows):
            return None
        assigned = best_assignment(rows) if rows else []
        for place, actual in zip(wanted, assigned, strict=True):
            if actual is None:
                return None
            actual_of[place] = actual
        before = min((actual_of[place] for place in wanted), default=before)
    return actual_of


class _Order:
    """An assignment whose order is bettered by changes that leave its total as it is."""

    def __init__(self, worths: Mapping[Place, Mapping[int, float]], actual_of: dict[Place, int]) -> None:
        self.actual_of = actual_of
        self._worths = worths
        self._share = _share(actual_of)
        self._left = _EFFORT // (len(worths) + 1)

    def bettered(self) -> dict[Place, int]:
        """Change what betters the order until nothing does, or enough changes were weighed."""
        while self._share < 1.0 and any(self._has_bettered(place) for place in self._worths):
            pass
        return dict(sorted(self.actual_of.items()))

    def _has_bettered(self, place: Place) -> bool:
        """Give a reference step another step, free or that of another one, where that betters the order."""
        place_of = {actual: other for other, actual in self.actual_of.items()}
        for actual in (*self._worths[place], None):
            other = place_of.get(actual) if actual is not None else None
            changed = self._changed(place, actual, other) if other != place else None
            if changed is None or self._left <= 0:
                continue
            self._left -= 1
            if (share := _share(changed)) > self._share:
                self.actual_of, self._share = changed, share
                return True
        return False

    def _changed(self, place: Place, actual: int | None, other: Place | None) -> dict[Place, int] | None:
        """Return the assignment with another step for one, whose own goes to the other; None where that costs."""
        now = self.actual_of.get(place)
        if other is not None and now is not None and now not in self._worths[other]:
            return None
        gained = self._worth(place, actual) + self._worth(other, now)
        lost = self._worth(place, now) + self._worth(other, actual)
        if abs(gained - lost) > _EQUAL:
            return None
        changed = {each: index for each, index in self.actual_of.items() if each not in (place, other)}
        changed |= {
            each: index for each, index in ((place, actual), (other, now)) if each is not None and index is not None
        }
        return changed

    def _worth(self, place: Place | None, actual: int | None) -> float:
        return 0.0 if place is None or actual is None else self._worths[place][actual]


def _share(actual_of: Mapping[Place, int]) -> float:
    return order_share([(group, actual) for (group, _), actual in actual_of.items()])
