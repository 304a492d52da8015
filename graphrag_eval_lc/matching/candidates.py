"""Compares one reference step with the actual steps that may fulfil it, and diagnoses the nearest one."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching.matchers import ComparisonOutcome, StepScore, StepView, comparison_of
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.texts import plural, shortened


class Candidates:
    """A reference step and the successful actual steps whose names fit; each is compared at most once."""

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
                self[index]  # compared even if the score does not need it, so that unreadable outputs are reported

    @property
    def tools(self) -> str:
        """The names of the agent's tools that may fulfil the reference step, for messages."""
        return " or ".join(self._views.tools_called(self.names))

    def may_be(self, step: StepView) -> bool:
        """Return whether the name of an actual step fits; for retrieval, the name of its tool is enough."""
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
        """Return the steps before an index, latest first, up to and including the first that is worth 1."""
        found = []
        for index in reversed(self.indices):
            if index < before:
                found.append(index)
                if self.worth(index) == 1.0:
                    break
        return found

    def undecided(self, before: float = inf) -> list[int]:
        """Return the undecided steps before an index, among those compared so far."""
        return sorted(index for index, comparison in self.made.items() if comparison.is_undecided and index < before)

    def is_open(self, matched: int | None) -> bool:
        """Return whether an undecided comparison could still improve on the matched step, if there is one."""
        return matched is None or (self[matched].is_undecided and self.worth(matched) < 1.0)

    def worth(self, index: int) -> float:
        """Return the score of an actual step or, if steps are graded, its grade."""
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
        """Return the reason for the score or grade of an actual step."""
        worth = self.worth(index)  # first, as a grade that fails replaces the comparison and its reason
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
    """Return whether an output may be unreadable, from a quick look: not a JSON value, or not one of SPARQL results."""
    output = step.get("output")
    if not isinstance(output, str) or step.declared is not None:
        return True
    if output.lstrip()[:1] not in {"{", "["} or output.rstrip()[-1:] not in {"}", "]"}:
        return True
    return needs_rows and '"bindings"' not in output and '"boolean"' not in output


def with_more(reason: str, more: str) -> str:
    """Add a clause to a reason, or a sentence if the reason ends with a full stop."""
    return f"{reason} {more[0].upper()}{more[1:].removesuffix('.')}." if reason.endswith(".") else f"{reason}; {more}"


_SHOWN_ERROR = 160


@dataclass(frozen=True, slots=True)
class StepDiagnosis:
    """Which actual step fulfils a reference step or comes nearest, and why.

    Attributes:
        nearest: The index of the actual step that fulfils it or comes nearest; None if none has a right name.
        nearest_id: That step's id.
        score: How well that step fulfils it, 0 to 1, even if that does not count; its grade if steps are graded.
        matched: Whether that step counts as its match.
        reason: Why, for people.
        outcome: The outcome of the comparison with that step; ``mismatch`` if nothing was compared. If steps are
            graded, a step with the outcome ``mismatch`` may still be matched, with a grade above 0 and below 1.
    """

    nearest: int | None
    nearest_id: str | None
    score: float
    matched: bool
    reason: str
    outcome: ComparisonOutcome = "mismatch"


def diagnosis_of(
    candidates: Candidates, *, matched: int | None, taken: Collection[int], before: int | None
) -> StepDiagnosis:
    """Return the diagnosis of one reference step.

    ``matched`` is the actual step that fulfils it, ``taken`` the steps that are matched with any reference step, and
    ``before`` the index from which on steps come too late for its group.
    """
    if matched is not None:
        return _compared_with(candidates, matched, candidates.reason(matched), matched=True)
    steps = candidates.actual_steps
    failed = [index for index, step in enumerate(steps) if step.get("status") != "success" and candidates.may_be(step)]
    why_failed = f"failed: {_error_text(steps[failed[-1]])}" if failed else ""
    calls = f"{len(failed)} {plural(len(failed), 'call')}"
    if not candidates.indices:
        if not failed:
            called = ", ".join(dict.fromkeys(step.tool or str(step.get("name")) for step in steps))
            others = f"; it called {called}" if steps else " nor any other tool"
            reason = f"the agent did not call {candidates.tools}{others}"
            if (renamed := next((step for step in steps if step.tool in candidates.names), None)) is not None:
                reason = f"the agent called {renamed.tool}, but steps.names has it as {renamed.get('name')}"
            return StepDiagnosis(None, None, 0.0, False, _with_hint(candidates, reason))
        reason = _with_hint(candidates, f"{calls} of {candidates.tools} {why_failed}")
        return StepDiagnosis(failed[-1], _id_of(steps[failed[-1]]), 0.0, False, reason)
    nearest = _nearest_step(candidates, taken, before)
    reason, worth = candidates.reason(nearest), candidates.worth(nearest)
    if worth > 0:
        matched_as = "matched" if worth == 1 or candidates[nearest].score > 0 else "matched in part"
        why = "another assignment scores higher"
        if nearest in taken:
            why = "used for another reference step"
        elif before is None:
            why = "group not scored"
        elif nearest >= before:
            why = "called after a step of a later group"
        reason = f"{matched_as} ({why}): {reason}"
    else:
        reason = _with_hint(candidates, with_more(reason, f"{calls} {why_failed}") if failed else reason)
    return _compared_with(candidates, nearest, reason, matched=False)


def _nearest_step(candidates: Candidates, taken: Collection[int], before: int | None) -> int:
    """Return the nearest step: preferably one that is not taken, and an undecided one before one that is too late."""
    found = candidates.latest_best()
    nearest = _nearest(candidates, found)
    if nearest in taken and candidates.worth(nearest) > 0:
        free = [index for index in candidates.indices if index not in taken and candidates.worth(index) > 0]
        nearest = _nearest(candidates, free or found)
    if before is not None and (undecided := candidates.undecided(before)):
        nearest = _nearest(candidates, [index for index in undecided if index not in taken] or undecided)
    return nearest


def _nearest(candidates: Candidates, indices: Iterable[int]) -> int:
    """Return the best step: by worth, then undecided before mismatch, then by closeness, then the latest."""
    ranks = {index: (candidates.worth(index), candidates[index].is_undecided) for index in indices}
    best_rank = max(ranks.values())
    best = [index for index, rank in ranks.items() if rank == best_rank]
    if best_rank[0] > 0 or len(best) == 1:
        return max(best)
    return max(best, key=lambda index: (candidates[index].closeness(), index))


def _with_hint(candidates: Candidates, reason: str) -> str:
    """Add the names that fulfil the reference step, if the agent used the step's own name and that does not."""
    name = candidates.reference.get("name")
    if all(step.get("name") != name or candidates.may_be(step) for step in candidates.actual_steps):
        return reason
    return with_more(reason, f"a step named {name} does not fulfil it, only one named {candidates.tools} does")


def _compared_with(candidates: Candidates, index: int, reason: str, *, matched: bool) -> StepDiagnosis:
    worth, outcome = candidates.worth(index), candidates[index].outcome
    return StepDiagnosis(index, _id_of(candidates.actual_steps[index]), worth, matched, reason, outcome)


def _id_of(step: StepView) -> str | None:
    identifier = step.get("id")
    return None if identifier is None else str(identifier)


def _error_text(step: StepView) -> str:
    """Return the error of a failed step; recorded runs have it in the output."""
    error = step.get("error")
    return shortened(str(step.get("output") or "no message" if error is None else error), _SHOWN_ERROR)
