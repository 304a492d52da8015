"""Matchers: what they read and return, how users register their own, and how they are run."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

from graphrag_eval_lc.config import OutputConfig, RowsConfig
from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching.outputs import CutOutput as CutOutput
from graphrag_eval_lc.matching.outputs import UnreadableOutput as UnreadableOutput
from graphrag_eval_lc.matching.outputs import value_at
from graphrag_eval_lc.registry.step_kinds import (
    MatcherKey,
    Reads,
    StepKind,
    built_in_step_kinds,
    custom_step_kinds,
    register_step_kind,
)

Step = Mapping[str, Any]
Parsed = TypeVar("Parsed")


ComparisonOutcome: TypeAlias = Literal["match", "mismatch", "undecided"]
"""What a comparison found. It is undecided if an output is cut, or if the search reached its bound first."""


class StepView(Mapping[str, Any]):
    """A step as matchers read it: a read-only mapping that parses its output at most once.

    It has the keys of the step. Keys that are missing or null come from the defaults.

    Attributes:
        id_column: The column of its SPARQL results that holds the ids of a retrieval; None if it has none.
        tool: The name of its tool if the config renames the step; else None.
        declared: How its output is read according to ``steps.outputs``; None if it is not declared.
        rows: How its rows are compared according to ``steps.rows``; None if it is not declared.
        is_read: Whether at least one ``parse`` could read its output.

    Example:
        >>> import json
        >>> StepView({"name": "search", "output": "[1, 2]"}).parsed(json.loads)
        [1, 2]
    """

    __slots__ = ("_parsed", "_step", "declared", "id_column", "is_read", "rows", "tool")

    def __init__(
        self,
        step: Mapping[str, Any],
        defaults: Mapping[str, Any] | None = None,
        *,
        id_column: str | None = None,
        tool: str | None = None,
        declared: OutputConfig | None = None,
        rows: RowsConfig | None = None,
    ) -> None:
        self.id_column = id_column
        self.rows = rows
        self.tool = tool
        self.declared = declared
        self.is_read = False
        if defaults:
            given = {key: value for key, value in step.items() if value is not None or key not in defaults}
            step = {**defaults, **given}
        self._step = step
        self._parsed: dict[object, Any] = {}

    def __getitem__(self, key: str) -> Any:
        return self._step[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._step)

    def __len__(self) -> int:
        return len(self._step)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or the default; several times faster than Mapping's own ``get``."""
        return self._step.get(key, default)

    def once(self, compute: Callable[["StepView"], Parsed]) -> Parsed:
        """Return ``compute(step)``, computed once for each ``compute``; an UnreadableOutput is raised at each call."""
        kept: Parsed = self._kept(("step", compute), compute, self)
        return kept

    def parsed(self, parse: Callable[[Any], Parsed]) -> Parsed:
        """Return ``parse`` of the output, or of the part that ``steps.outputs`` selects, once for each ``parse``."""
        kept: Parsed = self._kept(parse, self._read_by, parse)
        return kept

    def _read_by(self, parse: Callable[[Any], Parsed]) -> Parsed:
        declared = self.declared
        if declared is not None and declared.artifact and self._step.get("artifact") is None:
            raise UnreadableOutput("the artifact is missing, which is read instead of the output (steps.outputs)")
        output = self._step.get("artifact" if declared is not None and declared.artifact else "output")
        try:
            value = parse(output if declared is None or declared.path is None else value_at(output, declared.path))
        except CutOutput as error:
            raise (error if (cut := self.cut_by_capture) is None else CutOutput(f"{cut} ({error})")) from None
        self.is_read = True
        return value

    def _kept(self, key: object, compute: Callable[[Any], Any], argument: Any) -> Any:
        """Return the cached result for a key, or compute it; a cached error is raised as a copy.

        The traceback of the error is dropped. Its frames refer to the step, and the step refers to the error: such a
        cycle would keep whole responses in memory until the garbage collector runs.
        """
        if key not in self._parsed:
            try:
                self._parsed[key] = compute(argument)
            except UnreadableOutput as error:
                error.__traceback__ = error.__context__ = error.__cause__ = None
                self._parsed[key] = error
        outcome = self._parsed[key]
        if isinstance(outcome, UnreadableOutput):
            raise _copied(outcome)
        return outcome

    def is_read_by(self, parse: Callable[[Any], Any]) -> bool:
        """Return whether a function can parse the output."""
        try:
            self.parsed(parse)
        except Exception:  # a user's parse may raise anything
            return False
        return True

    @property
    def cut_by_capture(self) -> str | None:
        """How the capture cut the output (``max_output_chars``); None if the part that is read is complete."""
        full_length = self._step.get("full_length")
        if full_length is None or (self.declared is not None and self.declared.artifact):
            return None
        output = self._step.get("output")
        if not isinstance(output, str) or not isinstance(full_length, int) or full_length <= len(output):
            return None
        return f"the output is cut at {len(output):,} of {full_length:,} characters"


