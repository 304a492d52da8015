"""What `validate` finds in reference steps: media types that are read as meant, and outputs that are cut."""

import json
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
def test_media_type_that_is_read_as_meant_is_a_warning(media_type: str) -> None:
    assert found(output_media_type=media_type) == [
        ("warning", f"the media type {media_type} is read as {SPARQL}", f"Write output_media_type: {SPARQL}.")
    ]


def test_missing_media_type_of_a_query_is_a_warning() -> None:
    assert found() == [
        (
            "warning",
            "there is no output_media_type, and the output is compared as SPARQL results",
            f"Add output_media_type: {SPARQL}.",
        )
    ]


def test_results_that_are_compared_as_a_text_are_a_warning() -> None:
    what = "the output is {} and compared as a text, so that the order of its rows and its names count"
    add, write = f"Add output_media_type: {SPARQL}.", f"Write output_media_type: {SPARQL}."
    assert found(name="run_sparql") == [("warning", what.format("SPARQL results"), add)]
    assert found(output_media_type="text/plain") == [("warning", what.format("SPARQL results"), write)]
    assert found(output_media_type="") == [("warning", what.format("SPARQL results"), write)]
    assert found(output="n,m\r\na,1\r\n") == [("warning", what.format("W3C CSV"), add)]
    assert found(name="other", output="n,m\r\na,1\r\n") == []
    assert found(output="n,m\r\na,1\r\n", output_media_type="text/csv") == []


@pytest.mark.parametrize("media_type", [5, ["x"], {"x": 1}])
def test_media_type_that_is_no_text_is_one_finding(media_type: Any) -> None:
    hint = "Put it in quotes." if media_type == 5 else "Give a text, in quotes."
    assert found(output_media_type=media_type) == [("error", f"{media_type!r} is not a text", hint)]


def test_misspelt_media_type_of_something_else_is_an_error() -> None:
    assert found(output="<urn:a> a <urn:B> .", output_media_type="aplication/sparql-results+json") == [
        (
            "error",
            "the media type aplication/sparql-results+json is unknown, so that the output is compared as a text",
            f"Write {SPARQL}, with an output of that kind.",
        )
    ]


@pytest.mark.parametrize("media_type", ["text/turtle", "text/plain", "application/ld+json", "application/xml", "x"])
def test_media_type_of_its_own_is_no_finding(media_type: str) -> None:
    assert found(output="text", output_media_type=media_type) == []


def test_results_of_a_query_that_are_compared_as_json_are_a_warning() -> None:
    ((severity, what, hint),) = found(output_media_type="application/json")
    assert (
        what == "the output is SPARQL results and compared as JSON, so that the order of its rows and its names count"
    )
    assert (severity, hint) == ("warning", f"Write output_media_type: {SPARQL}.")
    assert found(name="autocomplete_search", output_media_type="application/json") == []
    assert found(output="[1]", output_media_type="application/json") == []


def test_output_is_checked_under_the_media_type_that_is_meant() -> None:
    (_, column) = found(output_media_type=f"{SPARQL}; charset=utf-8", required_columns=["m"])
    assert column[1] == "the output has no column m"


@pytest.mark.parametrize("length", range(1, len(ROWS)))
def test_output_that_is_cut_anywhere_is_told_from_one_that_is_wrong(length: int) -> None:
    ((severity, what, hint),) = found(output=ROWS[:length], output_media_type=SPARQL)
    assert severity == "error"
    assert what.startswith("the output cannot be read as SPARQL results: ")
    assert what.count("breaks off") == 1
    assert hint == "Store all that the tool gives."


@pytest.mark.parametrize("output", ["SELECT", "{'head': 1}", '{"a": }', "[1, 2}", "{} and more", "[" * 100_000 + "x"])
def test_output_that_is_wrong_is_not_called_cut(output: str) -> None:
    ((_, what, hint),) = found(output=output, output_media_type=SPARQL)
    assert "breaks off" not in what
    assert hint == "Store what the tool gives."


def test_cut_documents_and_json_are_found_too() -> None:
    cut = json.dumps([{"id": "d1", "text": "x" * 50}])[:30]
    assert "breaks off" in found(name="retrieval", output=cut)[0][1]
    assert "breaks off" in found(name="other", output=cut, output_media_type="application/json")[0][1]
