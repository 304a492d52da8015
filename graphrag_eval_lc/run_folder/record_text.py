"""Records as text: JSON and YAML that every reader takes, whatever an agent put into them."""

import json
import math
from collections.abc import Mapping
from typing import Any

import yaml

_DEEPEST = 200
_MOST_BITS = 14_000  # Python neither writes nor reads integers of more than 4,300 digits


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Write a record as JSON that every reader takes.

    Letters stay readable; lone surrogates are escaped; NaN and infinities become the strings "NaN", "Infinity" and
    "-Infinity"; what JSON has no type for is written as its text. What cannot be written at all (a value that holds
    itself, or is nested too deeply) is replaced by a text that says so.

    Example:
        >>> json_text({"ratio": float("nan"), "name": "Ålesund"})
        '{"ratio": "NaN", "name": "Ålesund"}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False, default=_text_of)
    except (ValueError, TypeError, RecursionError):  # NaN, a key that is no text, or a value without an end
        text = json.dumps(_plain(value), ensure_ascii=False, indent=indent, default=_text_of)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(_plain(value), indent=indent, default=_text_of)
    return text


def json_line(value: Any) -> bytes:
    """Give a record as one line of a JSON Lines file, in UTF-8 and with its newline."""
    return json_text(value).encode("utf-8") + b"\n"


def _plain(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Give a value without what JSON refuses; ``above`` holds the ids of the containers around it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return hex(value)
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
    except Exception:  # an object of an agent: one that fails here must not cost the record around it
        return f"<{type(value).__name__} without a text>"


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """PyYAML's safe dumper, which writes equal parts out each time."""

    def ignore_aliases(self, data: object) -> bool:
        return True


class _PlainDumper(yaml.SafeDumper):
    """The same in Python, which writes every text."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Write queries and other texts of several lines as blocks, which people can read."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
_PlainDumper.add_representer(str, _represent_text)


def yaml_text(value: Any) -> str:
    """Write a value as YAML, in the order of its keys; lone surrogates are escaped."""
    try:
        return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
    except UnicodeEncodeError:  # libyaml takes UTF-8 only
        return str(yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, allow_unicode=False, width=120))
