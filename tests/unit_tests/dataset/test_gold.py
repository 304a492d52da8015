"""Gold results as the output of a reference step."""

import json
from typing import Any

import pytest

from graphrag_eval_lc.dataset.gold import BrokenGoldError, gold_of_sparql, gold_of_value, is_ask_query, with_truth
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS, compare_sparql_results

URI = {"type": "uri", "value": "urn:oslo"}
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def results(variables: Any, *rows: Any) -> dict[str, Any]:
    return {"head": {"vars": variables}, "results": {"bindings": list(rows)}}


@pytest.mark.parametrize(
    ("value", "columns"),
    [
        (results(["x"], {"x": URI}), ("x",)),
        (results("x", {"x": URI}), ("x",)),
        (results(None, {"x": URI}), ("x",)),
        ({"head": {}, "results": {"bindings": [{"x": URI}]}}, ("x",)),
        ({"results": {"bindings": [{"x": URI}]}}, ("x",)),
        (results(["x", "label"], {"x": URI}, {"x": URI, "label": None}), ("x",)),
        (results(["c"], {"callret-0": URI}), ("callret-0",)),
        (results(["y", "x"], {"x": URI, "y": URI}), ("y", "x")),
    ],
)
def test_columns_are_those_bound_in_rows_whatever_the_head_says(value: Any, columns: tuple[str, ...]) -> None:
    gold = gold_of_sparql(value)
    assert gold.columns == columns
    assert not gold.is_empty
    assert gold.media_type == SPARQL_RESULTS
    assert compare_sparql_results(gold.output, results(["z"], {"z": URI}), columns[:1]).score == 1.0


@pytest.mark.parametrize(
    ("value", "is_ask", "expected"),
    [
        (
            results(["__ASK_RETVAL"], {"__ASK_RETVAL": {"type": "typed-literal", "datatype": INTEGER, "value": "1"}}),
            True,
            True,
        ),
        (results(["__ASK_RETVAL"], {"__ASK_RETVAL": {"type": "literal", "value": 1}}), False, True),
        (results(["__ASK_RETVAL"], {"__ASK_RETVAL": {"type": "literal", "value": "true"}}), False, True),
        (results(None, {"__ASK_RETVAL": {"type": "literal", "value": "0"}}), False, False),
        (results(["__ASK_RETVAL"]), False, False),
        (results(["_askResult"], {"_askResult": {"type": "literal", "value": "false"}}), True, False),
        (results([]), True, False),
        ({"head": {}, "results": {"bindings": []}}, True, False),
        ({"head": {}, "boolean": False}, True, False),
        ({"head": {}}, True, "they have no boolean and no results"),
        (results(["x"], {"x": URI}), True, 'boolean is "urn:oslo", not true or false'),
        (results(["__ASK_RETVAL"], *[{"__ASK_RETVAL": {"value": "1"}}] * 2), True, "an ASK is answered with 2 values"),
    ],
)
def test_ask_answered_with_a_row_becomes_a_boolean(value: Any, is_ask: bool, expected: bool | str) -> None:
    query = "ASK {}" if is_ask else "SELECT ?x {}"
    if isinstance(expected, str):
        with pytest.raises(BrokenGoldError, match=expected):
            gold_of_sparql(with_truth(query, value))
        return
    gold = gold_of_sparql(with_truth(query, value))
    assert (json.loads(gold.output), gold.is_empty, gold.columns) == ({"head": {}, "boolean": expected}, False, None)


@pytest.mark.parametrize(
    ("query", "is_ask"),
    [
        ("ASK { ?s ?p ?o }", True),
        ("  ask{}", True),
        ("# ASK\nSELECT ?x {}", False),
        ("# which?\r\nBASE <urn:x#y> PREFIX ask: <urn:ask/> PREFIX :<urn:y>\nASK WHERE {}", True),
        ("define input:inference <urn:rules> ASK {}", True),
        ("PREFIX ask: <urn:ask/> SELECT ?ask {}", False),
        ("SELECT * { FILTER EXISTS { ASK } }", False),
        ("ASKED", False),
        ("PREFIX " * 2000, False),
    ],
)
def test_ask_query_is_recognised_by_its_form(query: str, is_ask: bool) -> None:
    assert is_ask_query(query) == is_ask


def test_column_missing_from_the_head_is_noted() -> None:
    assert gold_of_sparql(results(["c"], {"callret-0": URI})).notes == ("head.vars lacks callret-0, which rows bind",)
    assert gold_of_sparql(results(None, {"x": URI})).notes == ()


@pytest.mark.parametrize(
    "value",
    [
        results(["x"]),
        results(["x"], {}),
        results(["x"], {}, {"x": None}),
        {"head": {}, "results": {}},
        {"head": {}},
        {},
    ],
)
def test_gold_without_bindings_is_empty(value: Any) -> None:
    assert gold_of_sparql(value).is_empty


