import json

import pytest

from graphrag_eval_lc.matching import StepView, match_steps
from graphrag_eval_lc.matching.iri_discovery import match_iri_discovery_steps

IRI = "urn:uuid:1-2"


def rows(*terms: tuple[str, str]) -> str:
    bindings = [{"x": {"type": kind, "value": value}} for kind, value in terms]
    return json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": bindings}})


def score(output: str | None, name: str = "sparql_query") -> float:
    reference = StepView({"name": "iri_discovery", "output": IRI})
    return match_iri_discovery_steps(reference, StepView({"name": name, "output": output})).score


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (rows(("uri", "urn:a"), ("uri", IRI)), 1.0),
        (rows(("literal", IRI)), 1.0),
        (rows(("uri", f"{IRI}3")), 0.0),
        (rows(("literal", f"see {IRI} for more")), 0.0),
        (rows().replace("[]", '[{"x": {"type": "uri", "value": "urn:uuid:1\\u002d2"}}]'), 1.0),
        (f"<{IRI}> a <urn:C> .", 1.0),
        (f"<{IRI}3> a <urn:C> .", 0.0),
        (f"<x:{IRI}> a <urn:C> .", 0.0),
        (f"It is {IRI}.", 1.0),
        (f"It is {IRI}.5", 0.0),
        ("", 0.0),
        (None, 0.0),
    ],
)
def test_iri_stands_in_a_querys_output_as_a_whole_term(output: str | None, expected: float) -> None:
    assert score(output) == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [(rows(("uri", IRI)), 1.0), (rows(("literal", IRI)), 0.0), (f"<{IRI}>", 0.0), ('{"boolean": true}', 0.0)],
)
def test_iri_is_a_uri_binding_of_a_search(output: str, expected: float) -> None:
    assert score(output, "autocomplete_search") == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("autocomplete_search", 1.0), ("sparql_query", 1.0), ("iri_discovery", 0.0), ("other", 0.0)]
)
def test_iri_discovery_is_fulfilled_by_a_search_or_a_query(name: str, expected: float) -> None:
    step = {"name": name, "args": {}, "id": "c", "status": "success", "output": rows(("uri", IRI))}
    assert match_steps([[{"name": "iri_discovery", "output": IRI}]], [step]).steps_score == expected


def test_search_before_a_query_that_holds_the_iri_too_is_not_extra() -> None:
    output = rows(("uri", IRI))
    steps = [
        {"name": name, "args": {}, "id": name, "status": "success", "output": output}
        for name in ("autocomplete_search", "sparql_query")
    ]
    media_type = "application/sparql-results+json"
    reference = [
        [{"name": "iri_discovery", "output": IRI}],
        [{"name": "sparql_query", "output": output, "output_media_type": media_type}],
    ]
    match = match_steps(reference, steps)
    assert match.extra == []
    assert match.diagnosis[0][0].nearest_id == "autocomplete_search"


def test_diagnosis_names_the_iri_or_the_tools_that_could_have_found_it() -> None:
    reference = [[{"name": "iri_discovery", "output": IRI}]]
    step = {"name": "sparql_query", "args": {}, "id": "c", "status": "success", "output": rows()}
    assert match_steps(reference, [step]).diagnosis[0][0].reason == f"{IRI} is not in the output of sparql_query"
    assert "did not call autocomplete_search or sparql_query" in match_steps(reference, []).diagnosis[0][0].reason


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ([], "the agent did not call autocomplete_search or sparql_query; it called iri_discovery"),
        ([("sparql_query", "success")], f"{IRI} is not in the output of sparql_query"),
        ([("sparql_query", "error")], "1 call of autocomplete_search or sparql_query failed: no message"),
    ],
)
def test_reason_says_that_a_tool_of_the_name_itself_does_not_fulfil_it(
    others: list[tuple[str, str]], reason: str
) -> None:
    own = {"name": "iri_discovery", "args": {}, "id": "c", "status": "success", "output": rows(("uri", IRI))}
    steps = [own | {"name": name, "status": status, "output": ""} for name, status in others]
    match = match_steps([[{"name": "iri_discovery", "output": IRI}]], [own, *steps])
    assert match.steps_score == 0.0
    hint = "a step named iri_discovery does not fulfil it, only one named autocomplete_search or sparql_query does"
    assert match.diagnosis[0][0].reason == f"{reason}; {hint}"


@pytest.mark.parametrize("output", [None, "", ["urn:a"]])
def test_reference_without_an_iri_is_blamed(output: object) -> None:
    reference = StepView({"name": "iri_discovery", "output": output})
    comparison = match_iri_discovery_steps(reference, StepView({"name": "sparql_query", "output": "x"}))
    assert comparison.reason() == "the reference step names no IRI as its output"


def test_iri_is_found_inside_a_triple_term_of_a_query_but_is_no_binding_of_a_search() -> None:
    parts = {key: {"type": "uri", "value": "urn:a"} for key in "so"} | {"p": {"type": "uri", "value": IRI}}
    output = rows().replace("[]", json.dumps([{"x": {"type": "triple", "value": parts}}]))
    assert (score(output), score(output, "autocomplete_search")) == (1.0, 0.0)


def test_iri_may_stand_in_a_column_that_cannot_be_read() -> None:
    output = rows().replace("[]", json.dumps([{"x": [IRI]}]))
    assert score(output) == 1.0
    assert score(output.replace(IRI, f"{IRI}3")) == 0.0
    search = StepView({"name": "autocomplete_search", "output": output})
    found = match_iri_discovery_steps(StepView({"name": "iri_discovery", "output": IRI}), search)
    assert (found.score, found.unreadable) == (0.0, found.reason())
    assert "column `x` cannot be read" in found.reason()


def test_a_search_whose_terms_lack_their_type_has_its_iris_as_uri_bindings() -> None:
    iri = "http://ex.org/a"
    output = json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"value": iri}}]}})
    search = StepView({"name": "autocomplete_search", "output": output})
    assert match_iri_discovery_steps(StepView({"name": "iri_discovery", "output": iri}), search).score == 1.0
