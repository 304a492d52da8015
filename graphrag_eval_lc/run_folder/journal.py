"""The journal (responses.jsonl) and results.jsonl of a run: one JSON line each, with only offsets kept in memory."""

import json
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from graphrag_eval_lc.errors import RunFolderError, cannot_read, cannot_write, removed
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.files.writing import AppendFile, json_line, replace_file, sync, sync_folder
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.records import Key, is_error

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ABSENT = -1
# The keys of results that hold steps, whether these are in groups, and a check for each step.
_STEPS: Final[tuple[tuple[str, bool, Callable[[Mapping[str, Any]], bool]], ...]] = (
    ("actual_steps", False, lambda step: isinstance(step.get("name", ""), str)),
    ("reference_steps", True, lambda step: True),
    ("steps_diagnosis", True, lambda step: isinstance(step.get("score"), int | float)),
)


class JournalLine(NamedTuple):
    """One line of a journal that is not blank."""

    number: int
    offset: int
    length: int
    record: dict[str, Any] | None
    has_newline: bool


class Summary(NamedTuple):
    """What the journal keeps in memory about a response."""

    is_error: bool
    is_interrupted: bool

    def is_to_ask(self, *, retry_errors: bool) -> bool:
        """Return whether a resumed run runs the question again."""
        return self.is_interrupted or (retry_errors and self.is_error)


class Journal(AbstractContextManager["Journal"]):
    """The responses of a run on disk, by question id and repeat (1 if a record has none).

    Each record is passed to the operating system when it is added, so a killed process loses none. ``close`` syncs them
    to the disk. The last record of a key counts.

    Opening the journal reads the records of earlier sessions. If a kill truncated the last line, it is removed. Other
    unreadable lines are skipped. Memory holds the records' offsets, not the records.

    Example:
        >>> import pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Journal(pathlib.Path(folder.name, "responses.jsonl")) as journal:
        ...     journal.add({"question_id": "q1", "status": "success"})
        ...     journal.read(("q1", 1))
        {'question_id': 'q1', 'status': 'success'}
        >>> folder.cleanup()
    """

    def __init__(
        self, path: Path, *, texts: Mapping[str, str] | None = None, is_private: bool = True, writes: bool = True
    ) -> None:
        self.path = path
        self.unreadable: list[str] = []
        self._lock = threading.Lock()
        self._places: dict[Key, tuple[int, Summary]] = {}
        self._file = AppendFile(path, is_private=is_private) if writes else None
        line = None
        try:
            for line in journal_lines(path) if writes or path.exists() else ():
                key = None if line.record is None else key_of(line.record)
                if key is None or line.record is None:
                    why = "holds no response" if line.has_newline else "was cut off while it was written"
                    self.unreadable.append(f"Line {line.number} of {path} ({line.length:,} bytes) {why}.")
                elif is_to(line.record, texts or {}):
                    self._places[key] = line.offset, _summary_of(line.record)
                else:
                    self._places.pop(key, None)
            if self._file is not None and line is not None and not line.has_newline:  # a kill came while it was written
                if line.record is None:
                    self._file.cut_off(line.offset)
                else:
                    self._file.append(b"\n")
        except BaseException:
            self.close()
            raise
        if writes:
            sync_folder(path.parent)

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def add(self, record: Mapping[str, Any]) -> None:
        """Add one record; safe from several threads at once."""
        key = key_of(record)
        if key is None:
            raise ValueError("a record of the journal needs a question_id, and a repeat from 1 if it has one")
        if self._file is None:
            raise ValueError("the journal is only read")
        line = json_line(record)
        with self._lock:
            self._places[key] = self._file.append(line), _summary_of(record)

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys, in the order in which they were first added."""
        with self._lock:
            return iter(list(self._places))

    def summary(self, key: Key) -> Summary | None:
        """Return a summary of the last record of a key, or None."""
        place = self._places.get(key)
        return None if place is None else place[1]

    def read(self, key: Key) -> dict[str, Any] | None:
        """Read the last record of a key from the disk, or None."""
        return next(self.records([key])) if key in self._places else None

    def newest(self, keys: Iterable[Key]) -> dict[str, Any] | None:
        """Read the newest record among some keys; None if the journal has none of them."""
        known = [key for key in keys if key in self._places]
        return self.read(max(known, key=lambda key: self._places[key][0])) if known else None

    def records(self, keys: Iterable[Key]) -> Iterator[dict[str, Any]]:
        """Read the last records of some keys from the disk, one at a time, in the order of the file."""
        offsets = sorted(place[0] for key in keys if (place := self._places.get(key)) is not None)
        if not offsets:
            return
        try:
            with open_to_read(self.path) as file:
                for offset in offsets:
                    file.seek(offset)
                    record = record_in(file.readline())
                    if record is None:
                        raise RunFolderError(
                            f"no record can be read at byte {offset}",
                            path=self.path,
                            hint="Another program changed the file: run the command again.",
                        )
                    yield record
        except OSError as problem:
            raise cannot_read(self.path, problem) from problem

    def close(self) -> None:
        """Sync and close the file; a second call does nothing."""
        with self._lock:
            if self._file is None or self._file.descriptor < 0:
                return
            try:
                sync(self._file.descriptor)
            except OSError as problem:
                raise cannot_write(self.path, problem) from problem
            finally:
                self._file.close()


_SUMMARIES = {(error, cut): Summary(error, cut) for error in (False, True) for cut in (False, True)}


def _summary_of(record: Mapping[str, Any]) -> Summary:
    return _SUMMARIES[is_error(record), bool(record.get("interrupted"))]


def journal_lines(path: Path) -> Iterator[JournalLine]:
    """Yield the lines of a journal, skipping blank ones."""
    offset = 0
    try:
        with open_to_read(path) as file:
            for number, line in enumerate(file, start=1):
                if not line.isspace():
                    yield JournalLine(number, offset, len(line), record_in(line), line.endswith(b"\n"))
                offset += len(line)
    except OSError as problem:
        raise cannot_read(path, problem) from problem


def iter_responses(path: str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """Read the responses of a run one at a time, without changing the file; only the last one of each key."""
    for line in journal_lines(Path(path)):
        if line.record is not None:
            yield line.record


def record_in(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line; None if it is not a JSON object with a question_id.

    Example:
        >>> record_in(b'{"question_id": "q1"}')
        {'question_id': 'q1'}
        >>> record_in(b'{"question_id": "q1", "sta')
    """
    line = line.removeprefix(_BYTE_ORDER_MARK)
    try:
        value = from_json(line, cache_strings="keys")
    except ValueError:  # not JSON, or JSON with lone surrogates, which only Python's parser accepts
        try:
            value = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) and key_of(value) is not None else None


