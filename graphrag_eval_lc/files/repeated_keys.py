"""Keys that an object of a JSON text repeats, of which a parser keeps only the last, with their lines."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:\n]', re.DOTALL)


def repeated_json_keys(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[str, int]]:
    r"""Yield each key that an object repeats, with the line of the repetition.

    A text without such keys, as nearly all are, is only parsed once more.

    Args:
        texts: JSON texts, each with the line on which it begins.

    Example:
        >>> list(repeated_json_keys([(1, '{"id": 1,\n "id": 2}')]))
        [('id', 2)]
    """
    for line, text in texts:
        if _has_repeated_keys(text):
            yield from _repeated_keys_in(text, line)


def _has_repeated_keys(text: str) -> bool:
    found = False

    def note(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len(dict(pairs)) < len(pairs)

    try:
        json.loads(text, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return False
    return found


def _repeated_keys_in(text: str, line: int) -> Iterator[tuple[str, int]]:
    """Go through the tokens of a sound JSON text; a string before a colon is a key of the innermost object."""
    open_objects: list[set[str]] = []
    last, last_line = "", line
    for token in _TOKEN.findall(text):
        if token == "\n":
            line += 1
            continue
        if token in "{[":
            open_objects.append(set())
        elif token in "}]":
            open_objects.pop()
        elif token == ":":
            key = json.loads(last)
            if key in open_objects[-1]:
                yield key, last_line
            open_objects[-1].add(key)
        last, last_line = token, line
