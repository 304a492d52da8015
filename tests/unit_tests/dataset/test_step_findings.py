"""What `validate` reports for reference steps: media types that are corrected, and truncated outputs."""

import json
import re
from typing import Any

import pytest

from graphrag_eval_lc import validate_dataset

ROWS = '{"head": {"vars": ["n"]}, "results": {"bindings": [{"n": {"type": "literal", "value": "true"}}]}}'
SPARQL = "application/sparql-results+json"


def dataset(**step: Any) -> list[Any]:
    steps = [[{"name": "sparql_query", "output": ROWS, **step}]]
    return [{"template_id": "t", "questions": [{"id": "q", "question_text": "Why?", "reference_steps": steps}]}]


def found(**step: Any) -> list[tuple[str, str, str]]:
    return [(each.severity, each.what, each.hint) for each in validate_dataset(dataset(**step))]


@pytest.mark.parametrize(
    "media_type",
    [
        f"{SPARQL}; charset=utf-8",
        "Application/sparql-results+JSON",
        "aplication/sparql-results+json",
        "application/sparql+json",
    ],
)
def test_media_type_corrected_while_reading_is_a_warning(media_type: str) -> None:
    assert found(output_media_type=media_type) == [
        ("warning", f"the media type {media_type} is read as {SPARQL}", f"Write output_media_type: {SPARQL}.")
    ]


def test_missing_media_type_of_a_query_is_a_warning() -> None:
    assert found() == [
        (
            "warning",
            "output_media_type is missing, so the output is compared as SPARQL results",
            f"Add output_media_type: {SPARQL}.",
        )
    ]


def test_results_compared_as_text_are_a_warning() -> None:
    what = "the output is {} and compared as a text, so that the order of its rows and its names count"
    add, write = f"Add output_media_type: {SPARQL}.", f"Write output_media_type: {SPARQL}."
    assert found(name="run_sparql") == [("warning", what.format("SPARQL results"), add)]
    assert found(output_media_type="text/plain") == [("warning", what.format("SPARQL results"), write)]
    assert found(output_media_type="") == [("warning", what.format("SPARQL results"), write)]
    assert found(output="n,m\r\na,1\r\n") == []
    assert found(name="other", output="n,m\r\na,1\r\n") == []
    assert found(output="n,m\r\na,1\r\n", output_media_type="text/csv") == []


@pytest.mark.parametrize(
    ("query", "output", "form"),
    [
        ("MATCH (s:Station) RETURN s.name AS name", '[{"name": "Oslo"}]', "an array of row objects"),
        ("WITH t AS (SELECT 1) SELECT name FROM t", "[('Oslo',)]", "an array of arrays as Python shows it"),
        ("PREFIX : <urn:> SELECT ?name { ?s :name ?name }", "name,kv\r\nOslo,420\r\n", "W3C CSV"),
    ],
)
def test_rows_from_a_custom_query_tool_not_compared_as_rows_are_a_warning(query: str, output: str, form: str) -> None:
    step = {"name": "ask_graph", "args": {"query": query}, "output": output}
    what = (
        f"a query returned the output, {form}, and it is compared as {{}}, so that the order of its rows and its names"
    )
    what = f"{what} count"
    hint = "Have its rows compared: steps: {kinds: {ask_graph: rows}} in the config."
    assert found(**step) == [("warning", what.format("a text"), hint)]
    if form == "an array of row objects":
        assert found(**step, output_media_type="application/json") == [("warning", what.format("JSON"), hint)]
    for kind in ("rows", "json", "text"):
        config = {"steps": {"kinds": {"ask_graph": kind}}}
        assert "a query returned" not in str(validate_dataset(dataset(**step), config=config))
    assert found(**{**step, "args": {"query": "Oslo"}}) == []


def test_misspelt_media_type_that_does_not_match_the_output_is_an_error() -> None:
    assert found(output="<urn:a> a <urn:B> .", output_media_type="aplication/sparql-results+json") == [
        (
            "error",
            "the media type aplication/sparql-results+json is unknown, so that the output is compared as a text",
            f"Write {SPARQL}, with an output of that kind.",
        )
    ]


@pytest.mark.parametrize(
    ("media_type", "severities"),
    [("text/plain", []), ("application/xml", ["warning"]), ("x", ["warning"]), ("text/turtle", ["error"])],
)
def test_media_type_that_cannot_be_compared_is_a_warning(media_type: str, severities: list[str]) -> None:
    assert [severity for severity, _, _ in found(output="text", output_media_type=media_type)] == severities


def test_output_is_checked_under_the_corrected_media_type() -> None:
    (_, column) = found(output_media_type=f"{SPARQL}; charset=utf-8", required_columns=["m"])
    assert column[1] == "the output has no column m"


