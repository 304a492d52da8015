"""Which ids are relevant, and which were retrieved."""

import json
from typing import Any

import pytest

from graphrag_eval_lc.matching import StepView, UnreadableOutput
from graphrag_eval_lc.matching.retrieval import (
    alternatives,
    found_ids,
    parse_relevant_ids,
    relevant_ids,
)


def documents(*ids: Any) -> str:
    return json.dumps([{"id": identifier} for identifier in ids])


def rows(*rows: dict[str, str], names: list[str] | None = None) -> str:
    def term(text: str) -> dict[str, str]:
        kind = "uri" if text.startswith("urn:") else "bnode" if text.startswith("_:") else "literal"
        return {"type": kind, "value": text.removeprefix("_:")}

    head = list(dict.fromkeys(name for row in rows for name in row)) if names is None else names
    bindings = [{name: term(text) for name, text in row.items()} for row in rows]
    return json.dumps({"head": {"vars": head}, "results": {"bindings": bindings}})


def sparql(output: str, **more: Any) -> StepView:
    return StepView({"name": "sparql_query", "output": output, **more}, id_column="doc")


@pytest.mark.parametrize(
    "value", [["a", 1, 2.5], [["a", "b"], ["c"]], {"a": 3, "b": 0}, {1: 0.5}, ("a",), [("a",), {"b"}]]
)
def test_relevant_ids_may_be_ids_groups_or_gains(value: Any) -> None:
    assert alternatives(parse_relevant_ids(value))


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([], "is empty"),
        ({}, "is empty"),
        ([[]], "a group without ids"),
        ([["a"], []], "a group without ids"),
        (["a", ["b"]], "mixes ids and groups"),
        ([["a", ["b"]]], "which is not an id"),
        ([None], "None, which is not an id"),
        ([True], "True, which is not an id"),
        ([{"id": "a"}], "which is not an id"),
        ({"a": -1}, "has the gain -1 for 'a'"),
        ({"a": "2"}, "has the gain '2' for 'a'"),
        ({"a": True}, "has the gain True for 'a'"),
        ({"a": float("nan")}, "has the gain nan for 'a'"),
        ({"a": 0}, "no gain above 0"),
        ("a", "not a list or a mapping"),
        (5, "not a list or a mapping"),
    ],
)
def test_other_values_are_rejected(value: Any, complaint: str) -> None:
    with pytest.raises(UnreadableOutput, match=complaint):
        parse_relevant_ids(value)


def test_relevant_ids_take_precedence_over_the_output() -> None:
    assert relevant_ids(StepView({"output": documents("a"), "relevant_ids": ["b"]})) == ["b"]
    assert relevant_ids(StepView({"output": documents("a"), "relevant_ids": None})) == ["a"]
    assert relevant_ids(StepView({"relevant_ids": [["a", "b"]]})) == [["a", "b"]]


def test_blank_nodes_can_be_retrieved_but_not_relevant() -> None:
    reference, actual = sparql(rows({"doc": "_:x"}, {"doc": "urn:a"})), sparql(rows({"doc": "_:x"}, {"doc": "urn:a"}))
    relevant = relevant_ids(reference)
    assert found_ids(relevant, actual) == (["urn:a"], ["_:x", "urn:a"])


def test_id_column_is_the_one_with_the_most_relevant_ids() -> None:
    reference = sparql(rows({"doc": "urn:a"}, {"doc": "urn:b"}))
    actual = sparql(rows({"label": "urn:a", "iri": "urn:b"}, {"label": "A", "iri": "urn:a"}))
    assert found_ids(relevant_ids(reference), actual)[1] == ["urn:b", "urn:a"]


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        ('{"head": {}, "boolean": true}', "the answer of an ASK query has no ids"),
        (rows(names=[]), "no column doc and no other"),
        ("@prefix : <urn:> .", "a text without results"),
    ],
)
def test_results_without_a_column_have_no_ids(output: str, complaint: str) -> None:
    with pytest.raises(UnreadableOutput, match=complaint):
        found_ids(["urn:a"], sparql(output))


def test_unreadable_id_column_says_why_and_other_columns_do_not_matter() -> None:
    broken = sparql(json.dumps({"head": {"vars": ["doc", "n"]}, "results": {"bindings": [{"doc": [1], "n": "a"}]}}))
    with pytest.raises(UnreadableOutput, match="column `doc` cannot be read: its cell in row 1 is a list"):
        relevant_ids(broken)
    with pytest.raises(UnreadableOutput, match="column `doc` cannot be read"):
        found_ids(["urn:a"], broken)
    sound = {"head": {"vars": ["n", "doc"]}, "results": {"bindings": [{"n": [1], "doc": "urn:a"}]}}
    assert found_ids(["urn:a"], sparql(json.dumps(sound)))[1] == ["urn:a"]
    others = {"head": {"vars": ["n"]}, "results": {"bindings": [{"n": [1]}]}}
    with pytest.raises(UnreadableOutput, match="and no other; column `n` cannot be read"):
        found_ids(["urn:a"], sparql(json.dumps(others)))
