"""Corners of the forms: failures beside empty rows, edges of tables, blank nodes in rows."""

import json
from typing import Any

import pytest

from graphrag_eval_lc.matching import UnreadableOutput
from graphrag_eval_lc.matching.rows import compare_sparql_results, read_sparql_results

BLANK = {"type": "bnode", "value": "x"}
CSV, ROWS = "n,m\r\n5,6\r\n", '[{"n": 5, "m": 6}]'
SPARQL_JSON = {
    "head": {"vars": ["n", "m"]},
    "results": {"bindings": [{"n": {"type": "literal", "value": "5"}, "m": {"type": "literal", "value": "6"}}]},
}
NO_ROWS = {"head": {"vars": ["a", "b"]}, "results": {"bindings": []}}


@pytest.mark.parametrize("status", ["error", "failed", "Failure"])
def test_rows_beside_a_status_of_failure_are_no_results(status: str) -> None:
    output = json.dumps({"status": status, "message": "no store", "rows": []})
    found = compare_sparql_results(NO_ROWS, output)
    assert found.score == 0.0
    assert found.unreadable == "an error: no store"
    assert compare_sparql_results(NO_ROWS, output.replace(status, "ok")).score == 1.0


def test_an_error_may_be_any_value() -> None:
    for error in (10**5_000, {"code": 10**5_000}, ["a"], 1.5):
        with pytest.raises(UnreadableOutput, match="an error"):
            read_sparql_results({"error": error})


def test_a_table_without_edges_may_have_empty_cells_at_its_sides() -> None:
    table = "a | b\n--- | ---\nOslo |\n | Bergen\n |\nBodø | 5\n"
    found = read_sparql_results(table)
    assert found.columns["a"].texts == ["Oslo", "", "", "Bodø"]
    assert found.columns["b"].texts == ["", "Bergen", "", "5"]
    whole = compare_sparql_results(found, table + "Moss |\n")
    assert (whole.outcome, whole.extra_row_count) == ("mismatch", 1)
    assert compare_sparql_results(found, table + "Moss |").outcome == "undecided"


def test_a_table_that_is_none_is_called_no_markdown_table() -> None:
    with pytest.raises(UnreadableOutput, match=r"^no Markdown table: row 1 has 3 cells for 2 names$"):
        read_sparql_results("| a | b |\n|---|---|\n| 1 | 2 | 3 |\n| 4 | 5 |\n")


@pytest.mark.parametrize("output", ['[{"a": "_:b0", "n": 5}]', "[('_:b0', 5)]", "a,n\r\n_:b0,5\r\n"])
def test_blank_nodes_in_rows_are_blank_nodes(output: str) -> None:
    five = {"type": "literal", "value": "5"}
    reference = {"head": {"vars": ["a", "n"]}, "results": {"bindings": [{"a": BLANK, "n": five}]}}
    assert compare_sparql_results(reference, output).score == 1.0


@pytest.mark.parametrize("value", [BLANK, {"type": "literal", "value": "5.000000001"}])
def test_a_column_that_is_not_there_is_the_only_reason(value: dict[str, str]) -> None:
    reference = {"head": {"vars": ["a", "b"]}, "results": {"bindings": [{"a": value}]}}
    actual = {"head": {"vars": ["a"]}, "results": {"bindings": [{"a": value}]}}
    found = compare_sparql_results(reference, actual)
    assert found.reason == "Only 1 column for 2 required; no column plays `b`."


@pytest.mark.parametrize(
    ("reference", "actual", "forms"),
    [
        (CSV, ROWS, " The reference was read from W3C CSV, the output from an array of row objects."),
        (CSV, CSV, " Both were read from W3C CSV."),
        (CSV, SPARQL_JSON, " The reference was read from W3C CSV."),
        (SPARQL_JSON, CSV, " It was read from W3C CSV."),
        (SPARQL_JSON, SPARQL_JSON, ""),
    ],
)
def test_reason_says_once_from_which_forms_the_results_were_read(reference: Any, actual: Any, forms: str) -> None:
    assert compare_sparql_results(reference, actual).reason == f"The only row matches.{forms}"
