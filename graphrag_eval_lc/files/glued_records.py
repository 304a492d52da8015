"""JSON records that stand glued on one line, ``{...}{...}``, as where a newline was lost."""

import json
from collections.abc import Iterator
from typing import NamedTuple

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)  # nothing is read here but where a value ends
_BETWEEN = " \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Piece(NamedTuple):
    """A part of a line.

    Attributes:
        start: Where it begins in the line, in bytes.
        end: Where it ends, in bytes.
        is_json: Whether it is a JSON object; what follows one that is none is not taken apart.
    """

    start: int
    end: int
    is_json: bool


def pieces(line: bytes) -> Iterator[Piece]:
    """Yield the JSON objects that a line is made of, and at last what is none.

    Example:
        >>> for piece in pieces(b'{"a": 1}{"b"'):
        ...     print(piece)
        Piece(start=0, end=8, is_json=True)
        Piece(start=8, end=12, is_json=False)
    """
    # In Latin-1 a character is a byte, and all that UTF-8 writes with several bytes stands inside of strings.
    text = line.decode("latin-1").rstrip(_BETWEEN)
    at = len(_BYTE_ORDER_MARK) if line.startswith(_BYTE_ORDER_MARK) else 0
    while at < len(text):
        if text[at] in _BETWEEN:
            at += 1
            continue
        end = _end_of_object(text, at)
        yield Piece(at, len(text) if end is None else end, end is not None)
        at = len(text) if end is None else end


def _end_of_object(text: str, at: int) -> int | None:
    if text[at] != "{":
        return None
    try:
        return _DECODER.raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return None
