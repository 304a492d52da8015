"""The progress of a run: rich's bar in a terminal, one line in a notebook's cell, plain lines elsewhere."""

import contextlib
import os
import sys
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from importlib import import_module
from itertools import chain, repeat
from typing import IO, Any, TextIO, cast

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from graphrag_eval_lc.benchmark.option_fields import ProgressMode
from graphrag_eval_lc.console import DataConsole
from graphrag_eval_lc.evaluation.events import EventKind, Observer, RunEvent, ignore_event
from graphrag_eval_lc.registry.metrics import MAIN_METRIC, TOTAL_TOKENS
from graphrag_eval_lc.texts import counted, one_line, visible, without_commands

_RECENT_SEC = 600.0  # the remaining time is estimated from the answers of this period
_MOST_FAILURES = 100
_LINE = 160
_MESSAGES = ("run_started", "run_stopping", "workers_starting")


class UnfailingStream:
    """Passes text on to a stream, and drops it if the terminal is gone or the disk is full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:
        """The encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write the text if possible, and return its length in any case."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if possible."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Return whether a person may be reading."""
        with contextlib.suppress(OSError, ValueError):
            return self._stream.isatty()
        return False

    def fileno(self) -> int:
        """Return the stream's file descriptor, which rich needs on Windows."""
        return self._stream.fileno()


class _Display(Progress):
    """An observer that counts events in a task of rich's ``Progress``, and prints messages and failures at once."""

    shows_failures = True

    def __init__(self, stream: UnfailingStream, done_by: EventKind = "response_ended", **options: Any) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=DataConsole(file=cast("IO[str]", stream), force_terminal=True, force_jupyter=False),
            transient=True,
            speed_estimate_period=_RECENT_SEC,
            **options,
        )
        self._done_by = done_by
        self._task = self.add_task("", start=False, total=None)
        self._errors = self._retries = self._tokens = 0
        self._in_flight: set[tuple[str, int | None]] = set()
        self._unscored: set[tuple[str, int | None]] = set()  # sent in this session, but not scored yet
        self._failures = 0
        self._limit: int | None = None
        self._scores: list[float] = [0, 0.0]
        self._ending = ""

    @abstractmethod
    def report(self, message: str) -> None:
        """Print a message."""

    def __call__(self, event: RunEvent) -> None:
        """Count one event; safe from any thread."""
        with self._lock:
            self._count(event.kind, event.fields)
            failure = self._failure(event.kind, event.fields) if self.shows_failures else None
        message = event.fields.get("message") if event.kind in ("warning", *_MESSAGES) else failure
        if message is not None:
            self.report(visible(f"Warning: {message}" if event.kind == "warning" else message))

    def _failure(self, kind: EventKind, fields: Any) -> str | None:
        """Return a line about a question of this session that failed or is wrong; None for every other event."""
        sample = fields.get("question_id"), fields.get("repeat")
        if kind == "attempt_started":
            self._unscored.add(sample)
        if kind != "result_scored" or sample not in self._unscored:
            return None
        self._unscored.discard(sample)
        if fields.get("reason") is None or self._failures > _MOST_FAILURES:
            return None
        self._failures += 1
        if self._failures > _MOST_FAILURES:
            return "More questions are not right; the report lists them."
        repeat = "" if sample[1] is None else f" (repeat {sample[1]})"
        return f"✗ {one_line(sample[0], _LINE)}{repeat}: {one_line(fields['reason'], _LINE)}"

    def _count(self, kind: EventKind, fields: Any) -> None:
        match kind:
            case "run_started":
                self.reset(self._task, total=fields["total"], completed=fields["done"])
                self._errors, self._tokens, self._retries = fields["errors"], 0, 0
                self._scores, self._ending = [0, 0.0], ""
                self.tasks[0].stop_time = None  # a confirmation begins after a run that has ended
            case "attempt_started":
                self._in_flight.add((fields["question_id"], fields["repeat"]))
            case "attempt_failed":
                self._retries += fields["retry_in_sec"] is not None
            case "response_ended":
                self._in_flight.discard((fields["question_id"], fields["repeat"]))
                self._tokens += fields[TOTAL_TOKENS] or 0
            case "result_scored" if fields[MAIN_METRIC] is not None:
                self._scores = [self._scores[0] + 1, self._scores[1] + fields[MAIN_METRIC]]
            case "limit_changed":
                self._limit = fields["limit"]
            case "run_stopping":
                self._ending = f"stopping ({fields['reason']})"
            case "run_ended":
                self._in_flight.clear()
                self.stop_task(self._task)
                self._ending = f"in {_seconds(self.tasks[0].elapsed)}"
        if kind == self._done_by:
            self.advance(self._task)
            self._errors += fields["status"] == "error"

    @property
    def has_started(self) -> bool:
        """Whether it is known how many questions there are."""
        return any(task.started for task in self.tasks)

    def done_text(self) -> str:
        """Return how many questions are done."""
        task = self.tasks[0]
        return f"{task.completed:,.0f} of {task.total or 0:,.0f} done"

    def values(self) -> list[str]:
        """Return the other values that are known by now, the most important first."""
        with self._lock:
            limit = "" if self._limit is None else f" (limit {self._limit:,})"
            number, total = self._scores
            return [
                self._ending,
                counted(self._errors, "error"),
                f"{MAIN_METRIC} {total / number:.3f}" if number else "",
                f"{len(self._in_flight):,} in flight{limit}" if self._in_flight else "",
                f"{self._tokens:,} tokens" if self._tokens else "",
                counted(self._retries, "retry", "retries") if self._retries else "",
            ]


