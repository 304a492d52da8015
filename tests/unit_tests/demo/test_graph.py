"""What the demo's tools search: the graph, the names in it, and documents."""

import json
import math
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.demo import GRAPH_PATH
from graphrag_eval_lc.demo.graph import BM25, DocumentIndex, KnowledgeGraph, NamedThing, NameIndex, QueryError, full_iri

PREFIX = "PREFIX cim: <https://cim.ucaiug.io/ns#>\n"
PAIRS_OF_ALL_TRIPLES = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f }"


def test_select_returns_sparql_json_results(graph):
    query = (
        PREFIX + "SELECT ?name ?none { ?s a cim:Substation ; cim:IdentifiedObject.name ?name FILTER(?name = 'OSLO') }"
    )
    assert json.loads(graph.query(query)) == {
        "head": {"vars": ["name", "none"]},
        "results": {"bindings": [{"name": {"type": "literal", "value": "OSLO"}}]},
    }


def test_terms_keep_type_datatype_and_language(graph):
    result = json.loads(
        graph.query('SELECT (1.5 AS ?number) ("is"@no AS ?word) (BNODE() AS ?blank) (<urn:a> AS ?iri) {}')
    )
    [row] = result["results"]["bindings"]
    assert row["number"]["datatype"] == "http://www.w3.org/2001/XMLSchema#decimal"
    assert row["word"]["xml:lang"] == "no"
    assert (row["blank"]["type"], row["iri"]["type"]) == ("bnode", "uri")


@pytest.mark.parametrize(("pattern", "boolean"), [("a cim:Substation", True), ("a cim:Breaker", False)])
def test_ask_returns_a_boolean(graph, pattern, boolean):
    assert json.loads(graph.query(f"{PREFIX}ASK {{ ?s {pattern} }}")) == {"head": {}, "boolean": boolean}


@pytest.mark.parametrize(
    "query",
    [
        "CONSTRUCT { ?s a cim:Substation } { ?s a cim:Substation ; cim:IdentifiedObject.name 'OSLO' }",
        "DESCRIBE ?s { ?s a cim:Substation ; cim:IdentifiedObject.name 'OSLO' }",
    ],
)
def test_construct_and_describe_return_turtle(graph, query):
    assert "a cim:Substation" in graph.query(PREFIX + query)


@pytest.mark.parametrize(
    "update",
    [
        "INSERT DATA { <urn:a> <urn:b> 1 }",
        "PREFIX a: <urn:a#> DELETE WHERE { ?s ?p ?o }",
        "# SELECT\nCLEAR ALL",
        "LOAD <http://example.org/>",
        "",
    ],
)
def test_updates_are_rejected(graph, update):
    with pytest.raises(QueryError, match="The query is not valid SPARQL at line"):
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
def test_service_clause_is_rejected(graph, query):
    with pytest.raises(QueryError, match="SERVICE is not allowed"):
        graph.query(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?service { ?service <urn:service/SERVICE> 'SERVICE <x>' } # SERVICE",
        "PREFIX service: <urn:s#> ASK { ?s service:service-time ?o }",
    ],
)
def test_service_in_names_strings_and_comments_is_allowed(graph, query):
    assert "head" in json.loads(graph.query(query))


def test_error_names_the_missing_prefix(graph):
    with pytest.raises(QueryError, match=r"line 1, column .* a prefix is used that no PREFIX line declares"):
        graph.query("SELECT ?s { ?s a cim:Substation }")


def test_syntax_error_has_a_short_message(graph):
    with pytest.raises(QueryError, match="not valid SPARQL at line 1") as caught:
        graph.query("SELECT ?s { ?s ?p")
    assert len(str(caught.value)) < 300


def test_unknown_function_is_a_query_error(graph):
    with pytest.raises(QueryError, match=r"cannot be evaluated.*urn:f"):
        graph.query("SELECT (<urn:f>(1) AS ?x) {}")


@pytest.mark.parametrize("query", ["SELECT * { ?s ?p ?o }", "CONSTRUCT WHERE { ?s ?p ?o }"])
def test_too_many_rows_are_an_error_with_the_limit(query):
    with pytest.raises(QueryError, match="more than 7 rows"):
        KnowledgeGraph(GRAPH_PATH, max_rows=7).query(query)


def test_as_many_rows_as_allowed_are_returned():
    result = KnowledgeGraph(GRAPH_PATH, max_rows=7).query("SELECT * { ?s ?p ?o } LIMIT 7")
    assert len(json.loads(result)["results"]["bindings"]) == 7


def test_long_query_fails_at_the_timeout():
    graph = KnowledgeGraph(GRAPH_PATH, time_limit=0.1)
    started = time.monotonic()
    with pytest.raises(QueryError, match=r"longer than 0\.1 seconds"):
        graph.query(PAIRS_OF_ALL_TRIPLES)
    assert time.monotonic() - started < 1.5


