"""The language of a query is detected from its text."""

import pytest

from graphrag_eval_lc.dataset.query_language import language_in_name, language_of

QUERIES = {
    "SPARQL": [
        "SELECT ?x WHERE { ?x a :Substation }",
        "select distinct ?x {?x ?p 'SELECT name FROM t'}",
        "SELECT ?t FROM <https://grid.example/g> WHERE { ?t a <https://grid.example/T#x> }",
        "SELECT (COUNT(?t) AS ?n) WHERE { ?t <urn:in> <urn:nea> }",
        "SELECT * { ?s ?p ?o }",
        "SELECT * FROM <urn:g> { ?s ?p ?o }",
        "SELECT $x WHERE { $x a :T }",
        "SELECT ?x",
        "PREFIX : <urn:grid#>\nSELECT ?x { ?x :in :nea }",
        "prefix dbo: <http://dbpedia.org/ontology/> ask { ?x a dbo:Dam }",
        "define input:inference 'urn:rules' select ?x { ?x a :T }",
        "BASE <urn:grid/>\nASK { <hasle> <area> ?x }",
        "# MATCH (n) RETURN n\nASK WHERE { ?x ?p 1 }",
        "ASK FROM <urn:g> { <urn:a> <urn:b> <urn:c> }",
        "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "CONSTRUCT WHERE { ?s ?p ?o }",
        "DESCRIBE <urn:nea>",
        "DESCRIBE ?x { ?x a :T }",
        "DESCRIBE wd:Q1",
        "DESCRIBE * { ?x a :T }",
        'SELECT ?x { ?x :name "it\'s" . ?x :p """a " { FROM t""" }',
        "SELECT (SUM(?mw) AS ?total) { { SELECT ?mw { ?s :mw ?mw } } }",
        "INSERT DATA { <urn:a> <urn:b> 1 }",
    ],
    "SQL": [
        "SELECT count(*) FROM substation",
        "select name from substation where kv > 300 -- MATCH (n) RETURN n",
        "-- the highest\nSELECT `kv` FROM substation ORDER BY `kv` DESC LIMIT 1",
        "/* SELECT ?x { } */ SELECT max(kv) FROM substation",
        "SELECT name FROM t WHERE note = 'ASK { ?x }' AND kv IN ('{a}', \"{b}\")",
        "SELECT name FROM substation WHERE id = $1 AND kv = ?",
        "SELECT * FROM {table}",
        "SELECT 1",
        "SELECT 'x'",
        "(SELECT a FROM t) UNION (SELECT b FROM u)",
        "WITH big AS (SELECT * FROM substation WHERE kv > 300) SELECT count(*) FROM big",
        "with recursive up (id, above) as (select 1, 2) select id from up",
        "SELECT T1.[Name Of] FROM [dbo].[substation] AS T1 WHERE T1.kv<300 AND T1.kv>20",
        "EXPLAIN SELECT * FROM substation",
        "INSERT INTO t VALUES (1)",
        "CREATE TABLE t (id INTEGER)",
        "PRAGMA table_info(t)",
        "SELECT a FROM t WHERE MATCH(a) AGAINST ('RETURN')",
        "SELECT name FROM city WHERE area LIKE '%#%' # RETURN",
    ],
    "Cypher": [
        "MATCH (s:Substation) RETURN s.name AS name",
        "match (a)-[:IN]->(b) where a.name = 'SELECT x FROM y' return b",
        "MATCH (a)--(b) RETURN b",
        "MATCH (a) --> (b) RETURN b",
        "MATCH p = shortestPath((a)-[*]-(b)) RETURN p",
        "// SELECT name FROM t\nMATCH (n {name: 'Nea'}) RETURN n { .name, .kv }",
        "OPTIONAL MATCH (n) RETURN n",
        "CALL db.labels()",
        "CALL db.index.fulltext.queryNodes('names', 'nea') YIELD node RETURN node",
        "CALL { MATCH (n) RETURN n } RETURN n",
        "CREATE (n:Substation {name: 'Nea'}) RETURN n",
        "MERGE (n:Area {name: 'NO1'})",
        "UNWIND [1, 2] AS x RETURN x",
        "WITH 1 AS x MATCH (n) RETURN n, x",
        "PROFILE MATCH (n) RETURN count(n)",
        "CYPHER 25 runtime=slotted MATCH (n) RETURN n",
        "CREATE INDEX names FOR (n:Substation) ON (n.name)",
        "RETURN 1",
    ],
    None: [
        "Which transformers are in Nea?",
        "Where is Hasle?",
        "Ask the operator who runs Nea.",
        "Match each line to its substation and return the names.",
        "Return the names of all lines",
        "Create a list of the lines (all of them).",
        "g.V().hasLabel('substation').values('name')",
        "{ substations { name } }",
        "OUT OF SCOPE",
        "",
        "'",
    ],
}


@pytest.mark.parametrize(("language", "query"), [(name, each) for name, texts in QUERIES.items() for each in texts])
def test_language_is_detected(language: str | None, query: str) -> None:
    assert language_of(query) == language


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("sparql", "SPARQL"), ("SPARQL Query", "SPARQL"), ("sql", "SQL"), ("gold-sql", "SQL"),
        ("cypher_query", "Cypher"), ("query", None), ("mysqlquery", None), ("", None),
    ],
)  # fmt: skip
def test_column_name_may_state_the_language(name: str, language: str | None) -> None:
    assert language_in_name(name) == language


@pytest.mark.parametrize(
    "part", ["'", '"', "(", "SELECT ", "<", "--", "/*", "?x ", "{", "[a", "MATCH (", "WITH a AS ", "\\"]
)
def test_detection_is_fast_on_any_text(part: str) -> None:
    language_of(part * 30_000)
    language_of("SELECT " + part * 30_000)
