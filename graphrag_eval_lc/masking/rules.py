"""How secrets are found: literals mark places at which one may begin, and a pattern decides."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from graphrag_eval_lc.texts import counted

MASK: Final = "***"
_MOST_PASSES = 10  # a mask may lay open another secret; hardly ever more than once
_MOST_SHOWN = 4
_SHOWN_SHARE = 6  # of short ones less is shown: a sixth

# A token begins after no letter, but for that of an escape such as \n, \u00e9 or %3D.
BEGINNING: Final = (
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[bfnrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2}))"
)

# A quote behind which JSON goes on has ended a text, and begins none.
ENDS_TEXT: Final = r"(?! (?: \s | \\{1,15}[nrt] )*+ (?: [:,}\]] | \Z ) )"


class Found(NamedTuple):
    """A secret in a text, as people may see it.

    Attributes:
        kind: What it is, such as "API key or token".
        hint: Its first characters, 4 at most and of short ones fewer, and its length: no more than its shape.
        at: Its first character in the text; behind a secret that was hidden in another one about there.
    """

    kind: str
    hint: str
    at: int = 0


@dataclass(frozen=True)
class Rule:
    """One sort of secret."""

    kind: str
    # texts in lower case; the pattern is tried only at these. What follows the first ( is a pattern without width
    # that must fit there too, such as (?=[0-9])
    anchors: tuple[str, ...]
    source: str  # the pattern, in verbose form; compiled when it is first needed
    # returns what is put in place of a match; None if it is not a secret. It ends with the match, and keeps what
    # precedes the secret
    replacement: Callable[[re.Match[str]], str | None]
    offset: int = 0  # how many characters before the anchor the match begins

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.source, re.VERBOSE | re.ASCII)

    @cached_property
    def match(self) -> Callable[[str, int], re.Match[str] | None]:
        """Its method ``match``; looking that up each time would take a third of the time of hostile texts."""
        return self.pattern.match


@dataclass
class RuleSet:
    """Rules that are applied together, in one pass through a text for all of them."""

    rules: Sequence[Rule]  # the rules; if several match at one place, the first one counts
    _by_anchor: dict[str, list[Rule]] = field(default_factory=dict, init=False)

    @cached_property
    def _anchors(self) -> re.Pattern[str]:
        """A pattern of all anchors: one pass through a text is quicker than a search for each of a hundred."""
        tails: dict[str, str] = {}
        for literal, tail in (_parts_of(anchor) for rule in self.rules for anchor in rule.anchors):
            same = not tails.get(literal, tail) or not tail
            tails[literal] = "" if same else joined({tails.get(literal, tail): None, tail: None})
        literals = [(rule, tuple(_parts_of(anchor)[0] for anchor in rule.anchors)) for rule in self.rules]
        for literal in tails:
            self._by_anchor[literal] = [rule for rule, own in literals if literal.startswith(own)]
        return re.compile(_tree(tails))

    def masked(self, text: str, found: list[Found] | None = None) -> str:
        """Return a text with its secrets masked."""
        search = self._anchors.search
        for _ in range(_MOST_PASSES):
            lowered = text.replace("\u0130", "i").lower()  # of all characters only this one gets longer
            parts: list[str] = []
            end = 0
            hit = search(lowered)
            while hit is not None:
                after = hit.start() + 1
                for rule in self._by_anchor[hit[0]]:
                    at = hit.start() - rule.offset
                    match = rule.match(text, at) if at >= end else None
                    replaced = None if match is None else rule.replacement(match)
                    if match is None or replaced is None or replaced == match[0]:
                        continue
                    parts += text[end:at], replaced
                    end = after = match.end()
                    if found is not None:
                        found.append(Found(rule.kind, hint_of(_secret_in(match[0], replaced), match[0]), at))
                    break
                hit = search(lowered, after)
            if not parts:
                break
            text = "".join((*parts, text[end:]))
        return text


def _parts_of(anchor: str) -> tuple[str, str]:
    literal, bracket, tail = anchor.partition("(")
    return literal, bracket + tail


def _tree(tails: dict[str, str]) -> str:
    """Return a pattern that finds any of some texts, the longest where several fit.

    Texts that begin alike are tried together: the pattern looks at most characters of a text only once.
    """

    def branches(beginning: str, texts: Sequence[str]) -> str:
        longer = [text for text in texts if len(text) > len(beginning)]
        options = [
            re.escape(first) + branches(beginning + first, [text for text in longer if text[len(beginning)] == first])
            for first in sorted({text[len(beginning)] for text in longer})
        ]
        if beginning in tails:
            options.append(tails[beginning])
        return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"

    return branches("", sorted(tails))


def _secret_in(before: str, after: str) -> str:
    """Return the part of a text that was masked."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end]


def hint_of(secret: str, token: str = "") -> str:
    """Return the shape of a secret: a few first characters and its length."""
    shown = token if token.endswith(secret) and re.fullmatch(r"[\w.-]+", token) else secret
    beginning = shown[: min(_MOST_SHOWN, len(shown) // _SHOWN_SHARE)]
    return f"{beginning if beginning.isprintable() else ''}… ({counted(len(shown), 'character')})"


def after_prefix(match: re.Match[str]) -> str:
    """Return the group ``prefix`` of a match, and a mask for the rest."""
    return f"{match['prefix']}{MASK}"


def joined(alternatives: Iterable[str]) -> str:
    """Return a pattern of alternatives."""
    return "(?:" + "|".join(alternatives) + ")"
