"""Outputs are read where and as ``steps.outputs`` declares."""

import json
from typing import Any

import pytest

from graphrag_eval_lc.config import OutputConfig, RetrievalConfig
from graphrag_eval_lc.matching import StepsMatch, match_steps

SPARQL = "application/sparql-results+json"
ROWS = json.dumps(
    {"head": {"vars": ["name"]}, "results": {"bindings": [{"name": {"type": "literal", "value": "Oslo"}}]}}
)
REFERENCE = {"name": "sparql_query", "output": ROWS, "output_media_type": SPARQL}
COLUMN = "name\nOslo"


def matched(output: Any, declared: dict[str, Any], tool: str = "sparql_query", **more: Any) -> StepsMatch:
    step = {"name": tool, "args": {}, "id": "c1", "status": "success", "output": output, **more.pop("step", {})}
    outputs = {name: OutputConfig(**values) for name, values in declared.items()}
    return match_steps([[more.pop("reference", REFERENCE)]], [step], outputs=outputs, **more)


def test_declared_format_reads_what_would_not_be_guessed() -> None:
    assert matched(COLUMN, {}).steps_score == 0.0
    assert matched(COLUMN, {"sparql_query": {"format": "csv"}}).steps_score == 1.0


def test_declared_format_is_used_alone() -> None:
    match = matched(f"{ROWS[:-1]} }}", {"sparql_query": {"format": "xml"}})
    assert match.steps_score == 0.0
    assert "not what steps.outputs declares (format: xml)" in match.diagnosis[0][0].reason
    assert list(match.unreadable) == [0]


def test_entry_of_the_tool_goes_before_that_of_its_steps() -> None:
    names = {"run_csv": "sparql_query", "run_sparql": "sparql_query"}
    declared = {"run_csv": {"format": "csv"}, "sparql_query": {"format": "json"}}
    assert matched(COLUMN, declared, "run_csv", names=names).steps_score == 1.0
    assert matched(ROWS, declared, "run_sparql", names=names).steps_score == 1.0
    assert matched(COLUMN, declared, "run_sparql", names=names).steps_score == 0.0


def test_path_leads_to_rows_of_any_form() -> None:
    output = json.dumps({"result": {"csv": COLUMN, "rows": [{"name": "Oslo"}]}, "log": [{"name": "Bergen"}]})
    assert matched(output, {}).steps_score == 0.0
    assert matched(output, {"sparql_query": {"path": "result.rows"}}).steps_score == 1.0
    assert matched(output, {"sparql_query": {"path": "result.csv", "format": "csv"}}).steps_score == 1.0
    reason = matched(output, {"sparql_query": {"path": "result.row"}}).diagnosis[0][0].reason
    assert "result has no key row (steps.outputs says result.row); its keys are csv, rows" in reason


def test_artifact_is_read_in_place_of_the_output() -> None:
    declared = {"sparql_query": {"artifact": True}}
    for artifact in (ROWS, json.loads(ROWS), [{"name": "Oslo"}]):
        assert matched("1 row", declared, step={"artifact": artifact, "full_length": 99}).steps_score == 1.0
    nested = {"sparql_query": {"artifact": True, "path": "rows"}}
    assert matched("1 row", nested, step={"artifact": {"rows": [{"name": "Oslo"}]}}).steps_score == 1.0
    match = matched(ROWS, declared)
    assert match.unreadable == {0: "there is no artifact, which is read in place of the output (steps.outputs)"}


def test_documents_and_json_are_read_at_the_path_and_texts_are_not() -> None:
    output = json.dumps({"docs": [{"id": "a"}], "n": {"m": 1}})
    documents = {"name": "retrieval", "output": '[{"id": "a"}]'}
    assert matched(output, {"retrieval": {"path": "docs"}}, "retrieval", reference=documents).steps_score == 1.0
    value = {"name": "calc", "output": '{"m": 1}', "output_media_type": "application/json"}
    assert matched(output, {"calc": {"path": "n"}}, "calc", reference=value).steps_score == 1.0
    text = {"name": "calc", "output": output}
    assert matched(output, {"calc": {"path": "n"}}, "calc", reference=text).steps_score == 1.0


def test_ids_are_taken_from_a_column_of_a_table() -> None:
    config = RetrievalConfig.model_validate({"steps": [{"name": "sparql_query", "column": "doc"}]})
    wanted = {"name": "retrieval", "relevant_ids": ["urn:a", "urn:b"]}
    assert matched("doc,n\nurn:a,1\n<urn:b>,2\n", {}, reference=wanted, retrieval=config).steps_score == 1.0


@pytest.mark.parametrize("tool", ["sparql_query", "autocomplete_search"])
def test_an_iri_is_found_in_a_table_and_in_an_artifact(tool: str) -> None:
    wanted = {"name": "iri_discovery", "output": "urn:oslo"}
    assert matched("iri,label\nurn:oslo,Oslo\n", {}, tool, reference=wanted).steps_score == 1.0
    declared = {tool: {"artifact": True}}
    step = {"artifact": [{"iri": "urn:oslo"}]}
    assert matched("found it", declared, tool, reference=wanted, step=step).steps_score == 1.0


def test_reference_steps_are_not_read_as_declared() -> None:
    assert matched(COLUMN, {"sparql_query": {"format": "csv"}}, reference=REFERENCE).steps_score == 1.0
