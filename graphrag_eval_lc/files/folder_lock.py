"""The lock of a run's folder: one process at a time works in it."""

import contextlib
import errno
import os
import sys
from pathlib import Path
from weakref import WeakSet

from graphrag_eval_lc.errors import RunFolderError, cannot_write
from graphrag_eval_lc.files.lock_file import LockFile, refuse_held
from graphrag_eval_lc.files.lock_holder import Holder
from graphrag_eval_lc.files.opening import open_descriptor

LOCK_FILE = ".lock"
STAND_IN = ".lock.held"
"""The file that is the lock where the file system has none."""

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
    that has just opened it and one that makes it anew could both hold a lock. Where the file system has no locks, the
    file ``.lock.held`` stands in, which says who holds it.

    Args:
        folder: The folder; it must exist.
        is_private: Whether what is made is for its owner alone; see ``open_descriptor``.

    Raises:
        RunFolderError: Another process, or another run in this one, works in the folder; or the lock file cannot be
            written.
    """

    def __init__(self, folder: Path, *, is_private: bool = True) -> None:
        path, stand_in = folder / LOCK_FILE, folder / STAND_IN
        self._stand_in: LockFile | None = None
        self._descriptor = -1
        try:
            self._descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT, is_private=is_private)
            self._take(path, stand_in, is_private)
        except OSError as problem:
            self.release()
            raise cannot_write(path, problem) from problem
        except BaseException:
            self.release()
            raise
        _held.add(self)
        self._write_holder()

    def _take(self, path: Path, stand_in: Path, is_private: bool) -> None:
        try:
            _lock(self._descriptor)
        except OSError as problem:
            if problem.errno in _UNSUPPORTED:
                self._stand_in = LockFile(stand_in, is_private=is_private)
            elif problem.errno in _TAKEN:
                raise RunFolderError(
                    f"another process{_holder(self._descriptor)} works in this folder",
                    path=path.parent,
                    hint="Wait for it to end, or give another folder.",
                ) from problem
            else:
                raise
        else:
            refuse_held(stand_in)  # of a host that mounts this file system without locks

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Free the lock; a second time does nothing."""
        stand_in, self._stand_in = self._stand_in, None
        if stand_in is not None:
            stand_in.release()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            _held.discard(self)
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _write_holder(self) -> None:
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, Holder.short().as_bytes())


def _holder(descriptor: int) -> str:
    """Return who holds the lock, in brackets; an empty text where that cannot be read."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        holder = Holder.read(os.read(descriptor, 1000))
    except OSError:
        return ""
    return "" if holder is None else f" ({holder})"


_held: WeakSet[FolderLock] = WeakSet()


def _let_go_in_child() -> None:
    """Free the locks in a forked process of an agent, which may outlive the run."""
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)
