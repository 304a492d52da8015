"""Opens files safely in folders that others can write to: follows no links, never blocks, and sets the file modes."""

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO, Final

from graphrag_eval_lc.errors import RunFolderError, cannot_make, no_path

if sys.platform != "win32":
    import fcntl

RUN_FILE: Final = "run.json"
"""A folder with this file is the folder of a run."""

_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700
_OPEN_FILE = 0o666  # minus the umask
_OTHERS = 0o077
# O_NONBLOCK: opening a named pipe without a partner would block. It has no effect on files.
_SAFE_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY", "O_CLOEXEC"))
_LEAVES_LINKS = hasattr(os, "O_NOFOLLOW")
_STANDARD = (0, 1, 2)

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_descriptor(path: Path, flags: int, *, is_private: bool = True) -> int:
    """Open a file of a run's folder with the flags of ``os.open``, and return its descriptor.

    Links in the path above the file are followed, as the user chose the folder. If ``is_private``, a file that is
    created or written can only be read by its owner (0600), whatever the umask; otherwise a new file's mode follows the
    umask.

    Raises:
        RunFolderError: The path is a link, a named pipe, a socket or a device; or the file is to be written in place
            and has hard links, whose content would change too.
        OSError: It cannot be opened.
    """
    if not _LEAVES_LINKS:
        refuse_odd(path)
    made = _PRIVATE_FILE if is_private else _OPEN_FILE
    try:
        descriptor = os.open(path, flags | _SAFE_FLAGS, made)
    except OSError:
        refuse_odd(path)
        raise
    except ValueError as problem:
        raise no_path(path) from problem
    try:
        if descriptor in _STANDARD and sys.platform != "win32":
            # If an agent closed its standard output, its prints would go into the file.
            standard, descriptor = descriptor, fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(_STANDARD) + 1)
            os.close(standard)
        opened = os.fstat(descriptor)
        _refuse_kind(path, opened.st_mode)
        if not _LEAVES_LINKS:
            refuse_odd(path)  # it may have been replaced since the first check
        if flags & (os.O_WRONLY | os.O_RDWR) and opened.st_nlink > 1:
            raise RunFolderError(
                f"this file has {opened.st_nlink} names (hard links), and what is written would be in all of them",
                path=path,
                hint="Copy it, and move the copy to its place.",
            )
        is_open = is_private and flags & os.O_CREAT and stat.S_IMODE(opened.st_mode) != _PRIVATE_FILE
        if is_open and sys.platform != "win32":
            with contextlib.suppress(OSError):  # the mode of another user's file cannot be changed
                os.fchmod(descriptor, _PRIVATE_FILE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_to_read(path: Path) -> BinaryIO:
    """Open a file of a run's folder for reading; see ``open_descriptor``."""
    return os.fdopen(open_descriptor(path, os.O_RDONLY), "rb")


def absolute_path(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path, which stays valid if an agent changes the current folder."""
    try:
        return Path(path).absolute()
    except OSError as problem:
        what = f"the current folder cannot be read ({problem.strerror or problem})"
        hint = "Go to a folder that exists, or give a path from the root."
        raise RunFolderError(what, path=path, hint=hint) from problem


def open_to_write(path: Path) -> BinaryIO:
    """Open a file that the user named, and empty it; in a run's folder, use ``open_descriptor``."""
    if not is_of_run(path):
        return path.open("wb")
    descriptor = open_descriptor(path, os.O_WRONLY | os.O_CREAT, is_private=is_private_beside(path))
    os.ftruncate(descriptor, 0)
    return os.fdopen(descriptor, "wb")


def make_folder(path: Path, *, is_private: bool = True) -> None:
    """Create a folder if it is missing: only for its owner (0700), or with a mode that follows the umask.

    The mode of an existing folder is kept; missing parent folders are created with a mode that follows the umask.
    """
    try:
        try:
            path.mkdir(_PRIVATE_FOLDER if is_private else 0o777, parents=True)
        except FileExistsError:
            if not path.is_dir():
                raise
        else:
            if is_private:
                path.chmod(_PRIVATE_FOLDER)  # an unusual umask may remove the owner's rights
    except OSError as problem:
        raise cannot_make(path, problem) from problem
    except ValueError as problem:
        raise no_path(path) from problem


def refuse_odd(*paths: Path) -> None:
    """Raise if one of the paths is a link, or neither a file nor a folder."""
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # it is missing, or the next step says what is wrong
            _refuse_kind(path, path.lstat().st_mode)


def _refuse_kind(path: Path, mode: int) -> None:
    for is_kind, name in _KINDS:
        if is_kind(mode):
            raise RunFolderError(
                f"this is {name}, and only regular files are used in a run's folder",
                path=path,
                hint="Remove it, or put the file itself there. The folder itself may be a link.",
            )


def special_file(path: str | os.PathLike[str]) -> str:
    """Return what a path is, such as "a named pipe", if reading it might block or never end; else ""."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a path that is too long is no error here
    except (OSError, ValueError):
        return ""
    if os.path.realpath(path).startswith(("/proc/", "/sys/")):  # reading /proc/kmsg, for example, blocks
        return "a file of the system"
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "")


def is_of_run(path: Path) -> bool:
    """Return whether a path is in the folder of a run, or in a direct subfolder."""
    return _run_file_near(path) is not None


def is_private_beside(path: Path) -> bool:
    """Return whether a file must be private because the run.json of its run is; False outside of runs."""
    near = None if os.name == "nt" else _run_file_near(path)
    try:
        return near is not None and not near.lstat().st_mode & _OTHERS
    except OSError:
        return False


def _run_file_near(path: Path) -> Path | None:
    near = (folder / RUN_FILE for folder in (path.parent, path.parent.parent))
    return next((file for file in near if os.path.lexists(file)), None)
