"""A file that grows by whole lines: each is given to the system at once, and half a line never stays."""

import contextlib
import os
from pathlib import Path

from graphrag_eval_lc.file_problems import cannot_write, removed

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class AppendFile:
    """A file open for appending; not safe for several threads at once.

    Args:
        path: The file; it is made where it is missing.
        empty: Whether what it holds is dropped.

    Attributes:
        descriptor: The open file; -1 once it is closed.
        length: How many bytes the file has.

    Raises:
        RunFolderError: The file cannot be opened or written.
    """

    def __init__(self, path: Path, *, empty: bool = False) -> None:
        self._path = path
        self._torn = False
        self.descriptor = -1
        try:
            self.descriptor = os.open(path, _FLAGS | (os.O_TRUNC if empty else 0), 0o666)
            self.length = os.fstat(self.descriptor).st_size
        except OSError as problem:
            raise cannot_write(path, problem) from problem

    def append(self, line: bytes) -> int:
        """Give one line to the system.

        Returns:
            Where it begins in the file, in bytes.

        Raises:
            RunFolderError: It cannot be written (none of it stays in the file), or the file was removed.
        """
        start = self.length
        try:
            if os.fstat(self.descriptor).st_nlink == 0 and not self._is_in_place():
                raise removed(self._path)
            if self._torn:
                self._cut_off()
            self._write(line)
        except OSError as problem:
            raise cannot_write(self._path, problem) from problem
        return start

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            try:
                os.close(descriptor)
            except OSError as problem:
                raise cannot_write(self._path, problem) from problem

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]
            self.length += len(line)
        except BaseException:
            self._torn = True
            with contextlib.suppress(OSError):
                self._cut_off()
            raise

    def _cut_off(self) -> None:
        """Cut off what a write that failed left behind; where that fails too, it is done before the next one."""
        os.ftruncate(self.descriptor, self.length)
        self._torn = False

    def _is_in_place(self) -> bool:
        """Tell whether the file can still be found: some file systems count no links."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), self._path.stat())
        except FileNotFoundError:
            return False
