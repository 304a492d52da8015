"""How well all groups of reference steps were fulfilled: recall, precision, F1, and the order of the steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from graphrag_eval_lc.config import Grading
from graphrag_eval_lc.matching.assignment import best_assignment
from graphrag_eval_lc.matching.candidates import Candidates
from graphrag_eval_lc.matching.matchers import StepScore, StepView
from graphrag_eval_lc.registry.metrics import STEPS_F1, STEPS_ORDER, STEPS_PRECISION, STEPS_RECALL


@dataclass(frozen=True, slots=True)
class StepsQuality:
    """How well the reference steps of all groups were fulfilled, each group for itself; all from 0 to 1.

    Attributes:
        recall: The mean grade of the reference steps.
        precision: The sum of their grades ÷ the number of successful calls that could fulfil some reference step, by
            their names; 0 without such a call.
        order: Of the pairs of matched steps from different groups the share that stands in the order of the reference;
            1 where there is no pair.
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
    candidates: Sequence[Sequence[Candidates]], actual_steps: Sequence[StepView], grading: Grading
) -> StepsQuality | None:
    """Return how well the reference steps were fulfilled; None where there are none.

    Each actual step counts for one reference step at most, of all groups.
    """
    references = [each for group in candidates for each in group]
    if not references:
        return None
    groups = [at for at, group in enumerate(candidates) for _ in group]
    grades = [_grades(each.compared(), grading) for each in references]
    assigned = best_assignment(grades)
    matched = [(groups[at], actual) for at, actual in enumerate(assigned) if actual is not None]
    total = fsum(grades[at][actual] for at, actual in enumerate(assigned) if actual is not None)
    calls = sum(
        step.get("status") == "success" and any(each.may_be(step) for each in references) for step in actual_steps
    )
    pairs = [(one, other) for (group, one), (later, other) in combinations(matched, 2) if group != later]
    return StepsQuality(
        recall=total / len(references),
        precision=total / calls if calls else 0.0,
        order=sum(one < other for one, other in pairs) / len(pairs) if pairs else 1.0,
    )


def _grades(compared: Mapping[int, StepScore], grading: Grading) -> dict[int, float]:
    return {index: each.worth if grading == "graded" else each.score for index, each in compared.items()}
