"""Reads a long YAML list in parts, because PyYAML's nodes need many times the memory of the values."""

import re
from typing import Any

import yaml

PART_CHARACTERS = 200_000

# Marks of documents and directives. The first line may begin the only document.
_MARK = re.compile(r"^(?:---|\.\.\.|%)", re.MULTILINE)
_ITEM = "\n- "


def list_in_parts(text: str, loader: type[yaml.SafeLoader]) -> list[Any] | None:
    r"""Read a YAML list whose items begin at the start of a line, a part at a time.

    A part has some items of the list. Returns None if the text must be read as a whole: it is short or not such a
    list, or a part is not valid YAML alone. That happens if an item has a line that looks like the next item, as a
    quoted text can, or refers to an anchor in an earlier part.

    Example:
        >>> len(list_in_parts(f"- {'a' * 1_000}\n" * 250, yaml.SafeLoader))
        250
        >>> list_in_parts("- a", yaml.SafeLoader) is None
        True
    """
    if len(text) <= PART_CHARACTERS or _MARK.search(text, 1) is not None:
        return None
    items: list[Any] = []
    start = 0
    try:
        while start < len(text):
            end = text.find(_ITEM, start + PART_CHARACTERS) + 1 or len(text)
            read = yaml.load(text[start:end], Loader=loader)
            start = end
            if read is not None and not isinstance(read, list):
                return None
            items += read or ()  # None if the part has only comments
    except Exception:  # PyYAML may raise any exception; reading the whole text reports it with its line
        return None
    return items or None
