"""The lock of a run's folder, which ensures that only one process works in it."""

import contextlib
import errno
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

from graphrag_eval_lc.errors import RunFolderError, cannot_write

LOCK_FILE = ".lock"
SOFT_LOCK_FILE = ".lock.held"
"""On file systems without locks (some network file systems), the existence of this file is the lock."""

_BY_UMASK = -1
_UNSUPPORTED = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


class FolderLock:
    """The lock of a folder, held from construction to ``release``; raises a RunFolderError if another run holds it.

    The system releases it when the process ends, however it ends. A forked child does not hold it.
    """

    def __init__(self, folder: Path, *, is_private: bool = True) -> None:
        mode = 0o600 if is_private else _BY_UMASK
        self._lock = FileLock(folder / LOCK_FILE, timeout=0, thread_local=False, mode=mode)
        try:
            try:
                self._lock.acquire()
            except OSError as problem:
                if isinstance(problem, Timeout) or problem.errno not in _UNSUPPORTED:
                    raise
                self._lock = SoftFileLock(folder / SOFT_LOCK_FILE, timeout=0, thread_local=False, mode=mode)
                self._lock.acquire()
        except Timeout as problem:
            hint = "Wait for it to end, or use another folder."
            raise RunFolderError("another run or command works in this folder", path=folder, hint=hint) from problem
        except OSError as problem:
            raise cannot_write(folder / LOCK_FILE, problem) from problem
        if is_private:
            with contextlib.suppress(OSError):  # of an earlier run that was not; perhaps another user's
                Path(self._lock.lock_file).chmod(mode)

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        self._lock.release()
