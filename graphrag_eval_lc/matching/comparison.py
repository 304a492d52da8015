"""What a matcher sees and gives back: a step with its parsed output, and how well two steps agree."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Parsed = TypeVar("Parsed")


class UnreadableOutput(ValueError):  # noqa: N818 - it names what was found, as KeyError's relatives do
    """An output is not what its media type promises; the text says what it is instead."""


class StepView(Mapping[str, Any]):
    """A step as matchers read it: a read-only mapping that parses its output at most once.

    Args:
        step: The step.
        defaults: Values of keys that the step lacks or has as null.
        id_column: What the attribute says.
        tool: What the attribute says.

    Attributes:
        id_column: The column of its SPARQL results that holds the ids of a retrieval; None where it has none.
        tool: The name of its tool where the config gives the step another; else None.

    Example:
        >>> import json
        >>> StepView({"name": "search", "output": "[1, 2]"}).parsed(json.loads)
        [1, 2]
    """

    __slots__ = ("_parsed", "_step", "id_column", "tool")

    def __init__(
        self,
        step: Mapping[str, Any],
        defaults: Mapping[str, Any] | None = None,
        *,
        id_column: str | None = None,
        tool: str | None = None,
    ) -> None:
        self.id_column = id_column
        self.tool = tool
        self._step = step if defaults is None else _completed(step, defaults)
        self._parsed: dict[Callable[[Any], Any], Any] = {}

    def __getitem__(self, key: str) -> Any:
        return self._step[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._step)

    def __len__(self) -> int:
        return len(self._step)

    def get(self, key: str, default: Any = None) -> Any:
        """Give the value of a key, or the default; Mapping's own way is several times as slow."""
        return self._step.get(key, default)

    def parsed(self, parse: Callable[[Any], Parsed]) -> Parsed:
        """Give ``parse(step["output"])``, computed once for each ``parse``.

        Args:
            parse: A function of the output; None is given where the step has no output.

        Raises:
            UnreadableOutput: As ``parse`` raised it, again at each call.
        """
        if parse not in self._parsed:
            try:
                self._parsed[parse] = parse(self._step.get("output"))
            except UnreadableOutput as error:
                self._parsed[parse] = error
        outcome = self._parsed[parse]
        if isinstance(outcome, UnreadableOutput):
            raise outcome
        return outcome  # type: ignore[no-any-return]


def _completed(step: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {**defaults, **{key: value for key, value in step.items() if value is not None or key not in defaults}}


@dataclass(frozen=True, slots=True)
class Comparison:
    """How well an actual step fulfils a reference step.

    Attributes:
        score: 0 (not at all) to 1 (in full).
        reason: Gives why, in a sentence or two for people; called only for steps that the diagnosis shows.
        closeness: Gives a number from 0 to 1 that finds the nearest step among those that score 0.
        unreadable: What is wrong with the actual step's output where no comparison could be made of it.
    """

    score: float
    reason: Callable[[], str]
    closeness: Callable[[], float]
    unreadable: str | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.score) and 0.0 <= self.score <= 1.0):
            raise ValueError(f"a score is a number from 0 to 1, not {self.score!r}")


def explained(
    score: float, reason: str, *, closeness: float | None = None, unreadable: str | None = None
) -> Comparison:
    """Give a Comparison whose reason is known already; its closeness is its score where none is given."""
    return Comparison(score, lambda: reason, lambda: score if closeness is None else closeness, unreadable)
