import json
from typing import Any

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


NEA = "https://ex.org/grid/nea"


@pytest.mark.parametrize("name", ["autocomplete_search", "sparql_query"])
@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (rows(("uri", NEA)), 1.0),
        (rows(("literal", NEA)), 1.0),
        (rows(("literal", f"see {NEA} for more")), 0.0),
        ('{"boolean": true}', 0.0),
        (json.dumps([NEA]), 1.0),
        (json.dumps(["https://ex.org/a", f"<{NEA}>"]), 1.0),
        (json.dumps({"iri": NEA}), 1.0),
        (json.dumps({"answer": f"It is\n{NEA}."}), 1.0),
        (json.dumps(json.dumps([NEA])).replace("/", "\\\\/"), 1.0),
        (json.dumps([NEA]).replace("/", "\\/").replace("n", "\\u006e"), 1.0),
        ([NEA], 1.0),
        ({"iri": NEA}, 1.0),
        (NEA, 1.0),
        (f"<{NEA}>", 1.0),
        (f"The IRI is {NEA}.", 1.0),
        (f"Is it {NEA}?", 1.0),
        (f"是（{NEA}）。", 1.0),
        (f"Nea ({NEA})", 1.0),
        (f"[Nea]({NEA}), **{NEA}**", 1.0),
        (f"iri={NEA}; Nea", 1.0),
        (str([NEA]), 1.0),
        (str({"text": f"a\n{NEA}"}), 1.0),
        (f"https://ex.org/a\n{NEA}\n", 1.0),
        (f"- Nea: {NEA}\n- Oslo: https://ex.org/o", 1.0),
        (f"iri,label\n{NEA},Nea\n", 1.0),
        (f"<{NEA}> a <urn:C> .", 1.0),
        (json.dumps([f"{NEA}-t1"]), 0.0),
        (json.dumps([f"{NEA},_Texas", f"{NEA}(planet)", f"{NEA}é"]), 0.0),
        (f"<{NEA},_Texas>", 0.0),
        *((f"{NEA}{more}", 0.0) for more in ("-t1", "/", "/x", "#x", "?x=1", ".v2", "%20a", "ü", "..x")),
        (f"https://proxy/{NEA}", 0.0),
        (f"/redirect?to={NEA}", 0.0),
        (f"x-{NEA}", 0.0),
        (json.dumps({"iri": "https://ex.org/grid/oslo"}), 0.0),
        ("No entity found.", 0.0),
        (f"Error: there is no {NEA}", 0.0),
        (json.dumps({"error": f"there is no {NEA}"}), 0.0),
        (7, 0.0),
    ],
)
def test_iri_counts_wherever_it_is_a_whole_term_for_each_tool(name: str, output: Any, expected: float) -> None:
    reference = StepView({"name": "iri_discovery", "output": NEA})
    assert match_iri_discovery_steps(reference, StepView({"name": name, "output": output})).score == expected


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


def test_diagnosis_names_the_tools_of_the_user() -> None:
    reference = [[{"name": "iri_discovery", "output": IRI}]]
    step = {"name": "lookup", "args": {}, "id": "c", "status": "success", "output": "urn:other"}
    names = {"lookup": "autocomplete_search", "ask": "sparql_query"}

    def reason(*steps: dict[str, Any]) -> str:
        return match_steps(reference, steps, names=names).diagnosis[0][0].reason

    assert reason(step) == f"{IRI} is not in the output of lookup"
    assert reason({**step, "status": "error"}) == "1 call of ask or lookup failed: urn:other"
    assert reason({**step, "name": "clock"}) == "the agent did not call ask or lookup; it called clock"
    step = {**step, "name": "iri_discovery"}
    assert reason(step).endswith("only one named ask or lookup does")


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


def test_iri_is_found_inside_a_triple_term() -> None:
    parts = {key: {"type": "uri", "value": "urn:a"} for key in "so"} | {"p": {"type": "uri", "value": IRI}}
    output = rows().replace("[]", json.dumps([{"x": {"type": "triple", "value": parts}}]))
    assert (score(output), score(output, "autocomplete_search")) == (1.0, 1.0)


def test_iri_may_stand_in_a_column_that_cannot_be_read() -> None:
    output = rows().replace("[]", json.dumps([{"x": [IRI]}]))
    assert score(output) == score(output, "autocomplete_search") == 1.0
    assert score(output.replace(IRI, f"{IRI}3")) == 0.0


def test_a_search_whose_terms_lack_their_type_has_its_iris_as_uri_bindings() -> None:
    iri = "http://ex.org/a"
    output = json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"value": iri}}]}})
    search = StepView({"name": "autocomplete_search", "output": output})
    assert match_iri_discovery_steps(StepView({"name": "iri_discovery", "output": iri}), search).score == 1.0
