"""The progress of a run, shown as a bar in a terminal or a notebook, or as lines."""

import contextlib
import html
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from itertools import chain, repeat
from types import TracebackType
from typing import IO, Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from graphrag_eval_lc.benchmark.option_fields import ProgressMode
from graphrag_eval_lc.benchmark.progress_state import RunSnapshot, RunState, message_of, progress_figures, progress_line
from graphrag_eval_lc.evaluation.events import Observer, RunEvent
from graphrag_eval_lc.registry.metrics import MAIN_METRIC


class UnfailingStream:
    """Hand text on to a stream, and drop what cannot be written: the terminal is gone, the disk is full, it is closed.

    Args:
        stream: Where the text goes. Letters that its encoding lacks are escaped.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:
        """The encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write what can be written, and give the number of letters as if it all was."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        """Return what was written to the system."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Return whether a person may be reading."""
        with contextlib.suppress(OSError, ValueError):
            return self._stream.isatty()
        return False

    def fileno(self) -> int:
        """Return the stream's number, which rich asks for on Windows."""
        return self._stream.fileno()


def line_pauses() -> Iterator[float]:
    """Return the seconds between lines: the first soon, then half a minute, and the rarer the longer the run takes.

    Example:
        >>> from itertools import islice
        >>> list(islice(line_pauses(), 3))
        [10.0, 30.0, 30.0]
    """
    return chain([10.0], repeat(30.0, 10), repeat(60.0, 25), repeat(300.0))


class PlainLines:
    """An observer that prints a line now and then, and one at the end if there was any; messages at once.

    Args:
        stream: Where the lines go.
        pauses: The seconds between them; after the last pause no more are printed.
    """

    def __init__(self, stream: UnfailingStream, pauses: Iterable[float] | None = None) -> None:
        self._stream = stream
        self._pauses = line_pauses() if pauses is None else pauses
        self._state = RunState()
        self._lock = threading.RLock()  # re-entrant, since a signal handler may interrupt its holder
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._print_now_and_then, name="progress", daemon=True)
        self._has_printed = False

    def __enter__(self) -> "PlainLines":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed.set()
        self._thread.join()
        if self._has_printed:
            self._print_line()

    def __call__(self, event: RunEvent) -> None:
        """Take up one event."""
        self._state(event)
        message = message_of(event)
        if message is not None and not self._closed.is_set():
            self._print(message)

    def _print_now_and_then(self) -> None:
        for pause in self._pauses:
            if self._closed.wait(pause):
                return
            self._print_line()

    def _print_line(self) -> None:
        run = self._state.snapshot()
        if run.elapsed_sec is not None:
            self._has_printed = True
            self._print(progress_line(run))

    def _print(self, text: str) -> None:
        with self._lock:
            self._stream.write(f"{text}\n")
            self._stream.flush()


_PAUSE_SEC = 0.5


