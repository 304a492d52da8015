"""How a run goes as a bar in a terminal, which is gone when the run is over."""

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import IO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.runner.events import RunEvent
from graphrag_eval_lc.runner.progress_figures import message_of, progress_figures
from graphrag_eval_lc.runner.run_state import RunSnapshot, RunState
from graphrag_eval_lc.runner.unfailing_stream import UnfailingStream

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
