"""The actual steps that may fulfil one reference step, and how each compares with it."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching.matchers import StepScore, StepView, comparison_of
from graphrag_eval_lc.matching.step_views import StepViews


class Candidates:
    """One reference step with the successful steps of the right names; each is compared with it at most once.

    Attributes:
        is_retrieval: Whether it counts as retrieval, and is compared as such whatever its name.
        finds_iris: Whether it looks for an IRI in any text, which does not show that the text could be read.
        names: The names of the steps that may fulfil it.
        indices: The indices of the successful steps of these names.
        made: The comparisons that were made so far, by the index of the actual step.
    """

    def __init__(self, reference: StepView, actual_steps: Sequence[StepView], views: StepViews) -> None:
        self.reference = reference
        self.actual_steps = actual_steps
        self.is_retrieval = views.includes(reference)
        self.names = views.names_that_fulfil(str(reference.get("name")))
        kind = views.kind_of(reference)
        self.finds_iris = kind.shown_as == "iri"
        self.made: dict[int, StepScore] = {}
        self._views = views
        self._matcher = kind.matcher
        self._grades: dict[int, float] = {}
        self.indices = [
            index for index, step in enumerate(actual_steps) if step.get("status") == "success" and self.may_be(step)
        ]
        needs_rows = kind.shown_as == "rows" and not self.is_retrieval
        for index in self.indices:
            if _is_suspect(actual_steps[index], needs_rows=needs_rows):
                self[index]  # whether or not the score needs it: an output that cannot be read is reported

    @property
    def tools(self) -> str:
        """The names of the agent's tools that may fulfil it, for people."""
        return " or ".join(self._views.tools_called(self.names))

    def may_be(self, step: StepView) -> bool:
        """Return whether an actual step has a right name; for retrieval its tool's name will do."""
        return step.get("name") in self.names or (self.is_retrieval and step.tool in self.names)

    def __getitem__(self, index: int) -> StepScore:
        """Return the comparison with one of the actual steps."""
        comparison = self.made.get(index)
        if comparison is None:
            comparison = comparison_of(self._matcher, self.reference, self.actual_steps[index])
            has_only_ids = self.reference.get("output") is None and self.reference.get("relevant_ids") is not None
            if has_only_ids and not self.is_retrieval and comparison.score == 0:
                hint = "relevant_ids count only on steps called retrieval or named in retrieval.steps"
                comparison = _with_more(comparison, hint)
            self.made[index] = comparison
        return comparison

    def latest_best(self, before: float = inf) -> list[int]:
        """Return the steps from the last one before an index back to the first worth 1, which no other can beat."""
        found = []
        for index in reversed(self.indices):
            if index < before:
                found.append(index)
                if self.worth(index) == 1.0:
                    break
        return found

    def undecided(self, before: float = inf) -> list[int]:
        """Return the steps before an index, of those compared so far, that may or may not fulfil it."""
        return sorted(index for index, comparison in self.made.items() if comparison.is_undecided and index < before)

    def is_open(self, matched: int | None) -> bool:
        """Return whether a comparison may yet do better than the step that fulfils it: no decided one does."""
        return matched is None or (self[matched].is_undecided and self.worth(matched) < 1.0)

    def worth(self, index: int) -> float:
        """Return what an actual step is worth for it: its score or, if steps are graded, its grade.

        A grade that fails is 0, and the reason says so.

        Raises:
            MatcherError: A matcher returned a grade that is not one.
        """
        comparison = self[index]
        if not self._views.is_graded:
            return comparison.score
        if index not in self._grades:
            try:
                grade = comparison.worth
            except Exception as problem:
                why = f"its grade failed with {type(problem).__name__}: {str(problem) or 'no message':.200}"
                self.made[index] = replace(_with_more(comparison, why), grade=None)
                grade = 0.0
            if not isinstance(grade, int | float) or not 0 <= grade <= 1:
                what = f"a grade is a number from 0 to 1, not {grade!r:.80}"
                raise MatcherError(
                    f"{what}, for a step named {self.reference.get('name')}",
                    hint="The grade of a StepScore is a function that returns such a number.",
                )
            self._grades[index] = float(grade)
        return self._grades[index]

    def reason(self, index: int) -> str:
        """Return why an actual step is worth so much, for people."""
        worth = self.worth(index)  # before the comparison is read: a grade that fails changes its reason
        comparison = self[index]
        reason = comparison.reason()
        if not self._views.is_graded or comparison.grade is None or worth == 1.0:
            return reason
        if comparison.grade_reason is None:
            return with_more(reason, f"worth {min(worth, 0.999):.3g}")
        return f"{reason.removesuffix('.')}. {comparison.grade_reason()}"


def _with_more(comparison: StepScore, more: str) -> StepScore:
    return replace(comparison, reason=lambda: with_more(comparison.reason(), more))


def _is_suspect(step: StepView, *, needs_rows: bool) -> bool:
    """Return whether an output may be unreadable, by its ends: it is not a whole JSON value, or not one of rows."""
    output = step.get("output")
    if not isinstance(output, str) or step.declared is not None:
        return True
    if output.lstrip()[:1] not in {"{", "["} or output.rstrip()[-1:] not in {"}", "]"}:
        return True
    return needs_rows and '"bindings"' not in output and '"boolean"' not in output


def with_more(reason: str, more: str) -> str:
    """Add a clause to a reason; a sentence if the reason is one."""
    return f"{reason} {more[0].upper()}{more[1:].removesuffix('.')}." if reason.endswith(".") else f"{reason}; {more}"
