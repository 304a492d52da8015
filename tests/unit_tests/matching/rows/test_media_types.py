"""Which reference steps are compared as rows: by media type, by name, by a key, and how their outputs are read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching import UnreadableOutput, match_steps
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows.media_types import (
    ROW_TOOLS,
    media_type_of_form,
    read_declared_csv,
    reference_results,
)
from graphrag_eval_lc.matching.step_views import StepViews

ROWS = [{"name": "Oslo", "n": 5}, {"name": "Bergen", "n": 3}]
RENAMED = json.dumps([{"m": 3, "city": "Bergen"}, {"m": 5, "city": "Oslo"}])
WRONG = json.dumps([{"m": 3, "city": "Bergen"}, {"m": 6, "city": "Oslo"}])
SPARQL = "application/sparql-results+json"
XML = "application/sparql-results+xml"
TSV = "text/tab-separated-values"
AS_XML = (
    '<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="name"/><variable name="n"/></head>'
    '<results><result><binding name="name"><literal>Oslo</literal></binding><binding name="n"><literal>5</literal>'
    '</binding></result><result><binding name="name"><literal>Bergen</literal></binding><binding name="n">'
    "<literal>3</literal></binding></result></results></sparql>"
)
AS_CSV, AS_TSV = "name,n\nOslo,5\nBergen,3\n", "name\tn\nOslo\t5\nBergen\t3\n"


def score(reference: dict[str, Any], output: Any, **options: Any) -> float | None:
    name = reference["name"]
    actual = {"name": name, "args": {}, "id": "c1", "status": "success", "output": output}
    return match_steps([[reference]], [actual], **options).steps_score


def kind(step: dict[str, Any], **keys: Any) -> str:
    views = StepViews()
    return views.kind_of(views.reference_view({"name": "cypher_query", **step, **keys})).key


@pytest.mark.parametrize("name", ["cypher_query", "my_tool", "sparql_query"])
@pytest.mark.parametrize(
    ("media_type", "output"),
    [
        (SPARQL, json.dumps(ROWS)),
        ("text/csv", AS_CSV),
        ("text/CSV; charset=utf-8", AS_CSV),
        (TSV, AS_TSV),
        ("text/tsv", AS_TSV),
        (XML, AS_XML),
        (XML, json.dumps(ROWS)),
        ("text/csv", json.dumps(ROWS, indent=1)),
    ],
)
def test_rows_are_told_by_the_media_type_whatever_the_step_is_called(name: str, media_type: str, output: str) -> None:
    reference = {"name": name, "output": output, "output_media_type": media_type}
    assert (score(reference, RENAMED), score(reference, output), score(reference, WRONG)) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize("required", [["name"], [], ["name", "n"]])
def test_json_with_required_columns_is_rows(required: list[str]) -> None:
    reference = {"name": "my_tool", "output": json.dumps(ROWS), "output_media_type": "application/json"}
    assert (score(reference, RENAMED), score(reference, json.dumps(ROWS))) == (0.0, 1.0)
    assert score({**reference, "required_columns": None}, RENAMED) == 0.0
    assert score({**reference, "required_columns": required}, RENAMED) == 1.0
    assert score({**reference, "required_columns": required, "output": ROWS}, RENAMED) == 1.0


def test_json_that_is_no_rows_stays_json_whatever_columns_are_required() -> None:
    output = '{"a": [1, 2]}'
    reference = {"name": "t", "output": output, "output_media_type": "application/json", "required_columns": ["a"]}
    assert (score(reference, '{"a":[1,2]}'), score(reference, '{"a": 1}')) == (1.0, 0.0)


@pytest.mark.parametrize("name", ROW_TOOLS)
@pytest.mark.parametrize("output", [json.dumps(ROWS), str(ROWS), AS_CSV, ROWS])
def test_tools_that_are_known_to_give_rows_need_no_media_type(name: str, output: Any) -> None:
    reference = {"name": name, "output": output}
    assert (score(reference, RENAMED), score(reference, WRONG)) == (1.0, 0.0)
    assert kind(reference) == "rows"


@pytest.mark.parametrize(
    "output",
    [
        "There are 3 substations: Oslo, Bergen and Narvik.",
        "There are [3] in [Oslo].",
        "Error: (sqlite3.OperationalError) no such table: x\n[SQL: SELECT a, b FROM t]",
        "Name: Oslo\nCountry: Norway",
        "Hello, world\nand others, too",
        '{"count": 3}',
        "3",
        None,
    ],
)
def test_a_sentence_or_a_value_of_such_a_tool_is_no_rows(output: Any) -> None:
    assert kind({"output": output}) == "text"


def test_a_media_type_goes_before_a_known_name() -> None:
    assert kind({"output": json.dumps(ROWS), "output_media_type": "application/json"}) == "json"
    assert kind({"output": json.dumps(ROWS), "output_media_type": "text/plain"}) == "text"


def test_csv_of_one_column_is_read_where_it_is_declared_and_a_sentence_is_not() -> None:
    reference = {"name": "t", "output": "name\nOslo\nBergen", "output_media_type": "text/csv"}
    assert score(reference, "name\nBergen\nOslo") == 1.0
    assert score(reference, "city\nBergen\nOslo\n") == 1.0
    assert score(reference, "I found:\nBergen\nOslo\n") == 0.0
    assert score({**reference, "output": "name\n"}, "Sorry, there is nothing.") == 0.0


def test_keys_of_rows_count_for_every_media_type() -> None:
    reference = {"name": "t", "output": AS_CSV, "output_media_type": "text/csv"}
    doubled = "n,name\n3,Bergen\n5,Oslo\n5,Oslo\n"
    assert score(reference, doubled) == 1.0
    assert score({**reference, "ignore_duplicates": False}, doubled) == 0.0
    assert score({**reference, "ordered": True}, RENAMED) == 0.0
    measured = {**reference, "output": "name,n\nOslo,5.5\nBergen,3.5\n"}
    near = json.dumps([{"n": 3.6, "name": "Bergen"}, {"n": 5.4, "name": "Oslo"}])
    assert (score(measured, near), score({**measured, "tolerance": 0.1}, near)) == (0.0, 1.0)
    assert score({**reference, "required_columns": ["name"]}, "city\nOslo\nBergen\n") == 1.0


@pytest.mark.parametrize(
    ("output", "media_type"),
    [(AS_CSV, "text/csv"), (AS_TSV, TSV), (AS_XML, XML), (json.dumps(ROWS), "application/json"), (str(ROWS), None)],
)
def test_media_type_of_an_output_is_that_of_its_form(output: str, media_type: str | None) -> None:
    results = reference_results(StepView({"output": output}))
    assert media_type_of_form(results, output) == media_type


NAMES = st.lists(st.from_regex(r"[a-z]{1,5}", fullmatch=True), min_size=1, max_size=3, unique=True)
CELLS = st.from_regex(r"[A-Z][a-z ]{0,8}[a-z0-9]", fullmatch=True)


@given(NAMES.flatmap(lambda names: st.tuples(st.just(names), st.lists(st.tuples(*[CELLS] * len(names)), max_size=4))))
def test_declared_csv_has_the_rows_that_were_written(table: tuple[list[str], list[tuple[str, ...]]]) -> None:
    names, rows = table
    text = "".join(f"{','.join(row)}\n" for row in (names, *rows))
    try:
        results = read_declared_csv(text)
    except UnreadableOutput:
        assert not rows  # a line alone may be a sentence
    else:
        assert (list(results.variables), results.row_count) == (names, len(rows))


@given(st.text(max_size=60) | st.none() | st.integers())
def test_no_output_makes_a_declared_reader_raise_anything_else(output: Any) -> None:
    for media_type in ("text/csv", TSV, XML, SPARQL, "application/json"):
        assert score({"name": "t", "output": output, "output_media_type": media_type}, output) in (0.0, 1.0)


def test_an_empty_array_has_no_columns_that_could_be_required() -> None:
    reference = {"name": "cypher_query", "output": "[]", "required_columns": ["name"]}
    assert (score(reference, "[]"), score(reference, '[{"name": "Oslo"}]')) == (1.0, 0.0)
