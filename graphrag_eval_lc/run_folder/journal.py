"""The journal of a run: one line for each response, added as it ends."""

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic_core import from_json

from graphrag_eval_lc.errors import RunFolderError, cannot_read, cannot_write
from graphrag_eval_lc.files.opening import open_descriptor, open_to_read
from graphrag_eval_lc.files.writing import AppendFile, json_line, replace_file, sync, sync_folder
from graphrag_eval_lc.records import Key, is_error

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JournalLine(NamedTuple):
    """One line of a journal that is not blank.

    Attributes:
        number: The line's number, from 1.
        offset: Its offset in the file, in bytes.
        length: Its length in bytes, with the newline if it has one.
        record: Its record; None where it cannot be read.
        has_newline: Whether its line ends in a newline; a last line without one was perhaps cut off.
    """

    number: int
    offset: int
    length: int
    record: dict[str, Any] | None
    has_newline: bool


_ERROR = 1
_INTERRUPTED = 2
_SUPERSEDED = 4
_FLAG_BITS = 3


class Summary(NamedTuple):
    """What the journal knows of a response without reading it again.

    Attributes:
        is_error: Whether the agent failed.
        is_interrupted: Whether the run was stopped while the agent was at it.
        is_superseded: Whether it only stands for a response to another text of its question.
    """

    is_error: bool
    is_interrupted: bool
    is_superseded: bool = False


class Journal:
    """The responses of a run on disk, by question id and repeat (1 where a record has none).

    Each record is handed to the system as it is added, so that a kill loses none, and all are synced to the disk at the
    end. The last record of a key counts.
    Opening the journal reads what an earlier session left, and moves unreadable lines, such as a torn last one, to
    ``responses.jsonl.torn`` beside it. Memory holds the records' offsets, not the records.

    Args:
        path: The file; it is made if it is missing.
        is_private: Whether it is for its owner alone (0600), whatever the umask.

    Attributes:
        path: The file.
        set_aside: A sentence for each unreadable line, which says where it is now.

    Raises:
        RunFolderError: The file cannot be opened, read or repaired.

    Example:
        >>> import pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Journal(pathlib.Path(folder.name, "responses.jsonl")) as journal:
        ...     journal.add({"question_id": "q1", "status": "success"})
        ...     journal.read(("q1", 1))
        {'question_id': 'q1', 'status': 'success'}
        >>> folder.cleanup()
    """

    def __init__(self, path: Path, *, is_private: bool = True) -> None:
        self.path = path
        self._is_private = is_private
        self.set_aside: list[str] = []
        self._lock = threading.Lock()
        # By repeat and question id: the place of the record in the file, times 8, and three flags. 50,000 take 5 MB.
        self._places: dict[int, dict[str, int]] = {}
        AppendFile(path, is_private=is_private).close()  # so that one that cannot be written is refused first
        self._open_earlier()
        self._file = AppendFile(path, is_private=is_private)
        sync_folder(path.parent)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, key: object) -> bool:
        question_id, repeat = cast("Key", key)
        return self._place((question_id, repeat)) is not None

    def add(self, record: Mapping[str, Any]) -> None:
        """Add one record; safe from several threads at once.

        Raises:
            ValueError: The record has no question id, or its repeat is no whole number from 1.
            RunFolderError: It cannot be written (the journal is then unchanged), or the file was removed.
        """
        key = key_of(record)
        if key is None:
            raise ValueError("a record of the journal needs a question_id, and a repeat from 1 where it has one")
        line = json_line(record)
        with self._lock:
            self._remember(key, record, self._file.append(line))

    def keys(self) -> list[Key]:
        """Return the keys, sorted by repeat and then in the order in which they were added."""
        with self._lock:
            return [(question_id, repeat) for repeat in sorted(self._places) for question_id in self._places[repeat]]

    @property
    def most_repeats(self) -> int:
        """The highest repeat of a record; 0 where there is none."""
        with self._lock:
            return max(self._places, default=0)

    def summary(self, key: Key) -> Summary | None:
        """Return a summary of the last record of a key; None where there is none."""
        place = self._place(key)
        return None if place is None else Summary(*(bool(place & flag) for flag in (_ERROR, _INTERRUPTED, _SUPERSEDED)))

    def read(self, key: Key) -> dict[str, Any] | None:
        """Read the last record of a key from the disk; None where there is none.

        Raises:
            RunFolderError: The file cannot be read, or was changed.
        """
        place = self._place(key)
        return None if place is None else next(self._read([place >> _FLAG_BITS]))

    def newest(self, keys: Iterable[Key]) -> dict[str, Any] | None:
        """Read the record of some keys that was added last; None if there is none of them.

        Raises:
            RunFolderError: The file cannot be read, or was changed.
        """
        places = (place for key in keys if (place := self._place(key)) is not None)
        newest = max(places, default=None)
        return None if newest is None else next(self._read([newest >> _FLAG_BITS]))

    def records(self) -> Iterator[dict[str, Any]]:
        """Read the last record of each key from the disk, one at a time, in the order of the file.

        Raises:
            RunFolderError: The file cannot be read, or was changed.
        """
        with self._lock:
            offsets = sorted(place >> _FLAG_BITS for places in self._places.values() for place in places.values())
        yield from self._read(offsets)

    def close(self) -> None:
        """Sync what is left and close the file; a second time does nothing.

        Raises:
            RunFolderError: What was written could not be synced to the disk.
        """
        with self._lock:
            if self._file.descriptor < 0:
                return
            try:
                sync(self._file.descriptor)
            except OSError as problem:
                raise cannot_write(self.path, problem) from problem
            finally:
                self._file.close()

    def _place(self, key: Key) -> int | None:
        question_id, repeat = key
        return self._places.get(repeat, {}).get(question_id)

    def _open_earlier(self) -> None:
        """Find the records of an earlier session, and set unreadable lines aside."""
        unreadable, good_length = self._scan()
        if unreadable:
            self.set_aside = set_aside(self.path, unreadable, good_length, is_private=self._is_private)
            if unreadable[0].offset < good_length:  # those behind them have moved
                self._scan()
        end_last_line(self.path, is_private=self._is_private)

    def _scan(self) -> tuple[list[JournalLine], int]:
        """Remember the records' offsets; return the unreadable lines, and where the last record ends."""
        self._places.clear()
        unreadable: list[JournalLine] = []
        good_length = 0
        for line in journal_lines(self.path):
            key = None if line.record is None else key_of(line.record)
            if key is None or line.record is None:
                unreadable.append(line)
            else:
                self._remember(key, line.record, line.offset)
                good_length = line.offset + line.length
        return unreadable, good_length

    def _remember(self, key: Key, record: Mapping[str, Any], offset: int) -> None:
        flags = is_error(record) * _ERROR | bool(record.get("interrupted")) * _INTERRUPTED
        flags |= bool(record.get("superseded")) * _SUPERSEDED
        question_id, repeat = key
        self._places.setdefault(repeat, {})[question_id] = offset << _FLAG_BITS | flags

    def _read(self, offsets: Iterable[int]) -> Iterator[dict[str, Any]]:
        try:
            with open_to_read(self.path) as file:
                for offset in offsets:
                    file.seek(offset)
                    record = record_in(file.readline())
                    if record is None:
                        raise RunFolderError(
                            f"no record can be read at byte {offset}",
                            path=self.path,
                            hint="The file was changed while the run had it open: run again.",
                        )
                    yield record
        except OSError as problem:
            raise cannot_read(self.path, problem) from problem


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
    """Return the record of a line; None where it is no JSON object with a question_id.

    Example:
        >>> record_in(b'{"question_id": "q1"}')
        {'question_id': 'q1'}
        >>> record_in(b'{"question_id": "q1", "sta')
    """
    value = _value_in(line.removeprefix(_BYTE_ORDER_MARK))
    return value if isinstance(value, dict) and key_of(value) is not None else None


