"""Which actual steps fulfil which reference steps; a result names them by ids, which may repeat or be missing."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

Step = Mapping[str, Any]

# Whether an actual step (the second) has a name that may fulfil a reference step (the first).
Fits = Callable[[Step, Step], bool]


def has_same_name(reference: Step, actual: Step) -> bool:
    """Return whether both steps have the same name."""
    return bool(reference.get("name") == actual.get("name"))


def fulfilling_steps(result: Mapping[str, Any], fits: Fits = has_same_name) -> dict[tuple[int, int], int]:
    """Match the fulfilled reference steps, each as (group, place), to the indices of the actual steps that fulfil them.

    No actual step fulfils two reference steps. If several actual steps share an id, the later ones fulfil the later
    reference steps, and ``fits`` decides between them.

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
    """Return the index of the actual step that a match or a diagnosis names by its id, or its index if it has none.

    If several steps have the same id, it is the last one that fits the reference step, preferably one that succeeded. A
    step whose index is in ``taken`` is returned only if there is no other.
    """

    def rank(at: int) -> tuple[bool, bool, bool, int]:
        step = actual_steps[at]
        return at not in taken, fits(reference, step), step.get("status") == "success", at

    ids = ((at, step.get("id")) for at, step in enumerate(actual_steps))
    named = [at for at, identifier in ids if str(at if identifier is None else identifier) == str(name)]
    return max(named, key=rank, default=None)
