"""How well all groups of reference steps were fulfilled: recall, precision, F1, and the order of the steps."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import fsum

from graphrag_eval_lc.matching.candidates import Candidates
from graphrag_eval_lc.registry.metrics import STEPS_F1, STEPS_ORDER, STEPS_PRECISION, STEPS_RECALL

Place = tuple[int, int]
"""A reference step: the index of its group, and its own in the group."""


@dataclass(frozen=True, slots=True)
class StepsQuality:
    """How well the reference steps of all groups were fulfilled, each group for itself; all from 0 to 1.

    Attributes:
        recall: The mean grade of the reference steps.
        precision: The sum of their grades ÷ the number of successful calls that could fulfil some reference step, by
            their names; 0 without such a call.
        order: Of the pairs of matched steps from different groups the share that stands in the order of the reference;
            1 where there is no pair.

    Example:
        >>> StepsQuality(recall=1.0, precision=0.2, order=1.0).f1
        0.33333333333333337
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
    """Return how well the reference steps were fulfilled; None where there are none.

    Args:
        candidates: The reference steps, by group.
        actual_of: For each reference step that is matched the index of its actual step, each used once.
        worths: What these are worth, 0 to 1.
    """
    references = sum(map(len, candidates))
    if not references:
        return None
    calls = len(set[int]().union(*(each.indices for group in candidates for each in group)))
    total = fsum(worths.values())
    return StepsQuality(
        recall=total / references,
        precision=total / calls if calls else 0.0,
        order=order_share([(group, actual) for (group, _), actual in actual_of.items()]),
    )


def order_share(matched: Sequence[tuple[int, int]]) -> float:
    """Return the share of the pairs from different groups that are in order; 1 where there is no pair.

    Args:
        matched: Pairs of a group and the index of an actual step. No index comes twice.

    Example:
        >>> order_share([(0, 3), (1, 1), (2, 5)])
        0.6666666666666666
    """
    before: list[int] = []
    pairs = in_order = 0
    for _, each in groupby(sorted(matched), key=lambda pair: pair[0]):
        indices = [index for _, index in each]
        pairs += len(before) * len(indices)
        in_order += sum(bisect_left(before, index) for index in indices)
        for index in indices:
            insort(before, index)
    return in_order / pairs if pairs else 1.0
