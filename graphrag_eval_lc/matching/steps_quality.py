"""How well the reference steps of all groups were fulfilled: by which steps, recall, precision, F1 and order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import fsum, inf, isclose
from typing import Final

from graphrag_eval_lc.matching.assignment import best_assignment, order_share
from graphrag_eval_lc.matching.candidates import Candidates
from graphrag_eval_lc.registry.metrics import STEPS_F1, STEPS_ORDER, STEPS_PRECISION, STEPS_RECALL

# Divided by the number of reference steps: how many changes are tried at most for a better order.
_EFFORT: Final = 100_000

Place = tuple[int, int]
"""A reference step: the index of its group, and its own in the group."""


@dataclass(frozen=True, slots=True)
class StepsQuality:
    """How well the reference steps of all groups were fulfilled, each group compared separately; all from 0 to 1.

    Attributes:
        recall: The mean grade of the reference steps.
        precision: The sum of their grades ÷ the number of successful calls that could fulfil some reference step, by
            their names; 0 without such a call.
        order: Of the pairs of matched steps from different groups the share that is in the order of the reference;
            1 without pairs.
    """

    recall: float
    precision: float
    order: float

    @property
    def f1(self) -> float:
        """The harmonic mean of recall and precision."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0

    def record(self) -> dict[str, float]:
        """Return the metrics as results have them."""
        return {
            STEPS_RECALL: self.recall,
            STEPS_PRECISION: self.precision,
            STEPS_F1: self.f1,
            STEPS_ORDER: self.order,
        }


def steps_quality(
    candidates: Sequence[Sequence[Candidates]], actual_of: Mapping[Place, int], worths: Mapping[Place, float]
) -> StepsQuality | None:
    """Return how well the reference steps were fulfilled, by which actual steps, worth how much; None without any."""
    references = sum(map(len, candidates))
    if not references:
        return None
    calls = len(set[int]().union(*(each.indices for group in candidates for each in group)))
    total = fsum(worths.values())
    return StepsQuality(
        recall=total / references,
        precision=total / calls if calls else 0.0,
        order=_order_of(actual_of),
    )


def whole_assignment(candidates: Sequence[Sequence[Candidates]]) -> dict[Place, int]:
    """Assign actual steps to the reference steps of all groups, each used once, so that their total worth is the best.

    If all reference steps can have what is worth most for them in the order of the groups, they have it. Else the
    assignment is changed, a step or two at a time, as long as its total stays and its order gets better.
    """
    in_order = _assigned_in_order(candidates)
    if in_order is not None:
        return in_order
    worths = _worths(candidates)
    return _in_better_order(worths, _assigned(worths))


def best_total(candidates: Sequence[Sequence[Candidates]], *, of_undecided: float) -> dict[Place, float]:
    """Return what the reference steps get if an undecided comparison is worth at least so much."""
    worths = _worths(candidates, of_undecided)
    return {place: worths[place][actual] for place, actual in _assigned(worths).items()}


def _worths(candidates: Sequence[Sequence[Candidates]], of_undecided: float = 0.0) -> dict[Place, dict[int, float]]:
    rows = {(at, place): each for at, group in enumerate(candidates) for place, each in enumerate(group)}
    return {
        place: {
            index: worth
            for index in each.indices
            if (worth := max(each.worth(index), of_undecided if each[index].is_undecided else 0.0)) > 0
        }
        for place, each in rows.items()
    }


def _assigned(worths: Mapping[Place, Mapping[int, float]]) -> dict[Place, int]:
    assigned = best_assignment(list(worths.values()))
    return {place: actual for place, actual in zip(worths, assigned, strict=True) if actual is not None}


def _assigned_in_order(candidates: Sequence[Sequence[Candidates]]) -> dict[Place, int] | None:
    """Return an assignment in order in which each reference step has what is worth most for it; None if there is none.

    From the last group back each takes such steps as leave the most room to those before it. A reference step that is
    alone in its group takes the last step that is worth so much, so that few comparisons are made if the agent
    repaired what it had.
    """
    actual_of: dict[Place, int] = {}
    before: float = inf
    for at in reversed(range(len(candidates))):
        rows: dict[Place, dict[int, float]] = {}
        for place, each in enumerate(candidates[at]):
            most = max(map(each.worth, each.latest_best()), default=0.0)
            if most == 0:
                continue
            fitting = (index for index in reversed(each.indices) if index < before and each.worth(index) == most)
            chosen = fitting if len(candidates[at]) > 1 else islice(fitting, 1)
            rows[at, place] = dict.fromkeys(chosen, 1.0)
        of_group = _assigned(rows)
        if len(of_group) < len(rows):
            return None
        actual_of |= of_group
        before = min(of_group.values(), default=before)
    return actual_of


def _in_better_order(worths: Mapping[Place, Mapping[int, float]], actual_of: dict[Place, int]) -> dict[Place, int]:
    """Let a reference step take another actual step, and the one that had this take its, if that betters the order.

    Args:
        worths: For each reference step the worths above 0 by the index of the actual step.
        actual_of: An assignment of the best total and number, which stay.
    """
    share, tries = _order_of(actual_of), _EFFORT // (len(worths) + 1)
    options = [(place, index) for place, row in worths.items() for index in row]
    is_better = True
    while is_better and share < 1.0:
        is_better = False
        for place, index in options:
            had, holder = actual_of.get(place), next((at for at, actual in actual_of.items() if actual == index), None)
            changed = {at: actual for at, actual in actual_of.items() if at not in (place, holder)} | {place: index}
            if holder is not None and had is not None and had in worths[holder]:
                changed[holder] = had
            lost = sum(worths[at][actual_of[at]] for at in (place, holder) if at in actual_of)
            won = sum(worths[at][changed[at]] for at in (place, holder) if at in changed)
            if index == had or len(changed) < len(actual_of) or not isclose(lost, won, rel_tol=0, abs_tol=1e-12):
                continue
            tries -= 1
            if (changed_share := _order_of(changed)) > share:
                actual_of, share, is_better = changed, changed_share, True
            if tries == 0:
                return actual_of
    return actual_of


def _order_of(actual_of: Mapping[Place, int]) -> float:
    return order_share([(group, actual) for (group, _), actual in actual_of.items()])