def key_of(record: Mapping[str, Any]) -> Key | None:
    """Return the key of a record: its question id as a text, and its repeat, by default 1.

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


def torn_file(journal: Path) -> Path:
    """Return the file to which unreadable lines of a journal are moved."""
    return journal.with_name(f"{journal.name}.torn")


def set_aside(journal: Path, lines: Sequence[JournalLine], good_length: int, *, is_private: bool = True) -> list[str]:
    """Move unreadable lines out of a journal.

    Args:
        journal: The journal; nobody else may have it open.
        lines: The unreadable lines, in order.
        good_length: The offset of the end of the last readable line; what follows is only cut off.
        is_private: Whether what is written is for its owner alone.

    Returns:
        A sentence for each line, which says where it was and is now.

    Raises:
        RunFolderError: A file cannot be read or written; no byte is lost then.
    """
    target = torn_file(journal)
    torn = AppendFile(target, is_private=is_private)
    try:
        with open_to_read(journal) as file:
            for line in lines:
                file.seek(line.offset)
                torn.append(file.read(line.length).rstrip(b"\n") + b"\n")
        sync(torn.descriptor)
        if lines[0].offset >= good_length:
            _truncate(journal, good_length)
        else:
            replace_file(journal, _bytes_without(journal, lines), is_private=is_private)
    except OSError as problem:
        raise cannot_write(journal, problem) from problem
    finally:
        torn.close()
    return [_sentence(line, target) for line in lines]


def _truncate(path: Path, length: int) -> None:
    descriptor = open_descriptor(path, os.O_RDWR)
    try:
        os.ftruncate(descriptor, length)
    finally:
        os.close(descriptor)


def end_last_line(journal: Path, *, is_private: bool = True) -> None:
    """Add the newline that a last line lacks, so that the next record begins a new line.

    Raises:
        RunFolderError: The file cannot be read or written.
    """
    try:
        with open_to_read(journal) as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(length - 1, 0))
            is_ended = length == 0 or file.read(1) == b"\n"
    except OSError as problem:
        raise cannot_read(journal, problem) from problem
    if not is_ended:
        appended = AppendFile(journal, is_private=is_private)
        appended.append(b"\n")
        appended.close()


def _bytes_without(journal: Path, lines: Sequence[JournalLine]) -> Iterator[bytes]:
    """Yield what remains of a journal."""
    gone = {line.number for line in lines}
    with open_to_read(journal) as file:
        for number, line in enumerate(file, start=1):
            if number not in gone:
                yield line


def _sentence(line: JournalLine, target: Path) -> str:
    why = "holds no response" if line.has_newline else "was cut off while it was written"
    return f"Line {line.number} ({line.length:,} bytes) {why}; it stands in {target} now."
