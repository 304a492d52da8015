"""An IRI is worth 1 ÷ its rank among the IRIs of the output."""

import json
from typing import Any

import pytest

from graphrag_eval_lc.matching import StepsMatch, match_steps

IRI = "urn:it"


def rows(*terms: tuple[str, str], columns: int = 1) -> str:
    names = [f"c{at}" for at in range(columns)]
    cells = [{"type": kind, "value": value} for kind, value in terms]
    starts = range(0, len(cells), columns)
    bindings = [dict(zip(names, cells[at : at + columns], strict=False)) for at in starts]
    return json.dumps({"head": {"vars": names}, "results": {"bindings": bindings}})


def matched(output: Any, name: str = "sparql_query", **more: Any) -> StepsMatch:
    step = {"name": name, "args": {}, "id": "c", "status": "success", "output": output, **more}
    return match_steps([[{"name": "iri_discovery", "output": IRI}]], [step], grading="graded")


def worth(output: Any, name: str = "sparql_query", **more: Any) -> float:
    return matched(output, name, **more).diagnosis[0][0].score


@pytest.mark.parametrize(
    ("output", "rank"),
    [
        pytest.param(rows(("uri", IRI)), 1, id="alone"),
        pytest.param(rows(("uri", "urn:a"), ("uri", "urn:a"), ("uri", IRI)), 2, id="distinct ones count"),
        pytest.param(rows(("literal", "OSLO"), ("literal", "7"), ("uri", IRI)), 1, id="literals do not count"),
        pytest.param(rows(("literal", "urn:a"), ("literal", "urn:b"), ("literal", IRI)), 3, id="STR() hides none"),
        pytest.param(rows(("uri", "urn:a"), ("uri", IRI), ("uri", IRI), ("uri", "urn:b"), columns=2), 2, id="by row"),
        pytest.param(rows(("uri", "urn:a"), ("uri", "urn:b"), ("uri", "urn:c"), ("uri", IRI), columns=2), 4, id="last"),
        pytest.param(rows(("bnode", "b0"), ("bnode", "b1"), ("uri", IRI)), 1, id="blank nodes do not count"),
        pytest.param(f"x,y\r\nurn:a,OSLO\r\n{IRI},BERGEN\r\n", 2, id="CSV"),
        pytest.param(f"<urn:a> a <urn:C> ; <urn:p> <{IRI}> .", 4, id="Turtle"),
        pytest.param(f"@prefix a: <urn:a#> .\nPREFIX b: <urn:b#>\n\n<{IRI}> a <urn:C> .", 1, id="prefixes"),
        pytest.param(f"ex:a ex:p ex:b.\nex:b ex:p <{IRI}> .", 4, id="prefixed names count"),
        pytest.param(json.dumps(["urn:a", "urn:a", "urn:b", IRI]), 3, id="a JSON array"),
        pytest.param(json.dumps({"type": "uri", "iris": [f"x\n{IRI}"]}), 1, id="JSON with escapes"),
        pytest.param(f"It is {IRI}, or urn:other.", 1, id="a text"),
        pytest.param(f"It is urn:other. Or {IRI}.", 2, id="a text with another one before"),
        pytest.param(rows(("uri", "urn:a"), ("uri", IRI), ("uri", "urn:b"))[:-30], 2, id="before a cut"),
    ],
)
def test_iri_is_worth_1_through_its_rank_in_reading_order(output: str, rank: int) -> None:
    assert worth(output) == pytest.approx(1 / rank)


def test_part_of_a_triple_term_has_a_rank() -> None:
    triple = {
        "subject": {"type": "uri", "value": "urn:s"},
        "predicate": {"type": "uri", "value": "urn:p"},
        "object": {"type": "uri", "value": IRI},
    }
    output = {"head": {"vars": ["t"]}, "results": {"bindings": [{"t": {"type": "triple", "value": triple}}]}}
    assert worth(json.dumps(output)) == pytest.approx(1 / 3)


def test_search_is_worth_what_its_rank_before_a_cut_is() -> None:
    output = rows(("uri", "urn:a"), ("uri", IRI), ("uri", "urn:b"))[:-30]
    match = matched(output, "autocomplete_search")
    assert (match.diagnosis[0][0].score, match.diagnosis[0][0].outcome, match.undecided) == (0.5, "match", 0)
    assert worth(rows(("uri", "urn:a"))[:-30], "autocomplete_search") == 0.0


@pytest.mark.parametrize("mark", ["=", "*", "-", "x=", "「", "_"])
def test_marks_before_other_iris_hide_none_of_them(mark: str) -> None:
    assert worth(f"{mark}urn:a {mark}urn:b <{IRI}>") == pytest.approx(1 / 3)


@pytest.mark.parametrize("output", ["", None, 7, "{", rows(("uri", f"{IRI}2")), '{"boolean": true}'])
def test_what_lacks_the_iri_is_worth_nothing(output: Any) -> None:
    assert worth(output) == 0.0


def test_reason_says_the_rank_only_where_steps_are_graded() -> None:
    output = rows(("uri", "urn:a"), ("uri", IRI))
    assert matched(output).diagnosis[0][0].reason == (
        "urn:it is in the output. Worth 1/2: it is number 2 of the IRIs there."
    )
    assert matched(rows(("uri", IRI))).diagnosis[0][0].reason == "urn:it is in the output"
    step = {"name": "sparql_query", "args": {}, "id": "c", "status": "success", "output": output}
    binary = match_steps([[{"name": "iri_discovery", "output": IRI}]], [step])
    assert (binary.diagnosis[0][0].reason, binary.steps_score) == ("urn:it is in the output", 1.0)
