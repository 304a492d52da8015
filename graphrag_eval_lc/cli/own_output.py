"""Standard output and error of a command, kept for it while code of others runs: agents close and replace them."""

import contextlib
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_STREAMS: Final = ("stdout", "stderr")


@contextmanager
def own_output() -> Iterator[None]:
    """Put standard output and error back at the end, as they were at the beginning.

    Where an agent closed them (``sys.stdout.close()``, ``os.close(1)``) or something else stands in their place, the
    command writes to copies of them. Where nobody is there to read them any more, as when a terminal was closed, what
    is printed is dropped, so that the exit code stays that of the run.
    """
    kept = [_Kept(name) for name in _STREAMS]
    try:
        yield
    finally:
        for each in kept:
            each.put_back()


def fill_closed_output() -> None:
    """Let what is printed be dropped where the command was started without standard output or error (``>&-``)."""
    for name in _STREAMS:
        if getattr(sys, name) is None:
            setattr(sys, name, _nowhere())


class _Kept:
    """A stream at the beginning, and a copy of its descriptor."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stream: Any = getattr(sys, name)
        self._descriptor = _descriptor_of(self._stream)
        self._file = None if self._descriptor is None else os.fstat(self._descriptor)
        self._copy = None if self._descriptor is None else os.dup(self._descriptor)

    def put_back(self) -> None:
        now: Any = getattr(sys, self._name)
        if now is not self._stream:  # what it holds back was printed before what comes next
            with contextlib.suppress(Exception):
                now.flush()
        if self._is_whole():
            setattr(sys, self._name, self._stream)
            if self._copy is not None:
                os.close(self._copy)
        elif self._copy is not None and not _is_gone(self._copy):
            setattr(sys, self._name, self._of_copy(self._copy))
        else:
            setattr(sys, self._name, _nowhere())

    def _is_whole(self) -> bool:
        """Return whether the stream still leads to where it led."""
        if self._stream is None or getattr(self._stream, "closed", False):
            return False
        if self._descriptor is None or self._file is None:
            return True
        try:
            is_same = os.path.samestat(os.fstat(self._descriptor), self._file)
        except OSError:
            return False
        return is_same and not _is_gone(self._descriptor)

    def _of_copy(self, copy: int) -> io.TextIOWrapper:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        stream = os.fdopen(copy, "w", encoding=encoding, errors="backslashreplace", buffering=1)
        assert isinstance(stream, io.TextIOWrapper)
        return stream


def _descriptor_of(stream: Any) -> int | None:
    try:
        number = stream.fileno()
        os.fstat(number)
    except (AttributeError, OSError, ValueError):  # none, closed, or in memory
        return None
    return int(number)


def _is_gone(descriptor: int) -> bool:
    """Return whether nobody can read what is written: the terminal was closed, or the reader of a pipe has ended."""
    if not hasattr(select, "poll"):
        return False
    asked = select.poll()
    asked.register(descriptor, 0)
    return any(events & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, events in asked.poll(0))


def _nowhere() -> io.TextIOWrapper:
    return open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")  # noqa: PTH123  # kept open
