"""The vocabulary of a graph: its classes and properties, and which property instances of which class have.

It is read once, from a file or an endpoint, and kept in a JSON file.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphrag_eval_lc.dataset.sparql_endpoint import EndpointError, Graph
from graphrag_eval_lc.errors import ConfigError, MissingExtraError, OptionError
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.graph.sources import Row, rows_of
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.texts import error_text, shortened

MOST_TERMS = 10_000
"""The most classes, properties, and pairs of both that are read; the lint does not use a list that is longer.
Virtuoso silently stops at this number of rows."""
_PAGE = 1_000  # a list whose length is a multiple of it was cut by an endpoint, or may have been

# Of the default graph, and of named graphs. In some stores the default graph has the triples of all others.
_PLACES = ("{{ {pattern} }}", "{{ GRAPH ?g {{ {pattern} }} }}")
_CLASSES = "SELECT ?class (COUNT(?s) AS ?n) WHERE {place} GROUP BY ?class LIMIT {limit}", "?s a ?class"
_PROPERTIES = "SELECT ?property (COUNT(?s) AS ?n) WHERE {place} GROUP BY ?property LIMIT {limit}", "?s ?property ?o"
_USES = "SELECT DISTINCT ?class ?property WHERE {place} LIMIT {limit}", "?s a ?class ; ?property ?o"
_VOID = """
PREFIX void: <http://rdfs.org/ns/void#>
SELECT DISTINCT ?class ?n ?property WHERE {{
  {{ ?part void:class ?class OPTIONAL {{ ?part void:entities ?n }}
     OPTIONAL {{ ?part void:propertyPartition/void:property ?property }} }}
  UNION
  {{ ?dataset void:propertyPartition ?all . ?all void:property ?property OPTIONAL {{ ?all void:triples ?n }}
     FILTER NOT EXISTS {{ ?dataset void:class ?any }} }}
}} LIMIT {limit}"""
_ONTOLOGY = """
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
SELECT DISTINCT ?class ?property WHERE {
  { VALUES ?c { owl:Class rdfs:Class } ?class a ?c } UNION
  { VALUES ?p { rdf:Property owl:ObjectProperty owl:DatatypeProperty owl:AnnotationProperty } ?property a ?p }
  FILTER(isIRI(COALESCE(?class, ?property)))
}"""


class Vocabulary(BaseModel):
    """The classes and properties of a graph.

    Attributes:
        format: The version of this format.
        source: The file or endpoint that it was read from.
        read_at: When, in UTC.
        classes: How many instances a class has, by its IRI; None if only an ontology names it.
        properties: How many triples a property has, by its IRI; None as in ``classes``. Triples are counted in the
            default graph or in named graphs, whichever has more.
        uses: The properties that instances of a class have, by the IRI of the class; None if it is not known.
        complete: Whether all classes and properties are listed.

    Example:
        >>> grid = Vocabulary(source="grid.ttl", classes={"urn:c#Line": 3}, properties={"urn:c#length": 3})
        >>> grid.nearest("urn:c#Lines", grid.classes)
        ['urn:c#Line']
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    source: str
    read_at: str = ""
    classes: dict[str, int | None] = Field(default_factory=dict)
    properties: dict[str, int | None] = Field(default_factory=dict)
    uses: dict[str, list[str]] | None = None
    complete: bool = True

    @property
    def digest(self) -> str:
        """A digest of the terms, the same whenever and from wherever they were read."""
        terms = self.model_dump(include={"classes", "properties", "uses", "complete"})
        return hashlib.sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()[:16]

    def nearest(self, iri: str, terms: Iterable[str], most: int = 1) -> list[str]:
        """Return the terms whose local names are nearest to that of an IRI, the same one in another namespace first."""
        by_name: dict[str, list[str]] = {}
        for term in terms:
            by_name.setdefault(local_name(term), []).append(term)
        name = local_name(iri)
        names = [name] if name in by_name else []
        names += [each for each in by_name if each != name and (each.startswith(name) or each.endswith(f".{name}"))]
        names += get_close_matches(name, by_name, n=most, cutoff=0.6)
        namespace = iri.removesuffix(name)
        found = dict.fromkeys(
            term for each in names for term in sorted(by_name[each], key=lambda term: not term.startswith(namespace))
        )
        return [term for term in found if term != iri][:most]

    def with_ontology(self, other: "Vocabulary") -> Self:
        """Return the vocabulary with the terms of an ontology added."""
        return self.model_copy(
            update={
                "classes": {**other.classes, **self.classes},
                "properties": {**other.properties, **self.properties},
            }
        )


def local_name(iri: str) -> str:
    """Return what follows the last # or / (or, in a URN, the last colon).

    Example:
        >>> local_name("https://cim.ucaiug.io/ns#DCLine"), local_name("http://schema.org/name"), local_name("urn:a:b")
        ('DCLine', 'name', 'b')
    """
    for separator in "#/:":
        if separator in iri:
            return iri.rsplit(separator, 1)[1] or iri
    return iri


