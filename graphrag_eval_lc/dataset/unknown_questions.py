"""Responses to questions that the dataset does not have: which they are, and which question was meant."""

import difflib
from collections.abc import Collection, Iterable

from graphrag_eval_lc.texts import counted, listed, plural, shortened

_MOST_NAMED = 3
_LONGEST_ID = 80
# Nearest ids are looked for among so many, as each is compared letter by letter.
_MOST_COMPARED = 2_000


def nearest_id(unknown: str, known: Collection[str]) -> str | None:
    """Return the id that is most like another one; None where none is.

    Example:
        >>> nearest_id("Q-12", ["q-12", "q-13"]), nearest_id("weather", ["q-12", "q-13"])
        ('q-12', None)
    """
    plain = unknown.strip().casefold()
    if same := next((each for each in known if each.strip().casefold() == plain), None):
        return same
    if len(known) > _MOST_COMPARED or len(unknown) > _LONGEST_ID:
        return None
    near = difflib.get_close_matches(unknown, known, n=1, cutoff=0.75)
    return near[0] if near else None


def unknown_questions_warning(answered: Iterable[str], known: Collection[str]) -> str | None:
    """Say which responses no question has; None where all have one.

    Args:
        answered: The question ids of the responses.
        known: The ids of all questions of the dataset, those that are not selected too.

    Example:
        >>> print(unknown_questions_warning(["q1", "Q2"], ["q1", "q2"]))
        1 response is to a question that the dataset does not have, and is not scored: Q2 (perhaps q2)
    """
    ids = set(known)
    unknown = list(dict.fromkeys(each for each in answered if each not in ids))
    if not unknown:
        return None
    near = {each: nearest_id(each, known) for each in unknown[:_MOST_NAMED]}
    shown = [
        shortened(each, _LONGEST_ID) + (f" (perhaps {shortened(meant, _LONGEST_ID)})" if meant is not None else "")
        for each, meant in near.items()
    ]
    to = plural(len(unknown), "is to a question", "are to questions")
    scored = plural(len(unknown), "is", "are")
    return (
        f"{counted(len(unknown), 'response')} {to} that the dataset does not have, and {scored} not scored: "
        + listed([*shown, *unknown[_MOST_NAMED:]], most=_MOST_NAMED)
    )
