"""How a run goes as plain lines now and then, for logs and terminals that cannot repaint."""

import threading
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from types import TracebackType

from graphrag_eval_lc.runner.events import RunEvent
from graphrag_eval_lc.runner.progress_figures import message_of, progress_line
from graphrag_eval_lc.runner.run_state import RunState
from graphrag_eval_lc.runner.unfailing_stream import UnfailingStream


def line_pauses() -> Iterator[float]:
    """Give the seconds between lines: the first soon, then half a minute, and the rarer the longer the run takes.

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
