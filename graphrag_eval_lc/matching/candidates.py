"""The actual steps that may fulfil a reference step: those of the right name, their scores, and the nearest one."""

from collections.abc import Container, Iterable, Sequence, Set
from dataclasses import dataclass, replace

from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching.matchers import (
    ComparisonOutcome,
    StepScore,
    StepView,
    comparison_of,
)
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.registry.step_kinds import names_that_fulfil
from graphrag_eval_lc.texts import plural, shortened


class Candidates:
    """The steps that may fulfil one reference step: the successful ones of the right name.

    Args:
        reference: The reference step.
        actual_steps: All actual steps.
        unreadable: Takes up, by index of the actual step, why an output could not be compared, or None where another
            comparison could read it. Outputs that are no whole JSON are compared whether or not the score needs them.
        cut: Takes up, by index of the actual step, where the output of a compared step ends before its end.
        views: How the config has steps read.

    Attributes:
        reference: The reference step.
        is_retrieval: Whether it counts as retrieval, and is compared as such whatever its name.
        names: The names of the steps that may fulfil it.
        indices: The indices of the successful steps of these names.
    """

    def __init__(
        self,
        reference: StepView,
        actual_steps: Sequence[StepView],
        unreadable: dict[int, str | None],
        cut: dict[int, str],
        views: StepViews,
    ) -> None:
        name = str(reference.get("name"))
        self.reference = reference
        self.is_retrieval = views.includes(reference)
        self.names = views.names_that_fulfil(name) if self.is_retrieval else names_that_fulfil(name)
        self._views = views
        self._actual_steps = actual_steps
        self._unreadable = unreadable
        self._cut = cut
        kind = views.kind_of(reference)
        self._matcher = kind.matcher
        self._finds_iris = kind.shown_as == "iri"  # in any text, which is not to read it
        self._compared: dict[int, StepScore] = {}
        self._is_graded = views.is_graded
        self._grades: dict[int, float] = {}
        self._undecided: set[int] = set()
        self.indices = [
            index for index, step in enumerate(actual_steps) if step.get("status") == "success" and self.may_be(step)
        ]
        for index in self.indices:
            if _is_suspect(actual_steps[index], needs_rows=kind.shown_as == "rows" and not self.is_retrieval):
                self[index]  # compared at once, for `unreadable`

    @property
    def tools(self) -> str:
        """What the agent's tools that may fulfil it are called, for people."""
        return " or ".join(self._views.tools_called(self.names))

    def may_be(self, step: StepView) -> bool:
        """Return whether an actual step has a right name; for retrieval its tool's name will do."""
        return step.get("name") in self.names or (self.is_retrieval and step.tool in self.names)

    def __getitem__(self, index: int) -> StepScore:
        """Return the comparison with one of the actual steps."""
        if index not in self._compared:
            actual = self._actual_steps[index]
            comparison = comparison_of(self._matcher, self.reference, actual)
            if actual.is_read or (comparison.score > 0 and not self._finds_iris):
                self._unreadable[index] = None
            elif comparison.unreadable:
                self._unreadable.setdefault(index, comparison.unreadable)
            if comparison.cut is not None:
                self._cut.setdefault(index, comparison.cut)
            if comparison.is_undecided:
                self._undecided.add(index)
            self._compared[index] = self._with_hint(comparison)
        return self._compared[index]

    def worth(self, index: int) -> float:
        """Return what an actual step is worth for it: its score or, where steps are graded, its grade.

        Raises:
            MatcherError: A matcher gave a grade that is none.
        """
        if not self._is_graded:
            return self[index].score
        if index not in self._grades:
            self._grades[index] = self._grade(index)
        return self._grades[index]

    def _grade(self, index: int) -> float:
        comparison = self[index]
        try:
            grade = comparison.worth
        except Exception as problem:
            why = f"its grade failed with {type(problem).__name__}: {str(problem) or 'no message':.200}"
            self._compared[index] = replace(comparison, reason=lambda: f"{comparison.reason()}; {why}", grade=None)
            return 0.0
        if isinstance(grade, int | float) and 0 <= grade <= 1:
            return float(grade)
        raise MatcherError(
            f"a grade is a number from 0 to 1, not {grade!r:.80}, for a step named {self.reference.get('name')}",
            hint="The grade of a StepScore is a function that returns such a number.",
        )

    def reason(self, index: int) -> str:
        """Return why an actual step is worth so much, for people."""
        comparison = self[index]
        if not self._is_graded or comparison.grade is None:
            return comparison.reason()
        worth = self.worth(index)
        comparison = self[index]  # says why, where the grade failed
        reason = comparison.reason()
        if worth == 1.0 or comparison.grade is None:
            return reason
        if comparison.grade_reason is None:
            return f"{reason}; worth {min(worth, 0.999):.3g}"
        return f"{reason.removesuffix('.')}. {comparison.grade_reason()}"

    def compared(self, before: int | None = None) -> dict[int, StepScore]:
        """Return the comparisons with all steps before an index."""
        return {index: self[index] for index in self.indices if before is None or index < before}

    def undecided(self, before: int | None = None) -> dict[int, StepScore]:
        """Return the undecided ones of the comparisons that were made so far, with steps before an index."""
        return {index: self[index] for index in sorted(self._undecided) if before is None or index < before}

    def is_open(self, matched: int | None) -> bool:
        """Return whether a comparison may yet do better than the step that fulfils it: no decided one does."""
        return matched is None or (self[matched].is_undecided and self.worth(matched) < 1.0)

    def latest_best(self, before: int | None = None) -> dict[int, StepScore]:
        """Return the comparisons from the last step back to the first worth 1, which no other can beat."""
        found: dict[int, StepScore] = {}
        for index in reversed(self.indices):
            if before is None or index < before:
                found[index] = self[index]
                if self.worth(index) == 1.0:
                    break
        return found

    def latest_worth(self, worth: float, before: int | None = None, besides: Container[int] = ()) -> int | None:
        """Return the last step before an index that is worth so much; None where there is none.

        Args:
            worth: What it is worth.
            before: The index that it comes before; None for any step.
            besides: The indices of steps that it may not be.
        """
        for index in reversed(self.indices):
            if (before is None or index < before) and index not in besides and self.worth(index) == worth:
                return index
        return None

    def _with_hint(self, comparison: StepScore) -> StepScore:
        """Say why relevant ids did not count where the reference step has nothing else to compare."""
        reference = self.reference
        has_only_ids = reference.get("relevant_ids") is not None and reference.get("output") is None
        if self.is_retrieval or not has_only_ids or comparison.score > 0:
            return comparison
        hint = "relevant_ids count only on steps called retrieval or named in retrieval.steps"
        return replace(comparison, reason=lambda: f"{comparison.reason()}; {hint}")


