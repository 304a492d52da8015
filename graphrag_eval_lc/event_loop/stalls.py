"""How long code blocks an event loop, and which code, told while it does.

Blocking code in async code, such as ``time.sleep`` or a synchronous client, holds up all that shares its loop. The loop
measures how late its own timer is; meanwhile a thread looks at what the loop's thread is running. Running code is
known by its context, so that it is found in other people's tasks and callbacks too.
"""

import asyncio
import contextlib
import gc
import os
import sys
import sysconfig
import threading
import time
from asyncio.events import Handle
from collections.abc import AsyncGenerator, Callable, Iterator
from contextvars import Context, ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

TOLD_SEC = 0.5
"""A stall of this length is told."""

SHORTEST_STALL_SEC = 0.1
"""A loop that is late by less is at work, and does not stand still."""

UNBLOCK_HINT = (
    "nothing else can go on meanwhile. Use async I/O there, await asyncio.to_thread(...), or write it as a plain def, "
    "which runs in a thread."
)
"""What to do about code that blocks a loop."""

_TOLD_IN_PIECES_SEC = 1.0  # of stalls of 0.1 s and more, each without its beginning
_BEAT_SEC = 0.05
_LOOK_SEC = 0.05
_LATE_LOOK_SEC = 0.2  # a later look tells nothing of the time before: the process was suspended, or had no processor
_AT_WORK = 0.25  # what has at least this share of the processor in a time took the time
_JOIN_SEC = 1.0

