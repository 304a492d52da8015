"""The lines of a journal: which record each holds, and which hold none."""

import json
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from graphrag_eval_lc.dataset import Key
from graphrag_eval_lc.file_problems import cannot_read

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JournalLine(NamedTuple):
    """One line of a journal that is not blank.

    Attributes:
        number: The line's number, counted from 1.
        offset: Where it begins in the file, in bytes.
        length: How long it is in bytes, with its newline where it has one.
        record: What it holds; None where it cannot be read.
        has_newline: Whether it has an end; a last line without one was perhaps cut off.
    """

    number: int
    offset: int
    length: int
    record: dict[str, Any] | None
    has_newline: bool


def journal_lines(path: Path) -> Iterator[JournalLine]:
    """Read a journal line by line; blank lines are passed over.

    Raises:
        RunFolderError: The file cannot be read.
    """
    offset = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.isspace():
                    yield JournalLine(number, offset, len(line), record_in(line), line.endswith(b"\n"))
                offset += len(line)
    except OSError as problem:
        raise cannot_read(path, problem) from problem


def iter_responses(path: str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """Read the responses of a run one at a time, without a change to the file; of one key the last one counts.

    Raises:
        RunFolderError: The file cannot be read.
    """
    for line in journal_lines(Path(path)):
        if line.record is not None:
            yield line.record


def record_in(line: bytes) -> dict[str, Any] | None:
    """Give the record that a line holds; None where it is no JSON object with a question_id.

    Example:
        >>> record_in(b'{"question_id": "q1"}')
        {'question_id': 'q1'}
        >>> record_in(b'{"question_id": "q1", "sta')
    """
    value = _value_in(line.removeprefix(_BYTE_ORDER_MARK))
    return value if isinstance(value, dict) and key_of(value) is not None else None


def key_of(record: Mapping[str, Any]) -> Key | None:
    """Give the key of a record: its question id as text and its repeat, 1 where it has none.

    Returns:
        None for a record without a question id, or whose repeat is no whole number from 1.

    Example:
        >>> key_of({"question_id": "q1", "repeat": 2})
        ('q1', 2)
    """
    question_id, repeat = record.get("question_id"), record.get("repeat", 1)
    if isinstance(question_id, bool) or not isinstance(question_id, str | int):
        return None
    if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
        return None
    return str(question_id), repeat


def _value_in(line: bytes) -> Any:
    try:
        return from_json(line, cache_strings="keys")
    except ValueError:  # no JSON, or lone surrogates, which only Python's parser takes
        try:
            return json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            return None