class NotebookBar:
    """An observer that keeps one output of the cell up to date; at the end only the messages stay in it."""

    def __init__(self) -> None:
        self._state = RunState()
        self._messages: list[str] = []
        self._lock = threading.RLock()  # re-entrant, since a signal handler may interrupt its holder
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._show_now_and_then, name="progress", daemon=True)
        self._shown = self._content()
        self._display: Any = None

    def __enter__(self) -> "NotebookBar":
        # IPython is there in every notebook, and only there is it needed.
        display = import_module("IPython.display").display
        self._display = display(self._shown, raw=True, display_id=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed.set()
        self._thread.join()
        self._show()

    def __call__(self, event: RunEvent) -> None:
        """Take up one event."""
        self._state(event)
        message = message_of(event)
        if message is not None and not self._closed.is_set():
            with self._lock:
                self._messages.append(message)
                self._show()

    def _show_now_and_then(self) -> None:
        while not self._closed.wait(_PAUSE_SEC):
            self._show()

    def _show(self) -> None:
        with self._lock:
            content = self._content()
            if content != self._shown:
                self._shown = content
                self._display.update(content, raw=True)

    def _content(self) -> dict[str, str]:
        run = self._state.snapshot()
        lines = list(self._messages)
        parts = [f'<div style="white-space: pre-wrap">{html.escape(line)}</div>' for line in lines]
        if run.elapsed_sec is not None and not self._closed.is_set():
            line = progress_line(run)
            lines.append(line)
            bar = f'<progress value="{run.done}" max="{max(run.total, 1)}" style="width: 20em"></progress>'
            parts.append(f"<div>{bar} {html.escape(line)}</div>")
        return {"text/plain": "\n".join(lines), "text/html": "".join(parts)}


_REFRESHES_PER_SECOND = 8
_WIDEST_BAR, _NARROWEST_BAR = 50, 8

# Where a terminal is too narrow for all figures, the later ones are left out.
_BY_WEIGHT = ("stopping", "errors", "left", "rate", MAIN_METRIC, "in_flight", "tokens", "retries", "elapsed")
_STYLES = {"errors": "red", "stopping": "bold yellow", "retries": "yellow"}


class TerminalBar:
    """An observer that keeps a bar up to date at the foot of a terminal; messages and prints stand above it.

    Args:
        stream: The terminal.
        redirect_stderr: Whether what is printed to standard error meanwhile is put above the bar.
    """

    def __init__(self, stream: UnfailingStream, *, redirect_stderr: bool) -> None:
        self._state = RunState()
        self._console = _Console(file=cast("IO[str]", stream), force_terminal=True, force_jupyter=False)
        self._live = Live(
            RunBar(self._state),
            console=self._console,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=True,
            # Standard output that goes to a file or a pipe must stay there.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
            redirect_stderr=redirect_stderr,
        )
        self._open = False

    def __enter__(self) -> "TerminalBar":
        self._live.start()
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open = False
        self._live.stop()

    def __call__(self, event: RunEvent) -> None:
        """Take up one event."""
        self._state(event)
        message = message_of(event)
        if message is not None and self._open:
            self._console.print(Text(message), soft_wrap=True)


class RunBar:
    """What the terminal shows: a line with the bar, and a line with the figures that fit.

    Args:
        state: How the run stands.
    """

    def __init__(self, state: RunState) -> None:
        self._state = state

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        run = self._state.snapshot()
        if run.elapsed_sec is not None:
            yield _bar_line(run, run.elapsed_sec, options.max_width)
            yield _figures_line(run, options.max_width)


def _bar_line(run: RunSnapshot, elapsed_sec: float, width: int) -> RenderableType:
    text = f"{run.done:,} of {run.total:,} done"
    details = f"{100 * run.done // run.total if run.total else 100:3}%  {_clock_text(elapsed_sec)}"
    bar_width = min(width - len(text) - len(details) - 4, _WIDEST_BAR)
    if bar_width < _NARROWEST_BAR:
        return _one_line(text)
    line = Table.grid(padding=(0, 2, 0, 0))
    line.add_row(text, ProgressBar(total=max(run.total, 1), completed=run.done, width=bar_width), details)
    return line


def _figures_line(run: RunSnapshot, width: int) -> Text:
    figures = progress_figures(run)
    shown: set[str] = set()
    free = width + 2
    for name in _BY_WEIGHT:
        needed = len(figures.get(name, "")) + 2
        if name in figures and needed <= free:
            shown.add(name)
            free -= needed
    parts = [Text(text, _style(run, name)) for name, text in figures.items() if name in shown]
    line = Text("  ").join(parts)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _style(run: RunSnapshot, name: str) -> str:
    return "" if name == "errors" and not run.errors else _STYLES.get(name, "")


def _one_line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _clock_text(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"


class _Console(Console):
    """A console that leaves the cursor visible, so that a killed process does not leave a terminal without one."""

    def show_cursor(self, show: bool = True) -> bool:
        return False


def progress_display(mode: ProgressMode = "auto", *, file: TextIO | None = None) -> AbstractContextManager[Observer]:
    """Return a display of a run's progress, as a context manager with an observer to tell the events.

    Events only change figures in memory; a timer repaints them. When the context ends, the bar is gone and nothing
    more is printed. A terminal that is lost meanwhile does not disturb the run.

    Args:
        mode: "bar"; "lines" (plain ones, now and then); "off" (nothing at all, warnings neither); "auto": a bar in a
            terminal or a notebook, lines elsewhere.
        file: Where it is shown; None for standard error, or the cell's output in a notebook.

    Example:
        >>> with progress_display("off") as observer:
        ...     observer(RunEvent("warning", {"message": "The disk is nearly full."}))
    """
    stream = sys.stderr if file is None else file
    if mode == "off" or stream is None:  # a program without a console has no standard error
        return nullcontext(_ignored)
    unfailing = UnfailingStream(stream)
    if mode == "lines":
        return PlainLines(unfailing)
    if file is None and Console().is_jupyter:
        return NotebookBar()
    if mode == "bar" or _repaints(unfailing):
        return TerminalBar(unfailing, redirect_stderr=file is None)
    return PlainLines(unfailing)


def _ignored(event: RunEvent) -> None:
    pass


def _repaints(stream: UnfailingStream) -> bool:
    """Return whether a stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
