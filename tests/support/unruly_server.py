"""A loopback server that answers each request with arbitrary bytes, piece by piece."""

import contextlib
import functools
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Unruly:
    """The server.

    Attributes:
        answer: Returns a response in pieces, from the status line on.
        seen: The requests.
    """

    answer: Callable[[Seen], Iterable[bytes]]
    seen: list[Seen] = field(default_factory=list)
    url: str = ""


@contextlib.contextmanager
def unruly(answer: Callable[[Seen], Iterable[bytes]]) -> Iterator[Unruly]:
    server = Unruly(answer)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen = Seen(self.command, self.path, headers, body)
            server.seen.append(seen)
            self.close_connection = True
            with contextlib.suppress(OSError):  # the client has disconnected
                for piece in server.answer(seen):
                    self.wfile.write(piece)

        do_GET = do_POST = do_PATCH = do_PUT = answer  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads, http.block_on_close = True, False
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def response(body: bytes = b"{}", status: int = 200, **headers: str) -> bytes:
    """Return a whole response, with headers as keywords such as ``content_type``. The connection closes after it."""
    named = {"content_type": "application/json", **headers}
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items()]
    phrase = HTTPStatus(status).phrase
    return f"HTTP/1.1 {status} {phrase}\r\n{''.join(lines)}\r\n".encode() + body


def byte_by_byte(content: bytes, sec: float = 0.05) -> Iterator[bytes]:
    for byte in content:
        yield bytes([byte])
        time.sleep(sec)


def without_end(head: bytes) -> Iterator[bytes]:
    yield head
    while True:
        yield b" " * 1_000_000


@functools.cache
def bomb() -> bytes:
    """Return 300 KB that unpack to 300 MB of blanks."""
    packing = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    parts = [packing.compress(b" " * 1_000_000) for _ in range(300)]
    return b"".join([*parts, packing.flush()])