def _copied(error: UnreadableOutput) -> UnreadableOutput:
    try:
        return copy(error)
    except Exception:  # a user's error that cannot be copied
        return error


@dataclass(frozen=True, slots=True)
class StepScore:
    """How well an actual step fulfils a reference step.

    Attributes:
        score: 0 (not at all) to 1 (in full).
        reason: Returns the reason in a sentence or two; called only for steps that the diagnosis shows.
        closeness: Returns a number from 0 to 1 that ranks steps that score 0; the nearest step has the highest.
        unreadable: What is wrong with the actual step's output, if it could not be compared.
        is_undecided: Whether the steps may match although the score is 0, for example because an output is cut.
        cut: At what point the actual step's output is cut; None if it is complete.
        grade: Returns the step's grade from 0 to 1, if steps are graded. Part of the answer, or the answer among too
            much else, is worth more than 0 and less than 1. None: the grade is the score.
        grade_reason: Returns what the grade consists of; None: the reason says it.
    """

    score: float
    reason: Callable[[], str]
    closeness: Callable[[], float]
    unreadable: str | None = None
    is_undecided: bool = False
    cut: str | None = None
    grade: Callable[[], float] | None = None
    grade_reason: Callable[[], str] | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.score) and 0.0 <= self.score <= 1.0):
            raise ValueError(f"a score is a number from 0 to 1, not {self.score!r}")
        if self.is_undecided and self.score:
            raise ValueError(f"an undecided comparison scores 0, not {self.score!r}")

    @property
    def worth(self) -> float:
        """The grade of the step, 0 to 1."""
        return self.score if self.grade is None else self.grade()

    @property
    def outcome(self) -> ComparisonOutcome:
        """``match`` if the score is above 0, else ``undecided`` or ``mismatch``."""
        return "match" if self.score > 0 else "undecided" if self.is_undecided else "mismatch"


def explained(
    score: float,
    reason: str,
    *,
    closeness: float | None = None,
    unreadable: str | None = None,
    is_undecided: bool = False,
    cut: str | None = None,
) -> StepScore:
    """Return a StepScore whose reason is already known; by default its closeness is its score."""
    nearness = score if closeness is None else closeness
    return StepScore(score, lambda: reason, lambda: nearness, unreadable, is_undecided, cut)


Matcher = Callable[[StepView, StepView], StepScore | float]
MatcherT = TypeVar("MatcherT", bound=Matcher)


