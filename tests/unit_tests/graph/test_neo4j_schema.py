"""Reading Neo4j's vocabulary with the real driver, from a Bolt stub that returns rows as in Neo4j's manual."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("rdflib")
pytest.importorskip("neo4j")

from support.bolt_stub import Rows, bolt_server

from graphrag_eval_lc.config import GraphConfig
from graphrag_eval_lc.dataset.sparql_endpoint import EndpointError
from graphrag_eval_lc.errors import MissingExtraError, OptionError
from graphrag_eval_lc.graph.cypher_queries import lint_cypher
from graphrag_eval_lc.graph.lint_files import vocabulary_of
from graphrag_eval_lc.graph.vocabulary import load_vocabulary, read_neo4j


def schema(query: str) -> Rows:
    if "nodeTypeProperties" in query:
        return ["nodeLabels", "propertyName"], [
            [["Line", "Asset"], "kv"],
            [["Line", "Asset"], "name"],
            [["City"], None],
        ]
    assert "relTypeProperties" in query
    return ["relType", "propertyName"], [[":`FROM`", None], [":`TO`", "since"]]


async def test_schema_is_read_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_PASSWORD", "right")
    path = tmp_path / "vocabulary.json"
    with bolt_server(schema, password="right") as url:
        vocabulary = await vocabulary_of(GraphConfig(endpoint=url, vocabulary=str(path)))
    assert vocabulary is not None
    assert set(vocabulary.classes) == {"Line", "Asset", "City"}
    assert set(vocabulary.properties) == {"kv", "name", "FROM", "TO", "since"}
    assert vocabulary.uses == {"Line": ["kv", "name"], "Asset": ["kv", "name"], "City": []}
    assert (vocabulary.source, load_vocabulary(path)) == (url, vocabulary)
    found = [str(each) for each in lint_cypher("MATCH (:Lines)-[:FORM]->(:City) RETURN 1", vocabulary)]
    assert found == [
        "Lines is not a label of this graph (nearest: Line)",
        "FORM is not a relationship type of this graph (nearest: FROM)",
    ]


@pytest.mark.parametrize(
    ("code", "password", "complaint"),
    [
        ("Neo.ClientError.Procedure.ProcedureNotFound", None, "ProcedureNotFound"),
        ("", "other", "NEO4J_USERNAME and NEO4J_PASSWORD"),
    ],
)
async def test_database_error_is_reported(code: str, password: str | None, complaint: str) -> None:
    with bolt_server(lambda _: code, password=password) as url, pytest.raises(EndpointError, match=complaint):
        await read_neo4j(url, 10)


async def test_unreachable_database_is_an_error() -> None:
    with pytest.raises(EndpointError, match="ServiceUnavailable"):
        await read_neo4j("bolt://127.0.0.1:1", 10)
    with pytest.raises(OptionError, match="has a user in it"):
        await read_neo4j("bolt://me:secret@127.0.0.1:1", 10)


async def test_missing_driver_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "neo4j", None)
    with pytest.raises(MissingExtraError, match=r"graphrag-eval-lc\[neo4j\]"):
        await read_neo4j("bolt://127.0.0.1:1", 10)
