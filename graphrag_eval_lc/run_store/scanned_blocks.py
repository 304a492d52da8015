"""The texts of a run's files, part by part and masked: what journals, pages, tables and torn files hold."""

import base64
import binascii
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import Found, masked_and_found, masked_values
from graphrag_eval_lc.run_folder.journal import key_of

_BLOCK_BYTES = 1 << 20
_MOST_LINES_OF_A_KEY = 300
_OPEN_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?!.*-----END )", re.DOTALL)
_PACKED = re.compile(r"H4sI[A-Za-z0-9+/]{20,}={0,2}")  # the base64 of a gzip, as the report keeps details
_IDENTITY = ("question_id", "repeat", "digest")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a file: a line of a journal, or about a megabyte of another file.

    Attributes:
        line: Its first line, from 1.
        text: Its text.
        masked: The same without its secrets.
        found: What they are; ``at`` counts from the block's beginning.
        question_id: The question that a journal's line is about; None elsewhere.
    """

    line: int
    text: bytes
    masked: bytes
    found: list[Found]
    question_id: str | None = None

    def line_of(self, found: Found) -> int:
        """Return the line of a secret."""
        before = self.text.decode("utf-8", "surrogateescape")[: found.at]
        return self.line + before.count("\n")


def blocks_of(file: BinaryIO, path: Path) -> Iterator[Block]:
    """Read a file of text part by part; bytes that are not UTF-8 stay as they are.

    Args:
        file: The file, open for reading.
        path: Its path, by which a journal is recognised.
    """
    if ".jsonl" in path.name:
        for number, line in enumerate(file, start=1):
            yield _line_of_journal(line, number)
        return
    number = 1
    for text in _parts(file):
        masked, found = _masked(text.decode("utf-8", "surrogateescape"))
        yield Block(number, text, masked.encode("utf-8", "surrogateescape"), found)
        number += text.count(b"\n")


def _parts(file: BinaryIO) -> Iterator[bytes]:
    """Yield whole lines, about a megabyte at once; a private key is not cut in two."""
    while lines := file.readlines(_BLOCK_BYTES):
        part = b"".join(lines)
        for _ in range(_MOST_LINES_OF_A_KEY if _OPEN_KEY.search(part) else 0):
            line = file.readline()
            part += line
            if not line or b"-----END " in line:
                break
        yield part


def _masked(text: str) -> tuple[str, list[Found]]:
    found: list[Found] = []
    if "H4sI" in text:
        text = _PACKED.sub(lambda match: _repacked(match, found), text)
    masked, more = masked_and_found(text)
    return masked, found + more


def _repacked(match: re.Match[str], found: list[Found]) -> str:
    """Mask what is packed; what cannot be unpacked stays."""
    try:
        inside = gzip.decompress(base64.b64decode(match[0], validate=True)).decode()
    except (OSError, EOFError, ValueError, binascii.Error):
        return match[0]
    masked, more = masked_and_found(inside)
    if masked == inside:
        return match[0]
    found += (each._replace(at=match.start()) for each in more)
    return base64.b64encode(gzip.compress(masked.encode(), compresslevel=6, mtime=0)).decode("ascii")


# --- lines of journals -----------------------------------------------------------------------------------------------


def _line_of_journal(line: bytes, number: int) -> Block:
    masked, found = masked_and_found(line.decode("utf-8", "surrogateescape"))
    if not found:
        return Block(number, line, line, found)
    record = _record_in(line)
    if record is None:  # torn
        return Block(number, line, masked.encode("utf-8", "surrogateescape"), found)
    after = _record_in(masked.encode("utf-8", "surrogateescape"))
    if after is None or _identity(after) != _identity(record) or after.keys() != record.keys():
        kept = {**masked_values(record), **_identity(record)}
        masked = f"{json_text(kept)}\n"
    key = key_of(record)
    return Block(number, line, masked.encode("utf-8", "surrogateescape"), found, None if key is None else key[0])


def _record_in(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _identity(record: dict[str, Any]) -> dict[str, Any]:
    """Return by what a record is known, which masking must not change."""
    return {key: record[key] for key in _IDENTITY if key in record}
