"""Event hooks that make httpx clients safe: no redirect to another host, no body that is too large.

Judges, deployed agents and SPARQL endpoints share these hooks. They work for httpx and httpx2, whose classes have the
same attributes. They need no separate transport or client, so proxies keep working.
"""

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final

MOST_BYTES: Final = 64_000_000
_PART: Final = 1_000_000
_ENCODINGS: Final = ("gzip", "x-gzip", "deflate")
_EITHER: Final = 32 + zlib.MAX_WBITS  # zlib recognises gzip or zlib by the first bytes
_ENDS_OF_EVENTS: Final = (b"\n\n", b"\r\r", b"\r\n\r\n")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


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
