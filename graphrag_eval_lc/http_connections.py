"""Connections that HTTP clients keep for their next request: each works only in the event loop that opened it.

Clients outlive loops: langchain-openai, for one, has a single client for all models of an endpoint. A request that
takes a connection of another loop is sent, and its answer lost: it is paid for, and fails. So idle connections are
closed before a client changes its loop; the client then opens others. Requests that are under way are left alone.
"""

import asyncio
import contextlib
import functools
import gc
import re
import sys
import threading
import traceback
import weakref
from collections.abc import Coroutine, Iterator
from concurrent.futures import wait
from typing import Any, Protocol, cast

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
    """What is used of a connection in a pool of httpcore."""

    def is_idle(self) -> bool: ...

    def aclose(self) -> Coroutine[Any, Any, None]: ...


async def aclose_idle_connections() -> None:
    """Close the idle connections of the running loop."""
    loop = asyncio.get_running_loop()
    for _, connection in _idle_connections(loop):
        with contextlib.suppress(Exception):
            await asyncio.wait_for(connection.aclose(), _CLOSING_SEC)


def close_idle_connections_of_others(loop: asyncio.AbstractEventLoop) -> None:
    """Close the idle connections of all loops but one: of those that are closed, and of those that may go on.

    Loops that run in other threads are asked to do it, and waited for a moment.

    Args:
        loop: The loop whose connections stay.
    """
    busy: set[asyncio.AbstractEventLoop] = set()
    for owner, connection in _idle_connections():
        if owner is loop:
            continue
        if owner.is_running() and owner is not _running_loop():
            busy.add(owner)
        else:
            _close_now(connection)
    asked = []
    for owner in busy:
        closing = aclose_idle_connections()
        try:
            asked.append(asyncio.run_coroutine_threadsafe(closing, owner))
        except RuntimeError:  # it was closed just now
            closing.close()
    wait(asked, timeout=_CLOSING_SEC)


def close_connections_of_closed_loops() -> None:
    """Close what loops that are closed have left."""
    for owner, connection in _idle_connections():
        if owner.is_closed():
            _close_now(connection)


def is_of_another_loop(error: BaseException) -> bool:
    """Tell whether an exception says that something was used in another event loop than its own.

    Example:
        >>> is_of_another_loop(RuntimeError("Event loop is closed"))
        True
    """
    return isinstance(error, RuntimeError) and _OTHER_LOOP.search(str(error)) is not None


def is_before_sending(error: BaseException) -> bool:
    """Tell whether such an exception came from closing other connections, before the request was given to any."""
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
    """Give the idle connections whose loop is known, with their loops; those of one loop where it is named."""
    for pool in _pools():
        for connection in cast("list[_Connection]", list(pool.connections)):
            owner = _loop_of(connection)
            if owner is not None and (loop is None or owner is loop) and connection.is_idle():
                yield owner, connection


def _pools() -> list[Any]:
    """Give all connection pools of the process. httpcore keeps no list of them, so they are watched for from here."""
    for name in _POOL_PACKAGES:
        kind = getattr(sys.modules.get(name), "AsyncConnectionPool", None)
        if isinstance(kind, type) and kind not in _watched:
            _watch(kind)
    return [pool for known in list(_known_pools.values()) if (pool := known()) is not None]


def _watch(kind: Any) -> None:
    """Note each pool of a kind that is made from now on, and those that there are.

    Python's garbage collector knows these too, but to ask it takes up to a second where a process holds much data.
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
        _watched.add(kind)
    kinds = (kind, *kind.__subclasses__())
    for found in gc.get_referrers(*kinds):
        if type(found) in kinds:
            _note(found)


def _note(pool: Any) -> None:
    number = id(pool)
    _known_pools[number] = weakref.ref(pool, lambda _: _known_pools.pop(number, None))


def _loop_of(connection: object) -> asyncio.AbstractEventLoop | None:
    found: Any = connection
    for _ in range(_DEEPEST):
        found = next((inner for name in _INWARD if (inner := getattr(found, name, None)) is not None), None)
        if found is None or isinstance(found, asyncio.AbstractEventLoop):
            return found
    return None


def _close_now(connection: _Connection) -> None:
    """Close a connection whose loop does not run, or waits for the very code that calls this.

    Its pool sees at once that it is closed. What the loop itself would still have to do fails where it is closed.
    """
    closing = connection.aclose()
    with contextlib.suppress(Exception):  # StopIteration at its end
        for _ in range(_DEEPEST):
            closing.send(None)
    closing.close()
