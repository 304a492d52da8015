"""Which actual step fulfils a reference step or comes nearest, and why."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from graphrag_eval_lc.matching.candidates import Candidates, with_more
from graphrag_eval_lc.matching.matchers import ComparisonOutcome, StepView
from graphrag_eval_lc.texts import plural, shortened

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
        outcome: The outcome of the comparison with that step; ``mismatch`` if there was none. A graded step may be
            matched although it is a mismatch: it is worth more than 0, but less than 1.
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
    """Return the diagnosis of one reference step, which the actual step ``matched`` fulfils, if any.

    ``taken`` are all steps that fulfil some reference step. Its match had to come ``before`` an index; None if its
    group is not scored.
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
    """Return the step that comes nearest: a free one if possible, and an undecided one rather than one too late."""
    found = candidates.latest_best()
    nearest = _nearest(candidates, found)
    if nearest in taken and candidates.worth(nearest) > 0:
        free = [index for index in candidates.indices if index not in taken and candidates.worth(index) > 0]
        nearest = _nearest(candidates, free or found)
    if before is not None and (undecided := candidates.undecided(before)):
        nearest = _nearest(candidates, [index for index in undecided if index not in taken] or undecided)
    return nearest


def _nearest(candidates: Candidates, indices: Iterable[int]) -> int:
    """Return the best step: by worth, then undecided before mismatch, then of those by closeness, then the last."""
    ranks = {index: (candidates.worth(index), candidates[index].is_undecided) for index in indices}
    best_rank = max(ranks.values())
    best = [index for index, rank in ranks.items() if rank == best_rank]
    if best_rank[0] > 0 or len(best) == 1:
        return max(best)
    return max(best, key=lambda index: (candidates[index].closeness(), index))


def _with_hint(candidates: Candidates, reason: str) -> str:
    """Add which names fulfil the reference step, if the agent used its name, which does not."""
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
    """Return the error of a failed step; recorded runs carry it in the output."""
    error = step.get("error")
    return shortened(str(step.get("output") or "no message" if error is None else error), _SHOWN_ERROR)
