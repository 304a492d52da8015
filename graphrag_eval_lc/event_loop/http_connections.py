"""HTTP clients that are safe with any server and in several event loops.

``bounded_http`` returns event hooks: no redirect to another host, no body that is too large. Judges, deployed agents
and SPARQL endpoints share them. They work for httpx and httpx2, whose classes have the same attributes, and need no
separate transport or client, so proxies keep working.

A connection works only in the event loop that opened it, but clients outlive loops: langchain-openai has a single
client for all models of an endpoint. A request on a connection of another loop is sent and paid for, but its answer is
lost. So idle connections are closed before a client changes its loop; the client then opens new ones. Requests under
way are left alone.
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
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import wait
from typing import Any, Final, Protocol, cast

MOST_BYTES: Final = 64_000_000
_PART: Final = 1_000_000
_ENCODINGS: Final = ("gzip", "x-gzip", "deflate")
_EITHER: Final = 32 + zlib.MAX_WBITS  # zlib recognises gzip or zlib by the first bytes
_ENDS_OF_EVENTS: Final = (b"\n\n", b"\r\r", b"\r\n\r\n")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_CLOSING_SEC = 0.5
# httpx and httpx2 keep their connections in pools of these packages; only imported packages are inspected.
_POOL_PACKAGES = ("httpcore", "httpcore2")
# From a connection down to the transport that knows its loop: through tunnels, protocols and TLS.
_INWARD = ("_loop", "_transport", "transport_stream", "_stream", "_network_stream", "_connection")
_DEEPEST = 12
_OTHER_LOOP = re.compile(r"event loop is closed|(bound|attached) to a different (event )?loop", re.IGNORECASE)
_watched: set[type] = set()
_known_pools: dict[int, "weakref.ref[Any]"] = {}
_lock = threading.Lock()


# --- unknown servers --------------------------------------------------------------------------------------------------


class RefusedResponseError(Exception):
    """A response was refused: a redirect to another host, or a body that is too large or cannot be decompressed.

    It is not a subclass of httpx's errors, so no client retries it.
    """


class RefusedRedirectError(RefusedResponseError):
    """A server redirects to another host."""


class TooLargeResponseError(RefusedResponseError):
    """A server sends a body that is larger than allowed."""


def bounded_http(
    most_bytes: int = MOST_BYTES, *, follows_redirects: bool = False
) -> dict[str, list[Callable[[Any], Awaitable[None]]]]:
    """Return event hooks for an asynchronous client of httpx or httpx2 that talks to one server.

    The client must follow redirects. They keep the method and body, because a query or prompt would be lost otherwise.
    Every request must go to the server of the first one. Bodies are decompressed in small parts and refused once they
    are too large. In an event stream the limit applies to each event, not to the stream.

    Example:
        >>> import httpx
        >>> client = httpx.AsyncClient(event_hooks=bounded_http(), follow_redirects=True)
    """
    home: Any = None

    async def check(request: Any) -> None:
        nonlocal home
        request.headers["Accept-Encoding"] = "gzip, deflate"
        home = home or request.url
        if not follows_redirects and not _is_same_server(home, request.url):
            where = f"{_server(home)} redirects to another host, {_server(request.url)}"
            raise RefusedRedirectError(f"{where}, and nothing was sent there")

    async def bound(response: Any) -> None:
        if response.has_redirect_location and response.status_code < 304:
            response.status_code = 308  # httpx keeps method and body for this code
        inner = response.stream
        encoding = response.headers.pop("Content-Encoding", "").strip().lower()
        body = _parts(inner, encoding, response, most_bytes)
        response.stream = type(response)(200, content=body).stream  # the stream class of httpx or httpx2
        response.stream.aclose = inner.aclose

    return {"request": [check], "response": [bound]}


def _server(url: Any) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


def _is_same_server(home: Any, url: Any) -> bool:
    """Return whether a URL has the same scheme, host and port as another, or upgrades it to HTTPS."""
    old, new = ((each.scheme, each.port or _DEFAULT_PORTS.get(each.scheme)) for each in (home, url))
    is_upgrade = (old, new) == (("http", 80), ("https", 443))
    return bool(home.host == url.host) and (old == new or is_upgrade)


async def _parts(stream: Any, encoding: str, response: Any, most_bytes: int) -> AsyncIterator[bytes]:
    """Yield a body in small decompressed parts, within the limit."""
    size, sender = 0, _server(response.request.url)
    is_events = response.headers.get("Content-Type", "").startswith("text/event-stream")
    if encoding not in (*_ENCODINGS, "identity", ""):
        raise RefusedResponseError(f"{sender} sent a body with the encoding {encoding}, which was not asked for")
    unpacking = zlib.decompressobj(_EITHER) if encoding in _ENCODINGS else None
    async for sent in stream:
        try:
            for part in (sent,) if unpacking is None else _unpacked(sent, unpacking):
                end = max(part.rfind(mark) for mark in _ENDS_OF_EVENTS) if is_events else -1
                size = size + len(part) if end < 0 else len(part) - end
                if size > most_bytes:
                    raise TooLargeResponseError(f"{sender} sent more than {most_bytes:,} bytes")
                yield part
        except zlib.error as problem:
            raise RefusedResponseError(f"{sender} sent a body that is not {encoding}: {problem}") from None


def _unpacked(sent: bytes, unpacking: Any) -> Iterator[bytes]:
    """Yield the decompressed data of a part of a body; nothing after the end of the compressed data."""
    while not unpacking.eof and (part := unpacking.decompress(sent, _PART)):
        yield part
        sent = unpacking.unconsumed_tail


# --- several event loops ----------------------------------------------------------------------------------------------


class _Connection(Protocol):
    """The part of httpcore's connections that is used here."""

    def is_idle(self) -> bool: ...

    def aclose(self) -> Coroutine[Any, Any, None]: ...


