"""A reader of JSON nested to any depth, for what the usual parsers refuse for its depth."""

import json
import re
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = json.JSONDecoder().raw_decode


def read_json(text: str) -> Any:
    """Parse JSON as ``json.loads`` does, with a stack of its own in place of the interpreter's.

    The time grows with the length of the text, whatever the depth.

    Raises:
        json.JSONDecodeError: It is no JSON.
        ValueError: It holds a number with too many digits.

    Example:
        >>> read_json('{"rows": [1, 2]}')
        {'rows': [1, 2]}
    """
    above: list[list[Any] | dict[str, Any]] = []
    keys: list[str] = []  # of the objects in `above`, where their next values belong
    at = _end(text, 0)
    while True:
        opening = text[at : at + 1]
        if opening in ("[", "{"):
            value: Any = [] if opening == "[" else {}
            at = _end(text, at + 1)
            if text[at : at + 1] != ("]" if opening == "[" else "}"):
                above.append(value)
                if opening == "{":
                    at = _read_key(text, at, keys)
                continue
            at += 1
        else:
            value, at = _SCALAR(text, at)
        while True:  # each round puts a finished value into what is around it
            at = _end(text, at)
            if not above:
                if at < len(text):
                    raise json.JSONDecodeError("Extra data", text, at)
                return value
            holder = above[-1]
            if isinstance(holder, list):
                holder.append(value)
                closing = "]"
            else:
                holder[keys.pop()] = value
                closing = "}"
            following = text[at : at + 1]
            if following == closing:
                value, at = above.pop(), at + 1
                continue
            if following != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at = _end(text, at + 1)
            if isinstance(holder, dict):
                at = _read_key(text, at, keys)
            break


def _read_key(text: str, at: int, keys: list[str]) -> int:
    """Add the key that begins here, and return where its value begins."""
    if text[at : at + 1] != '"':
        raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
    key, at = _SCALAR(text, at)
    at = _end(text, at)
    if text[at : at + 1] != ":":
        raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
    keys.append(key)
    return _end(text, at + 1)


def _end(text: str, at: int) -> int:
    """Return where the white space ends that begins here."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
