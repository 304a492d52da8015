"""A graph that answers SPARQL: an endpoint, or a file that is loaded into memory."""

import gzip
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from graphrag_eval_lc.dataset.sparql_endpoint import EndpointError, Graph, SparqlEndpoint
from graphrag_eval_lc.errors import ConfigError, MissingExtraError, OptionError

Row: TypeAlias = Mapping[str, str]
"""The text of each bound variable."""

DEFAULT_TIMEOUT = 60.0


class GraphFile:
    """An RDF file in memory, in one graph.

    Args:
        path: The file. Its syntax follows from its name: .ttl, .nt, .nq, .trig, .rdf or .jsonld, each with .gz.

    Raises:
        ConfigError: It cannot be read.
        MissingExtraError: pyoxigraph is not installed.

    Attributes:
        name: The path.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        try:
            import pyoxigraph
        except ImportError as problem:
            raise MissingExtraError("A graph in a file", "graph", "pyoxigraph") from problem
        self._results_format = pyoxigraph.QueryResultsFormat.JSON
        self._store = pyoxigraph.Store()
        syntax = pyoxigraph.RdfFormat.from_extension(Path(path.name.removesuffix(".gz")).suffix.removeprefix("."))
        if syntax is None:
            hint = "Name it by its syntax: .ttl, .nt, .nq, .trig, .rdf or .jsonld, each with .gz if it is compressed."
            raise ConfigError("the name does not say what syntax the graph has", path=path, hint=hint)
        try:
            data = path.read_bytes()
            if path.suffix == ".gz":
                data = gzip.decompress(data)
            self._store.bulk_load(data, format=syntax, to_graph=pyoxigraph.DefaultGraph())
        except (SyntaxError, ValueError, EOFError, gzip.BadGzipFile) as problem:
            raise ConfigError(f"it is not a graph: {problem}", path=path) from problem
        except OSError as problem:
            raise ConfigError(f"it cannot be read: {problem.strerror}", path=path) from problem

    async def results(self, query: str) -> Any:
        """Return SPARQL 1.1 JSON results of a SELECT or ASK.

        Raises:
            EndpointError: It is not such a query.
        """
        try:
            found: Any = self._store.query(query)
            return json.loads(found.serialize(format=self._results_format))
        except (SyntaxError, ValueError, RuntimeError, OSError) as problem:
            raise EndpointError(str(problem)) from problem
        except TypeError:  # CONSTRUCT and DESCRIBE have other formats
            raise EndpointError("it is not SELECT or ASK") from None


@dataclass(frozen=True, slots=True)
class GraphSource:
    """Where to find a graph: an endpoint or a file.

    Attributes:
        endpoint: The URL of a SPARQL endpoint.
        file: An RDF file, instead of an endpoint.
        timeout: The longest time for a query, in seconds.
    """

    endpoint: str | None = None
    file: Path | None = None
    timeout: float = DEFAULT_TIMEOUT

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Graph]:
        """Open it.

        Raises:
            OptionError: It names neither or both, or the URL is invalid.
            ConfigError: The file cannot be read.
            MissingExtraError: A file needs pyoxigraph, which is not installed.
        """
        if (self.endpoint is None) == (self.file is None):
            what = "no graph is named" if self.endpoint is None else "there is an endpoint and a file"
            raise OptionError(what, hint="Give one: --endpoint URL or --graph FILE, or graph: in the configuration.")
        if self.file is not None:
            yield GraphFile(self.file)
        else:
            async with SparqlEndpoint(str(self.endpoint), self.timeout) as endpoint:
                yield endpoint


def rows_of(results: Any) -> list[Row]:
    """Return the rows of SPARQL JSON results; none if they are not those of a SELECT.

    Example:
        >>> rows_of({"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:a"}}]}})
        [{'x': 'urn:a'}]
    """
    try:
        bindings = results["results"]["bindings"]
        return [{name: str(term["value"]) for name, term in row.items()} for row in bindings]
    except (KeyError, TypeError, AttributeError):
        return []