@pytest.mark.parametrize("length", range(1, len(ROWS), 5))
def test_truncated_output_is_distinguished_from_a_malformed_one(length: int) -> None:
    ((severity, what, hint),) = found(output=ROWS[:length], output_media_type=SPARQL)
    assert severity == "error"
    assert what.startswith("the output cannot be read as SPARQL results: ")
    assert what.count("breaks off") == 1
    assert hint == "Store all that the tool returns."


@pytest.mark.parametrize("output", ["SELECT", "{'head': 1}", '{"a": }', "[1, 2}", "{} and more", "[" * 100_000 + "x"])
def test_malformed_output_is_not_reported_as_truncated(output: str) -> None:
    ((_, what, hint),) = found(output=output, output_media_type=SPARQL)
    assert "breaks off" not in what
    assert hint == "Store what the tool returns."


JSON_ROWS = json.dumps([{"name": "Oslo", "n": 5}, {"name": "Bergen", "n": 3}])
PYTHON_ROWS = "[{'name': 'Oslo', 'n': 5}]"
NAMES = {"required_columns": ["name", "n"]}


@pytest.mark.parametrize(
    "step",
    [
        {"name": "cypher_query", "output": JSON_ROWS},
        {"name": "read_neo4j_cypher", "output": JSON_ROWS, "output_media_type": "application/json", **NAMES},
        {"name": "sql_db_query", "output": "[('Oslo', 5), ('Bergen', 3)]"},
        {"name": "sql_db_query", "output": "[(5,)]", "strict": True},
        {"name": "my_tool", "output": "name,n\nOslo,5\n", "output_media_type": "text/csv", **NAMES},
        {"name": "my_tool", "output": "name\nOslo\n", "output_media_type": "text/csv; charset=utf-8"},
        {"name": "my_tool", "output": "?n\n5\n", "output_media_type": "text/tab-separated-values"},
        {"name": "my_tool", "output": "There are none.", "output_media_type": "text/plain"},
        {"name": "cypher_query", "output": "There are none."},
    ],
)
def test_valid_rows_of_any_query_language_are_accepted(step: dict[str, Any]) -> None:
    media_type = step.get("output_media_type")
    expected = [] if media_type is None or ";" not in media_type else ["warning"]
    assert [severity for severity, _, _ in found(**step)] == expected


CANNOT = "the output cannot be read as"


@pytest.mark.parametrize(
    ("step", "severity", "what", "hint"),
    [
        ({"output": "None found.", "output_media_type": SPARQL}, "error", f"{CANNOT} SPARQL results: ", "Store what"),
        ({"output": "None found.", "output_media_type": "text/csv"}, "error", f"{CANNOT} CSV: ", "Store what"),
        ({"output": "a,b\n1\n", "output_media_type": "text/csv"}, "error", f"{CANNOT} CSV: ", "Store what"),
        (
            {"output": JSON_ROWS, "output_media_type": "text/csv"},
            "warning",
            "row objects, and its",
            "Write .*n/json, and",
        ),
        ({"output": JSON_ROWS, "output_media_type": SPARQL, **NAMES}, "warning", "is that of SPARQL JSON", "n/json.$"),
        ({"output": PYTHON_ROWS, "output_media_type": SPARQL}, "warning", "Python shows it, and", "Leave .*type out.$"),
        (
            {"name": "x", "output": PYTHON_ROWS, "output_media_type": "text/csv"},
            "warning",
            "is that of CSV",
            r"out, and say steps: \{kinds: \{x: rows\}\} in the config",
        ),
        (
            {"output": JSON_ROWS, "output_media_type": "application/json", "required_columns": ["nam"]},
            "error",
            "has no column nam",
            "It has: name, n",
        ),
        (
            {"output": '{"a": {}}', "output_media_type": "application/json", "required_columns": ["a"]},
            "error",
            "required_columns are given, and the output is not rows, so that it is compared as JSON: ",
            "Store the rows",
        ),
        ({"output": "[]", **NAMES}, "warning", "any query without rows fits it, and the step says little", "Keep"),
        ({"output": "n,m\n1,2\n", "output_media_type": "text/cvs"}, "warning", "text/cvs is read as text/csv", "Write"),
    ],
)
def test_rows_that_contradict_their_media_type_are_one_finding(
    step: dict[str, Any], severity: str, what: str, hint: str
) -> None:
    [(found_severity, found_what, found_hint)] = found(**{"name": "cypher_query", **step})
    assert found_severity == severity
    assert what in found_what
    assert re.search(hint, found_hint)


def test_steps_with_a_configured_kind_need_no_media_type() -> None:
    config = {"steps": {"kinds": {"run_sparql": "rows", "sparql_query": "text"}}}
    assert validate_dataset(dataset(name="run_sparql"), config=config) == []
    assert validate_dataset(dataset(), config=config) == []
    [problem] = validate_dataset(dataset(name="run_sparql", output="No."), config=config)
    assert problem.what.startswith("the output cannot be read as rows: ")
