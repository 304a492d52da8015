"""Secrets in the files of runs that are there already: found, and masked in place."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from graphrag_eval_lc.errors import OptionError, RunFolderError, cannot_read, cannot_write
from graphrag_eval_lc.files.folder_lock import LOCK_FILE, SOFT_LOCK_FILE, FolderLock
from graphrag_eval_lc.files.opening import is_private_beside, open_to_read, refuse_odd
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RUN_FILE
from graphrag_eval_lc.run_store.scanned_blocks import blocks_of

_OTHERS = 0o077
_LOCKS = (LOCK_FILE, SOFT_LOCK_FILE)
_PARQUET = b"PAR1"
_LOOKED_AT = 8192  # bytes that tell text from other files


class StoredSecret(NamedTuple):
    """A secret in a file.

    Attributes:
        path: The file.
        line: Its line, from 1.
        question_id: The question that the line is about, in a journal.
        kind: What it is, such as "API key or token".
        hint: Its shape: 4 characters at most, and its length.
    """

    path: Path
    line: int
    question_id: str | None
    kind: str
    hint: str


@dataclass
class Scan:
    """What was found in a folder or a file.

    Attributes:
        path: The folder or the file.
        files: How many files were looked into.
        secrets: The secrets, file by file.
        masked: The files that were rewritten without them.
        unread: Files that were not looked into, each with the reason.
    """

    path: Path
    files: int = 0
    secrets: list[StoredSecret] = field(default_factory=list)
    masked: list[Path] = field(default_factory=list)
    unread: dict[Path, str] = field(default_factory=dict)


def scan_secrets(path: str | PathLike[str], *, mask: bool = False) -> Scan:
    """Look for secrets in the files of a run, of a folder of runs, or in one file.

    Memory holds a line of a journal, or a megabyte of another file, at a time. Links are not followed.

    Args:
        path: The folder or the file.
        mask: Whether the files are rewritten with the secrets masked. Each is replaced as a whole, and keeps its
            mode; the lines of journals stay JSON and keep their question ids, so that the run can be resumed, scored
            and reported as before.

    Raises:
        OptionError: The folder or file does not exist.
        RunFolderError: A file cannot be read or written; or with ``mask`` another process works in a run's folder,
            of which nothing is changed then.

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
    scan = Scan(top)
    files = sorted(_files(top))
    with ExitStack() as locks:
        if mask:
            for folder in sorted({file.parent for file in files if _is_run(file.parent)}):
                locks.enter_context(FolderLock(folder, is_private=is_private_beside(folder / LOCK_FILE)))
        for file in files:
            _scan_file(file, scan, mask)
    return scan


def _files(top: Path) -> Iterator[Path]:
    if not top.is_dir():
        yield top
        return
    for folder, _, names in os.walk(top):
        yield from (Path(folder, name) for name in names if name not in _LOCKS)


def _is_run(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in (RUN_FILE, RESPONSES_FILE))


def _scan_file(path: Path, scan: Scan, mask: bool) -> None:
    try:
        refuse_odd(path)
        with open_to_read(path) as file:
            beginning = file.read(_LOOKED_AT)
    except RunFolderError as problem:
        scan.unread[path] = problem.what
        return
    except FileNotFoundError:  # of a run that goes on
        return
    except OSError as problem:
        raise cannot_read(path, problem) from problem
    if beginning.startswith(_PARQUET):
        scan.unread[path] = "it is a Parquet file: mask the run's files, and export it again"
    elif b"\0" in beginning:
        scan.unread[path] = "it is not text"
    else:
        _scan_text(path, scan, mask)


def _scan_text(path: Path, scan: Scan, mask: bool) -> None:
    scan.files += 1
    before = len(scan.secrets)
    try:
        with open_to_read(path) as file:
            for block in blocks_of(file, path):
                scan.secrets += (
                    StoredSecret(path, block.line_of(each), block.question_id, each.kind, each.hint)
                    for each in block.found
                )
    except OSError as problem:
        raise cannot_read(path, problem) from problem
    if mask and len(scan.secrets) > before:
        _replace(path, scan)


def _masked_parts(path: Path) -> Iterator[bytes]:
    with open_to_read(path) as file:
        for block in blocks_of(file, path):
            yield block.masked


def _replace(path: Path, scan: Scan) -> None:
    """Replace a file as a whole with its masked text; it keeps its mode."""
    try:
        before = path.stat()
        mode = stat.S_IMODE(before.st_mode)
        replace_file(path, _masked_parts(path), is_private=not mode & _OTHERS)
        if stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)
    except OSError as problem:
        raise cannot_write(path, problem) from problem
    scan.masked.append(path)
    if before.st_nlink > 1:
        scan.unread[path] = "it has other names (hard links), which still have the old content"
