"""Finds secrets in the files of existing runs, reading part by part, and masks them in place."""

import base64
import gzip
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from graphrag_eval_lc.errors import OptionError, RunFolderError, cannot_read, cannot_write
from graphrag_eval_lc.files.opening import is_private_beside, open_to_read, refuse_odd
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import Found, masked_and_found, masked_values
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RUN_FILE
from graphrag_eval_lc.run_folder.folder import LOCK_FILE, SOFT_LOCK_FILE, FolderLock
from graphrag_eval_lc.run_folder.journal import key_of

_OTHERS: Final = 0o077
_LOCKS: Final = (LOCK_FILE, SOFT_LOCK_FILE)
_PARQUET: Final = b"PAR1"
_LOOKED_AT: Final = 8192  # bytes that show whether a file is text
_BLOCK_BYTES: Final = 1 << 20
_MOST_LINES_OF_A_KEY: Final = 300
_OPEN_KEY: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?!.*-----END )", re.DOTALL)
_PACKED: Final = re.compile(r"H4sI[A-Za-z0-9+/]{20,}={0,2}")  # the base64 of a gzip, as the report keeps details
_IDENTITY: Final = ("question_id", "repeat", "digest")


class StoredSecret(NamedTuple):
    """A secret in a file."""

    path: Path
    line: int  # from 1
    question_id: str | None  # the question of the line, in a journal
    kind: str  # such as "API key or token"
    hint: str  # its shape: 4 characters at most, and its length


@dataclass
class Scan:
    """The outcome of a scan of a folder or a file."""

    path: Path
    files: int = 0  # number of files that were read
    secrets: list[StoredSecret] = field(default_factory=list)
    masked: list[Path] = field(default_factory=list)  # files whose secrets were masked
    unread: dict[Path, str] = field(default_factory=dict)  # files that were not read, with the reason


def scan_secrets(path: str | PathLike[str], *, mask: bool = False) -> Scan:
    """Look for secrets in the files of a run, of a folder of runs, or in one file; links are not followed.

    Memory holds one line of a journal, or one megabyte of another file, at a time. With ``mask`` the files are
    rewritten with the secrets masked. Each file is replaced atomically and keeps its mode. The lines of journals stay
    JSON and keep their question ids, so the run can still be resumed, scored and reported.

    Raises:
        OptionError: The folder or file does not exist.
        RunFolderError: A file cannot be read or written; or, with ``mask``, another process works in a run's folder,
            which then stays unchanged.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "responses.jsonl")
        ...     _ = file.write_text('{"question_id": "q1", "error": "password=pa55word"}')
        ...     found = scan_secrets(folder, mask=True).secrets[0]
        ...     found.line, found.question_id, found.kind, found.hint, file.read_text()
        (1, 'q1', 'value of a secret name', 'p… (8 characters)', '{"question_id": "q1", "error": "password=***"}')
    """
    top = Path(path)
    if not os.path.lexists(top):
        raise OptionError("the folder or file does not exist", path=top, hint="Give the folder of a run, or a file.")
    files, scan = [top], Scan(top)
    if top.is_dir():
        files = sorted(Path(folder, name) for folder, _, names in os.walk(top) for name in names if name not in _LOCKS)
    with ExitStack() as locks:
        for folder in sorted({file.parent for file in files}) if mask else ():
            if any(os.path.lexists(folder / name) for name in (RUN_FILE, RESPONSES_FILE)):
                locks.enter_context(FolderLock(folder, is_private=is_private_beside(folder / LOCK_FILE)))
        for file in files:
            _scan_file(file, scan, mask)
    return scan


