"""The progress of a run, shown as a bar in a terminal or a notebook, or as lines."""

import contextlib
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from importlib import import_module
from itertools import chain, repeat
from typing import IO, Any, Self, TextIO, cast

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from graphrag_eval_lc.benchmark.option_fields import ProgressMode
from graphrag_eval_lc.benchmark.progress_state import RunSnapshot, RunState, message_of, progress_line, progress_texts
from graphrag_eval_lc.console import DataConsole
from graphrag_eval_lc.evaluation.events import Observer, RunEvent
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.tables.notebook_html import page_html
from graphrag_eval_lc.texts import shown_html, without_commands


class UnfailingStream:
    """Hand text on to a stream, and drop what cannot be written: the terminal is gone, the disk is full, it is closed.

    Where an agent closed the stream's descriptor, another file or connection may have its number by now; nothing is
    written there.

    Args:
        stream: Where the text goes. Letters that its encoding lacks are escaped.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._place = _place_of(stream)

    @property
    def encoding(self) -> str:
        """The encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write what can be written, and return the number of letters as if all was."""
        if _place_of(self._stream) != self._place:
            return len(text)
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        """Hand on what the stream has kept so far."""
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


def _place_of(stream: TextIO) -> tuple[int, int] | None:
    """Return which file a stream leads to; None where that is none, as in memory, or where it is closed."""
    try:
        file = os.fstat(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return None
    return file.st_dev, file.st_ino


def line_pauses() -> Iterator[float]:
    """Return the seconds between lines: the first soon, then half a minute, and the rarer the longer the run takes.

    Example:
        >>> from itertools import islice
        >>> list(islice(line_pauses(), 3))
        [10.0, 30.0, 30.0]
    """
    return chain([10.0], repeat(30.0, 10), repeat(60.0, 25), repeat(300.0))


class _TimedDisplay(ABC):
    """An observer that shows a run now and then, from a thread of its own, and messages at once.

    It does what rich's progress cannot: that prints nothing to a file before the end, and nothing in a notebook
    without ipywidgets.
    """

    def __init__(self, pauses: Iterable[float]) -> None:
        self._pauses = pauses
        self._state = RunState()
        self._lock = threading.RLock()  # re-entrant, since a signal handler may interrupt its holder
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._show_now_and_then, name="progress", daemon=True)
        self._has_shown = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()
        self._thread.join()
        if self._has_shown:
            self._show_locked()

    def __call__(self, event: RunEvent) -> None:
        """Take up one event."""
        self._state(event)
        message = message_of(event)
        if message is not None and not self._closed.is_set():
            with self._lock:
                self._tell(message)

    def _show_now_and_then(self) -> None:
        for pause in self._pauses:
            if self._closed.wait(pause):
                return
            self._show_locked()

    def _show_locked(self) -> None:
        with self._lock:
            run = self._state.snapshot()
            if run.elapsed_sec is not None:
                self._has_shown = True
                self._show(run)

    @abstractmethod
    def _show(self, run: RunSnapshot) -> None: ...

    @abstractmethod
    def _tell(self, message: str) -> None: ...


class PlainLines(_TimedDisplay):
    """An observer that prints a line now and then, and one at the end if there was any; messages at once.

    Args:
        stream: Where the lines go.
        pauses: The seconds between them; after the last pause no more are printed.
    """

    def __init__(self, stream: UnfailingStream, pauses: Iterable[float] | None = None) -> None:
        super().__init__(line_pauses() if pauses is None else pauses)
        self._stream = stream

    def _show(self, run: RunSnapshot) -> None:
        self._tell(progress_line(run))

    def _tell(self, message: str) -> None:
        self._stream.write(f"{without_commands(message)}\n")
        self._stream.flush()


class NotebookBar(_TimedDisplay):
    """An observer that keeps one output of the cell up to date; at the end only the messages stay in it."""

    def __init__(self) -> None:
        super().__init__(repeat(0.5))
        self._messages: list[str] = []
        self._display: Any = None

    def __enter__(self) -> Self:
        # IPython is there in every notebook, and only there is it needed.
        display = import_module("IPython.display").display
        self._display = display(self._content(), raw=True, display_id=True)
        return super().__enter__()

    def _show(self, run: RunSnapshot) -> None:
        self._display.update(self._content(run), raw=True)

    def _tell(self, message: str) -> None:
        self._messages.append(message)
        self._show(self._state.snapshot())

    def _content(self, run: RunSnapshot | None = None) -> dict[str, str]:
        lines = list(self._messages)
        parts = [f'<div style="white-space: pre-wrap">{shown_html(line)}</div>' for line in lines]
        if run is not None and run.elapsed_sec is not None and not self._closed.is_set():
            lines.append(progress_line(run))
            bar = f'<progress value="{run.done}" max="{max(run.total, 1)}" style="width: 20em"></progress>'
            parts.append(f"<div>{bar} {shown_html(lines[-1])}</div>")
        return {"text/plain": "\n".join(lines), "text/html": page_html(*parts) if parts else ""}


# Where a terminal is too narrow for all values, the later ones are left out; where it is narrower yet, the bar.
_BY_WEIGHT = ("stopping", "errors", "left", "rate", MAIN_METRIC, "in_flight", "tokens", "retries", "elapsed")
_STYLES = {"errors": "red", "stopping": "bold yellow", "retries": "yellow"}
_NARROWEST_WITH_BAR = 40


class TerminalBar(Progress):
    """An observer that keeps a bar and a line of values at the foot of a terminal; messages and prints stand above it.

    Args:
        stream: The terminal.
        redirect_stderr: Whether what is printed to standard error meanwhile is put above the bar.
        clock: Gives seconds that never run backwards.
    """

    def __init__(
        self, stream: UnfailingStream, *, redirect_stderr: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._state = RunState(clock)
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=50),
            TextColumn("{task.fields[details]}"),
            console=DataConsole(file=cast("IO[str]", stream), force_terminal=True, force_jupyter=False),
            refresh_per_second=8,
            transient=True,
            # Standard output that goes to a file or a pipe must stay there.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
            redirect_stderr=redirect_stderr,
        )
        self._task = self.add_task("", details="")

    def __call__(self, event: RunEvent) -> None:
        """Take up one event."""
        self._state(event)
        message = message_of(event)
        if message is not None and self.live.is_started:
            self.console.print(Text(message), soft_wrap=True)

    def get_renderables(self) -> Iterator[RenderableType]:
        """Return the line with the bar and the line with the values that fit; nothing before the run started."""
        run = self._state.snapshot()
        if run.elapsed_sec is None:
            return
        done, total = (run.done, run.total) if run.total else (1, 1)
        text = f"{run.done:,} of {run.total:,} done"
        details = f"{100 * done // total:3}%  {timedelta(seconds=int(run.elapsed_sec))}"
        self.update(self._task, total=total, completed=done, description=text, details=details)
        width = self.console.width
        yield self.make_tasks_table(self.tasks) if width >= _NARROWEST_WITH_BAR else _line([Text(text)])
        yield _values_line(run, width)


def _values_line(run: RunSnapshot, width: int) -> Text:
    texts = progress_texts(run)
    styles = _STYLES if run.errors else {**_STYLES, "errors": ""}
    parts = [Text(texts[name], styles.get(name, "")) for name in _BY_WEIGHT if name in texts]
    while len(parts) > 1 and sum(len(part) + 2 for part in parts) - 2 > width:
        parts.pop()
    return _line(parts)


def _line(parts: Iterable[Text]) -> Text:
    line = Text("  ").join(parts)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def progress_display(mode: ProgressMode = "auto", *, file: TextIO | None = None) -> AbstractContextManager[Observer]:
    """Return a display of a run's progress, as a context manager with an observer to tell the events.

    Events only change values in memory; a timer repaints them. When the context ends, the bar is gone and nothing
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
    if file is None and DataConsole().is_jupyter:
        return NotebookBar()
    if mode == "bar" or _repaints(unfailing):
        return TerminalBar(unfailing, redirect_stderr=file is None)
    return PlainLines(unfailing)


def _ignored(event: RunEvent) -> None:
    pass


def _repaints(stream: UnfailingStream) -> bool:
    """Return whether a stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
