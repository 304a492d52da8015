"""Idle connections of HTTP clients: each works only in the event loop that opened it.

Clients outlive loops: langchain-openai, for one, has a single client for all models of an endpoint. A request on a
connection of another loop is sent and paid for, and its answer lost. So idle connections are closed before a client
changes its loop; the client then opens others. Requests under way are left alone.
"""

import asyncio
import contextlib
import functools
import gc
import os
import re
import sys
import threading
import traceback
import weakref
from collections.abc import Coroutine, Iterator
from concurrent.futures import wait
from typing import Any, Protocol, cast

from graphrag_eval_lc.event_loop.bounded_http import RefusedRedirectError

_CLOSING_SEC = 0.5
# httpx and httpx2 keep their connections in pools of these packages, which are looked at only where they are loaded.
_POOL_PACKAGES = ("httpcore", "httpcore2")
# From a connection down to the transport that knows its loop: through tunnels, protocols and TLS.
_INWARD = ("_loop", "_transport", "transport_stream", "_stream", "_network_stream", "_connection")
_DEEPEST = 12
_OTHER_LOOP = re.compile(r"event loop is closed|(bound|attached) to a different (event )?loop", re.IGNORECASE)
_watched: set[type] = set()
_known_pools: dict[int, "weakref.ref[Any]"] = {}
_lock = threading.Lock()


class _Connection(Protocol):
    """The used part of httpcore's connections."""

    def is_idle(self) -> bool: ...

    def aclose(self) -> Coroutine[Any, Any, None]: ...


async def aclose_idle_connections() -> None:
    """Close the idle connections of the running loop."""
    loop = asyncio.get_running_loop()
    for _, connection in _idle_connections(loop):
        # Not wait_for, which makes a task in Python 3.11: before its first step a request may take the connection.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSING_SEC):
                await connection.aclose()


def close_idle_connections_of_others(loop: asyncio.AbstractEventLoop) -> None:
    """Close the idle connections of all loops but one, whether closed or not.

    Loops that run in other threads are asked to do it. A loop that does not do so in a moment is blocked, perhaps by
    code that waits for this very call, and uses no connection meanwhile.
    """
    busy: set[asyncio.AbstractEventLoop] = set()
    for owner, connection in _idle_connections():
        if owner is loop:
            continue
        if owner.is_running() and owner is not _running_loop():
            busy.add(owner)
        else:
            _close_now(connection)
    asked = {}
    for owner in busy:
        closing = aclose_idle_connections()
        try:
            asked[asyncio.run_coroutine_threadsafe(closing, owner)] = owner
        except RuntimeError:  # it was closed just now
            closing.close()
    blocked = {asked[future] for future in wait(asked, timeout=_CLOSING_SEC).not_done} if asked else set()
    for owner, connection in _idle_connections() if blocked else ():
        if owner in blocked:
            _close_now(connection)


def close_connections_of_resting_loops() -> None:
    """Close the idle connections of loops that do not run, whether closed or not."""
    for owner, connection in _idle_connections():
        if not owner.is_running():
            _close_now(connection)


def is_of_another_loop(error: BaseException) -> bool:
    """Return whether an exception says that an object was used in another event loop than its own.

    Example:
        >>> is_of_another_loop(RuntimeError("Event loop is closed"))
        True
    """
    return isinstance(error, RuntimeError) and _OTHER_LOOP.search(str(error)) is not None


def is_before_sending(error: BaseException) -> bool:
    """Return whether a request was refused, or failed as other connections were closed, before it was sent."""
    if isinstance(error, RefusedRedirectError):
        return True
    frames = traceback.walk_tb(error.__traceback__)
    return error.__context__ is None and any(frame.f_code.co_name == "_close_connections" for frame, _ in frames)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _idle_connections(
    loop: asyncio.AbstractEventLoop | None = None,
) -> Iterator[tuple[asyncio.AbstractEventLoop, _Connection]]:
    """Yield the idle connections whose loop is known, with their loops; of one loop only if it is given."""
    for pool in _pools():
        for connection in cast("list[_Connection]", list(pool.connections)):
            owner = _loop_of(connection)
            if owner is not None and (loop is None or owner is loop) and connection.is_idle():
                yield owner, connection


def _pools() -> list[Any]:
    """Return all connection pools of the process. httpcore keeps no list of them, so their making is watched."""
    for name in _POOL_PACKAGES:
        kind = getattr(sys.modules.get(name), "AsyncConnectionPool", None)
        if isinstance(kind, type) and kind not in _watched:
            _watch(kind)
    return [pool for known in list(_known_pools.values()) if (pool := known()) is not None]


def _watch(kind: Any) -> None:
    """Note the pools of a kind that exist, and those that are made from now on.

    Python's garbage collector knows all at any time, but takes up to a second if a process holds much data.
    """
    with _lock:
        if kind in _watched:
            return
        made = kind.__init__

        @functools.wraps(made)
        def noted(pool: Any, *args: Any, **options: Any) -> None:
            made(pool, *args, **options)
            _note(pool)

        kind.__init__ = noted
        kinds = (kind, *kind.__subclasses__())
        for found in gc.get_referrers(*kinds):
            if type(found) in kinds:
                _note(found)
        _watched.add(kind)  # last, as others look at it without the lock


def _note(pool: Any) -> None:
    number = id(pool)
    _known_pools[number] = weakref.ref(pool, lambda _: _known_pools.pop(number, None))


def _loop_of(connection: object) -> asyncio.AbstractEventLoop | None:
    found: Any = connection
    for _ in range(_DEEPEST):
        read = getattr(getattr(found, "_protocol", None), "read_event", None)  # a transport of uvloop tells of no loop
        if isinstance(owner := getattr(read, "_loop", None), asyncio.AbstractEventLoop):
            return owner
        found = next((inner for name in _INWARD if (inner := getattr(found, name, None)) is not None), None)
        if found is None or isinstance(found, asyncio.AbstractEventLoop):
            return found
    return None


def _forget_connections() -> None:
    """Let a forked child open its own connections. Its parent's are not closed, only let go."""
    global _lock
    _lock = threading.Lock()
    for pool in _pools():
        for name in ("_connections", "_requests"):
            with contextlib.suppress(AttributeError):
                getattr(pool, name).clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)


def _close_now(connection: _Connection) -> None:
    """Close a connection whose loop does not run, or waits for the very code that calls this.

    Its pool sees at once that it is closed. The loop's own part of the work fails if the loop is closed.
    """
    closing = connection.aclose()
    with contextlib.suppress(Exception):  # StopIteration at its end
        for _ in range(_DEEPEST):
            closing.send(None)
    closing.close()
