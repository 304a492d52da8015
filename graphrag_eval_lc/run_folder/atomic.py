"""Files that are replaced as a whole, so that a reader never sees half of one, and syncing to the disk."""

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.file_problems import cannot_write
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.run_folder.record_text import yaml_text

# Such as a mounted bucket: it keeps what it keeps.
_CANNOT_SYNC = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}

_sync_data = getattr(os, "fdatasync", os.fsync)


def unfinished(target: Path) -> Path:
    """Give the path beside ``target`` at which it is written before it takes its place."""
    return target.with_name(f"{target.name}.new")


def replace_file(target: Path, parts: Iterable[bytes]) -> None:
    """Write a file beside its place, sync it, and move it there.

    Raises:
        RunFolderError: It cannot be written; what stood there before still does.
    """
    beside = unfinished(target)
    try:
        try:
            with beside.open("wb") as file:
                file.writelines(parts)
                file.flush()
                sync(file.fileno())
            beside.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as problem:
        raise cannot_write(target, problem) from problem
    sync_folder(target.parent)


def sync(descriptor: int) -> None:
    """Wait until what was written to an open file is on the disk.

    Raises:
        OSError: The disk failed.
    """
    try:
        _sync_data(descriptor)
    except OSError as problem:
        if problem.errno not in _CANNOT_SYNC:
            raise


def sync_folder(folder: Path) -> None:
    """Bring the names of new files to the disk, where the system can (Windows cannot)."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_data(path: Path, value: Any, *, overwrite: bool = False) -> None:
    """Write a file as a whole: JSON where its name ends in ``.json``, else YAML.

    Raises:
        RunFolderError: The file cannot be written, or exists and may not be replaced.
    """
    if path.exists() and not overwrite:
        raise RunFolderError("the file exists already", path=path, mend="Give another one, or pass --overwrite.")
    text = json_text(value, indent=2) + "\n" if path.suffix == ".json" else yaml_text(value)
    replace_file(path, [text.encode("utf-8", "surrogatepass")])
