"""How a run goes as a bar in a notebook: one output that is updated in place, without ipywidgets."""

import html
import threading
from importlib import import_module
from types import TracebackType
from typing import Any

from graphrag_eval_lc.runner.events import RunEvent
from graphrag_eval_lc.runner.progress_figures import message_of, progress_line
from graphrag_eval_lc.runner.run_state import RunState

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
