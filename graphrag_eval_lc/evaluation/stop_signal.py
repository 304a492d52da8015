"""What ends a run before its time: a signal of the system, or its own limits, and how waiting code learns of it."""

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Literal

StopReason = Literal["interrupted", "max_failures", "max_tokens", "max_time", "max_cost", "judges"]


class StopSignal:
    """Whether a run shall stop asking, and abandon the questions in flight.

    ``request`` and ``abandon`` may be called from any thread and from signal handlers.

    Attributes:
        reason: Why it stops; None while it continues.
        message: The same for people.
        is_abandoned: Whether the questions in flight are given up.
        is_at_once: Whether it waits for nothing any more, not even for answers to be written.
    """

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.message = ""
        self.is_abandoned = False
        self.is_at_once = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._requested: asyncio.Future[None] | None = None
        self._abandoned: asyncio.Future[None] | None = None
        self._on_request: Callable[[], None] | None = None

    def bind(self, on_request: Callable[[], None]) -> None:
        """Use the running event loop from now on; the first request calls ``on_request`` there."""
        self._loop = asyncio.get_running_loop()
        self._requested, self._abandoned = self._loop.create_future(), self._loop.create_future()
        self._on_request = on_request
        self._notify()

    def request(self, reason: StopReason, message: str) -> None:
        """Let no further question be asked. The first reason stays."""
        if self.reason is None:
            self.message, self.reason = message, reason
            self._notify_soon()

    def abandon(self) -> None:
        """Give up the questions in flight."""
        self.is_abandoned = True
        self._notify_soon()

    @property
    def abandoned(self) -> "asyncio.Future[None]":
        """Done when the questions in flight are given up."""
        if self._abandoned is None:
            raise RuntimeError("bind the signal to a loop first")
        return self._abandoned

    async def sleep(self, seconds: float) -> bool:
        """Wait, at most until the run shall stop; return whether it shall."""
        if self.reason is None and self._requested is not None:
            await asyncio.wait({self._requested}, timeout=seconds)
        return self.reason is not None

    def _notify_soon(self) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._notify)

    def _notify(self) -> None:
        if self.reason is not None and self._requested is not None and not self._requested.done():
            self._requested.set_result(None)
            if self._on_request is not None:
                self._on_request()
        if self.is_abandoned and self._abandoned is not None and not self._abandoned.done():
            self._abandoned.set_result(None)


# Windows has none.
_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)


def _stopping() -> list[signal.Signals]:
    """Return the signals that stop a run."""
    is_handled = _HANGUP is not None and signal.getsignal(_HANGUP) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([_HANGUP] if is_handled and _HANGUP is not None else [])]


@contextmanager
def stopped_by_signals(stop: StopSignal) -> Generator[None, None, None]:
    """Let the first Ctrl-C or SIGTERM stop a run in order, and the second at once.

    If the run stops already for another reason, the first abandons the questions in flight. SIGHUP, as when the
    terminal is closed, stops it in order however often it comes, and stays ignored if it is (``nohup``). Only the
    main thread gets signals; in another one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    was_signalled = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal was_signalled
        if number == _HANGUP and was_signalled:  # a closed terminal and its shell both tell of it
            return
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        if was_signalled:
            stop.is_at_once = True
            stop.abandon()
            raise KeyboardInterrupt(name)
        was_signalled = True
        if stop.reason is not None:
            stop.abandon()
        stop.request("interrupted", name)

    earlier = {number: signal.signal(number, on_signal) for number in _stopping()}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            # None: set by something that is not Python, and cannot be put back from here.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