def register_matcher(
    *,
    name: str | None = None,
    media_type: str | None = None,
    fulfilled_by: Iterable[str] = (),
    reads: Reads | None = None,
) -> Callable[[MatcherT], MatcherT]:
    """Register a function that compares a reference step with an actual step, by default one of the same name.

    The function gets both steps as read-only mappings and returns a score from 0 to 1, or a StepScore that has a
    reason too. It may raise UnreadableOutput; that, like any other exception, scores 0 and becomes the reason.
    If several matchers fit, the one for name and media type takes precedence over the one for the name, and that
    over the one for the media type. A second registration of the same kind replaces the first.

    What ``validate`` checks of such reference steps and ``dataset draft`` writes stays as without the matcher;
    ``register_step_kind`` declares more.

    Args:
        name: The step name, such as ``sparql_query``; None for every name.
        media_type: The reference step's ``output_media_type``; None for every one.
        fulfilled_by: The names of the steps that may fulfil a reference step of this name, instead of this name: a
            search or a query fulfils ``iri_discovery``.
        reads: What it compares: the ``output`` of the steps or, as for ``retrieve_time_series``, only their ``args``;
            then a reference step needs no output. None: what was compared of these steps without it, else the output.

    Returns:
        A decorator.

    Raises:
        MatcherError: No name and no media type is given, or ``fulfilled_by`` without a name; or ``reads`` has
            another value.

    Example:
        >>> @register_matcher(name="count_rows")
        ... def match_counts(reference, actual):
        ...     return float(int(reference["output"]) == int(actual["output"]))
    """
    if name is None and media_type is None:
        raise MatcherError("a matcher needs a name or a media type", hint="Call register_matcher(name=…).")
    if reads not in (None, "output", "args"):
        raise MatcherError(f"a matcher cannot read {reads!r:.40}", hint='Give reads="output" or reads="args".')

    def register(matcher: MatcherT) -> MatcherT:
        register_step_kind(_kind(matcher, (name, media_type), tuple(fulfilled_by), reads))
        return matcher

    return register


def _kind(matcher: Matcher, key: MatcherKey, others: tuple[str, ...], reads: Reads | None) -> StepKind:
    """Return the step kind of a matcher; everything else comes from the kind that such steps have without it."""
    built_in, name = built_in_step_kinds, key[0]
    known = built_in.get(key) or (built_in.get((name, None)) if name is not None else None)
    # Reports show such steps as they would without the matcher: by the name if there is one, else by the media type.
    shown = (
        kind.shown_as for served, kind in built_in.items() if (served == key if name is None else name in kind.names)
    )
    own: dict[str, Any] = {
        "key": " with ".join(part for part in key if part is not None),
        "serves": (key,),
        "matcher": matcher,
        "fulfilled_by": others,
        "shown_as": next(shown, "text"),
    }
    if known is None or reads not in (None, known.reads):
        return StepKind(reads=reads or "output", **own)
    return replace(known, **own)


def custom_matchers() -> dict[MatcherKey, Matcher]:
    """Return the matchers that users registered, including those that replace a built-in one."""
    built_in = {key: kind.matcher for key, kind in built_in_step_kinds.items()}
    return {key: kind.matcher for key, kind in custom_step_kinds().items() if kind.matcher is not built_in.get(key)}


def comparison_of(matcher: Matcher, reference: StepView, actual: StepView) -> StepScore:
    """Compare two steps; if the matcher raises, the score is 0 and the reason is the error."""
    try:
        outcome = matcher(reference, actual)
    except CutOutput as problem:
        return explained(0.0, str(problem), is_undecided=True, cut=str(problem))
    except UnreadableOutput as problem:
        return explained(0.0, str(problem))
    except Exception as problem:
        text = str(problem) or "no message"
        return explained(0.0, f"the comparison failed with {type(problem).__name__}: {text:.200}")
    if isinstance(outcome, StepScore):
        return outcome
    if isinstance(outcome, int | float) and 0 <= outcome <= 1:
        score = float(outcome)
        return explained(score, f"the score of {_matcher_name(matcher)} is {score:g}")
    raise MatcherError(
        f"the matcher {_matcher_name(matcher)} returned {outcome!r:.80} for a step named {reference.get('name')}",
        hint="A matcher returns a number from 0 to 1, or a StepScore.",
    )


def _matcher_name(matcher: Matcher) -> str:
    return getattr(matcher, "__name__", type(matcher).__name__)
