"""The answers of judges, kept in the run's folder: what was paid for once is not asked again."""

import hashlib
import json
import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from graphrag_eval_lc.errors import cannot_read
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.files.writing import AppendFile
from graphrag_eval_lc.registry.metrics import COST

PAID_IN_VAIN = "paid in vain"
"""In place of a digest: what requests cost whose answers cannot be used."""


_MOST_USD = 1e15


class JudgeCache:
    """Records by the digest of a request, one JSON line each; the last line of a digest counts.

    A record is handed to the system at once, so that a crash of the program loses none. Unreadable lines are skipped,
    and so are records whose cost cannot be, which would falsify what was spent.
    Memory holds offsets, not records. Threads may share it; the lock of the run's folder keeps other processes out.

    Args:
        path: The file, made with the first record; its folder must exist.
        is_private: Whether it is for its owner alone (0600), whatever the umask.

    Raises:
        RunFolderError: The file cannot be read.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache = JudgeCache(pathlib.Path(folder, "judge_cache.jsonl"))
        ...     cache.put("a1", {"answer": "yes"})
        ...     cache.get("a1"), cache.get("b2")
        ...     cache.close()
        ({'answer': 'yes'}, None)
    """

    def __init__(self, path: Path, *, is_private: bool = True) -> None:
        self._path = path
        self._is_private = is_private
        self._lock = threading.Lock()
        self._offsets: dict[str, int] = {}
        self._is_torn = False
        self._writer: AppendFile | None = None
        self._reader: BinaryIO | None = None
        self._read_earlier()

    def get(self, digest: str) -> dict[str, Any] | None:
        """Return the record of a digest, or None.

        Raises:
            RunFolderError: The file cannot be read.
        """
        with self._lock:
            offset = self._offsets.get(digest)
            entry = None if offset is None else _entry_in(self._line_at(offset))
        # Another digest: the file was changed meanwhile.
        return entry[1] if entry is not None and entry[0] == digest else None

    def put(self, digest: str, record: Mapping[str, Any]) -> None:
        """Keep a record.

        Raises:
            TypeError: It cannot be written as JSON.
            RunFolderError: The file cannot be written.
        """
        line = json.dumps({"digest": digest, "record": record}, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if self._writer is None:
                self._writer = AppendFile(self._path, is_private=self._is_private)
            if self._is_torn:
                self._writer.append(b"\n")
                self._is_torn = False
            self._offsets[digest] = self._writer.append(line)

    def spent(self) -> float:
        """Return the USD that all requests of the file cost; those of unknown cost count nothing.

        Raises:
            RunFolderError: The file cannot be read.
        """
        costs = (entry[1].get(COST) for line in _lines_of(self._path) if (entry := _entry_in(line)) is not None)
        return math.fsum(cost for cost in costs if cost is not None)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
            if self._writer is not None:
                self._writer.close()
            self._reader = self._writer = None

    def _read_earlier(self) -> None:
        """Note the offsets of earlier records, and whether the last line is torn."""
        offset = 0
        for line in _lines_of(self._path):
            if (entry := _entry_in(line)) is not None:
                self._offsets[entry[0]] = offset
            offset += len(line)
            self._is_torn = not line.endswith(b"\n")

    def _line_at(self, offset: int) -> bytes:
        try:
            if self._reader is None:
                self._reader = open_to_read(self._path)
            self._reader.seek(offset)
            return self._reader.readline()
        except OSError as problem:
            raise cannot_read(self._path, problem) from problem


def merged_lines(paths: Iterable[Path], *, share_lines: bool) -> Iterator[bytes]:
    """Yield the lines of several caches as those of one; unreadable ones are left out, and a missing file has none.

    Args:
        paths: The files. If they have different answers to a request, the last one counts.
        share_lines: Whether they may have lines of the same requests, if one was made of another: equal lines of
            two files are one then. Otherwise they are two requests, which were paid both.

    Raises:
        RunFolderError: A file cannot be read.
    """
    known: Counter[bytes] = Counter()
    for path in paths:
        own: Counter[bytes] = Counter()
        for line in (line.rstrip(b"\n") + b"\n" for line in _lines_of(path) if _entry_in(line) is not None):
            if share_lines:
                digest = hashlib.blake2b(line, digest_size=16).digest()
                own[digest] += 1
                if own[digest] <= known[digest]:
                    continue
            yield line
        known |= own


def _lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; a missing one has none."""
    try:
        with open_to_read(path) as file:
            yield from file
    except FileNotFoundError:
        return
    except OSError as problem:
        raise cannot_read(path, problem) from problem


def _entry_in(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """Return the digest and the record in a line, or None."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    digest, record = entry.get("digest"), entry.get("record")
    if not isinstance(digest, str) or not isinstance(record, dict):
        return None
    cost = record.get(COST)
    if cost is None or (isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= _MOST_USD):
        return digest, record
    return None


def request_digest(model: str, request: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a model's name and of all that its answer depends on, as 64 hexadecimal digits.

    Values that cannot be JSON count by their text.

    Example:
        >>> request_digest("openai:gpt-4o-mini", {"user": "Why?", "n": 1})[:16]
        '4f617dafa05c418f'
    """
    text = json.dumps([model, request], sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