def _is_suspect(step: StepView, *, needs_rows: bool) -> bool:
    """Return whether an output may be unreadable, told without reading it: it is no whole JSON, or not that of rows."""
    output = step.get("output")
    if not isinstance(output, str) or step.declared is not None:
        return True
    if output.lstrip()[:1] not in {"{", "["} or output.rstrip()[-1:] not in {"}", "]"}:
        return True
    return needs_rows and '"bindings"' not in output and '"boolean"' not in output


_SHOWN_ERROR = 160


@dataclass(frozen=True, slots=True)
class StepDiagnosis:
    """What became of one reference step.

    Attributes:
        nearest: The index of the actual step that fulfils it or comes nearest; None where there is none like it.
        nearest_id: That step's id.
        score: How well that step fulfils it, 0 to 1, even where that does not count; its grade where steps are graded.
        matched: Whether that step counts as its match.
        reason: Why, for people.
        is_undecided: Whether that step may fulfil it in full although it cannot be told.
        compared: What comparing it with that step found, which a grade does not tell; None: the score tells.
    """

    nearest: int | None
    nearest_id: str | None
    score: float
    matched: bool
    reason: str
    is_undecided: bool = False
    compared: ComparisonOutcome | None = None

    @property
    def outcome(self) -> ComparisonOutcome:
        """What comparing it with that step found; ``mismatch`` where it was compared with none.

        A graded step may be matched although it is a mismatch: it is worth something, but less than the whole.
        """
        if self.compared is not None:
            return self.compared
        return "match" if self.score > 0 else "undecided" if self.is_undecided else "mismatch"


