import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_speed import processor_seconds

from graphrag_eval_lc.matching.rows.query_order import QueryOrder, query_order

PARTS = st.sampled_from(
    [*"{}()<>\"'#\\?$*", "ORDER", "BY", "LIMIT", "10", "?n", "DESC", " ", "\n", '"""', "<urn:a>", "a"]
)


@pytest.mark.parametrize(
    ("query", "variables", "limit"),
    [
        ("SELECT ?n { ?n a ?t } ORDER BY ?n LIMIT 5", ("n",), 5),
        ("select ?n { ?n a ?t } order by desc(?size) asc(?n)\nlimit 10", ("size", "n"), 10),
        ("SELECT ?n { } ORDER BY DESC ( $n ) OFFSET 3 LIMIT 10", ("n",), 10),
        ("SELECT ?n { } ORDER BY ?n", ("n",), None),
        ("SELECT ?n { } ORDER BY ?n # LIMIT 4", ("n",), None),
        ('SELECT ?n { ?n ?p "} ORDER BY ?x LIMIT 1" } ORDER BY ?n LIMIT 2', ("n",), 2),
        ("SELECT ?n { ?n a <urn:x#Type> } ORDER BY ?n LIMIT 2", ("n",), 2),
        ("SELECT ?n { { SELECT ?m { } ORDER BY ?m LIMIT 1 } } ORDER BY ?n LIMIT 2", ("n",), 2),
        ("SELECT ?n (COUNT(?m) AS ?c) { } GROUP BY ?n HAVING (COUNT(?m) > 1) ORDER BY ?c LIMIT 2", ("c",), 2),
        ("SELECT ?n { } ORDER BY ?n LIMIT " + "9" * 5_000, ("n",), None),
    ],
)
def test_the_outermost_order_and_limit_are_read(query: str, variables: tuple[str, ...], limit: int | None) -> None:
    assert query_order(query) == QueryOrder(variables, limit)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "SELECT ?n { ?n a ?t } LIMIT 5",
        "SELECT ?n { { SELECT ?n { } ORDER BY ?n LIMIT 1 } }",
        "SELECT ?n { } ORDER BY STRLEN(?n) LIMIT 5",
        "SELECT ?n { } ORDER BY (?a + ?b)",
        "SELECT ?n { } ORDER BY",
        "SELECT ?n { } # ORDER BY ?n",
        "who is next in order by name?",
    ],
)
def test_what_is_not_sorted_by_variables_has_no_order(query: str) -> None:
    assert query_order(query) is None


@given(st.lists(PARTS, max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_is_read(query: str) -> None:
    query_order(query)


@pytest.mark.parametrize("part", ["{", "<", "'", '"""', "'''\n", "?n ", "ORDER BY ?n ", "\\", "a.", '"\\'])
def test_long_texts_are_read_at_once(part: str) -> None:
    with processor_seconds(2):
        query_order("ORDER BY ?n " + part * 50_000)