_DEBUGGERS = ("bdb", "pdb", "pydevd", "_pydevd_bundle", "_pydevd_sys_monitoring")
_IMPORT = "importlib._bootstrap"
_LOOP_MODULE, _RUNNER_MODULE = "asyncio.base_events", "asyncio.runners"
_PATHS = sysconfig.get_paths()
_LIBRARIES = (
    *{f"{_PATHS[name]}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    f"{Path(__file__).resolve().parents[1]}{os.sep}",
    "<frozen ",
)


@dataclass(frozen=True, slots=True)
class Stall:
    """A time for which code blocks the loop.

    Attributes:
        span: The span that blocks; None where it is none of the told watch.
        seconds: How long so far.
        where: The function, file and line of the user's own code that blocks, else of the innermost code.
        is_own_code: Whether ``where`` is the user's own code, and not a library's or this package's.
    """

    span: "Span | None"
    seconds: float
    where: str
    is_own_code: bool

    def text(self, what: str) -> str:
        """Return a sentence on the stall and what helps; ``what`` names the code that blocks."""
        return f"{what} blocks the event loop, for {self.seconds:.1f} s so far, in {self.where}: {UNBLOCK_HINT}"


class StallWatch:
    """Watches the running event loop while its context lasts.

    Stalls of less than 0.1 s do not count. One of 0.5 s, or many shorter ones, are told once for each span; outside of
    any span only the user's own code is told, once for each place. Loading modules, a debugger, garbage collection and
    a suspended process count, but are not told. A loop whose thread gets no processor time does not stand still.

    Args:
        on_stall: Called with a stall while it lasts, in a thread of the watch. What it raises is raised at the end of
            the context.

    Example:
        >>> async def block():
        ...     with StallWatch(print) as watch, watch.span("q1") as blocking:
        ...         with watch.span("q2") as waiting:
        ...             asyncio.get_running_loop().call_soon(time.sleep, 0.2)
        ...             await asyncio.sleep(0.3)
        ...     return waiting.blocked_sec > 0.1
        >>> asyncio.run(block())
        True
    """

    def __init__(self, on_stall: Callable[[Stall], None]) -> None:
        self._on_stall = on_stall
        self._problem: Exception | None = None
        self._places: set[str] = set()
        self._monitor: _LoopMonitor | None = None

    def __enter__(self) -> "StallWatch":
        loop = asyncio.get_running_loop()
        self._monitor = _monitors.get(loop)
        if self._monitor is None:
            self._monitor = _monitors[loop] = _LoopMonitor(loop)
        self._monitor.watches.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        monitor, self._monitor = self._monitor, None
        if monitor is not None:
            monitor.watches.remove(self)
            if not monitor.watches:
                _monitors.pop(monitor.loop, None)
                monitor.stop()
        if error is None and self._problem is not None:
            raise self._problem

    @contextlib.contextmanager
    def span(self, subject: Any) -> Iterator["Span"]:
        """Take the code inside this context as one with its tasks and callbacks; ``subject`` tells its purpose."""
        with _begun(Span(self._monitor, self, subject, _current.get())) as span:
            yield span

    def tell(self, stall: Stall) -> None:
        """Tell a stall, unless it was told; called in the watching thread."""
        span = stall.span
        if span is not None and span.watch is not self:
            stall = Stall(None, stall.seconds, stall.where, stall.is_own_code)
            span = None
        if span is None:
            if stall.where in self._places or not stall.is_own_code:
                return
            self._places.add(stall.where)
        try:
            self._on_stall(stall)
        except Exception as problem:
            self._problem = self._problem or problem


class Span:
    """Code that runs for one purpose, such as asking one question. ``StallWatch.span`` makes it.

    Attributes:
        watch: The watch that is told of its stalls.
        subject: Its purpose.
        outer: The span around it in the same loop.
        where: Where it blocked the loop, once that is told.
        own: Seconds for which it blocked the loop, without the present stall.
        evidence: Seconds of proven stalls, which count for telling.
        monitor: The loop's monitor; None: the loop is not measured.
    """

    def __init__(
        self, monitor: "_LoopMonitor | None", watch: StallWatch | None, subject: Any, outer: "Span | None"
    ) -> None:
        self.monitor: _LoopMonitor | None = monitor
        self.watch = watch
        self.subject = subject
        is_of_this_loop = outer is not None and outer.monitor is monitor
        self.outer: Span | None = outer if is_of_this_loop else None
        self.where: str | None = None
        self.own = 0.0
        self.evidence = 0.0
        self._began = 0.0 if monitor is None else monitor.reading(self)[0]

    @property
    def blocked_sec(self) -> float:
        """Seconds for which it blocked the loop itself."""
        return self.own if self.monitor is None else self.monitor.reading(self)[1]

    @property
    def stalled_sec(self) -> float:
        """Seconds since it began for which others blocked the loop."""
        if self.monitor is None:
            return 0.0
        total, own = self.monitor.reading(self)
        return max(0.0, total - self._began - own)

    def told(self) -> "Span":
        """Return the outermost span of the same subject, for which one stall is told."""
        span = self
        while span.outer is not None and span.outer.subject is span.subject:
            span = span.outer
        return span


@contextlib.asynccontextmanager
async def timeout_beside_stalls(seconds: float) -> AsyncGenerator[asyncio.Timeout, None]:
    """Yield ``asyncio.timeout(seconds)``, extended by the time for which others block the loop.

    Without a ``StallWatch`` of the loop it is just ``asyncio.timeout``.
    """
    loop = asyncio.get_running_loop()
    monitor, outer = _monitors.get(loop), _current.get()
    if monitor is None:
        async with asyncio.timeout(seconds) as deadline:
            yield deadline
        return
    span = Span(monitor, None if outer is None else outer.watch, None if outer is None else outer.subject, outer)
    began = time.monotonic()
    timer: asyncio.TimerHandle | None = None

    def end() -> None:
        nonlocal timer
        left = began + seconds + span.stalled_sec - time.monotonic()
        if left > 0:
            timer = loop.call_later(left, end)
        else:
            deadline.reschedule(loop.time())

    async with asyncio.timeout(None) as deadline:
        timer = loop.call_later(seconds, end)
        try:
            with _begun(span):
                yield deadline
        finally:
            timer.cancel()


_current: ContextVar[Span | None] = ContextVar("span_of_the_loop", default=None)


@contextlib.contextmanager
def _begun(span: Span) -> Iterator[Span]:
    token = _current.set(span)
    try:
        yield span
    finally:
        _current.reset(token)


class _Code:
    """What the loop's thread runs at one moment: the callback, its span, and its place in the code."""

    __slots__ = ("_frames", "identity", "is_excused", "span")

    def __init__(self, callback: object, span: Span | None, frames: list[FrameType]) -> None:
        self.span = span
        self.identity = callback if span is None else span.told()
        modules = [str(frame.f_globals.get("__name__")) for frame in frames]
        self.is_excused = any(name == _IMPORT or name.partition(".")[0] in _DEBUGGERS for name in modules)
        self._frames = frames

    def place(self) -> tuple[str, bool]:
        """Return function, file and line, and whether that is the user's own code."""
        own = next((frame for frame in self._frames if not _is_of_library(frame.f_code.co_filename)), None)
        frame = own or self._frames[0]
        function = frame.f_code.co_qualname.rpartition("<locals>.")[2]
        return f"{function} ({_short(frame.f_code.co_filename)}:{frame.f_lineno})", own is not None


class _LoopMonitor:
    """Measures one loop, and looks at what it runs, for all watches of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.watches: list[StallWatch] = []
        self._thread_id = threading.get_ident()
        self._lock = threading.Lock()
        self._counted = 0.0
        self._seen: dict[Span | None, float] = {}  # seconds for which each span was seen in the present stall
        self._due = time.monotonic() + _BEAT_SEC
        self._others_worked = _work_of_other_threads()
        self._timer = self._next_beat()
        self._clock = _ThreadClock()
        self._identity: object = None
        self._since = self._evidence = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="graphrag-eval-lc-stalls", daemon=True)
        self._thread.start()

    # --- in the loop's thread ---

    def stop(self) -> None:
        """End the watching; its thread is gone then."""
        self._timer.cancel()
        self._close()
        self._over.set()
        self._clock.close()
        self._thread.join(_JOIN_SEC)

    def reading(self, span: Span) -> tuple[float, float]:
        """Return the seconds for which the loop has stood still so far, and a span's share of them."""
        with self._lock:
            stall = 0.0 if self._over.is_set() else self._stall()
            return self._counted + stall, span.own + sum(part for each, part in self._parts(stall) if each is span)

    def _beat(self) -> None:
        self._close()
        self._timer = self._next_beat()

    def _next_beat(self) -> asyncio.TimerHandle:
        return self.loop.call_later(_BEAT_SEC, self._beat, context=Context())  # it keeps nobody's context alive

    def _close(self) -> None:
        """Count the stall that is over, if there was one."""
        with self._lock:
            stall = self._stall()
            self._counted += stall
            for span, part in self._parts(stall):
                span.own += part
            self._seen.clear()
            self._due = time.monotonic() + _BEAT_SEC
            self._others_worked = _work_of_other_threads()

    def _stall(self) -> float:
        """Return for how long the loop has stood still, without the time that other threads took from it."""
        late = time.monotonic() - self._due
        if late < SHORTEST_STALL_SEC:
            return 0.0
        unseen = max(0.0, late - sum(self._seen.values()))
        taken = _work_of_other_threads() - self._others_worked
        return late - (unseen if taken >= _AT_WORK * unseen else taken)

    def _parts(self, stall: float) -> Iterator[tuple[Span, float]]:
        """Yield each span's share of a stall: those seen in it, and the spans around them."""
        whole = sum(self._seen.values())
        if stall - whole >= _LATE_LOOK_SEC:
            whole = stall  # no span was seen in the rest
        for seen, weight in self._seen.items() if whole else ():
            span = seen
            while span is not None:
                yield span, stall * weight / whole
                span = span.outer

    # --- in the watching thread ---

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._over.wait(_LOOK_SEC) and not self.loop.is_closed():
            now = time.monotonic()
            self._look(before, now)
            before = now

    def _look(self, before: float, now: float) -> None:
        """Note which code has made the loop late since the look before."""
        worked = self._clock.passed()
        due = self._due
        passed = now - max(before, due)
        code = self._code() if passed > 0 and self.loop.is_running() else None
        if code is None:
            self._identity = None
            return
        if code.is_excused:
            self._identity = None
            self._note(due, None, passed)
            return
        # A late look was held up as the loop was. It still proves code that kept all else from running.
        proven = min(passed, 2 * _LOOK_SEC + worked)
        is_known = passed < _LATE_LOOK_SEC or worked >= _AT_WORK * passed
        self._note(due, code.span, passed if is_known else proven)
        if self._identity is not code.identity:
            self._identity, self._since, self._evidence = code.identity, now - proven, 0.0
        evidence = min(passed, worked) if self._clock.is_runnable() else proven
        self._evidence += evidence
        span = None if code.span is None else code.span.told()
        if span is not None and self._evidence >= SHORTEST_STALL_SEC:
            span.evidence += evidence
        if self._evidence >= TOLD_SEC:
            self._tell(code, span, now - self._since)
        elif span is not None and span.evidence >= _TOLD_IN_PIECES_SEC:
            self._tell(code, span, span.own)

    def _note(self, due: float, span: Span | None, seconds: float) -> None:
        with self._lock:
            if self._due == due:  # else that stall is over
                self._seen[span] = self._seen.get(span, 0.0) + seconds

    def _tell(self, code: _Code, span: Span | None, seconds: float) -> None:
        if span is not None and span.where is not None:
            return
        where, is_own_code = code.place()
        if span is not None:
            span.where = where
        for watch in list(self.watches):
            watch.tell(Stall(span, seconds, where, is_own_code))

    def _code(self) -> _Code | None:
        """Return the code that the loop's thread runs in the loop; None where it is idle."""
        task = _current_task(self.loop)
        frames: list[FrameType] = []
        handle: Handle | None = None
        frame = sys._current_frames().get(self._thread_id)
        while frame is not None and handle is None:
            module = frame.f_globals.get("__name__")
            if module == _LOOP_MODULE:  # with no callback above it: the loop is idle
                return None
            if module == _RUNNER_MODULE:  # below another kind of loop, which has no frames
                break
            if frame.f_code is Handle._run.__code__:
                handle = frame.f_locals.get("self")
            if handle is None or not frames:  # a callback that is written in C has no frame
                frames.append(frame)
            frame = frame.f_back
        if not frames or (handle is None and task is None):
            return None
        contexts = [getattr(task, "get_context", lambda: None)(), getattr(handle, "_context", None)]
        spans = (context.get(_current) for context in contexts if context is not None)
        own = next((span for span in spans if span is not None and span.monitor is self), None)
        return _Code(handle or task, own, frames)


class _ThreadClock:
    """The processor time of the thread that made it, without garbage collections; always 0 where unknown."""

    def __init__(self) -> None:
        self._thread_id = threading.get_ident()
        clock_id_of = getattr(time, "pthread_getcpuclockid", None)  # not on all systems
        self._clock_id: int | None = None if clock_id_of is None else clock_id_of(self._thread_id)
        self._status = Path(f"/proc/self/task/{threading.get_native_id()}/stat")  # Linux
        self._collecting_since: float | None = None
        self._collected = 0.0
        self._last = self._now()
        gc.callbacks.append(self._on_collection)

    def close(self) -> None:
        """Watch garbage collections no longer."""
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._on_collection)

    def passed(self) -> float:
        """Return the seconds since the last call."""
        now = self._now()
        passed, self._last = now - self._last, now
        return max(0.0, passed)

    def is_runnable(self) -> bool:
        """Return whether the thread is running or waits for a processor; False where that is unknown."""
        try:
            return self._status.read_bytes().rpartition(b")")[2].split()[:1] == [b"R"]
        except OSError:
            return False

    def _now(self) -> float:
        if self._clock_id is None:
            return 0.0
        try:
            used = time.clock_gettime(self._clock_id)
        except OSError:  # the thread has ended
            return 0.0
        since = self._collecting_since
        return used - self._collected - (0.0 if since is None else time.monotonic() - since)

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread_id:
            return
        now = time.monotonic()
        if phase == "start":
            self._collecting_since = now
        elif self._collecting_since is not None:
            self._collected += now - self._collecting_since
            self._collecting_since = None


def _work_of_other_threads() -> float:
    """Return the processor time of all threads but this one, in seconds."""
    return time.process_time() - time.thread_time()


def _current_task(loop: asyncio.AbstractEventLoop) -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task(loop)
    except RuntimeError:
        return None


def _is_of_library(path: str) -> bool:
    return path.startswith(_LIBRARIES) or "site-packages" in path or "dist-packages" in path


def _short(path: str) -> str:
    """Return a path relative to the working directory, else its name alone, so that no home stands in a report."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return Path(path).name


_monitors: dict[asyncio.AbstractEventLoop, _LoopMonitor] = {}

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_monitors.clear)  # a forked child has none of the threads
