"""Outputs that end before their end are undecided where what is left does not tell, whatever is compared."""

import json
from typing import Any

import pytest

from graphrag_eval_lc.matching import StepsMatch, match_steps
from graphrag_eval_lc.matching.outputs import cut_json, cut_mark

SPARQL = "application/sparql-results+json"
ROWS = json.dumps(
    {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": f"urn:{n}"}} for n in range(30)]}}
)
DOCUMENTS = json.dumps([{"id": f"doc-{n}", "text": "…"} for n in range(10)])


def reference(name: str, output: str, media_type: str | None = None) -> dict[str, Any]:
    return {"name": name, "output": output, "output_media_type": media_type}


def step(name: str, output: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "args": {}, "id": "c1", "status": "success", "output": output, **more}


def undecided(match: StepsMatch) -> str:
    """Return the reason of a match that is undecided as its output is cut."""
    comparison = match._candidates[0][0][0]
    assert (match.steps_score, comparison.outcome) == (0.0, "undecided")
    assert comparison.cut is not None
    assert match.unreadable == {}
    return match.diagnosis[0][0].reason


@pytest.mark.parametrize(
    ("expected", "media_type", "name"),
    [(ROWS, SPARQL, "sparql_query"), (DOCUMENTS, None, "retrieval"), ('{"a": [1, 2, 3]}', "application/json", "calc")],
)
def test_json_that_breaks_off_is_undecided(expected: str, media_type: str | None, name: str) -> None:
    wanted = reference(name, expected, media_type)
    for length in range(1, len(expected), 7):
        assert "JSON breaks off" in undecided(match_steps([[wanted]], [step(name, expected[:length])]))
    whole = match_steps([[wanted]], [step(name, expected)])
    assert whole.steps_score == 1.0


def test_capture_says_where_it_cut_an_output() -> None:
    actual = step("sparql_query", ROWS[:400], full_length=len(ROWS))
    reason = undecided(match_steps([[reference("sparql_query", ROWS, SPARQL)]], [actual]))
    assert reason.startswith(f"It cannot be told, as the output is cut at 400 of {len(ROWS):,} characters")


def test_a_table_that_was_cut_at_the_end_of_a_line_is_known_to_be_cut_by_its_length_alone() -> None:
    table = "x\r\nurn:0\r\nurn:1\r\n"
    wanted = reference("sparql_query", ROWS, SPARQL)
    assert undecided(match_steps([[wanted]], [step("sparql_query", table, full_length=99)]))
    assert match_steps([[wanted]], [step("sparql_query", table)]).diagnosis[0][0].reason.endswith("from W3C CSV.")


def test_text_is_undecided_only_while_it_may_be_that_of_the_reference() -> None:
    wanted = reference("describe", "one two three")
    cut = undecided(match_steps([[wanted]], [step("describe", "one two", full_length=13)]))
    assert cut == "the output is cut at 7 of 13 characters, and so far it is the same text"
    for actual in (step("describe", "one 2", full_length=13), step("describe", "one two", full_length=14)):
        match = match_steps([[wanted]], [actual])
        assert not match._candidates[0][0][0].is_undecided
    assert not match_steps([[wanted]], [step("describe", "one two")])._candidates[0][0][0].is_undecided


@pytest.mark.parametrize("name", ["sparql_query", "autocomplete_search"])
def test_an_iri_that_may_stand_behind_the_cut_is_undecided(name: str) -> None:
    wanted = reference("iri_discovery", "urn:29")
    assert "breaks off" in undecided(match_steps([[wanted]], [step(name, ROWS[:400])]))
    found = match_steps([[reference("iri_discovery", "urn:1")]], [step("sparql_query", ROWS[:400])])
    assert found.steps_score == 1.0
    turtle = "<urn:a> a <urn:b> .\n... [truncated]"
    assert "truncated" in undecided(match_steps([[wanted]], [step("sparql_query", turtle)]))
    assert match_steps([[wanted]], [step("sparql_query", "<urn:a> a <urn:b> .")])._candidates[0][0][0].cut is None


@pytest.mark.parametrize("output", ["Sorry.", '{"a": 1} and more', '{"a" 1', "[{]", '{"foo": 1}', "[1, 2, x"])
def test_what_is_broken_in_another_way_is_unreadable_and_said_so(output: str) -> None:
    match = match_steps([[reference("sparql_query", ROWS, SPARQL)]], [step("sparql_query", output)])
    assert list(match.unreadable) == [0]
    assert not match._candidates[0][0][0].is_undecided


def test_output_that_another_reference_step_reads_is_not_unreadable() -> None:
    rows, value = reference("query", ROWS, SPARQL), reference("query", '{"foo": 1}', "application/json")
    text = reference("query", "<urn:a> a <urn:b> .")
    for other, output in ((value, '{"foo": 1}'), (value, '{"foo": 2}'), (text, "<urn:a> a <urn:b> .")):
        assert match_steps([[rows, other]], [step("query", output)]).unreadable == {}
        assert list(match_steps([[rows]], [step("query", output)]).unreadable) == [0]


def test_json_before_prose_is_read_as_rows_and_unreadable_as_json() -> None:
    output = f"{ROWS}\nThat is all."
    assert match_steps([[reference("query", ROWS, SPARQL)]], [step("query", output)]).steps_score == 1.0
    as_json = match_steps([[reference("query", ROWS, "application/json")]], [step("query", output)])
    assert (as_json.steps_score, list(as_json.unreadable)) == (0.0, [0])


@pytest.mark.parametrize(
    "text", ['"', '"a', "[", "{", '{"a', '{"a":', '{"a":-', '{"a":1e', '{"a":tr', '{"a":"\\u1', "[1,"]
)
def test_beginnings_of_json_break_off(text: str) -> None:
    assert cut_json(text) is not None


@pytest.mark.parametrize(
    "text", ["", "x", "1", "[1}", "[1] 2", '["a" "b', "[tru e", '{"a":1,}', "{'a': 1", '["\\x', "[01"]
)
def test_other_texts_do_not(text: str) -> None:
    assert cut_json(text) is None


@pytest.mark.parametrize(
    "text",
    ["a [truncated]", "a\n... (1234 more characters)", "a … 90 more rows", "a\n[output truncated]\n", "x (3 more rows)",
     "a <response truncated>", "a\nOutput truncated to 4000 characters.", "a...(truncated)"],
)  # fmt: skip
def test_marks_of_tools_are_known(text: str) -> None:
    assert cut_mark(text) is not None


@pytest.mark.parametrize(
    "text", ["", "a...", "see 3 more rows here", "truncated cones", "a [1]", "the list was cut. End"]
)
def test_other_ends_are_no_marks(text: str) -> None:
    assert cut_mark(text) is None
