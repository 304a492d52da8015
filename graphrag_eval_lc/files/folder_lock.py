"""The lock of a run's folder: one process at a time works in it."""

import contextlib
import errno
import json
import os
import socket
import sys
from pathlib import Path
from weakref import WeakSet

from graphrag_eval_lc.errors import RunFolderError, cannot_write

LOCK_FILE = ".lock"

_TAKEN = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # behind the text, which others may read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FolderLock:
    """The lock of a folder, held from construction to ``release``.

    The system frees it when the process ends, however it ends. The file ``.lock`` stays: were it removed, a process
    that has just opened it and one that makes it anew could both hold a lock.

    Args:
        folder: The folder; it must exist.

    Attributes:
        warning: A sentence for the user where the file system has no locks; else None.

    Raises:
        RunFolderError: Another process, or another run in this one, works in the folder; or the lock file cannot be
            written.
    """

    def __init__(self, folder: Path) -> None:
        self.warning: str | None = None
        path = folder / LOCK_FILE
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as problem:
            raise cannot_write(path, problem) from problem
        try:
            _lock(self._descriptor)
        except OSError as problem:
            if problem.errno in _UNSUPPORTED:
                self.warning = (
                    f"The file system of {folder} has no locks ({problem.strerror}): "
                    "make sure that no other process works in this folder."
                )
            else:
                holder = _holder(self._descriptor)
                self.release()
                if problem.errno not in _TAKEN:
                    raise cannot_write(path, problem) from problem
                raise RunFolderError(
                    f"another process{holder} works in this folder",
                    path=folder,
                    hint="Wait for it to end, or give another folder.",
                ) from problem
        _held.add(self)
        self._write_holder()

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Free the lock; a second time does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            _held.discard(self)
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _write_holder(self) -> None:
        holder = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{holder}\n".encode())


def _holder(descriptor: int) -> str:
    """Return who holds the lock, in brackets; an empty text where that cannot be read."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        holder = json.loads(os.read(descriptor, 1000))
        return f" (pid {holder['pid']} on {holder['host']})"
    except (OSError, ValueError, TypeError, KeyError):
        return ""


_held: WeakSet[FolderLock] = WeakSet()


def _let_go_in_child() -> None:
    """Free the locks in a forked process of an agent, which may outlive the run."""
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)
