"""Read the vocabulary of a Neo4j database through its driver, the extra ``neo4j``."""

import asyncio
import os
from datetime import UTC, datetime
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from graphrag_eval_lc.dataset.sparql_endpoint import EndpointError
from graphrag_eval_lc.errors import MissingExtraError, OptionError
from graphrag_eval_lc.graph.vocabulary import Vocabulary, vocabulary_of_schema
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.texts import error_text, shortened

_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_QUERIES = (
    "CALL db.schema.nodeTypeProperties() YIELD nodeLabels, propertyName",
    "CALL db.schema.relTypeProperties() YIELD relType, propertyName",
)


def is_neo4j(endpoint: str) -> bool:
    """Return whether an endpoint is a database that speaks Bolt.

    Example:
        >>> is_neo4j("bolt://localhost:7687"), is_neo4j("http://localhost:7200/repositories/grid")
        (True, False)
    """
    return endpoint.partition("://")[0].lower() in _SCHEMES


async def read_neo4j(endpoint: str, query_timeout: float) -> Vocabulary:
    """Read the labels, relationship types and property keys of a Neo4j database, in one read transaction for each.

    User, password and database are those in NEO4J_USERNAME, NEO4J_PASSWORD and NEO4J_DATABASE.

    Args:
        endpoint: Such as ``neo4j://localhost:7687``; see ``is_neo4j``.
        query_timeout: The longest time for all of it, in seconds.

    Raises:
        MissingExtraError: The driver is not installed.
        OptionError: The URL has a user or a password in it, or is none.
        EndpointError: The database cannot be reached, refuses the user, or does not return its schema.
    """
    try:
        neo4j: Any = import_module("neo4j")
    except ImportError as problem:
        raise MissingExtraError("Reading the vocabulary of Neo4j", "neo4j", "neo4j") from problem
    if "@" in urlsplit(endpoint).netloc:
        hint = "Set NEO4J_USERNAME and NEO4J_PASSWORD in the environment, and leave them out of the URL."
        raise OptionError(f"the endpoint {masked_text(shortened(endpoint, 80))} has a user in it", hint=hint)
    user, password = os.environ.get("NEO4J_USERNAME", "neo4j"), os.environ.get("NEO4J_PASSWORD")
    options = {"routing_": "r", "database_": os.environ.get("NEO4J_DATABASE")}
    rows: list[dict[str, Any]] = []
    try:
        async with (
            asyncio.timeout(query_timeout),
            neo4j.AsyncGraphDatabase.driver(
                endpoint, auth=None if password is None else (user, password), connection_timeout=query_timeout
            ) as driver,
        ):
            await driver.verify_connectivity()  # which is not tried again and again
            for query in _QUERIES:
                records, _, _ = await driver.execute_query(query, **options)
                rows += [record.data() for record in records]
    except TimeoutError:
        raise EndpointError(f"{endpoint}: no schema within {query_timeout:g} seconds") from None
    except neo4j.exceptions.Neo4jError as problem:
        is_refused = isinstance(problem, neo4j.exceptions.AuthError)
        hint = "; set NEO4J_USERNAME and NEO4J_PASSWORD" if is_refused else ""
        raise EndpointError(f"{endpoint}: {problem.code}: {masked_text(str(problem.message))}{hint}") from problem
    except (neo4j.exceptions.DriverError, OSError, ValueError) as problem:
        raise EndpointError(f"{endpoint}: {masked_text(shortened(error_text(problem), 200))}") from problem
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return vocabulary_of_schema(rows, endpoint).model_copy(update={"read_at": now})
