"""A small graph in a file, and a SPARQL endpoint that serves it."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

GRID = """
@prefix : <urn:grid#> .
:oslo a :Substation ; :name "Oslo" ; :kv 420 .
:bergen a :Substation ; :name "Bergen" ; :kv 300 .
:line1 a :Line ; :from :oslo ; :to :bergen ; :length 304.5 .
"""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.ttl"
    path.write_text(GRID, encoding="utf-8")
    return path


class Endpoint:
    """Serves a graph and records the queries.

    Attributes:
        queries: The queries so far.
        fails: Returns None to answer a query, or the status and body of a failure.
    """

    def __init__(self, path: Path) -> None:
        pyoxigraph = pytest.importorskip("pyoxigraph")
        self.store = pyoxigraph.Store()
        self.store.load(path.read_bytes(), format=pyoxigraph.RdfFormat.TURTLE)
        self.json = pyoxigraph.QueryResultsFormat.JSON
        self.queries: list[str] = []
        self.fails: Callable[[str], tuple[int, str] | None] = lambda _: None
        self.url = ""

    def answer(self, query: str) -> tuple[int, bytes]:
        self.queries.append(query)
        if (failed := self.fails(query)) is not None:
            return failed[0], failed[1].encode()
        try:
            return 200, self.store.query(query).serialize(format=self.json)
        except SyntaxError as problem:
            return 400, str(problem).encode()


@pytest.fixture
def endpoint(grid: Path) -> Iterator[Endpoint]:
    served = Endpoint(grid)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.respond(parse_qs(urlsplit(self.path).query)["query"][0])

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            is_form = self.headers["Content-Type"].startswith("application/x-www-form")
            self.respond(parse_qs(body)["query"][0] if is_form else body)

        def respond(self, query: str) -> None:
            status, content = served.answer(query)
            self.send_response(status)
            self.send_header("Content-Type", "application/sparql-results+json" if status == 200 else "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}/sparql"
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


def results(*rows: dict[str, str], names: str = "name kv") -> str:
    """Return SPARQL JSON results: digits become integers, other values strings."""
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    bindings = [
        {
            name: {"type": "literal", "value": value} | ({"datatype": integer} if value.isdigit() else {})
            for name, value in row.items()
        }
        for row in rows
    ]
    return json.dumps({"head": {"vars": names.split()}, "results": {"bindings": bindings}})
