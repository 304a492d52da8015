"""Stops a run early: signals, requests to stop, and too many failures."""

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Literal

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.samples import Shard

StopReason = Literal["interrupted", "max_failures", "max_tokens", "max_time", "max_cost", "judges"]


class StopSignal:
    """Whether a run must stop asking (``reason``, with a ``message``), and whether it abandons questions in flight.

    ``request`` and ``abandon`` may be called from any thread and from signal handlers. If ``is_at_once``, the run does
    not wait for anything, not even for answers to be written.
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
        """Stop asking further questions. The first reason is kept."""
        if self.reason is None:
            self.message, self.reason = message, reason
            self._notify_soon()

    def abandon(self) -> None:
        """Abandon the questions in flight."""
        self.is_abandoned = True
        self._notify_soon()

    @property
    def abandoned(self) -> "asyncio.Future[None]":
        """A future that is done when the questions in flight are abandoned."""
        if self._abandoned is None:
            raise RuntimeError("bind the signal to a loop first")
        return self._abandoned

    async def sleep(self, seconds: float) -> bool:
        """Wait, but no longer than until the run must stop; return whether it must."""
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


_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none


@contextmanager
def stopped_by_signals(stop: StopSignal) -> Generator[None, None, None]:
    """Let the first Ctrl-C or SIGTERM stop a run gracefully, and the second one immediately.

    If the run is already stopping for another reason, the first signal abandons the questions in flight. SIGHUP, sent
    when a terminal is closed, always stops gracefully, even if it is repeated; if it is ignored (``nohup``), it stays
    ignored. Only the main thread receives signals; in any other thread nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    was_signalled = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal was_signalled
        if number == _HANGUP and was_signalled:  # a closed terminal and its shell both send it
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

    stopping = [signal.SIGINT, signal.SIGTERM]
    if _HANGUP is not None and signal.getsignal(_HANGUP) is not signal.SIG_IGN:
        stopping.append(_HANGUP)
    earlier = {number: signal.signal(number, on_signal) for number in stopping}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            # None: the handler was not set by Python and cannot be restored from here.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


# --- too many failures ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """A number of failures, or a share (0 to 1) of all samples of the run.

    Example:
        >>> FailureLimit.read("5%").is_passed(errors=6, total=100)
        True
    """

    value: float
    is_share: bool

    @classmethod
    def read(cls, value: object) -> "FailureLimit":
        """Return the limit for a whole number such as ``20`` or a share such as ``5%``; raise for other values."""
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) if text.endswith("%") else int(text)
        except ValueError:
            number = -1
        is_share = text.endswith("%")
        if isinstance(value, bool) or not (number >= 0 and (number <= 100 or not is_share)):
            raise OptionError(
                f"max_failures cannot be {value!r}",
                key="max_failures",
                hint="Give a number from 0, such as 20, or a share of the questions, such as 5%.",
            )
        return cls(number / 100 if is_share else number, is_share)

    def is_passed(self, *, errors: int, total: int) -> bool:
        """Return whether more questions failed than allowed."""
        return errors > (self.value * total if self.is_share else self.value)

    def in_shard(self, shard: Shard) -> "FailureLimit":
        """Return the limit of one shard: its part of a number; a share is unchanged."""
        return self if self.is_share else FailureLimit(shard.part_of(int(self.value)), is_share=False)

    def __str__(self) -> str:
        return f"{100 * self.value:.10g}%" if self.is_share else str(int(self.value))
