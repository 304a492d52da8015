"""Writes values as JSON that every parser accepts, and reads them back."""

import json
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

from pydantic_core import from_json, to_json

JSON_MEDIA_TYPE: Final = "application/json"
_DEEPEST = 200
_MOST_BITS = 14_000  # Python neither writes nor reads integers of more than 4,300 digits


def json_text(
    value: Any, *, indent: int | None = None, is_compact: bool = False, to_plain: Callable[[Any], Any] | None = None
) -> str:
    """Write a value as JSON that every parser accepts.

    Non-ASCII letters are not escaped; lone surrogates are. NaN and infinities, which JSON does not have, become the
    strings "NaN", "Infinity" and "-Infinity", which ``float`` reads back. A value that contains itself, or is nested
    too deeply, is replaced by a text that says so. ``to_plain`` converts values of types that JSON does not have; by
    default their text is written.

    Example:
        >>> json_text({"ratio": float("nan"), "name": "Ålesund"})
        '{"ratio": "NaN", "name": "Ålesund"}'
    """
    options: dict[str, Any] = {"indent": indent, "separators": (",", ":") if is_compact else None}
    try:
        text = _encoder(indent, is_compact, to_plain or _text_of).encode(value)
    except Exception:  # NaN, a key that is not a text, a cycle, or a value that another thread changes
        value = _plain(value if to_plain is None else to_plain(value))
        text = json.dumps(value, ensure_ascii=False, default=_text_of, **options)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(_plain(value), default=to_plain or _text_of, **options)
    return text


@lru_cache(maxsize=16)
def _encoder(indent: int | None, is_compact: bool, default: Callable[[Any], Any]) -> json.JSONEncoder:
    separators = (",", ":") if is_compact else None
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=indent, separators=separators, default=default)


def json_bytes(value: Any) -> bytes:
    """Write values as compact JSON; several times as fast as ``json_text``, which is the fallback for unusual values.

    Example:
        >>> json_bytes({"ratio": float("nan"), "rows": [1, 2]})
        b'{"ratio":"NaN","rows":[1,2]}'
    """
    try:
        return to_json(value, inf_nan_mode="strings")
    except Exception:  # a lone surrogate, a type that JSON does not have, or a cycle
        return json_text(value, is_compact=True).encode("utf-8")


def parse_json(text: str | bytes, *, allow_nan: bool = True) -> Any:
    """Parse JSON with pydantic's fast parser; if it fails, use Python's, which accepts more and has better errors.

    Raises a ValueError for invalid JSON, and a RecursionError if it is nested too deeply.

    Example:
        >>> parse_json('{"rows": [1, 2]}')
        {'rows': [1, 2]}
    """
    try:
        return from_json(text, allow_inf_nan=allow_nan, cache_strings="keys")
    except (ValueError, TypeError):  # TypeError: of a text with lone surrogates
        return json.loads(text) if allow_nan else json.loads(text, parse_constant=_refuse_constant)


def json_number(value: float) -> float | str:
    """Return a number, or its text if JSON or its parsers cannot hold the number.

    Example:
        >>> json_number(1.5), json_number(float("-inf")), json_number(True)
        (1.5, '-Infinity', True)
    """
    if isinstance(value, int):
        return value if value.bit_length() <= _MOST_BITS else hex(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _plain(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Return a value with texts in place of what JSON cannot hold; ``above`` has the ids of the outer containers."""
    if isinstance(value, (int, float)):
        return json_number(value)
    if isinstance(value, Mapping | list | tuple):
        if id(value) in above:
            return f"<{type(value).__name__} that holds itself>"
        if len(above) > _DEEPEST:
            return f"<{type(value).__name__} nested too deeply>"
        above = (*above, id(value))
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else _text_of(key): _plain(item, above) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, above) for item in value]
    return value


def _text_of(value: object) -> str:
    try:
        return str(value)
    except Exception:  # an agent's object that fails here must not lose the record around it
        return f"<{type(value).__name__} without a text>"


def document_text(document: object) -> str | None:
    """Return the text of a document in a tool's output: ``text``, else ``page_content``; None if it has neither.

    A Document serialised by LangChain has these keys under ``kwargs``.

    Example:
        >>> document_text({"page_content": "Oslo is in NO1.", "metadata": {}})
        'Oslo is in NO1.'
    """
    if not isinstance(document, Mapping):
        return None
    kwargs = document.get("kwargs")
    places = (document, kwargs) if isinstance(kwargs, Mapping) else (document,)
    found = [place.get(key) for place in places for key in ("text", "page_content")]
    texts = [text for text in found if isinstance(text, str)]
    return next((text for text in texts if text.strip()), texts[0] if texts else None)