def _scan_file(path: Path, scan: Scan, mask: bool) -> None:
    try:
        refuse_odd(path)
        with open_to_read(path) as file:
            beginning = file.read(_LOOKED_AT)
            if beginning.startswith(_PARQUET):
                scan.unread[path] = "it is a Parquet file: mask the run's files, and export it again"
            elif b"\0" in beginning:
                scan.unread[path] = "it is not text"
            if path in scan.unread:
                return
            file.seek(0)
            scan.files += 1
            secrets = [
                StoredSecret(path, line, question_id, each.kind, each.hint)
                for _, found, question_id in _masked_parts(file, path)
                for line, each in found
            ]
    except RunFolderError as problem:
        scan.unread[path] = problem.what
    except FileNotFoundError:  # the run is still writing
        return
    except OSError as problem:
        raise cannot_read(path, problem) from problem
    else:
        scan.secrets += secrets
        if mask and secrets:
            _replace(path, scan)


def _replace(path: Path, scan: Scan) -> None:
    """Replace a file atomically by its masked text; it keeps its mode."""
    try:
        before = path.stat()
        mode = stat.S_IMODE(before.st_mode)
        with open_to_read(path) as file:
            replace_file(path, (part for part, _, _ in _masked_parts(file, path)), is_private=not mode & _OTHERS)
        if stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)
    except OSError as problem:
        raise cannot_write(path, problem) from problem
    scan.masked.append(path)
    if before.st_nlink > 1:
        scan.unread[path] = "it has other names (hard links), which still have the old content"


def _masked_parts(file: BinaryIO, path: Path) -> Iterator[tuple[bytes, list[tuple[int, Found]], str | None]]:
    """Read a file part by part: a line of a journal, or about a megabyte of another file.

    Yields each part with secrets masked, the secrets with their line numbers, and the question of a journal's line.
    Bytes that are not UTF-8 stay unchanged.
    """
    is_journal, line = ".jsonl" in path.name, 1
    for part in file if is_journal else _whole_lines(file):
        text, question_id = part.decode("utf-8", "surrogateescape"), None
        packed: list[Found] = []
        is_packed = not is_journal and "H4sI" in text
        plain = _PACKED.sub(partial(_repacked, found=packed), text) if is_packed else text
        masked, found = masked_and_found(plain)
        if is_journal and found:
            masked, question_id = _masked_line(part, masked)
        lines = [(line + text[: each.at].count("\n"), each) for each in (*packed, *found)]
        yield masked.encode("utf-8", "surrogateescape"), lines, question_id
        line += text.count("\n")


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield whole lines, about a megabyte at a time, without splitting a private key."""
    while lines := file.readlines(_BLOCK_BYTES):
        part = b"".join(lines)
        for _ in range(_MOST_LINES_OF_A_KEY if _OPEN_KEY.search(part) else 0):
            line = file.readline()
            part += line
            if not line or b"-----END " in line:
                break
        yield part


def _repacked(match: re.Match[str], found: list[Found]) -> str:
    """Mask secrets inside base64 of a gzip, as reports contain; what cannot be unpacked stays unchanged."""
    try:
        inside = gzip.decompress(base64.b64decode(match[0], validate=True)).decode()
    except (OSError, EOFError, ValueError):
        return match[0]
    masked, more = masked_and_found(inside)
    if masked == inside:
        return match[0]
    found += (each._replace(at=match.start()) for each in more)
    return base64.b64encode(gzip.compress(masked.encode(), compresslevel=6, mtime=0)).decode("ascii")


def _masked_line(line: bytes, masked: str) -> tuple[str, str | None]:
    """Return a masked journal line that is still JSON and keeps its question id, and that id."""
    record = _record_in(line)
    if record is None:  # torn
        return masked, None
    after, identity = _record_in(masked.encode("utf-8", "surrogateescape")), _identity(record)
    if after is None or _identity(after) != identity or after.keys() != record.keys():
        masked = f"{json_text({**masked_values(record), **identity})}\n"
    key = key_of(record)
    return masked, None if key is None else key[0]


def _record_in(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _identity(record: dict[str, Any]) -> dict[str, Any]:
    """Return the keys that identify a record, which masking must not change."""
    return {key: record[key] for key in _IDENTITY if key in record}
