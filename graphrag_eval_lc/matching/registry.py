"""Matchers of users: how they are registered, which there are, and how their outcome becomes a comparison."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching.comparison import Comparison, StepView, UnreadableOutput, explained
from graphrag_eval_lc.registry.step_kinds import (
    MatcherKey,
    Reads,
    ShownAs,
    StepKind,
    built_in_step_kinds,
    custom_step_kinds,
    register_step_kind,
)

Matcher = Callable[[StepView, StepView], Comparison | float]
MatcherT = TypeVar("MatcherT", bound=Matcher)


def register_matcher(
    *,
    name: str | None = None,
    media_type: str | None = None,
    fulfilled_by: Iterable[str] = (),
    reads: Reads | None = None,
) -> Callable[[MatcherT], MatcherT]:
    """Register a function that compares a reference step with an actual step, by default one of the same name.

    The function gets both steps as read-only mappings and gives a score from 0 to 1, or a Comparison that has a
    reason too. It may raise UnreadableOutput; that, like any other exception, scores 0 and becomes the reason.
    Of several matchers that fit, the one for name and media type goes before the one for the name, and that
    before the one for the media type. A second registration of the same kind replaces the first.

    What ``validate`` checks of such reference steps and ``draft-dataset`` writes stays as without the matcher;
    ``register_step_kind`` declares more.

    Args:
        name: The step name, such as ``sparql_query``; None for every name.
        media_type: The reference step's ``output_media_type``; None for every one.
        fulfilled_by: The names of the steps that may fulfil a reference step of this name, in place of its own: a
            search or a query fulfils ``iri_discovery``.
        reads: What it compares: the ``output`` of the steps or, as for ``retrieve_time_series``, only their ``args``;
            then a reference step needs no output. None: what was compared of these steps without it, else the output.

    Returns:
        A decorator.

    Raises:
        MatcherError: Neither a name nor a media type is given, or ``fulfilled_by`` without a name; or ``reads`` is
            something else.

    Example:
        >>> @register_matcher(name="count_rows")
        ... def match_counts(reference, actual):
        ...     return float(int(reference["output"]) == int(actual["output"]))
    """
    if name is None and media_type is None:
        raise MatcherError("a matcher needs a name or a media type", mend="Call register_matcher(name=…).")
    others = tuple(fulfilled_by)
    if others and name is None:
        raise MatcherError("fulfilled_by needs the name of the reference steps", mend="Add name=….")
    if reads not in (None, "output", "args"):
        raise MatcherError(f"a matcher cannot read {reads!r:.40}", mend='Give reads="output" or reads="args".')

    def register(matcher: MatcherT) -> MatcherT:
        register_step_kind(_kind(matcher, (name, media_type), others, reads))
        return matcher

    return register


def _kind(matcher: Matcher, key: MatcherKey, others: tuple[str, ...], reads: Reads | None) -> StepKind:
    """Give the kind of a matcher; what else is known of its steps stays as it is without it."""
    own = StepKind(
        key=" with ".join(part for part in key if part is not None),
        serves=(key,),
        matcher=matcher,
        fulfilled_by=others,
        reads=reads or "output",
        shown_as=_shown_as(key),
    )
    built_in = built_in_step_kinds()
    known = built_in.get(key) or (built_in.get((key[0], None)) if key[0] is not None else None)
    if known is None or reads not in (None, known.reads):
        return own
    return replace(known, key=own.key, serves=(key,), matcher=matcher, fulfilled_by=others, shown_as=own.shown_as)


def _shown_as(key: MatcherKey) -> ShownAs:
    """Give how steps are shown without the matcher; of those that have a name it alone decides."""
    name, _ = key
    kinds = built_in_step_kinds()
    same = [kind for served, kind in kinds.items() if (served == key if name is None else name in kind.names)]
    return same[0].shown_as if same else "text"


def custom_matchers() -> dict[MatcherKey, Matcher]:
    """Give the matchers that users registered, those included that took the place of a built-in one.

    Example:
        >>> ("sparql_query", None) in custom_matchers()
        False
    """
    built_in = {key: kind.matcher for key, kind in built_in_step_kinds().items()}
    return {key: kind.matcher for key, kind in custom_step_kinds().items() if kind.matcher is not built_in.get(key)}


def comparison_of(matcher: Matcher, reference: StepView, actual: StepView) -> Comparison:
    """Compare two steps; whatever goes wrong in the matcher scores 0 and says why.

    Raises:
        MatcherError: The matcher gives back something that is no score. A mistake in the matcher, not in the data.
    """
    try:
        outcome = matcher(reference, actual)
    except UnreadableOutput as problem:
        return explained(0.0, str(problem))
    except Exception as problem:
        text = str(problem) or "no message"
        return explained(0.0, f"the comparison failed with {type(problem).__name__}: {text:.200}")
    if isinstance(outcome, Comparison):
        return outcome
    if isinstance(outcome, int | float) and 0 <= outcome <= 1:
        score = float(outcome)
        return explained(score, f"the score of {_name(matcher)} is {score:g}")
    raise MatcherError(
        f"the matcher {_name(matcher)} gave {outcome!r:.80} for a step named {reference.get('name')}",
        mend="A matcher gives a number from 0 to 1, or a Comparison.",
    )


def _name(matcher: Matcher) -> str:
    return getattr(matcher, "__name__", type(matcher).__name__)
