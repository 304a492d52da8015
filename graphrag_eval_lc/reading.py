"""Reading YAML, JSON and JSON Lines from a path or an open file, with errors that name the place."""

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.json_values import parse_json

Source = str | PathLike[str] | IO[str] | IO[bytes]
Location = Sequence[str | int]


class TextFile(NamedTuple):
    """A file's text, its name for error messages, its format (yaml, json or jsonl), and its bytes where known."""

    text: str
    path: str | None
    format: str
    raw: bytes | None = None


def read_text(source: Source, error: type[GraphRAGEvalError], *, what: str) -> TextFile:
    """Read a whole file as UTF-8 and tell its format by its name, or by its first character.

    Args:
        source: A path, or a file open for reading in text or binary mode.
        error: The exception to raise.
        what: What the file holds, for messages: "reference dataset".

    Raises:
        GraphRAGEvalError: Of the class given; the file cannot be read, is not UTF-8 or is empty.
    """
    path = _path_of(source)
    if not isinstance(source, str | PathLike) and not hasattr(source, "read"):
        raise error(f"a {what} cannot be read from {type(source).__name__}", mend="Give a path or an open file.")
    try:
        raw = Path(source).read_bytes() if isinstance(source, str | PathLike) else source.read()
    except OSError as problem:
        is_absent = isinstance(problem, FileNotFoundError)
        raise error(
            f"the {what} cannot be read ({'there is no such file' if is_absent else problem.strerror or problem})",
            path=path,
            mend="Mend the path." if is_absent else "Check the path and the permissions.",
        ) from problem
    text = raw if isinstance(raw, str) else _decoded(raw, path, error, what)
    if not text or text.isspace():
        raise error(f"the {what} is empty", path=path, mend=f"Give a file that holds a {what}.")
    return TextFile(text, path, _format_of(text, path), raw if isinstance(raw, bytes) else None)


def _path_of(source: Source) -> str | None:
    if isinstance(source, str | PathLike):
        return str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else None


def _decoded(raw: bytes, path: str | None, error: type[GraphRAGEvalError], what: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error(
            f"the {what} is not UTF-8: byte 0x{raw[problem.start]:02x} cannot be read",
            path=path,
            line=raw.count(b"\n", 0, problem.start) + 1,
            mend="Save the file as UTF-8.",
        ) from problem


def _format_of(text: str, path: str | None) -> str:
    suffix = Path(path).suffix.lower() if path else ""
    if suffix in {".yaml", ".yml"}:
        return "yaml"
    if suffix in {".jsonl", ".ndjson"}:
        return "jsonl"
    if suffix == ".json":
        return "json"
    start = text.lstrip()[:1]
    if start == "[":
        return "json"
    if start == "{":
        first_line = text.lstrip().split("\n", 1)[0]
        return "jsonl" if _is_json(first_line) else "json"
    return "yaml"


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def parse_json_at(text: str, error: type[GraphRAGEvalError], *, what: str, path: str | None, line: int = 1) -> Any:
    """Parse one JSON value, with an error that names its place.

    Args:
        text: The JSON text.
        error: The exception to raise.
        what: What the text holds, for messages.
        path: The file that it comes from.
        line: The line in the file at which the text begins.

    Raises:
        GraphRAGEvalError: Of the class given; with the line where the parser stopped.
    """
    try:
        return parse_json(text)
    except json.JSONDecodeError as problem:
        raise error(
            f"the {what} is not valid JSON: {problem.msg}",
            path=path,
            line=line + problem.lineno - 1,
            mend="Mend the JSON here; a line that ends too early was cut off while it was written.",
        ) from problem
    except (RecursionError, ValueError) as problem:
        raise error(
            f"the {what} cannot be read: it is nested too deeply or holds a number with too many digits",
            path=path,
            line=line,
            mend="Check this value.",
        ) from problem


class JsonLine(NamedTuple):
    """One value of a JSON Lines file and the number of its line, counted from 1."""

    value: Any
    line: int


def parse_jsonl(file: TextFile, error: type[GraphRAGEvalError], *, what: str) -> list[JsonLine]:
    """Parse JSON Lines; blank lines are passed over.

    Raises:
        GraphRAGEvalError: Of the class given; with the first line that is not JSON.
    """
    return [
        JsonLine(parse_json_at(text, error, what=what, path=file.path, line=number), number)
        for number, text in enumerate(file.text.split("\n"), start=1)
        if text.strip()
    ]
