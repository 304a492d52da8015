"""The actual steps that may fulfil one reference step, compared with it only when it matters."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from graphrag_eval_lc.matching.comparison import Comparison, StepView
from graphrag_eval_lc.matching.registry import comparison_of
from graphrag_eval_lc.matching.retrieval_steps import RetrievalSteps
from graphrag_eval_lc.registry.step_kinds import names_that_fulfil, step_kind_for


class Candidates:
    """The successful steps of the right name for one reference step; others cannot fulfil it.

    Args:
        reference: The reference step.
        actual_steps: All actual steps.
        unreadable: Takes up, by index of the actual step, why an output that does not even begin like JSON could not
            be compared. That does not depend on which steps the score needs.
        retrieval: Which steps count as retrieval.

    Attributes:
        reference: The reference step.
        is_retrieval: Whether it counts as retrieval, and is compared as such whatever it is called.
        names: The names of the steps that may fulfil it.
    """

    def __init__(
        self,
        reference: StepView,
        actual_steps: Sequence[StepView],
        unreadable: dict[int, str],
        retrieval: RetrievalSteps,
    ) -> None:
        name = str(reference.get("name"))
        self.reference = reference
        self.is_retrieval = retrieval.includes(reference)
        self.names = retrieval.names_that_fulfil(name) if self.is_retrieval else names_that_fulfil(name)
        self._actual_steps = actual_steps
        self._unreadable = unreadable
        self._matcher = step_kind_for(*retrieval.compared_by(reference)).matcher
        self._compared: dict[int, Comparison] = {}
        self._indices = [
            index for index, step in enumerate(actual_steps) if step.get("status") == "success" and self.may_be(step)
        ]
        for index in self._indices:
            if _is_no_json(actual_steps[index].get("output")):
                self[index]  # compared at once, so that it is told whether or not the score needs it

    def may_be(self, step: StepView) -> bool:
        """Tell whether an actual step has a name that may fulfil it; for retrieval that of its tool will do."""
        return step.get("name") in self.names or (self.is_retrieval and step.tool in self.names)

    def __getitem__(self, index: int) -> Comparison:
        """Give the comparison with one of the steps."""
        if index not in self._compared:
            comparison = comparison_of(self._matcher, self.reference, self._actual_steps[index])
            if comparison.unreadable and _is_no_json(self._actual_steps[index].get("output")):
                self._unreadable.setdefault(index, comparison.unreadable)
            self._compared[index] = self._with_hint(comparison)
        return self._compared[index]

    def compared(self, before: int | None = None) -> dict[int, Comparison]:
        """Give the comparisons with all steps before an index."""
        return {index: self[index] for index in self._indices if before is None or index < before}

    def latest_best(self, before: int | None = None) -> dict[int, Comparison]:
        """Give the comparisons from the last step back to the first that fits in full, which no other can beat."""
        return dict(self._back_to_full_score(before))

    def _with_hint(self, comparison: Comparison) -> Comparison:
        """Add to the reason why relevant ids did not count where there is nothing else to compare with."""
        reference = self.reference
        has_only_ids = reference.get("relevant_ids") is not None and reference.get("output") is None
        if self.is_retrieval or not has_only_ids or comparison.score > 0:
            return comparison
        hint = "relevant_ids count only on steps called retrieval or named in retrieval.steps"
        return replace(comparison, reason=lambda: f"{comparison.reason()}; {hint}")

    def _back_to_full_score(self, before: int | None) -> Iterator[tuple[int, Comparison]]:
        for index in reversed(self._indices):
            if before is None or index < before:
                yield index, self[index]
                if self[index].score == 1.0:
                    return


def _is_no_json(output: Any) -> bool:
    return not isinstance(output, str) or output.lstrip()[:1] not in {"{", "["}
