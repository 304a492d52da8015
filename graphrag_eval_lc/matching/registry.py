"""Which matcher compares a reference step with an actual one: by step name, by media type, or both."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching.comparison import Comparison, StepView, UnreadableOutput, explained
from graphrag_eval_lc.registry.registrations import declare_registry, saved_mappings

Matcher = Callable[[StepView, StepView], Comparison | float]
MatcherT = TypeVar("MatcherT", bound=Matcher)
# The step name and the media type that a matcher is for; None stands for every one.
MatcherKey = tuple[str | None, str | None]

_matchers: dict[MatcherKey, Matcher] = {}
_built_in: dict[MatcherKey, Matcher] = {}
_fulfilled_by: dict[str, frozenset[str]] = {}


def register_matcher(
    *, name: str | None = None, media_type: str | None = None, fulfilled_by: Iterable[str] = ()
) -> Callable[[MatcherT], MatcherT]:
    """Register a function that compares a reference step with an actual step, by default one of the same name.

    The function gets both steps as read-only mappings and gives a score from 0 to 1, or a Comparison that has a
    reason too. It may raise UnreadableOutput; that, like any other exception, scores 0 and becomes the reason.
    Of several matchers that fit, the one for name and media type goes before the one for the name, and that
    before the one for the media type. A second registration of the same kind replaces the first.

    Args:
        name: The step name, such as ``sparql_query``; None for every name.
        media_type: The reference step's ``output_media_type``; None for every one.
        fulfilled_by: The names of the steps that may fulfil a reference step of this name, in place of its own: a
            search or a query fulfils ``iri_discovery``.

    Returns:
        A decorator.

    Raises:
        MatcherError: Neither a name nor a media type is given, or ``fulfilled_by`` without a name.

    Example:
        >>> @register_matcher(name="count_rows")
        ... def match_counts(reference, actual):
        ...     return float(int(reference["output"]) == int(actual["output"]))
    """
    if name is None and media_type is None:
        raise MatcherError("a matcher needs a name or a media type", mend="Call register_matcher(name=…).")
    others = frozenset(fulfilled_by)
    if others and name is None:
        raise MatcherError("fulfilled_by needs the name of the reference steps", mend="Add name=….")

    def register(matcher: MatcherT) -> MatcherT:
        _matchers[name, media_type] = matcher
        if name is not None:
            _fulfilled_by[name] = others
        return matcher

    return register


def keep_as_built_in() -> None:
    """Take the matchers that are registered now for those of this package."""
    _built_in.update(_matchers)
    declare_registry(
        lambda: {matcher_name(key): matcher for key, matcher in custom_matchers().items()},
        partial(saved_mappings, _matchers, _fulfilled_by),
    )


def matcher_name(key: MatcherKey) -> str:
    """Give what a matcher is called among all that is registered.

    Example:
        >>> matcher_name(("count_rows", None)), matcher_name(("count_rows", "text/csv"))
        ('matcher count_rows', 'matcher count_rows with text/csv')
    """
    return f"matcher {' with '.join(kind for kind in key if kind is not None)}"


def custom_matchers() -> dict[MatcherKey, Matcher]:
    """Give the matchers that users registered, those included that took the place of a built-in one.

    Example:
        >>> ("sparql_query", None) in custom_matchers()
        False
    """
    return {key: matcher for key, matcher in _matchers.items() if _built_in.get(key) is not matcher}


def matcher_for(name: str, media_type: str | None, default: Matcher) -> Matcher:
    """Give the most specific matcher for a reference step, or ``default``."""
    keys = ((name, media_type), (name, None), (None, media_type))
    return next((_matchers[key] for key in keys if key in _matchers), default)


def names_that_fulfil(name: str) -> frozenset[str]:
    """Give the names of the actual steps that may fulfil a reference step of this name."""
    return _fulfilled_by.get(name) or frozenset({name})


def names_with_a_meaning() -> frozenset[str]:
    """Give the names for which a matcher is registered, and those that fulfil their reference steps."""
    registered = {name for name, _ in _matchers if name is not None}
    return frozenset(registered.union(*_fulfilled_by.values()))


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