class TerminalBar(_Display):
    """Keeps a bar and a line of values at the bottom of a terminal; messages and printed text scroll above them."""

    def report(self, message: str) -> None:
        """Print a message, unless the run has ended."""
        if self.live.is_started:
            self.console.print(Text(message), soft_wrap=True)

    def get_renderables(self) -> Iterator[RenderableType]:
        """Return the line with the bar and the line with the values; nothing before the run started."""
        if self.has_started:
            self.update(self._task, description=self.done_text())
            yield self.make_tasks_table(self.tasks)
            yield Text("  ".join(filter(None, self.values())), no_wrap=True, overflow="ellipsis")


def line_pauses() -> Iterator[float]:
    """Return the seconds between lines: the first line comes soon, and pauses grow with the length of the run.

    Example:
        >>> from itertools import islice
        >>> list(islice(line_pauses(), 3))
        [10.0, 30.0, 30.0]
    """
    return chain([10.0], repeat(30.0, 10), repeat(60.0, 25), repeat(300.0))


class PlainLines(_Display):
    """Prints a line now and then, and one at the end if there was any. To a file, rich prints nothing until the end."""

    pauses: Callable[[], Iterable[float]] = staticmethod(line_pauses)

    def start(self) -> None:
        """Start printing lines."""
        self._has_shown = False
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._show_now_and_then, name="progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop printing, after a last line if there was any."""
        self._is_over.set()
        self._thread.join()
        if self._has_shown:
            self.show(self._text())

    def report(self, message: str) -> None:
        """Print a message, unless the run has ended."""
        if not self._is_over.is_set():
            self._print(message)

    def show(self, text: str) -> None:
        """Print the progress as a line."""
        self._print(text)

    def _print(self, text: str) -> None:
        self.console.file.write(f"{without_commands(text)}\n")
        self.console.file.flush()

    def _text(self) -> str:
        left = None if self._ending else self.tasks[0].time_remaining
        parts = [self.done_text(), *self.values(), f"about {_seconds(left)} left" if left else ""]
        return ", ".join(filter(None, parts))

    def _show_now_and_then(self) -> None:
        for pause in self.pauses():
            if self._is_over.wait(pause):
                return
            if self.has_started:
                self._has_shown = True
                self.show(self._text())


class NotebookLine(PlainLines):
    """Keeps messages and a progress line in a cell's output; the line is updated, and removed at the end."""

    pauses = staticmethod(lambda: repeat(0.5))
    shows_failures = False  # the run's own table is in the next cell

    def start(self) -> None:
        """Show an empty line."""
        self._messages: list[str] = []
        # IPython is in every notebook, and only there is it needed.
        self._line = import_module("IPython.display").display({"text/plain": ""}, raw=True, display_id=True)
        super().start()

    def report(self, message: str) -> None:
        """Add a message, unless the run has ended."""
        if not self._is_over.is_set():
            self._messages.append(without_commands(message))
            self.show("")

    def show(self, text: str) -> None:
        """Replace the line; remove it at the end."""
        line = "" if self._is_over.is_set() else text
        self._line.update({"text/plain": "\n".join(filter(None, [*self._messages, line]))}, raw=True)


def _seconds(seconds: float | None) -> str:
    return str(timedelta(seconds=round(seconds or 0)))


def progress_display(
    mode: ProgressMode = "auto", *, file: TextIO | None = None, done_by: EventKind = "response_ended"
) -> AbstractContextManager[Observer]:
    """Return a display of a run's progress, as a context manager with an observer of the events.

    Events only change values in memory; a timer repaints them. When the context ends, the bar disappears and nothing
    more is printed. If the terminal is lost, the run continues.

    Example:
        >>> with progress_display("off") as observer:
        ...     observer(RunEvent("warning", {"message": "The disk is nearly full."}))
    """
    stream = sys.stderr if file is None else file
    if mode == "off" or stream is None:  # a program without a console has no standard error
        return nullcontext(ignore_event)
    unfailing = UnfailingStream(stream)
    if mode == "auto" and file is None and DataConsole().is_jupyter:
        return NotebookLine(unfailing, done_by)
    can_repaint = unfailing.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    if mode == "bar" or (mode == "auto" and can_repaint):
        # Standard output that goes to a file or a pipe must stay there.
        is_shown_there = sys.stdout is not None and sys.stdout.isatty()
        return TerminalBar(unfailing, done_by, redirect_stdout=is_shown_there, redirect_stderr=file is None)
    return PlainLines(unfailing, done_by)
