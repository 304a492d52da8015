"""The vocabulary of a graph: counted, from VoID, from an ontology, or from a saved file."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rdflib")
pytest.importorskip("pyoxigraph")

import pyoxigraph

from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.graph.cypher_queries import lint_cypher
from graphrag_eval_lc.graph.sources import GraphFile, GraphSource
from graphrag_eval_lc.graph.vocabulary import (
    Vocabulary,
    load_vocabulary,
    read_ontology,
    read_vocabulary,
    save_vocabulary,
)

from .conftest import Endpoint

VOID = """
@prefix void: <http://rdfs.org/ns/void#> .
[] a void:Dataset ; void:classPartition [
  void:class <urn:grid#Line> ; void:entities 7 ; void:propertyPartition [ void:property <urn:grid#length> ] ] .
"""
ONTOLOGY = """
@prefix owl: <http://www.w3.org/2002/07/owl#> .
<urn:grid#Line> a owl:Class . <urn:grid#retired> a owl:DatatypeProperty . [] a owl:Class .
"""


def graph_of(tmp_path: Path, text: str) -> GraphFile:
    path = tmp_path / "graph.ttl"
    path.write_text(text, encoding="utf-8")
    return GraphFile(path)


async def test_terms_are_counted(grid: Path, endpoint: Endpoint) -> None:
    vocabulary = await read_vocabulary(GraphFile(grid))
    assert vocabulary.classes == {"urn:grid#Substation": 2, "urn:grid#Line": 1}
    assert vocabulary.properties["urn:grid#name"] == 2
    assert vocabulary.uses is not None
    assert "urn:grid#length" in vocabulary.uses["urn:grid#Line"]
    assert "urn:grid#length" not in vocabulary.uses["urn:grid#Substation"]
    async with GraphSource(endpoint.url).open() as remote:
        from_endpoint = await read_vocabulary(remote)
    assert from_endpoint.digest == vocabulary.digest
    assert from_endpoint.source == endpoint.url


async def test_truncated_vocabulary_is_incomplete(grid: Path) -> None:
    vocabulary = await read_vocabulary(GraphFile(grid), most=2)
    assert not vocabulary.complete
    assert vocabulary.uses is None


async def test_void_adds_its_terms(tmp_path: Path) -> None:
    vocabulary = await read_vocabulary(graph_of(tmp_path, VOID))
    assert vocabulary.classes["urn:grid#Line"] == 7
    assert vocabulary.uses is not None
    assert vocabulary.uses["urn:grid#Line"] == ["urn:grid#length"]


async def test_classes_in_named_graphs_are_found(tmp_path: Path) -> None:
    path = tmp_path / "graph.trig"
    path.write_text("<urn:g> { <urn:a> a <urn:grid#Line> ; <urn:grid#length> 3 }", encoding="utf-8")
    vocabulary = await read_vocabulary(GraphFile(path))
    assert (set(vocabulary.classes), vocabulary.uses is None) == ({"urn:grid#Line"}, False)


class UnionGraphStore:
    """A store whose default graph contains the triples of all named graphs, as in Virtuoso and GraphDB."""

    name = "store"

    def __init__(self, trig: str) -> None:
        self.store = pyoxigraph.Store()
        self.store.load(trig.encode(), format=pyoxigraph.RdfFormat.TRIG)

    async def results(self, query: str) -> Any:
        found = self.store.query(query, use_default_graph_as_union=True)
        return json.loads(found.serialize(format=pyoxigraph.QueryResultsFormat.JSON))


async def test_triples_of_named_graphs_are_counted_once() -> None:
    grid = "<urn:g> { <urn:a> a <urn:grid#Line> ; <urn:grid#length> 3 . <urn:b> a <urn:grid#Line> }"
    vocabulary = await read_vocabulary(UnionGraphStore(grid))
    assert vocabulary.classes == {"urn:grid#Line": 2}
    assert vocabulary.properties["urn:grid#length"] == 1


@pytest.mark.parametrize(("number", "is_whole"), [(999, True), (1_000, False), (1_001, True)])
async def test_list_that_a_server_may_have_truncated_is_incomplete(number: int, is_whole: bool) -> None:
    lines = " ".join(f"<urn:{at}> a <urn:grid#C{at}> ." for at in range(number))
    vocabulary = await read_vocabulary(UnionGraphStore(lines))
    assert (vocabulary.complete, vocabulary.uses is not None) == (is_whole, is_whole)


async def test_ontology_adds_terms_without_instances(tmp_path: Path, grid: Path) -> None:
    ontology = await read_ontology(graph_of(tmp_path, ONTOLOGY))
    assert ontology.classes == {"urn:grid#Line": None}
    both = (await read_vocabulary(GraphFile(grid))).with_ontology(ontology)
    assert both.classes["urn:grid#Line"] == 1
    assert both.properties["urn:grid#retired"] is None


@pytest.mark.parametrize(
    ("iri", "nearest"),
    [
        ("urn:other#Line", "urn:grid#Line"),
        ("urn:grid#DCLine", "urn:grid#DCLineSegment"),
        ("urn:grid#length", "urn:grid#Conductor.length"),
        ("urn:grid#Substatoin", "urn:grid#Substation"),
        ("urn:grid#Xyz", None),
    ],
)
def test_nearest_term_is_suggested(iri: str, nearest: str | None) -> None:
    names = ("Line", "DCLineSegment", "Conductor.length", "Substation")
    found = Vocabulary(source="").nearest(iri, [f"urn:grid#{name}" for name in names])
    assert found == ([] if nearest is None else [nearest])


async def test_vocabulary_file_round_trips(grid: Path, tmp_path: Path) -> None:
    vocabulary = await read_vocabulary(GraphFile(grid))
    path = tmp_path / "new" / "vocabulary.json"
    save_vocabulary(vocabulary, path)
    assert load_vocabulary(path) == vocabulary
    path.write_text('{"format": 2}', encoding="utf-8")
    with pytest.raises(ConfigError, match="not a vocabulary"):
        load_vocabulary(path)


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("g.ttl", "no graph", "not a graph"),
        ("g.docx", "", "does not say what syntax"),
        ("g.ttl.gz", "x", "not a graph"),
    ],
)
def test_invalid_vocabulary_file_is_an_error(tmp_path: Path, name: str, text: str, error: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=error):
        GraphFile(tmp_path / name)
    with pytest.raises(ConfigError, match="cannot be read"):
        GraphFile(tmp_path / "missing.ttl")


NEO4J = """[
 {"nodeType": ":`Line`", "nodeLabels": ["Line"], "propertyName": "kv", "propertyTypes": ["Long"], "mandatory": true},
 {"nodeType": ":`Zone`", "nodeLabels": ["Zone"], "propertyName": null, "propertyTypes": null, "mandatory": false},
 {"relType": ":`FROM`", "propertyName": "since", "propertyTypes": ["Date"], "mandatory": false}]"""


def test_neo4j_schema_is_a_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(NEO4J, encoding="utf-8")
    schema = load_vocabulary(path)
    assert (set(schema.classes), set(schema.properties)) == ({"Line", "Zone"}, {"kv", "since", "FROM"})
    for query, findings in (
        ("MATCH (l:Line)-[r:FROM]->(z:Zone) WHERE l.kv > 3 RETURN r.since", []),
        ("MATCH (l:Lines)-[:TO]->(z) RETURN l.kvs", ["Lines is not a label", "TO is not a rel"]),
        ("MATCH (n:`Line`) CALL apoc.path.expand(n, {maxLevel: 3}) YIELD path RETURN count(path)", []),
    ):
        found = lint_cypher(query, schema)
        assert [str(each)[: len(what)] for each, what in zip(found, findings, strict=True)] == findings
    path.write_text('[{"name": "kv"}]', encoding="utf-8")
    with pytest.raises(ConfigError, match="not a vocabulary or a schema of Neo4j"):
        load_vocabulary(path)
