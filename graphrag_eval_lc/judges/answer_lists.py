"""The list in an answer: its items, what is before and after them, and how they are joined."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

_LINE = re.compile(r"^(?P<mark>[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+)(?P<item>\S.*?)[ \t]*$", re.MULTILINE)
# A comma in brackets or in a number does not end an item; "and" ends the one before the last.
_SEPARATOR = re.compile(r"(?:,\s+(?:and\s+)?|;\s+|\s+and\s+)(?![^(\[]*[)\]])")
_NAME = re.compile(r"[A-Z0-9][\w./'-]*(?: (?:[A-Z0-9][\w./'-]*|of|de|von))*(?: \([^()]*\))?")
_RUN_OF_NAMES = re.compile(rf"{_NAME.pattern}(?:(?:, (?:and )?| and ){_NAME.pattern})+")
_END = re.compile(r"[.!?]?\s*\Z")


@dataclass(frozen=True, slots=True)
class AnswerList:
    """A list of at least two items in an answer.

    Attributes:
        before: The text before the first item.
        items: The items, without bullets and commas.
        after: The text after the last item.
        form: ``lines`` with bullets or numbers, or ``inline`` with commas.
        mark: The bullet of lines, as it is written; ``1.`` for numbers.
    """

    before: str
    items: tuple[str, ...]
    after: str
    form: Literal["lines", "inline"]
    mark: str = ""

    @property
    def is_numbered(self) -> bool:
        """Whether its lines have numbers."""
        return any(map(str.isdigit, self.mark))

    def with_items(self, items: Sequence[str]) -> str:
        """Return the answer with other items.

        Example:
            >>> found = answer_list("NO1 has 2 substations: ASKER, HALDEN.")
            >>> found.with_items(["HALDEN", "ASKER"])
            'NO1 has 2 substations: HALDEN, ASKER.'
        """
        if self.form == "inline":
            return f"{self.before}{', '.join(items)}{self.after}"
        marks = (self.mark.replace("1", str(number)) if self.is_numbered else self.mark for number in range(1, 1000))
        return self.before + "\n".join(f"{mark}{item}" for mark, item in zip(marks, items, strict=False)) + self.after


def answer_list(text: str) -> AnswerList | None:
    r"""Return the list in an answer: lines with bullets, what follows a colon, or names with commas between them.

    Returns:
        None without one. An answer with several lists has the longest one.

    Example:
        >>> answer_list("By AC lines BERGEN is connected to AURLAND, KVILLDAL and MODALEN.").items
        ('AURLAND', 'KVILLDAL', 'MODALEN')
        >>> answer_list("* T1 (300 MVA)\n* T2 (200 MVA)").items
        ('T1 (300 MVA)', 'T2 (200 MVA)')
        >>> answer_list("OSLO is in NO1.") is None
        True
    """
    found = [each for each in (_lines(text), _after_colon(text), _names(text)) if each is not None]
    # Lines are lists for sure, and what follows a colon is rather one than any names.
    return found[0] if found else None


def _lines(text: str) -> AnswerList | None:
    lines = list(_LINE.finditer(text))
    if len(lines) < 2 or any(text[one.end() : other.start()].strip() for one, other in pairwise(lines)):
        return None
    mark = re.sub(r"\d+", "1", lines[0]["mark"])
    items = tuple(line["item"] for line in lines)
    return AnswerList(text[: lines[0].start()], items, text[lines[-1].end() :], "lines", mark)


def _after_colon(text: str) -> AnswerList | None:
    before, colon, rest = text.partition(": ")
    if not colon or "\n" in rest.strip():
        return None
    end = _END.search(rest)
    assert end is not None
    rest, after = rest[: end.start()], end[0]
    items = tuple(_SEPARATOR.split(rest))
    if len(items) < 2 or not all(items) or ". " in rest:
        return None
    return AnswerList(f"{before}: ", items, after, "inline")


def _names(text: str) -> AnswerList | None:
    runs = list(_RUN_OF_NAMES.finditer(text))
    if not runs:
        return None
    longest = max(runs, key=lambda run: len(_SEPARATOR.split(run[0])))
    items = tuple(_SEPARATOR.split(longest[0].removesuffix(".")))
    after = text[longest.start() + len(longest[0].removesuffix(".")) :]
    found = AnswerList(text[: longest.start()], items, after, "inline")
    return found if len(items) > 1 and all(map(_NAME.fullmatch, items)) else None