def diagnosis_of(
    candidates: Candidates,
    actual_steps: Sequence[StepView],
    *,
    matched: int | None,
    taken: Set[int],
    before: int | None,
) -> StepDiagnosis:
    """Say what became of one reference step.

    Args:
        candidates: The reference step with the actual steps that may fulfil it.
        actual_steps: All actual steps.
        matched: The index of the step that fulfils it, if one does.
        taken: The indices of all steps that fulfil some reference step.
        before: The index that its match had to come before; None where its group is not scored.
    """
    if matched is not None:
        return _diagnosis(candidates, actual_steps[matched], matched, candidates.reason(matched), matched=True)
    failed = [
        index for index, step in enumerate(actual_steps) if candidates.may_be(step) and step.get("status") != "success"
    ]
    compared = candidates.latest_best()
    if not compared:
        found = _without_comparison(candidates, actual_steps, failed)
        return replace(found, reason=found.reason + _namesake_hint(candidates, actual_steps))
    nearest = _nearest(candidates, compared)
    if candidates.worth(nearest) > 0 and nearest in taken:
        all_compared = candidates.compared()
        free = [index for index in all_compared if index not in taken and candidates.worth(index) > 0]
        nearest = _nearest(candidates, free or compared)
    # What may fulfil it goes before what does not count for it.
    if before is not None and (undecided := candidates.undecided(before)):
        free = [index for index in undecided if index not in taken]
        nearest = _nearest(candidates, free or undecided)
    reason, worth = candidates.reason(nearest), candidates.worth(nearest)
    if worth > 0:
        fits = "fits" if worth == 1 or candidates[nearest].score > 0 else "fits in part"
        reason = f"{fits}, {_why_uncounted(nearest, taken, before)}: {reason}"
    elif failed:
        reason = f"{reason}; {_calls(len(failed))} failed: {_error_text(actual_steps[failed[-1]])}"
    if worth == 0:
        reason += _namesake_hint(candidates, actual_steps)
    return _diagnosis(candidates, actual_steps[nearest], nearest, reason, matched=False)


def _nearest(candidates: Candidates, indices: Iterable[int]) -> int:
    """Return the best step: by worth, then undecided before mismatch, then of those by closeness, then the last."""
    ranks = {index: (candidates.worth(index), candidates[index].is_undecided) for index in indices}
    best_rank = max(ranks.values())
    best = [index for index, rank in ranks.items() if rank == best_rank]
    if best_rank[0] > 0 or len(best) == 1:
        return max(best)
    return max(best, key=lambda index: (candidates[index].closeness(), index))


def _namesake_hint(candidates: Candidates, actual_steps: Sequence[StepView]) -> str:
    """Say which names may fulfil the reference step where the agent used its name, which may not."""
    name = candidates.reference.get("name")
    if all(step.get("name") != name or candidates.may_be(step) for step in actual_steps):
        return ""
    return f"; a step named {name} does not fulfil it, only one named {candidates.tools} does"


def _why_uncounted(nearest: int, taken: Set[int], before: int | None) -> str:
    if nearest in taken:
        return "but fulfils another reference step"
    if before is None:
        return "but its group is not scored"
    if nearest >= before:
        return "but comes after a step of a later group"
    return "but another assignment scores higher"


def _without_comparison(candidates: Candidates, actual_steps: Sequence[StepView], failed: list[int]) -> StepDiagnosis:
    name = candidates.tools
    if failed:
        reason = f"{_calls(len(failed))} of {name} failed: {_error_text(actual_steps[failed[-1]])}"
        return StepDiagnosis(failed[-1], _id_of(actual_steps[failed[-1]]), 0.0, False, reason)
    renamed = next((step for step in actual_steps if step.tool in candidates.names), None)
    if renamed is not None:
        reason = f"the agent called {renamed.tool}, but steps.names has it as {renamed.get('name')}"
        return StepDiagnosis(None, None, 0.0, False, reason)
    called = list(dict.fromkeys(step.tool or str(step.get("name")) for step in actual_steps))
    instead = f"; it called {', '.join(called)}" if called else " nor any other tool"
    return StepDiagnosis(None, None, 0.0, False, f"the agent did not call {name}{instead}")


def _diagnosis(
    candidates: Candidates, actual_step: StepView, index: int, reason: str, *, matched: bool
) -> StepDiagnosis:
    comparison = candidates[index]
    return StepDiagnosis(
        index,
        _id_of(actual_step),
        candidates.worth(index),
        matched,
        reason,
        is_undecided=comparison.is_undecided,
        compared=comparison.outcome,
    )


def _id_of(step: StepView) -> str | None:
    identifier = step.get("id")
    return None if identifier is None else str(identifier)


def _calls(count: int) -> str:
    return f"{count} {plural(count, 'call')}"


def _error_text(step: StepView) -> str:
    """Return the error of a failed step; recorded runs carry it in the output."""
    error = step.get("error")
    return shortened(str(step.get("output") or "no message" if error is None else error), _SHOWN_ERROR)
