"""What two queries differ in, in SPARQL, Cypher and SQL, as far as a rule names it."""

from typing import Any

import pytest

from graphrag_eval_lc.view.query_difference import query_difference

SPARQL = (
    "PREFIX c: <http://x.org/c#>\nSELECT ?a WHERE { ?a c:End.ratedS ?b ; a c:Line ; c:of <urn:uuid:1a2b> . "
    "FILTER(?b > 1) } LIMIT 4"
)
CYPHER = "MATCH (a:Line)-[:OF]->(b) WHERE a.name = 'x' AND a.volt > 3 RETURN b.name LIMIT 3"
SQL = "SELECT t.name FROM lines t WHERE t.volt > 3 AND t.day > '2025-01-01'"

DIFFERENCES = [
    (SPARQL, SPARQL.replace("ratedS", "ratedU"), "Wrong property: `ratedU` for `ratedS`"),
    (SPARQL, SPARQL.replace("c:End.ratedS", "c:Wire.ratedS"), "Wrong property: `Wire.ratedS` for `End.ratedS`"),
    (SPARQL, SPARQL.replace("c:Line", "c:Cable"), "Wrong class: `Cable` for `Line`"),
    (SPARQL, SPARQL.replace("c:of", "<http://x.org/c#in>"), "Wrong property: `in` for `of`"),
    (SPARQL, SPARQL.replace("1a2b", "9z8y"), "Wrong entity: the query is about another one"),
    (SPARQL, SPARQL.replace("FILTER(?b > 1)", ""), "A filter is missing"),
    (SPARQL, SPARQL.replace("FILTER(?b > 1)", "FILTER(?b > 1) FILTER(?a > 2)"), "A filter too many"),
    (SPARQL, SPARQL.replace("LIMIT 4", "LIMIT  5"), "Another order or limit"),
    (SPARQL, SPARQL.replace("c:", "d:").replace("\n", "  "), None),  # the same names under another prefix
    (SPARQL, SPARQL + " # FILTER no longer", None),
    (SPARQL, SPARQL.replace("c:of", "c:in").replace("ratedS", "ratedU"), None),  # more than one thing
    (CYPHER, CYPHER.replace("a.volt", "a.length"), "Wrong property: `length` for `volt`"),
    (CYPHER, CYPHER.replace(" AND a.volt > 3", "").replace("a.name", "a.volt + a.name"), "A filter is missing"),
    (SQL, SQL.replace("t.volt", "t.amps"), "Wrong property: `amps` for `volt`"),
    (SQL, SQL.replace("2025-01-01", "2024-01-01"), "Wrong time in the query"),
    (SQL, SQL, None),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "actual", "sentence"), DIFFERENCES)
def test_a_difference_has_a_sentence(reference: str, actual: str, sentence: str | None) -> None:
    found = query_difference({"query": reference, "limit": 3}, {"sparql": actual})
    assert (found and found[1]) == sentence


@pytest.mark.parametrize("args", [None, {}, {"query": "word"}, {"query": 3}, ["SELECT ?x"], "SELECT ?x {}"])
def test_without_two_queries_there_is_no_difference(args: Any) -> None:
    assert query_difference({"query": SPARQL}, args) is None
    assert query_difference(args, {"query": SPARQL}) is None
