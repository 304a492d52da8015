"""The details of all questions, packed in chunks that a browser unpacks when one of their questions is opened."""

import base64
import gzip
from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.json_values import json_text

_CHUNK_SIZE = 150_000


class DetailChunks:
    r"""Packs details as they come; a chunk is the base64 of the gzip of a JSON object of details by key.

    Example:
        >>> chunks = DetailChunks()
        >>> chunks.add("q1", {"key": "q1"}), chunks.add("q2", {"key": "q2"})
        (0, 0)
        >>> gzip.decompress(base64.b64decode(chunks.packed()[0]))
        b'{"q1": {"key": "q1"},\n"q2": {"key": "q2"}}'
    """

    def __init__(self) -> None:
        self._packed: list[str] = []
        self._open: list[str] = []
        self._size = 0

    def add(self, key: str, detail: Mapping[str, Any]) -> int:
        """Take up a question's detail, and give the number of the chunk that holds it."""
        item = f"{json_text(key)}: {json_text(detail)}"
        if self._open and self._size + len(item) > _CHUNK_SIZE:
            self._pack()
        self._open.append(item)
        self._size += len(item)
        return len(self._packed)

    def packed(self) -> list[str]:
        """Give all chunks; nothing may be added after that."""
        if self._open:
            self._pack()
        return self._packed

    def _pack(self) -> None:
        # Without a time, so that the same results give the same file.
        raw = gzip.compress(("{" + ",\n".join(self._open) + "}").encode(), compresslevel=6, mtime=0)
        self._packed.append(base64.b64encode(raw).decode("ascii"))
        self._open, self._size = [], 0