def is_to(record: Mapping[str, Any], texts: Mapping[str, str]) -> bool:
    """Return whether a response answers the present text of its question; True if either text is unknown.

    Example:
        >>> is_to({"question_id": "q1", "question_text": "1 + 1?"}, {"q1": "1 + 2?"})
        False
    """
    asked, now = record.get("question_text"), texts.get(str(record["question_id"]))
    return asked is None or now is None or asked == now


def key_of(record: Mapping[str, Any]) -> Key | None:
    """Return the key of a record: its question id as text, and its repeat (1 by default); None if it has none.

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


# --- results ----------------------------------------------------------------------------------------------------------

COLLECTING: Final = ".partial"
"""A file of results has this ending while it collects them in the order of their arrival."""


class ResultsFile(AbstractContextManager["ResultsFile"]):
    """Writes results.jsonl; use it in one thread at a time.

    ``add`` appends results to ``results.jsonl.partial``, and ``finish`` writes them in order. Without ``finish`` that
    file stays until results are collected again.

    Example:
        >>> import pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "results.jsonl")
        >>> with ResultsFile(path) as results:
        ...     results.add(1, {"question_id": "q2"})
        ...     results.add(0, {"question_id": "q1"})
        ...     results.finish()
        >>> [result["question_id"] for result in iter_results(path)]
        ['q1', 'q2']
        >>> folder.cleanup()
    """

    def __init__(self, path: Path, *, is_private: bool = True) -> None:
        self._path = path
        self._is_private = is_private
        self._collecting = path.with_name(f"{path.name}{COLLECTING}")
        self._file = AppendFile(self._collecting, empty=True, is_private=is_private)
        self._offsets = array("q")
        self._lengths = array("q")

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, position: int, result: Mapping[str, Any]) -> None:
        """Add one result; a second one at the same position replaces the first."""
        line = json_line(result)
        offset = self._file.append(line)
        missing = position + 1 - len(self._offsets)
        if missing > 0:
            self._offsets.extend([_ABSENT] * missing)
            self._lengths.extend([0] * missing)
        self._offsets[position], self._lengths[position] = offset, len(line)

    def finish(self) -> None:
        """Write results.jsonl in order; positions without a result are left out."""
        self.close()
        replace_file(self._path, self._lines(), is_private=self._is_private)
        self.discard()

    def discard(self) -> None:
        """Remove the collected results; results.jsonl stays as it is."""
        self.close()
        try:
            self._collecting.unlink(missing_ok=True)
        except OSError as problem:
            raise cannot_write(self._collecting, problem) from problem

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()

    def _lines(self) -> Iterator[bytes]:
        with open_to_read(self._collecting) as file:
            for offset, length in zip(self._offsets, self._lengths, strict=True):
                if offset != _ABSENT:
                    file.seek(offset)
                    line = file.read(length)
                    if len(line) < length:
                        raise removed(self._collecting)
                    yield line


def iter_results(path: str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the results in a file, one line at a time.

    Raises:
        RunFolderError: The file cannot be read, or a line is not a result; the error names the line.
    """
    try:
        with open_to_read(Path(path)) as file:
            for number, line in enumerate(file, start=1):
                if line.isspace():
                    continue
                try:
                    result = parse_json(line)
                except (ValueError, RecursionError) as problem:
                    raise _no_result(path, number) from problem
                if not isinstance(result, dict):
                    raise _no_result(path, number)
                if key := wrong_steps(result):
                    raise _no_result(path, number, result.get("question_id"), key)
                yield result
    except OSError as problem:
        raise cannot_read(path, problem) from problem


def wrong_steps(result: Mapping[str, Any]) -> str | None:
    """Return the key of a result whose steps do not have the form that scoring writes; None if all are right."""
    for key, is_grouped, is_right in _STEPS:
        found = result.get(key)
        if not found:
            continue
        groups = found if is_grouped else (found,)
        if not isinstance(groups, list | tuple) or not all(isinstance(group, list | tuple) for group in groups):
            return key
        for step in chain.from_iterable(groups):
            if not isinstance(step, dict | Mapping) or not is_right(step):  # checking for dict first is faster
                return key
    return None


def _no_result(
    path: str | PathLike[str], number: int, question_id: object = None, key: str | None = None
) -> RunFolderError:
    what = "this line is not a result" if key is None else "a result with steps of the wrong type"
    hint = "Score the responses of this run again."
    named = None if question_id is None else str(question_id)
    return RunFolderError(what, path=path, line=number, question_id=named, key=key, hint=hint)