@pytest.mark.parametrize(("value", "expected"), [(True, True), (False, False), ("true", True), (" False", False)])
def test_booleans_may_be_strings(value: Any, expected: bool) -> None:
    gold = gold_of_sparql({"head": {}, "boolean": value})
    assert json.loads(gold.output) == {"head": {}, "boolean": expected}
    assert gold.columns is None
    assert "required_columns" not in gold.as_step_keys()
    assert not gold.is_empty


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "SPARQL results are a JSON object, not []"),
        ({"boolean": "maybe"}, 'boolean is "maybe", not true or false'),
        ({"results": {"bindings": "all"}}, "bindings are not a list of rows"),
        ({"results": {"bindings": ["all"]}}, "bindings are not a list of rows"),
        (results(["x"], {"x": "urn:oslo"}), 'a cell of x is not an RDF term with a value: "urn:oslo"'),
        (results(["x"], {"x": {"type": "uri"}}), "a cell of x is not an RDF term with a value"),
    ],
)
def test_unreadable_gold_says_why(value: Any, text: str) -> None:
    with pytest.raises(BrokenGoldError, match="^" + text.replace("[", r"\[").replace("]", r"\]")):
        gold_of_sparql(value)


def test_boolean_may_come_with_empty_results() -> None:
    assert gold_of_sparql({"head": {}, "results": {}, "boolean": True}).output == '{"head":{},"boolean":true}'


@pytest.mark.parametrize(
    ("value", "datatype"),
    [("8", "integer"), ("2001-07-20", "date"), ("Novelist", "string"), ("52000", "nonNegativeInteger")],
)
def test_gold_without_datatypes_matches_typed_results(value: str, datatype: str) -> None:
    gold = gold_of_sparql(results(["c"], {"c": {"type": "literal", "value": value}}))
    typed = {"type": "literal", "value": value, "datatype": f"http://www.w3.org/2001/XMLSchema#{datatype}"}
    assert compare_sparql_results(gold.output, results(["x"], {"x": typed}), gold.columns).score == 1.0


def test_values_are_converted_to_strings() -> None:
    gold = gold_of_sparql(results(["n"], {"n": {"type": "typed-literal", "datatype": INTEGER, "value": 5}}))
    assert json.loads(gold.output)["results"]["bindings"][0]["n"]["value"] == "5"
    assert gold.answer_type == "number"
    assert gold_of_sparql(results(["n"], {"n": {"value": 5}})).answer_type == "number"


@pytest.mark.parametrize(
    ("cell", "answer_type"),
    [
        (URI, "resource"),
        ({"type": "literal", "value": "5"}, "number"),
        ({"type": "literal", "value": "Oslo"}, "string"),
        ({"type": "literal", "value": "2001", "datatype": "http://www.w3.org/2001/XMLSchema#gYear"}, "date"),
    ],
)
def test_answer_type_is_that_of_the_cells(cell: Any, answer_type: str) -> None:
    assert gold_of_sparql(results(["x"], {"x": cell}, {})).answer_type == answer_type
    assert gold_of_sparql(results(["x", "y"], {"x": cell, "y": cell})).answer_type == "table"


def test_format_of_a_text_is_detected() -> None:
    assert gold_of_value(json.dumps(results(["x"], {"x": URI}))).media_type == SPARQL_RESULTS
    rows = gold_of_value('[{"name": "OSLO", "load": 7}]')
    assert rows.as_step_keys() == {
        "output": '[{"name": "OSLO", "load": 7}]',
        "output_media_type": "application/json",
        "required_columns": ["name", "load"],
    }
    assert gold_of_value("[]").is_empty
    assert gold_of_value("42").as_step_keys() == {"output": "42", "output_media_type": "application/json"}
    assert gold_of_value("OSLO, BERGEN").as_step_keys() == {"output": "OSLO, BERGEN"}
    with pytest.raises(BrokenGoldError):
        gold_of_value('{"head": {"vars": ["x"]}, "results": {"bindings": 1}}')


@pytest.mark.parametrize("text", ['[{"name": "OSLO"}, {"na', '{"head": {"vars": ["a"]}, "resul', "[('OSLO',), ('BER"])
def test_truncated_gold_is_an_error_and_not_a_text(text: str) -> None:
    with pytest.raises(BrokenGoldError, match=r"breaks? off"):
        gold_of_value(text)


@pytest.mark.parametrize("text", ["[note: see the map]", "Oslo", "name,kv\r\nOSLO,420\r\n"])
def test_other_texts_are_kept_unchanged(text: str) -> None:
    assert gold_of_value(text).as_step_keys() == {"output": text}
