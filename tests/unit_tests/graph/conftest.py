"""A small graph in a file, and a SPARQL endpoint that serves it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.sparql_stub import Answer, answering

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

    def answer(self, query: str) -> Answer:
        self.queries.append(query)
        if (failed := self.fails(query)) is None:
            try:
                body = self.store.query(query).serialize(format=self.json).decode()
            except SyntaxError as problem:
                failed = 400, str(problem)
            else:
                return 200, body, {"Content-Type": "application/sparql-results+json"}
        return *failed, {"Content-Type": "text/html"}


@pytest.fixture
def endpoint(grid: Path) -> Iterator[Endpoint]:
    served = Endpoint(grid)
    with answering(served.answer) as served.url:
        yield served


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
