"""The journal of a run: one line for each response, added as it ends."""

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from graphrag_eval_lc.errors import RunFolderError, cannot_read, cannot_write
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.files.writing import AppendFile, json_line, sync, sync_folder
from graphrag_eval_lc.records import Key, is_error

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JournalLine(NamedTuple):
    """One line of a journal that is not blank.

    Attributes:
        number: The line's number, from 1.
        offset: Its offset in the file, in bytes.
        length: Its length in bytes, with the newline if it has one.
        record: Its record; None if it cannot be read.
        has_newline: Whether its line ends in a newline; a last line without one was perhaps cut off.
    """

    number: int
    offset: int
    length: int
    record: dict[str, Any] | None
    has_newline: bool


class Summary(NamedTuple):
    """What the journal knows of a response without reading it again.

    Attributes:
        is_error: Whether the agent failed.
        is_interrupted: Whether the run was stopped while the agent was at it.
    """

    is_error: bool
    is_interrupted: bool

    def is_to_ask(self, *, retry_errors: bool) -> bool:
        """Return whether a run that is resumed asks the question again."""
        return self.is_interrupted or (retry_errors and self.is_error)


class Journal:
    """The responses of a run on disk, by question id and repeat (1 if a record has none).

    Each record is handed to the system as it is added, so that a kill loses none, and all are synced to the disk at the
    end. The last record of a key counts.
    Opening the journal reads what an earlier session left. A last line that a kill cut off is removed, other unreadable
    lines are passed over. Memory holds the records' offsets, not the records.

    Args:
        path: The file; it is made if it is missing.
        texts: The texts of questions, by their ids: a response to another text of its question does not count. None:
            all count.
        is_private: Whether it is for its owner alone (0600), whatever the umask.
        writes: Whether records are added; else the file stays as it is, and may be missing.

    Attributes:
        path: The file.
        unreadable: A sentence for each unreadable line.

    Raises:
        RunFolderError: The file cannot be opened, read or written.

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
        try:
            self._open_earlier({} if texts is None else texts)
        except BaseException:
            self.close()
            raise
        if writes:
            sync_folder(path.parent)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def add(self, record: Mapping[str, Any]) -> None:
        """Add one record; safe from several threads at once.

        Raises:
            ValueError: The record has no question id, or its repeat is not a whole number from 1.
            RunFolderError: It cannot be written (the journal is then unchanged), or the file was removed.
        """
        key = key_of(record)
        if key is None:
            raise ValueError("a record of the journal needs a question_id, and a repeat from 1 if it has one")
        if self._file is None:
            raise ValueError("the journal is only read")
        line = json_line(record)
        with self._lock:
            self._places[key] = self._file.append(line), _summary_of(record)

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys, in the order in which they were added first."""
        with self._lock:
            return iter(list(self._places))

    def summary(self, key: Key) -> Summary | None:
        """Return a summary of the last record of a key; None if there is none."""
        place = self._places.get(key)
        return None if place is None else place[1]

    def read(self, key: Key) -> dict[str, Any] | None:
        """Read the last record of a key from the disk; None if there is none.

        Raises:
            RunFolderError: The file cannot be read, or was changed.
        """
        return next(self.records([key])) if key in self._places else None

    def newest(self, keys: Iterable[Key]) -> dict[str, Any] | None:
        """Read the record of some keys that was added last; None if there is none of them.

        Raises:
            RunFolderError: The file cannot be read, or was changed.
        """
        known = [key for key in keys if key in self._places]
        return self.read(max(known, key=lambda key: self._places[key][0])) if known else None

    def records(self, keys: Iterable[Key]) -> Iterator[dict[str, Any]]:
        """Read the last records of some keys from the disk, one at a time, in the order of the file.

        Raises:
            RunFolderError: The file cannot be read, or was changed.
        """
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
        """Sync what is left and close the file; a second time does nothing.

        Raises:
            RunFolderError: What was written could not be synced to the disk.
        """
        with self._lock:
            if self._file is None or self._file.descriptor < 0:
                return
            try:
                sync(self._file.descriptor)
            except OSError as problem:
                raise cannot_write(self.path, problem) from problem
            finally:
                self._file.close()

    def _open_earlier(self, texts: Mapping[str, str]) -> None:
        """Remember the records of earlier sessions, and have a file that is written end in a whole line."""
        line = None
        for line in journal_lines(self.path) if self._file is not None or self.path.exists() else ():
            key = None if line.record is None else key_of(line.record)
            if key is None or line.record is None:
                why = "holds no response" if line.has_newline else "was cut off while it was written"
                self.unreadable.append(f"Line {line.number} of {self.path} ({line.length:,} bytes) {why}.")
            elif is_to(line.record, texts):
                self._places[key] = line.offset, _summary_of(line.record)
            else:
                self._places.pop(key, None)
        if self._file is not None and line is not None and not line.has_newline:
            if line.record is None:
                self._file.cut_off(line.offset)
            else:
                self._file.append(b"\n")


_SUMMARIES = {(error, cut): Summary(error, cut) for error in (False, True) for cut in (False, True)}


def _summary_of(record: Mapping[str, Any]) -> Summary:
    return _SUMMARIES[is_error(record), bool(record.get("interrupted"))]


def journal_lines(path: Path) -> Iterator[JournalLine]:
    """Read a journal line by line, without the blank ones.

    Raises:
        RunFolderError: The file cannot be read.
    """
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
    """Read the responses of a run one at a time, without changing the file; the last one of a key counts.

    Raises:
        RunFolderError: The file cannot be read.
    """
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
    except ValueError:  # no JSON, or lone surrogates, which only Python's parser takes
        try:
            value = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) and key_of(value) is not None else None


def is_to(record: Mapping[str, Any], texts: Mapping[str, str]) -> bool:
    """Return whether a response is to the text that its question has now; True if either text is not known.

    Example:
        >>> is_to({"question_id": "q1", "question_text": "1 + 1?"}, {"q1": "1 + 2?"})
        False
    """
    asked, now = record.get("question_text"), texts.get(str(record["question_id"]))
    return asked is None or now is None or asked == now


def key_of(record: Mapping[str, Any]) -> Key | None:
    """Return the key of a record: its question id as a text, and its repeat, by default 1.

    Returns:
        None for a record without a question id, or whose repeat is not a whole number from 1.

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
