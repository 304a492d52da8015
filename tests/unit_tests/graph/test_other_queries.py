"""Differences of SQL and Cypher queries from the reference query: a table of cases."""

from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("rdflib")
pytest.importorskip("sqlglot")

from graphrag_eval_lc.graph.cypher_queries import cypher_differences
from graphrag_eval_lc.graph.query_forms import TooLargeQueryError
from graphrag_eval_lc.graph.sql_queries import sql_differences

CASES = yaml.safe_load((Path(__file__).parent / "vectors/other_queries.yaml").read_text(encoding="utf-8"))


def test_differences() -> None:
    for case in CASES:
        compare = {"SQL": sql_differences, "Cypher": cypher_differences}[case["language"]]
        found = compare(case["reference"], case["actual"])
        assert [f"{each.kind}: {each.sentence}" for each in found] == case["differences"], case["name"]
        assert not compare(case["reference"], case["reference"]), case["name"]


@pytest.mark.parametrize("query", ["SELECT FROM WHERE", "no query at all ((", "DROP TABLE lines", ""])
def test_only_select_queries_are_compared(query: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        sql_differences("SELECT 1", query)


@pytest.mark.parametrize("compare", [sql_differences, cypher_differences])
@pytest.mark.parametrize("large", [f"SELECT {'(' * 5_000}1{')' * 5_000}", f"SELECT '{'x' * 100_000}'"])
def test_large_query_is_rejected(compare: Any, large: str) -> None:
    with pytest.raises(TooLargeQueryError):
        compare(large, "SELECT 1")
