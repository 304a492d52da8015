"""What people see of a run while it goes on: a bar in a terminal or a notebook, plain lines elsewhere."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, TextIO

from rich.console import Console

from graphrag_eval_lc.runner.events import Observer, RunEvent
from graphrag_eval_lc.runner.progress_bar import TerminalBar
from graphrag_eval_lc.runner.progress_lines import PlainLines
from graphrag_eval_lc.runner.progress_notebook import NotebookBar
from graphrag_eval_lc.runner.unfailing_stream import UnfailingStream

ProgressMode = Literal["auto", "bar", "lines", "off"]


def progress_display(mode: ProgressMode = "auto", *, file: TextIO | None = None) -> AbstractContextManager[Observer]:
    """Give a display of a run's progress, as a context manager with an observer to tell the events.

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
    """Give whether a stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