@pytest.mark.full
def test_abandoned_query_does_not_delay_process_exit():
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


def test_named_things_have_an_iri_a_name_and_a_class(graph):
    oslo = [thing for thing in graph.named_things() if thing.name == "OSLO"]
    assert [thing.class_iri for thing in oslo] == ["https://cim.ucaiug.io/ns#Substation"]
    assert oslo[0].iri.startswith("urn:uuid:")


# --- names

INDEX = NameIndex(
    NamedThing(f"urn:{number}", name, class_iri)
    for number, (name, class_iri) in enumerate(
        [
            ("OSLO 420", "urn:Level"),
            ("OSLO", "urn:Substation"),
            ("OSLO T1", "urn:Transformer"),
            ("TROMSO", "urn:Substation"),
            ("KRISTIANSAND", "urn:Substation"),
            ("420 OSLO-ASKER", "urn:Line"),
        ]
    )
)


def found(query, class_iri=None, limit=10):
    return [hit.thing.name for hit in INDEX.search(query, class_iri, limit)]


def test_exact_name_comes_first_with_rank_1():
    best = INDEX.search("oslo", None, 10)[0]
    assert (best.thing.name, best.rank) == ("OSLO", 1.0)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("KRIST", ["KRISTIANSAND"]),
        ("Kristainsand", ["KRISTIANSAND"]),
        ("oslo 420", ["OSLO 420", "420 OSLO-ASKER"]),
        ("Tromsø", []),
        ("Paris", []),
        ("OSLO Paris", []),
        ("", []),
        ("--", []),
    ],
)
def test_each_query_word_must_equal_prefix_or_resemble_a_word_of_the_name(query, names):
    assert found(query) == names


def test_class_narrows_the_search():
    assert found("OSLO", "urn:Transformer") == ["OSLO T1"]


def test_limit_keeps_the_best():
    assert found("OSLO", limit=1) == ["OSLO"]


@pytest.mark.parametrize(
    "name", ["cim:Substation", "<https://cim.ucaiug.io/ns#Substation>", "https://cim.ucaiug.io/ns#Substation"]
)
def test_class_may_be_a_prefixed_name_or_an_iri(name):
    assert full_iri(name) == "https://cim.ucaiug.io/ns#Substation"


# --- documents


def index_of(tmp_path, *documents):
    path = tmp_path / "documents.jsonl"
    rows = ({"id": id_, "title": title, "text": text} for id_, title, text in documents)
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")
    return DocumentIndex(path)


def test_documents_are_found_by_title_and_text_best_first(tmp_path):
    index = index_of(tmp_path, ("a", "Oil", "A sample."), ("b", "Ice", "Ice on a line."), ("c", "Line", "Long."))
    assert index.search("ICE on the line", 5) == [
        {"id": "b", "text": "Ice. Ice on a line."},
        {"id": "c", "text": "Line. Long."},
    ]


def test_k_limits_the_documents(tmp_path):
    index = index_of(tmp_path, ("a", "Ice", "x"), ("b", "Ice", "y"), ("c", "Ice", "z"))
    assert [document["id"] for document in index.search("ice", 2)] == ["a", "b"]


def test_query_without_a_shared_word_finds_nothing(tmp_path):
    assert index_of(tmp_path, ("a", "Ice", "Snow")).search("sun", 5) == []


WORDS = st.lists(st.sampled_from("abcde"), max_size=8)


def test_scores_match_a_worked_example():
    ranking = BM25([["ice", "ice", "line"], ["line"], ["oil", "sample"]], k1=1.2, b=0.75)
    # N = 3, mean length = 2; "ice" is in one text of length 3 with tf = 2, "line" in two.
    ice = math.log(1 + 2.5 / 1.5) * 2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    line_in_first = math.log(1 + 1.5 / 2.5) * 1 / (1 + 1.2 * (0.25 + 0.75 * 3 / 2))
    line_in_second = math.log(1 + 1.5 / 2.5) * 1 / (1 + 1.2 * (0.25 + 0.75 * 1 / 2))
    assert ranking.scores(["ice", "line"]) == pytest.approx([ice + line_in_first, line_in_second, 0.0])


def test_without_length_normalisation_only_frequency_counts():
    scores = BM25([["ice"], ["ice", "and", "snow"]], b=0.0).scores(["ice"])
    assert scores[0] == pytest.approx(scores[1])


def test_no_texts_have_no_scores():
    assert BM25([]).scores(["ice"]) == []


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
def test_score_is_positive_exactly_if_a_word_is_shared(texts, query):
    for text, score in zip(texts, BM25(texts).scores(query), strict=True):
        assert (score > 0) == bool(set(text) & set(query))


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
def test_order_of_texts_does_not_change_scores(texts, query):
    forwards = BM25(texts).scores(query)
    assert BM25(texts[::-1]).scores(query)[::-1] == pytest.approx(forwards)
