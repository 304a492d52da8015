"""Why a reference step is fulfilled or not: the nearest actual step, for people to read."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from graphrag_eval_lc.matching.candidates import Candidates
from graphrag_eval_lc.matching.comparison import Comparison, StepView
from graphrag_eval_lc.texts import plural, shortened

_SHOWN_ERROR = 160


@dataclass(frozen=True, slots=True)
class StepDiagnosis:
    """What became of one reference step.

    Attributes:
        nearest: The index of the actual step that fulfils it or comes nearest; None where there is none like it.
        nearest_id: That step's id.
        score: How well that step fulfils it, 0 to 1, whether or not it counts.
        matched: Whether that step was counted as its match.
        reason: Why, for people.
    """

    nearest: int | None
    nearest_id: str | None
    score: float
    matched: bool
    reason: str


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
        comparison = candidates[matched]
        return _diagnosis(actual_steps, matched, comparison.score, comparison.reason(), matched=True)
    failed = [
        index for index, step in enumerate(actual_steps) if candidates.may_be(step) and step.get("status") != "success"
    ]
    compared = candidates.latest_best()
    if not compared:
        found = _without_comparison(candidates.names, actual_steps, failed)
        return replace(found, reason=found.reason + _namesake_hint(candidates, actual_steps))
    nearest, score, reason = _nearest(compared)
    if score > 0 and nearest in taken:
        free = {index: each for index, each in candidates.compared().items() if index not in taken and each.score > 0}
        nearest, score, reason = _nearest(free) if free else (nearest, score, reason)
    if score > 0:
        reason = f"{_why_uncounted(nearest, taken, before)}: {reason}"
    elif failed:
        reason = f"{reason}; {_calls(len(failed))} failed: {_error_text(actual_steps[failed[-1]])}"
    if score == 0:
        reason += _namesake_hint(candidates, actual_steps)
    return _diagnosis(actual_steps, nearest, score, reason, matched=False)


def _nearest(compared: Mapping[int, Comparison]) -> tuple[int, float, str]:
    best_score = max(comparison.score for comparison in compared.values())
    best = {index: comparison for index, comparison in compared.items() if comparison.score == best_score}
    if best_score > 0 or len(best) == 1:
        index = max(best)
    else:
        index = max(best, key=lambda index: (best[index].closeness(), index))
    return index, best_score, best[index].reason()


def _namesake_hint(candidates: Candidates, actual_steps: Sequence[StepView]) -> str:
    """Say which steps may fulfil the reference step where the agent called one of its name and that is none of them."""
    name = candidates.reference.get("name")
    if all(step.get("name") != name or candidates.may_be(step) for step in actual_steps):
        return ""
    return f"; a step named {name} does not fulfil it, only one named {_listed(candidates.names)} does"


def _why_uncounted(nearest: int, taken: Set[int], before: int | None) -> str:
    if nearest in taken:
        return "fits, but fulfils another reference step"
    if before is None:
        return "fits, but its group is not scored"
    if nearest >= before:
        return "fits, but comes after a step of a later group"
    return "fits, but another assignment scores higher"


def _without_comparison(
    fulfilling: Collection[str], actual_steps: Sequence[StepView], failed: list[int]
) -> StepDiagnosis:
    name = _listed(fulfilling)
    if failed:
        reason = f"{_calls(len(failed))} of {name} failed: {_error_text(actual_steps[failed[-1]])}"
        return _diagnosis(actual_steps, failed[-1], 0.0, reason, matched=False)
    renamed = next((step for step in actual_steps if step.tool in fulfilling), None)
    if renamed is not None:
        reason = f"the agent called {renamed.tool}, but steps.names has it as {renamed.get('name')}"
        return _diagnosis(actual_steps, None, 0.0, reason, matched=False)
    called = list(dict.fromkeys(str(step.get("name")) for step in actual_steps))
    instead = f"; it called {', '.join(called)}" if called else " nor any other tool"
    return _diagnosis(actual_steps, None, 0.0, f"the agent did not call {name}{instead}", matched=False)


def _listed(names: Collection[str]) -> str:
    return " or ".join(sorted(names))


def _diagnosis(
    actual_steps: Sequence[StepView], nearest: int | None, score: float, reason: str, *, matched: bool
) -> StepDiagnosis:
    identifier = None if nearest is None else actual_steps[nearest].get("id")
    return StepDiagnosis(nearest, None if identifier is None else str(identifier), score, matched, reason)


def _calls(count: int) -> str:
    return f"{count} {plural(count, 'call')}"


def _error_text(step: StepView) -> str:
    """Give the error of a failed step; recorded runs carry it in the output."""
    error = step.get("error")
    return shortened(str(step.get("output") or "no message" if error is None else error), _SHOWN_ERROR)
