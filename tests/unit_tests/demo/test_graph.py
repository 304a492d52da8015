import json
import subprocess
import sys
import time

import pytest

from graphrag_eval_lc.demo import GRAPH_PATH
from graphrag_eval_lc.demo.graph import KnowledgeGraph, QueryError

PREFIX = "PREFIX cim: <https://cim.ucaiug.io/ns#>\n"
PAIRS_OF_ALL_TRIPLES = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f }"


def test_select_gives_sparql_json_results(graph):
    query = (
        PREFIX + "SELECT ?name ?none { ?s a cim:Substation ; cim:IdentifiedObject.name ?name FILTER(?name = 'OSLO') }"
    )
    assert json.loads(graph.query(query)) == {
        "head": {"vars": ["name", "none"]},
        "results": {"bindings": [{"name": {"type": "literal", "value": "OSLO"}}]},
    }


def test_terms_keep_kind_datatype_and_language(graph):
    result = json.loads(
        graph.query('SELECT (1.5 AS ?number) ("is"@no AS ?word) (BNODE() AS ?blank) (<urn:a> AS ?iri) {}')
    )
    [row] = result["results"]["bindings"]
    assert row["number"]["datatype"] == "http://www.w3.org/2001/XMLSchema#decimal"
    assert row["word"]["xml:lang"] == "no"
    assert (row["blank"]["type"], row["iri"]["type"]) == ("bnode", "uri")


@pytest.mark.parametrize(("pattern", "boolean"), [("a cim:Substation", True), ("a cim:Breaker", False)])
def test_ask_gives_a_boolean(graph, pattern, boolean):
    assert json.loads(graph.query(f"{PREFIX}ASK {{ ?s {pattern} }}")) == {"head": {}, "boolean": boolean}


@pytest.mark.parametrize(
    "query",
    [
        "CONSTRUCT { ?s a cim:Substation } { ?s a cim:Substation ; cim:IdentifiedObject.name 'OSLO' }",
        "DESCRIBE ?s { ?s a cim:Substation ; cim:IdentifiedObject.name 'OSLO' }",
    ],
)
def test_construct_and_describe_give_turtle(graph, query):
    assert "a cim:Substation" in graph.query(PREFIX + query)


@pytest.mark.parametrize(
    ("update", "word"),
    [
        ("INSERT DATA { <urn:a> <urn:b> 1 }", "INSERT"),
        ("PREFIX a: <urn:a#> DELETE WHERE { ?s ?p ?o }", "DELETE"),
        ("# SELECT\nCLEAR ALL", "CLEAR"),
        ("LOAD <http://example.org/>", "LOAD"),
        ("", "''"),
    ],
)
def test_what_does_not_read_is_refused(graph, update, word):
    with pytest.raises(QueryError, match=f"Only SELECT.*{word}"):
        graph.query(update)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
        "SELECT * { service silent <http://127.0.0.1:9/> { ?s ?p ?o } }",
        'SELECT * { ?s ?p "it\\"s # no comment" . SERVICE ?s { ?s ?p ?o } }',
        "SELECT * { ?s ?p ?o .SERVICE<http://127.0.0.1:9/> { ?s ?p ?o } }",
        "PREFIX : <urn:> SELECT * { SERVICE :a { ?s ?p ?o } }",
    ],
)
def test_service_is_refused(graph, query):
    with pytest.raises(QueryError, match="SERVICE is not allowed"):
        graph.query(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?service { ?service <urn:service/SERVICE> 'SERVICE <x>' } # SERVICE",
        "PREFIX service: <urn:s#> ASK { ?s service:service-time ?o }",
    ],
)
def test_the_word_service_in_names_strings_and_comments_is_no_service(graph, query):
    assert "head" in json.loads(graph.query(query))


def test_a_missing_prefix_is_named_as_the_mistake(graph):
    with pytest.raises(QueryError, match=r"line 1, column .* a prefix is used that no PREFIX line declares"):
        graph.query("SELECT ?s { ?s a cim:Substation }")


def test_wrong_syntax_gives_a_short_message(graph):
    with pytest.raises(QueryError, match="not valid SPARQL at line 1") as caught:
        graph.query("SELECT ?s { ?s ?p")
    assert len(str(caught.value)) < 300


def test_an_unknown_function_is_a_query_error(graph):
    with pytest.raises(QueryError, match=r"cannot be evaluated.*urn:f"):
        graph.query("SELECT (<urn:f>(1) AS ?x) {}")


@pytest.mark.parametrize("query", ["SELECT * { ?s ?p ?o }", "CONSTRUCT WHERE { ?s ?p ?o }"])
def test_too_many_rows_are_an_error_that_says_how_many_are_allowed(query):
    with pytest.raises(QueryError, match="more than 7 rows"):
        KnowledgeGraph(GRAPH_PATH, max_rows=7).query(query)


def test_as_many_rows_as_allowed_are_no_error():
    result = KnowledgeGraph(GRAPH_PATH, max_rows=7).query("SELECT * { ?s ?p ?o } LIMIT 7")
    assert len(json.loads(result)["results"]["bindings"]) == 7


def test_a_long_query_ends_with_an_error_at_the_time_limit():
    graph = KnowledgeGraph(GRAPH_PATH, time_limit=0.1)
    started = time.monotonic()
    with pytest.raises(QueryError, match=r"longer than 0\.1 seconds"):
        graph.query(PAIRS_OF_ALL_TRIPLES)
    assert time.monotonic() - started < 1.5


@pytest.mark.full
def test_a_query_that_was_given_up_does_not_hold_up_the_end_of_the_process():
    script = (
        "from graphrag_eval_lc.demo import GRAPH_PATH\n"
        "from graphrag_eval_lc.demo.graph import KnowledgeGraph, QueryError\n"
        "try:\n"
        "    KnowledgeGraph(GRAPH_PATH, time_limit=0.1).query("
        "'SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }')\n"
        "except QueryError:\n"
        "    print('given up')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (0, "given up\n")


def test_named_things_have_iri_name_and_class(graph):
    oslo = [thing for thing in graph.named_things() if thing.name == "OSLO"]
    assert [thing.class_iri for thing in oslo] == ["https://cim.ucaiug.io/ns#Substation"]
    assert oslo[0].iri.startswith("urn:uuid:")
