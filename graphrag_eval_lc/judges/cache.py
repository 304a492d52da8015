"""The cache of judge answers in the run's folder: a request that was paid for is not sent again."""

import hashlib
import json
import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphrag_eval_lc.errors import cannot_read
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.files.writing import AppendFile
from graphrag_eval_lc.registry.metrics import COST

PAID_IN_VAIN = "paid in vain"
"""Used in place of a digest for the cost of requests whose answers cannot be used."""
_MOST_USD = 1e15


class JudgeCache:
    """Stores records by the digest of a request, one JSON line each; the last line of a digest counts.

    Each record is written at once, so that a crash of the program loses none. Unreadable lines are skipped, and so are
    records with an unreadable cost, which would falsify what was spent. Memory holds offsets, not records. Threads may
    share the cache; the lock of the run's folder keeps other processes out. The file is created with the first record;
    if it ``is_private``, only its owner can read it. Raises a RunFolderError if the file cannot be read or written.

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
        offset = 0
        for line in _lines_of(path):
            if (entry := _entry_in(line)) is not None:
                self._offsets[entry[0]] = offset
            offset += len(line)
            self._is_torn = not line.endswith(b"\n")

    def get(self, digest: str) -> dict[str, Any] | None:
        """Return the record of a digest, or None."""
        with self._lock:
            offset = self._offsets.get(digest)
            entry = None if offset is None else _entry_in(next(_lines_of(self._path, offset), b""))
        # If the digest differs, the file was changed in the meantime.
        return entry[1] if entry is not None and entry[0] == digest else None

    def put(self, digest: str, record: Mapping[str, Any]) -> None:
        """Store a record of plain data."""
        line = json.dumps({"digest": digest, "record": record}, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if self._writer is None:
                self._writer = AppendFile(self._path, is_private=self._is_private)
            if self._is_torn:
                self._writer.append(b"\n")
                self._is_torn = False
            self._offsets[digest] = self._writer.append(line)

    def spent(self) -> float:
        """Return the USD that all requests in the file cost; requests of unknown cost count as 0."""
        costs = (entry[1].get(COST) for line in _lines_of(self._path) if (entry := _entry_in(line)) is not None)
        return math.fsum(cost for cost in costs if cost is not None)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
            self._writer = None


def merged_lines(paths: Iterable[Path], *, share_lines: bool) -> Iterator[bytes]:
    """Yield the lines of several caches, merged into one; unreadable lines and missing files are left out.

    If there are different answers to a request, the last one counts. Set ``share_lines`` if one cache was made from
    another: equal lines of two files are then one request. Otherwise they are two requests, which were both paid for.
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


def _lines_of(path: Path, offset: int = 0) -> Iterator[bytes]:
    """Yield the lines of a file from an offset on; nothing if the file is missing."""
    try:
        with open_to_read(path) as file:
            file.seek(offset)
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
    digest, record = (entry.get("digest"), entry.get("record")) if isinstance(entry, dict) else (None, None)
    if not isinstance(digest, str) or not isinstance(record, dict):
        return None
    cost = record.get(COST)
    is_cost = cost is None or (isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= _MOST_USD)
    return (digest, record) if is_cost else None


def request_digest(model: str, request: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a model's name and everything its answer depends on, as 64 hexadecimal digits.

    Values that JSON cannot hold count by their text.

    Example:
        >>> request_digest("openai:gpt-4o-mini", {"user": "Why?", "n": 1})[:16]
        '4f617dafa05c418f'
    """
    text = json.dumps([model, request], sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
