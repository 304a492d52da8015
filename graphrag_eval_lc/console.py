"""Prints data safely, never as markup or terminal commands, and restores standard output after an agent changed it."""

import contextlib
import io
import os
import select
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from graphrag_eval_lc.texts import visible, without_commands

_STREAMS: Final = ("stdout", "stderr")


class DataConsole(Console):
    r"""A ``rich`` console that passes all texts through ``visible``, so that data cannot send terminal commands.

    ``[brackets]`` and ``:names:`` are not markup, and texts are not highlighted automatically. The cursor stays
    visible, so that a killed process does not leave a terminal without one.

    Args:
        **options: The options of ``rich``'s console.

    Example:
        >>> import io
        >>> console = DataConsole(file=io.StringIO(), width=40)
        >>> console.print("[red] urn:a:x \x1b[2J")
        >>> console.file.getvalue()
        '[red] urn:a:x ␛[2J\n'
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, markup=False, emoji=False, highlight=False)

    def show_cursor(self, show: bool = True) -> bool:
        """Do not change the cursor, and return False to say so."""
        return False

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as a text with control characters made visible."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, with control characters made visible."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """Return the final output without CI commands, since the layout may put any text at the start of a line."""
        return without_commands(super()._render_buffer(buffer))


def data_text(value: object, style: str = "", *, keeps_lines: bool = False) -> Text:
    r"""Return data as a text for a cell of a table, safe on any console of ``rich``.

    Args:
        value: The data.
        style: A ``rich`` style for the whole text.
        keeps_lines: Whether line breaks and tabs are kept; otherwise they are shown as symbols.

    Example:
        >>> data_text("urn:a:x\n[red]").plain
        'urn:a:x␊[red]'
    """
    return Text(visible(value, keeps_lines=keeps_lines), style)


@contextmanager
def kept_output() -> Iterator[None]:
    """Restore standard output and error at the end.

    If an agent closed them (``sys.stdout.close()``, ``os.close(1)``) or replaced them, copies are used. If nobody can
    read them any more, for example because the terminal was closed, output is dropped, so that the exit code is still
    that of the run.
    """
    kept = [_SavedStream(name) for name in _STREAMS]
    try:
        yield
    finally:
        for each in kept:
            each.put_back()


def fill_closed_output() -> None:
    """Drop output if the command was started without standard output or error (``>&-``)."""
    for name in _STREAMS:
        if getattr(sys, name) is None:
            setattr(sys, name, _nowhere())


class _SavedStream:
    """A standard stream as it was at the beginning, and a copy of its descriptor."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stream: Any = getattr(sys, name)
        self._descriptor = _descriptor_of(self._stream)
        self._file = None if self._descriptor is None else os.fstat(self._descriptor)
        self._copy = None if self._descriptor is None else os.dup(self._descriptor)

    def put_back(self) -> None:
        now: Any = getattr(sys, self._name)
        if now is not self._stream:  # flush first, as its buffered output was printed earlier
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
        """Return whether the stream still leads to the same file."""
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
    """Return whether nobody can read the output: the terminal was closed, or the reader of a pipe has ended."""
    if not hasattr(select, "poll"):
        return False
    asked = select.poll()
    asked.register(descriptor, 0)
    return any(events & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, events in asked.poll(0))


def _nowhere() -> io.TextIOWrapper:
    return open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")  # noqa: PTH123  # kept open
