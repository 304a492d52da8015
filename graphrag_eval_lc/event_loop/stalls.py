"""Warns while code blocks an event loop, and names the code.

Blocking calls in async code, such as ``time.sleep`` or a synchronous client, delay everything that shares the loop, and
make other questions run into their timeouts. A thread samples the loop's thread a few times a second.
"""

import asyncio
import os
import sys
import sysconfig
import threading
import time
from asyncio.events import Handle
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, TracebackType

BLOCKED_SEC = 0.5
"""Code that blocks the loop for more seconds than this is reported."""

MOST_REPORTED = 3
"""The largest number of functions that one watch reports."""

_LOOK_SEC = 0.1
_LATE_SEC = 0.3  # after a longer gap between two samples, the process was suspended or got no CPU time
_JOIN_SEC = 1.0

_LOOP_MODULE = "asyncio.base_events"
_DEBUGGERS_AND_IMPORTS = {"bdb", "pdb", "pydevd", "_pydevd_bundle", "_pydevd_sys_monitoring", "importlib"}
_PACKAGES = ("site-packages", "dist-packages")  # inside the standard library's folder
_PATHS = sysconfig.get_paths()
_OURS = f"{Path(__file__).resolve().parents[1]}{os.sep}"
_NOT_REPORTED = (_OURS, "<frozen ", *(f"{_PATHS[name]}{os.sep}" for name in ("stdlib", "platstdlib")))


class StallWatch:
    """Watches the running event loop while its context lasts.

    A function that blocks it for half a second is reported at once, each function once, at most three functions. Module
    imports, debuggers, garbage collection and a suspended process are not reported, and neither is compiled code that
    keeps other threads from running. Only asyncio's own loops can be watched.

    Example:
        >>> async def block(warnings):
        ...     with StallWatch(warnings.append):
        ...         await asyncio.sleep(0.01)
        ...         time.sleep(1)
        >>> asyncio.run(block(warnings := []))
        >>> warnings  # doctest: +SKIP
        ['block (agent.py:4) blocks the event loop: … Use async I/O there, or …']
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._reported: set[CodeType] = set()
        self._problem: Exception | None = None

    def __enter__(self) -> "StallWatch":
        asyncio.get_running_loop()  # raises if there is nothing to watch
        self._loop_thread = threading.get_ident()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="graphrag-eval-lc-stalls", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join(_JOIN_SEC)
        if error is None and self._problem is not None:
            raise self._problem

    def _watch(self) -> None:
        before = since = time.monotonic()
        seen: FrameType | None = None
        while not self._is_over.wait(_LOOK_SEC) and len(self._reported) < MOST_REPORTED:
            now = time.monotonic()
            frames = self._frames()
            running = frames[-1] if frames and not _is_excused(frames) else None
            if running is None or running is not seen or now - before > _LATE_SEC:
                since = now
            elif now - since >= BLOCKED_SEC - _LOOK_SEC:  # it began before the first sample
                self._report(frames)
            before, seen = now, running

    def _frames(self) -> list[FrameType]:
        """Return the frames of the callback that the loop runs, the innermost first; none if the loop is idle.

        The last frame is that of ``Handle._run``, a new one for each callback.
        """
        frames = []
        frame = sys._current_frames().get(self._loop_thread)
        while frame is not None and frame.f_globals.get("__name__") != _LOOP_MODULE:
            frames.append(frame)
            if frame.f_code is Handle._run.__code__:
                return frames
            frame = frame.f_back
        return []

    def _report(self, frames: list[FrameType]) -> None:
        known = [frame for frame in frames if not frame.f_code.co_filename.startswith(_NOT_REPORTED)]
        own = [frame for frame in known if not any(folder in frame.f_code.co_filename for folder in _PACKAGES)]
        packages = [frame for frame in frames if any(folder in frame.f_code.co_filename for folder in _PACKAGES)]
        frame = next(iter(own or packages), None)
        if frame is None or frame.f_code in self._reported:
            return
        self._reported.add(frame.f_code)
        function = frame.f_code.co_qualname.rpartition("<locals>.")[2]
        try:
            self._warn(
                f"{function} ({_short(frame.f_code.co_filename)}:{frame.f_lineno}) blocks the event loop: no other "
                "question can proceed meanwhile, and their timeouts pass. Use async I/O there, await "
                "asyncio.to_thread(...), or write it as a plain def, which runs in a thread."
            )
        except Exception as problem:
            self._problem = self._problem or problem


def _is_excused(frames: list[FrameType]) -> bool:
    return any(str(frame.f_globals.get("__name__")).partition(".")[0] in _DEBUGGERS_AND_IMPORTS for frame in frames)


def _short(path: str) -> str:
    """Return a path relative to the working directory, otherwise only its name, so that reports show no home folder."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return Path(path).name