async def read_vocabulary(graph: Graph, *, most: int = MOST_TERMS) -> Vocabulary:
    """Read a vocabulary with SELECT queries: by counting and from VoID; VoID is enough if counting takes too long.

    Args:
        graph: The graph.
        most: The longest list of terms.

    Raises:
        EndpointError: The graph has no results for one of the queries.
    """

    async def ask(query: str, pattern: str) -> list[list[Row]]:
        places = (place.format(pattern=pattern) for place in _PLACES)
        return [rows_of(await graph.results(query.format(place=place, limit=most))) for place in places]

    now = datetime.now(UTC).isoformat(timespec="seconds")
    described = rows_of(await graph.results(_VOID.format(limit=most)))
    try:
        of_classes, of_properties = await ask(*_CLASSES), await ask(*_PROPERTIES)
        of_uses = await ask(*_USES)
    except EndpointError:
        if not described:
            raise
        of_classes, of_properties, of_uses = [], [], []
    classes, properties = _counts(of_classes, "class"), _counts(of_properties, "property")
    for row in described:
        if "class" in row:
            classes.setdefault(row["class"], _number(row.get("n")))
        if "property" in row:
            properties.setdefault(row["property"], None)
    pairs = [*chain.from_iterable(of_uses), *(row for row in described if "class" in row and "property" in row)]
    is_whole = not any(_may_be_cut(rows, most) for rows in (*of_classes, *of_properties, described))
    has_all_uses = not any(_may_be_cut(rows, most) for rows in of_uses)
    uses: dict[str, list[str]] = {}
    for row in pairs:
        uses.setdefault(row["class"], []).append(row["property"])
    return Vocabulary(
        source=graph.name,
        read_at=now,
        classes=classes,
        properties=properties,
        uses={name: sorted(set(names)) for name, names in uses.items()} if pairs and has_all_uses else None,
        complete=is_whole,
    )


def _counts(lists: Iterable[Iterable[Row]], name: str) -> dict[str, int | None]:
    """Return the number of each term by its IRI: in the default graph or in named graphs, whichever has more."""
    counts: dict[str, int | None] = {}
    for row in chain.from_iterable(lists):
        if name in row:
            counts[row[name]] = max(counts.get(row[name]) or 0, _number(row.get("n")) or 0)
    return counts


def _may_be_cut(rows: Sequence[Row], most: int) -> bool:
    return len(rows) >= most or (len(rows) > 0 and len(rows) % _PAGE == 0)


async def read_ontology(graph: Graph) -> Vocabulary:
    """Read the classes and properties that an ontology declares."""
    rows = rows_of(await graph.results(_ONTOLOGY))
    classes, properties = ([row[name] for row in rows if name in row] for name in ("class", "property"))
    return Vocabulary(source=graph.name, classes=dict.fromkeys(classes), properties=dict.fromkeys(properties))


def load_vocabulary(path: Path) -> Vocabulary:
    """Load a vocabulary from its JSON file, or from the schema of a property graph.

    The schema is what ``CALL db.schema.nodeTypeProperties()`` and ``CALL db.schema.relTypeProperties()`` of Neo4j
    return, as one JSON array of objects. Its labels are classes; its relationship types and keys are properties.

    Raises:
        ConfigError: It cannot be read, or is not a vocabulary of this format.
    """
    try:
        text = path.read_bytes()
        rows = json.loads(text)
        if isinstance(rows, list):
            return vocabulary_of_schema(rows, str(path))
        return Vocabulary.model_validate_json(text)
    except OSError as problem:
        raise ConfigError(f"it cannot be read: {problem.strerror}", path=path) from problem
    except ValidationError as problem:
        first = problem.errors()[0]
        what = f"it is not a vocabulary: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise ConfigError(what, path=path, hint="Remove the file; it is made again.") from problem
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        hint = (
            "Save what CALL db.schema.nodeTypeProperties() and relTypeProperties() return as a JSON array of objects."
        )
        raise ConfigError("it is not a vocabulary or a schema of Neo4j", path=path, hint=hint) from problem


def vocabulary_of_schema(rows: list[Any], source: str) -> Vocabulary:
    """Return the vocabulary of Neo4j's schema, which has a row for each key of a combination of labels, or of a type.

    Example:
        >>> rows = [{"nodeLabels": ["Line"], "propertyName": "kv"}, {"relType": ":`FROM`", "propertyName": None}]
        >>> vocabulary_of_schema(rows, "grid").properties
        {'kv': None, 'FROM': None}
    """
    classes: dict[str, int | None] = {}
    properties: dict[str, int | None] = {}
    uses: dict[str, list[str]] = {}
    for row in rows:
        key = row.get("propertyName")
        if key is not None:
            properties[key] = None
        if "nodeLabels" in row:
            for label in row["nodeLabels"]:
                classes[label] = None
                uses.setdefault(label, []).extend([] if key is None else [key])
        else:
            properties[row["relType"].strip(":`")] = None
    return Vocabulary(source=source, classes=classes, properties=properties, uses=uses)


def save_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    """Write a vocabulary to its JSON file.

    Raises:
        OutputError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, [vocabulary.model_dump_json(indent=1).encode(), b"\n"])


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


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
