"""Which actual steps fulfil the reference steps of all groups: the best total, and of equal totals the best order."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import fsum
from typing import Final

from graphrag_eval_lc.matching.assignment import best_assignment
from graphrag_eval_lc.matching.candidates import Candidates
from graphrag_eval_lc.matching.steps_quality import Place, order_share

# Divided by the number of reference steps: how many choices are tried at most for a better order.
_EFFORT: Final = 100_000
# Totals that differ by no more are equal.
_EQUAL: Final = 1e-12


def whole_assignment(candidates: Sequence[Sequence[Candidates]]) -> dict[Place, int]:
    """Assign actual steps to the reference steps of all groups, each used once, so that their total worth is the best.

    Of equal totals one is chosen that keeps the order of the groups: where all reference steps can have what is worth
    most for them in that order, they have it; else the best order is looked for, within a bound. The last steps that
    will do are taken, so that few comparisons are made where the agent repaired what it had.
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
    return _OrderSearch(worths, found).best()


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


class _OrderSearch:
    """Looks through the assignments of the same total and number for the one with the best order.

    It goes from the last reference step back, tries first what comes before the steps of later groups, and leaves out
    what cannot reach the total. Where there are too many, the best that was found within the bound will do.

    Args:
        worths: For each reference step the worths above 0 by the index of the actual step.
        actual_of: An assignment of the best total and number.
    """

    def __init__(self, worths: Mapping[Place, Mapping[int, float]], actual_of: Mapping[Place, int]) -> None:
        self._rows = sorted(worths.items(), reverse=True)
        self._best = dict(actual_of)
        self._share = _share(actual_of)
        self._total = fsum(worths[place][actual] for place, actual in actual_of.items()) - _EQUAL
        self._count = len(actual_of)
        self._left = _EFFORT // (len(worths) + 1)
        # What the rows from each on can add at most.
        highest = [max(row.values(), default=0.0) for _, row in self._rows]
        self._rest = [*reversed(list(accumulate(reversed(highest), initial=0.0)))]

    def best(self) -> dict[Place, int]:
        """Return the assignment."""
        tried = [self._options(0, {}, 0.0)]  # without recursion, as there may be hundreds of reference steps
        chosen: list[tuple[Place, int | None]] = []
        while tried and self._share < 1.0 and self._left > 0:
            self._left -= 1
            option = next(tried[-1], None)
            if option is None:
                tried.pop()
                if chosen:
                    chosen.pop()
                continue
            chosen.append((self._rows[len(chosen)][0], option[0]))
            taken = {place: actual for place, actual in chosen if actual is not None}
            if len(chosen) < len(self._rows):
                tried.append(self._options(len(chosen), taken, option[1]))
                continue
            if len(taken) >= self._count and (share := _share(taken)) > self._share:
                self._best, self._share = taken, share
            chosen.pop()
        return self._best

    def _options(self, at: int, taken: Mapping[Place, int], total: float) -> Iterator[tuple[int | None, float]]:
        """Yield what a reference step can take, with the total then; None for nothing."""
        place, row = self._rows[at]
        used = set(taken.values())
        before = min((actual for (group, _), actual in taken.items() if group > place[0]), default=None)
        free = [index for index in row if index not in used]
        for index in sorted(free, key=lambda index: (before is None or index < before, index), reverse=True):
            if total + row[index] + self._rest[at + 1] >= self._total:
                yield index, total + row[index]
        if total + self._rest[at + 1] >= self._total:
            yield None, total


def _share(actual_of: Mapping[Place, int]) -> float:
    return order_share([(group, actual) for (group, _), actual in actual_of.items()])
