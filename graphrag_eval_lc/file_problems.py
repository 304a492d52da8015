"""What the system refuses to do with a file of a run, as an error that says how to mend it."""

import errno
from os import PathLike

from graphrag_eval_lc.errors import RunFolderError

_NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.EEXIST, errno.ENOTDIR}


def cannot_write(path: str | PathLike[str], problem: OSError) -> RunFolderError:
    """Give the error for a file or folder that cannot be written."""
    return RunFolderError(f"cannot be written ({problem.strerror or problem})", path=path, mend=_mend(problem.errno))


def cannot_read(path: str | PathLike[str], problem: OSError) -> RunFolderError:
    """Give the error for a file that cannot be read."""
    return RunFolderError(
        f"cannot be read ({problem.strerror or problem})", path=path, mend="Check the path and the permissions."
    )


def removed(path: str | PathLike[str]) -> RunFolderError:
    """Give the error for a file that was removed or replaced while the run had it open."""
    return RunFolderError(
        "the file or its folder was removed while the run was writing",
        path=path,
        mend="Run again, and leave the folder alone until the run ends.",
    )


def _mend(number: int | None) -> str:
    if number in _NO_ROOM:
        return "Free space on this disk (or raise the limit), then run again: what is written so far is kept."
    if number in _NOT_ALLOWED:
        return "Give a folder that you may write to."
    if number in _IN_THE_WAY:
        return "A file stands where a folder is needed: move it away, or give another folder."
    if number == errno.ENOENT:
        return "The folder was removed while the run was writing: run again, and leave it alone until the run ends."
    return "Check the disk, then run again: what is written so far is kept."
