"""Which calls of an agent are meant where a result names them by their ids, which broken agents give twice or not."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

Step = Mapping[str, Any]

# Tells whether an actual step has a name that may fulfil a reference step.
Fits = Callable[[Step, Step], bool]


def has_same_name(reference: Step, actual: Step) -> bool:
    """Return whether an actual step is called as a reference step is."""
    return bool(reference.get("name") == actual.get("name"))


def fulfilling_steps(result: Mapping[str, Any], fits: Fits = has_same_name) -> dict[tuple[int, int], int]:
    """Return by group and place of each reference step that is fulfilled the index of the actual step that does it.

    No actual step fulfils two: of several with the same id, the later fulfil the later reference steps.

    Args:
        result: A result of ``run_evaluation``.
        fits: Tells which of several steps with the same id are meant.

    Example:
        >>> steps = [{"name": "a", "id": None}, {"name": "a", "id": None}]
        >>> fulfilling_steps({"reference_steps": [[{"name": "a", "matches": "1"}]], "actual_steps": steps})
        {(0, 0): 1}
    """
    actual_steps = result.get("actual_steps") or ()
    fulfilled = [
        (group, place, step)
        for group, steps in enumerate(result.get("reference_steps") or ())
        for place, step in enumerate(steps)
        if step.get("matches") is not None
    ]
    found: dict[tuple[int, int], int] = {}
    for group, place, step in reversed(fulfilled):
        at = named_step(step["matches"], step, actual_steps, fits, taken=found.values())
        if at is not None:
            found[group, place] = at
    return dict(reversed(found.items()))


def named_step(
    name: object, reference: Step, actual_steps: Sequence[Step], fits: Fits, taken: Collection[int] = ()
) -> int | None:
    """Return the index of the actual step that a match or a diagnosis names: by its id, by its index where it has none.

    Args:
        name: What names it.
        reference: The reference step to which it is near.
        actual_steps: The steps of the agent.
        fits: Of several with the same id the last is meant that fits, and of those one that succeeded.
        taken: The indices of steps that are not meant, where there are others.
    """

    def rank(at: int) -> tuple[bool, bool, bool, int]:
        step = actual_steps[at]
        return at not in taken, fits(reference, step), step.get("status") == "success", at

    named = [at for at, step in enumerate(actual_steps) if _name(at, step) == str(name)]
    return max(named, key=rank, default=None)


def _name(at: int, step: Step) -> str:
    identifier = step.get("id")
    return str(at if identifier is None else identifier)
