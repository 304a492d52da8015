"""A long list in YAML is read a part at a time: PyYAML's nodes take many times the memory of what they describe."""

import re
from typing import Any

import yaml

PART_CHARACTERS = 200_000

# Marks of documents and directives. The first line may begin the only document.
_MARK = re.compile(r"^(?:---|\.\.\.|%)", re.MULTILINE)
_ITEM = "\n- "


def list_in_parts(text: str, loader: type[yaml.SafeLoader]) -> list[Any] | None:
    r"""Read a YAML list whose items begin at the start of a line, a part at a time.

    Each part is some items of the list. A part breaks the format if an item continues over what looks like the next,
    as a text in quotes can, or names an anchor of an earlier part. None: the text is short or no such list, or a part
    breaks the format, so that it must be read as a whole.

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
            items += read or ()  # there are only comments in it
    except Exception:  # PyYAML raises anything; whoever reads the whole text is told it with its line
        return None
    return items or None
