"""Whether an answer refuses: it found nothing, asks back, or says that there is no such thing."""

import re
from typing import Final

_APOSTROPHES: Final = str.maketrans("’ʼ", "''")
# Bold and code marks say nothing.
_MARKS: Final = re.compile(r"[*_`]+")
_FOUND: Final = (
    r"(?:find|locate|identify|retrieve|fetch|extract|determine|list|resolve|answer|compute|tell|return|access)"
)
_REFUSALS: Final = re.compile(
    "|".join(
        (
            # "I could not find", "I'm unable to determine", "I can't tell which one"
            rf"\b(?:I|we)(?:'m| am| was| were|'re| are)? (?:could not|couldn't|cannot|can't|unable to|not able to|"
            rf"did not|didn't|do not|don't|was not able to|wasn't able to) (?:\w+ ){{0,2}}?{_FOUND}\b",
            r"\b(?:I|we) (?:do not|don't) (?:have|know)\b",
            r"\bI need (?:the|more|to know|an?)\b",
            r"\b(?:could not|couldn't|cannot|can't) be (?:found|determined|answered|identified|resolved)\b",
            r"\b(?:does not|doesn't|do not|don't) exist\b",
            r"\bthere(?: is|'s| are) no (?:such|\S+(?: \S+)? (?:named|called|with the (?:name|id|mRID|IRI)))\b",
            r"\bno such (?!thing as)\w+",
            r"\bno (?:results?|matches|match|data|information|answer) (?:was|were|could be) found\b",
            r"\bwhich (?:specific |particular )?(?:one|\S+)(?: \S+)? do you mean\b",
            r"\bwhich (?:specific )?\S+ you mean\b",
            r"\bplease (?:specify|clarify|provide|tell me|say) ",
            r"\b(?:ambiguous|more than one match|not enough information|insufficient information)\b",
            # German
            r"\b(?:konnte|kann|können|konnten) (?:ich|wir)?\b[^.?!]*\bnicht (?:finden|beantworten|ermitteln)\b",
            r"\b(?:es gibt|gibt es) kein\w* (?:solche\w*|\w+ (?:mit dem Namen|namens))\b",
            r"\bwelche\w* (?:\w+ )?(?:meinst du|meinen Sie)\b",
        )
    ),
    re.IGNORECASE,
)
_OPENING: Final = re.compile(r"\A\s*(.*?)(?:\n\s*\n|\n\s*(?:[-*•|]|\d+[.)])|\Z)", re.DOTALL)
_LONGEST_OPENING: Final = 400


def is_refusal(answer: str) -> bool:
    """Return whether an answer refuses: "I could not find …", "which T1 do you mean?", "there is no such entity".

    Only its first paragraph counts, up to a list: what follows an answer, such as "I could not find more", refuses
    nothing. English and German are known; no model is asked. "No, they are not connected" and "it has no
    transformers" are answers.

    Example:
        >>> is_refusal("I couldn't find any terminal with this id. If you want, I can search by name.")
        True
        >>> is_refusal("There are many terminals named T1. Which one do you mean?")
        True
        >>> is_refusal("No, OSLO has no wind units.")
        False
    """
    text = _MARKS.sub("", answer.translate(_APOSTROPHES))
    opening = _OPENING.match(text)
    return opening is not None and _REFUSALS.search(opening[1][:_LONGEST_OPENING]) is not None