async def aclose_idle_connections() -> None:
    """Close the idle connections of the running loop."""
    loop = asyncio.get_running_loop()
    for _, connection in _idle_connections(loop):
        # Not wait_for: in Python 3.11 it creates a task, and a request may take the connection before the task starts.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSING_SEC):
                await connection.aclose()


def close_idle_connections_of_others(loop: asyncio.AbstractEventLoop) -> None:
    """Close the idle connections of all loops except one, even those of closed loops.

    Loops that run in other threads close their own. If a loop does not respond within half a second, it is blocked,
    perhaps by code that waits for this very call. It cannot use its connections then, so they are closed from here.
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
    """Close the idle connections of all loops that are not running, even those of closed loops."""
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
    """Return whether a request failed before it was sent: it was refused, or its idle connection was being closed."""
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
    """Yield each idle connection whose loop is known, with that loop; with ``loop``, only its connections."""
    for pool in _pools():
        for connection in cast("list[_Connection]", list(pool.connections)):
            owner = _loop_of(connection)
            if owner is not None and (loop is None or owner is loop) and connection.is_idle():
                yield owner, connection


def _pools() -> list[Any]:
    """Return all connection pools of the process. httpcore keeps no list of them, so ``_watch`` does."""
    for name in _POOL_PACKAGES:
        kind = getattr(sys.modules.get(name), "AsyncConnectionPool", None)
        if isinstance(kind, type) and kind not in _watched:
            _watch(kind)
    return [pool for known in list(_known_pools.values()) if (pool := known()) is not None]


def _watch(kind: Any) -> None:
    """Remember the existing pools of a class, and wrap its ``__init__`` to remember new ones.

    The garbage collector could list all pools at any time, but takes up to a second in a process with much data.
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
        _watched.add(kind)  # last, as other threads read it without the lock


def _note(pool: Any) -> None:
    number = id(pool)
    _known_pools[number] = weakref.ref(pool, lambda _: _known_pools.pop(number, None))


def _loop_of(connection: object) -> asyncio.AbstractEventLoop | None:
    found: Any = connection
    for _ in range(_DEEPEST):
        read = getattr(getattr(found, "_protocol", None), "read_event", None)  # uvloop's hide their loop
        if isinstance(owner := getattr(read, "_loop", None), asyncio.AbstractEventLoop):
            return owner
        found = next((inner for name in _INWARD if (inner := getattr(found, name, None)) is not None), None)
        if found is None or isinstance(found, asyncio.AbstractEventLoop):
            return found
    return None


def _forget_connections() -> None:
    """Make a forked child open its own connections; its parent's are dropped without closing them."""
    global _lock
    _lock = threading.Lock()
    for pool in _pools():
        for name in ("_connections", "_requests"):
            with contextlib.suppress(AttributeError):
                getattr(pool, name).clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)


def _close_now(connection: _Connection) -> None:
    """Close a connection whose loop is not running, or waits for the very code that calls this.

    The pool sees at once that the connection is closed. If the loop itself is closed, its part of the work fails, which
    does not matter.
    """
    closing = connection.aclose()
    with contextlib.suppress(Exception):  # StopIteration at its end
        for _ in range(_DEEPEST):
            closing.send(None)
    closing.close()
