import json
from collections.abc import Sequence
from typing import Any

import pytest

from graphrag_eval_lc import validate_dataset
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows.reference_check import check_rows_step


def results(names: str, *rows: Sequence[str]) -> str:
    bindings = [
        {name: {"type": "literal", "value": value} for name, value in zip(names, row, strict=True)} for row in rows
    ]
    return json.dumps({"head": {"vars": list(names)}, "results": {"bindings": bindings}})


def found(query: str, output: str, **keys: Any) -> list[tuple[str, str]]:
    media_type = "application/sparql-results+json"
    step = {"name": "sparql_query", "args": {"query": query}, "output": output, "output_media_type": media_type, **keys}
    return [(each.severity, each.what) for each in check_rows_step(StepView(step))]


TOP = "SELECT ?n ?s { } ORDER BY DESC(?s) LIMIT 3"
DRAWN = results("ns", "a9", "b7", "c7")
LIMIT = (
    "the query keeps 3 rows sorted by ?s, and the last two have the same value there, so that another store may keep "
    "others"
)


def test_rows_that_tie_at_the_limit_are_a_warning() -> None:
    assert found(TOP, DRAWN) == [("warning", LIMIT)]


@pytest.mark.parametrize(
    ("query", "output", "keys"),
    [
        (TOP, results("ns", "a9", "b7", "c6"), {}),
        (TOP, results("ns", "a9", "b9", "c6"), {}),
        (TOP, results("ns", "b7", "c7"), {}),
        (TOP, DRAWN, {"required_columns": ["s"]}),
        (TOP, DRAWN, {"args": {"limit": 3}}),
        (TOP, DRAWN, {"args": None}),
        ("SELECT ?n ?s { } ORDER BY DESC(?s) ?n LIMIT 3", DRAWN, {}),
        ("SELECT ?n { } ORDER BY DESC(?s) LIMIT 3", results("n", "a", "b", "b"), {}),
        ("SELECT ?n ?s { } ORDER BY STRLEN(?s) LIMIT 3", DRAWN, {}),
        ("SELECT ?n ?s { } LIMIT 3", DRAWN, {}),
        ("SELECT ?n ?s { } ORDER BY ?s", DRAWN, {}),
        ("SELECT ?n ?s { } ORDER BY ?s LIMIT 1", results("ns", "a9"), {}),
    ],
)
def test_what_the_output_does_not_show_to_be_a_draw_is_no_finding(query: str, output: str, keys: Any) -> None:
    assert found(query, output, **keys) == []


def test_rows_in_order_that_tie_are_a_warning_once() -> None:
    tied = results("ns", "a9", "b9", "c9", "d1")
    swap = "the rows are compared in order, and rows 1 and 2 have the same ?s, so that another store may swap them"
    query = "SELECT ?n ?s { } ORDER BY DESC(?s)"
    assert found(query, tied, ordered=True) == [("warning", swap)]
    assert found(query, tied) == []
    assert found(query, results("ns", "a9", "a9"), ordered=True) == []
    assert found("SELECT ?n ?s { } ORDER BY DESC(?s) ?n", tied, ordered=True) == []


def test_order_that_the_config_asks_for_counts() -> None:
    step = {
        "name": "sparql_query",
        "args": {"query": "SELECT ?n ?s { } ORDER BY ?s"},
        "output": DRAWN,
        "output_media_type": "application/sparql-results+json",
    }
    dataset: Any = [{"template_id": "t", "questions": [{"id": "q", "question_text": "?", "reference_steps": [[step]]}]}]
    assert validate_dataset(dataset) == []
    (problem,) = validate_dataset(dataset, config={"sparql": {"ordered": True}})
    assert problem.what.startswith("the rows are compared in order")


def test_output_without_rows_is_a_warning() -> None:
    assert found("SELECT ?n { }", results("n")) == [
        ("warning", "the output has no rows, so any query without rows fits it, and the step tells little")
    ]
    assert found("ASK { }", '{"head": {}, "boolean": false}') == []


def test_column_that_is_not_there_is_an_error() -> None:
    assert found(TOP, DRAWN, required_columns=["n", "x"]) == [("error", "the output has no column x")]


FORM = "the output is read from {}, and its media type is that of SPARQL JSON"


@pytest.mark.parametrize(
    ("output", "form"),
    [
        ("n,s\r\na,9\r\n", "W3C CSV"),
        ('?n\t?s\n"a"\t9\n', "W3C TSV"),
        ("| n | s |\n|---|---|\n| a | 9 |", "a Markdown table"),
        ('[{"n": "a", "s": 9}]', "an array of row objects"),
        ([{"n": "a", "s": 9}], "an array of row objects"),
        ("\ufeff" + results("ns", "a9"), "SPARQL JSON after a byte order mark"),
        (f"```json\n{results('ns', 'a9')}\n```", "SPARQL JSON in a code fence"),
    ],
)
def test_results_in_another_form_are_a_warning_as_they_are_scored(output: Any, form: str) -> None:
    assert found("", output) == [("warning", FORM.format(form))]
    assert found("", output, required_columns=["m"]) == [
        ("warning", FORM.format(form)),
        ("error", "the output has no column m"),
    ]


def test_results_without_types_are_a_problem_where_types_are_compared() -> None:
    what = "the output is read from W3C CSV, which has no types, and strict compares them"
    assert found("", "n,s\r\na,9\r\n", strict=True) == [("error", what)]
    assert found("", "\ufeff" + results("ns", "a9"), strict=True)[0][0] == "warning"


def test_results_in_another_form_that_are_cut_are_a_problem() -> None:
    step = {"name": "sparql_query", "output": "n,s\r\na,9\r\nb,… [truncated]"}
    step["output_media_type"] = "application/sparql-results+json"
    question = {"id": "q", "question_text": "Why?", "reference_steps": [[step]]}
    (problem,) = validate_dataset([{"template_id": "t", "questions": [question]}])
    assert problem.severity == "error"
    assert problem.what.endswith("the CSV ends with '… [truncated]'")
    assert problem.hint == "Store all that the tool gives."
