"""Validating reference steps with rows, and drafting them."""

import json
from typing import Any

import pytest

from graphrag_eval_lc import validate_dataset
from graphrag_eval_lc.matching import StepView
from graphrag_eval_lc.matching.rows import match_row_steps
from graphrag_eval_lc.matching.rows.row_steps import ROWS

SPARQL = "application/sparql-results+json"


def results(names: str, *rows: str) -> str:
    bindings = [
        {name: {"type": "literal", "value": value} for name, value in zip(names, row, strict=True)} for row in rows
    ]
    return json.dumps({"head": {"vars": list(names)}, "results": {"bindings": bindings}})


def findings(output: Any, config: dict[str, Any] | None = None, **keys: Any) -> list[tuple[str, str]]:
    step = {"name": "sparql_query", "args": {}, "output": output, "output_media_type": SPARQL, **keys}
    question = {"id": "q", "question_text": "?", "reference_steps": [[step]]}
    dataset: Any = [{"template_id": "t", "questions": [question]}]
    return [(problem.severity, problem.what) for problem in validate_dataset(dataset, config=config)]


@pytest.mark.parametrize(
    ("output", "keys", "severity", "phrase"),
    [
        (results("n"), {}, "warning", "no rows"),
        (results("ns", "a9"), {"required_columns": ["n", "x"]}, "error", "no column x"),
        ("n,s\r\na,9\r\n", {}, "warning", "W3C CSV"),
        ('?n\t?s\n"a"\t9\n', {}, "warning", "W3C TSV"),
        ("| n | s |\n|---|---|\n| a | 9 |", {}, "warning", "Markdown"),
        ('[{"n": "a", "s": 9}]', {}, "warning", "row objects"),
        ("n,s\r\na,9\r\n", {"strict": True}, "error", "no types"),
        ("n,s\r\na,9\r\nb,… [truncated]", {}, "error", "truncated"),
        ({"head": {"vars": ["n"]}, "results": {"bindings": [{"n": [1]}]}}, {}, "error", "column `n`"),
    ],
)
def test_mistake_in_a_reference_is_reported(output: Any, keys: Any, severity: str, phrase: str) -> None:
    found = findings(output, **keys)
    assert any(each == severity and phrase in what for each, what in found), found


@pytest.mark.parametrize("output", [results("ns", "a9", "b7"), '{"head": {}, "boolean": false}'])
def test_valid_reference_has_no_findings(output: str) -> None:
    assert findings(output) == []


def test_drafted_step_requires_the_readable_columns() -> None:
    def drafted(output: Any) -> Any:
        assert ROWS.draft is not None
        return ROWS.draft({"name": "sparql_query", "args": {}, "output": json.dumps(output)}, [])

    cells = {"m": {"type": "uri", "value": "urn:a"}, "n": [1]}
    step = drafted({"head": {"vars": ["m", "n"]}, "results": {"bindings": [cells]}})
    assert (step["output_media_type"], step["required_columns"]) == (SPARQL, ["m"])
    assert drafted([{"a": 1}])["output_media_type"] == "application/json"
    assert drafted({"head": {"vars": ["m"]}, "results": {"bindings": []}}) is None


@pytest.mark.parametrize(("key", "value"), [("tolerance", "5%"), ("ordered", "no"), ("strict", 1)])
def test_invalid_options_are_the_references_error(key: str, value: Any) -> None:
    step = {"name": "sparql_query", "output": results("n", "a")}
    found = match_row_steps(StepView({**step, key: value}), StepView(step))
    assert found.score == 0.0
    assert f"The reference step in the dataset is at fault: `{key}`" in found.reason()
