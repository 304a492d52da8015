"""A lock that is a file: it stands in where the file system has no locks, such as some network file systems."""

import contextlib
import os
import time
from pathlib import Path

from graphrag_eval_lc.errors import RunFolderError, cannot_write
from graphrag_eval_lc.files.lock_holder import Holder
from graphrag_eval_lc.files.opening import open_descriptor, open_to_read

_WRITING_SEC = 1.0  # within which one that was made has written who it is


class LockFile:
    """A lock file, made so that of several processes exactly one makes it; held from construction to ``release``.

    One of a process that ended without ``release`` is taken over, where the process was of this host.

    Args:
        path: The file; its folder must exist.
        is_private: Whether it is for its owner alone; see ``open_descriptor``.

    Raises:
        RunFolderError: Another process holds it, or one did on another host; or it cannot be written.
    """

    def __init__(self, path: Path, *, is_private: bool = True) -> None:
        self._path = path
        self._is_private = is_private
        self._me = Holder.this()
        try:
            while not self._is_made():
                self._make_way()
        except OSError as problem:
            raise cannot_write(path, problem) from problem

    def release(self) -> None:
        """Remove the file, where it is still that of this lock and of this process; a second time does nothing."""
        with contextlib.suppress(OSError, RunFolderError):
            if self._me.pid == os.getpid() and _holder_in(self._path) == self._me:
                self._path.unlink()

    def _is_made(self) -> bool:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            descriptor = open_descriptor(self._path, flags, is_private=self._is_private)
        except FileExistsError:
            return False
        try:
            try:
                os.write(descriptor, self._me.as_bytes())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except BaseException:
            self._path.unlink(missing_ok=True)
            raise
        return True

    def _make_way(self) -> None:
        """Remove the file of a process that is dead, so that it can be made anew.

        Raises:
            RunFolderError: Its process may live.
        """
        holder = _holder_of(self._path)
        if holder is None:
            if not os.path.lexists(self._path):
                return
            raise _held(self._path, None)
        if not holder.is_dead():
            raise _held(self._path, holder)
        # Whoever holds this second lock is the only one that may remove the file of that dead process. As its name is
        # that of the dead one, nobody removes a file that somebody else has made in its place since.
        taking = LockFile(self._path.with_name(f"{self._path.name}.{holder.token}"), is_private=self._is_private)
        try:
            if _holder_in(self._path) == holder:
                self._path.unlink()
        finally:
            taking.release()


def refuse_held(path: Path) -> None:
    """Refuse a folder in which a process works that could not lock it otherwise than by a lock file.

    Raises:
        RunFolderError: There is a lock file, and its process may live.
    """
    holder = _holder_in(path)
    if holder is not None and not holder.is_dead():
        raise _held(path, holder)


def _holder_of(path: Path) -> Holder | None:
    """Return who made a lock file; waits a moment for one that has not written it yet."""
    end = time.monotonic() + _WRITING_SEC
    while (holder := _holder_in(path)) is None and os.path.lexists(path) and time.monotonic() < end:
        time.sleep(0.01)
    return holder


def _holder_in(path: Path) -> Holder | None:
    try:
        with open_to_read(path) as file:
            return Holder.read(file.read(10_000))
    except FileNotFoundError:
        return None


def _held(path: Path, holder: Holder | None) -> RunFolderError:
    if holder is not None and holder.is_here():
        hint = "Wait for it to end, or give another folder."
        return RunFolderError(f"another process ({holder}) works in this folder", path=path.parent, hint=hint)
    who = "another process" if holder is None else f"a process of another host ({holder})"
    return RunFolderError(
        f"{who} works in this folder, or was ended there before it could say so",
        path=path.parent,
        hint=f"Wait for it to end, or give another folder. Where it has ended, remove {path}.",
    )
