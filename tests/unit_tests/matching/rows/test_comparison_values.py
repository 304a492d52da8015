"""Times, durations, geometries, texts and IRIs are compared by value, each as far as it is switched on."""

from typing import Any

import pytest
from machine_speed import processor_seconds

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows import SparqlComparison, compare_sparql_results, match_row_steps

XSD = "http://www.w3.org/2001/XMLSchema#"
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"


def literal(value: str, datatype: str | None = None) -> dict[str, str]:
    return {"type": "literal", "value": value} | ({"datatype": datatype} if datatype else {})


def iri(value: str) -> dict[str, str]:
    return {"type": "uri", "value": value}


def results(*columns: list[dict[str, str]]) -> dict[str, Any]:
    names = [f"c{at}" for at in range(len(columns))]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return {"head": {"vars": names}, "results": {"bindings": rows}}


def compared(mine: dict[str, str], other: dict[str, str], **options: Any) -> SparqlComparison:
    return compare_sparql_results(results([mine]), results([other]), **options)


@pytest.mark.parametrize(
    ("rule", "mine", "other"),
    [
        (
            "times",
            literal("2020-01-01T00:00:00Z", f"{XSD}dateTime"),
            literal("2020-01-01T01:00:00.0+01:00", f"{XSD}dateTimeStamp"),
        ),
        ("times", literal("2020-01-01T00:00:00Z", f"{XSD}dateTime"), literal("2020-01-01 01:00:00+01")),
        ("times", literal("2020-01-01T24:00:00", f"{XSD}dateTime"), literal("2020-01-02T00:00:00", f"{XSD}dateTime")),
        ("times", literal("2020-01-01-12:00", f"{XSD}date"), literal("2020-01-02+12:00", f"{XSD}date")),
        ("times", literal("12:00:00+01:00", f"{XSD}time"), literal("11:00:00Z")),
        ("durations", literal("P1D", f"{XSD}duration"), literal("PT24H", f"{XSD}dayTimeDuration")),
        ("wkt", literal("POINT(1 2)", WKT), literal("Point (1.0 2.000000001)", WKT)),
        ("nfc", literal("caf\u00e9"), literal("cafe\u0301", f"{XSD}string")),
        ("nfc", iri("http://example.org/cafe\u0301"), literal("http://example.org/caf\u00e9")),
        ("iri_case", iri("http://example.org/%c3%a9"), iri("http://example.org/%C3%A9")),
    ],
)
def test_each_rule_can_be_switched_off(rule: str, mine: dict[str, str], other: dict[str, str]) -> None:
    assert compared(mine, other).score == compared(other, mine).score == 1.0
    assert compared(mine, other, values={rule: False}).score == 0.0
    assert compared(mine, other, strict=True).score == 0.0
    others = {name: False for name in ("times", "durations", "wkt", "nfc", "iri_case") if name != rule}
    assert compared(mine, other, values=others).score == 1.0


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        pytest.param(
            literal("2020-01-01T00:00:00", f"{XSD}dateTime"),
            literal("2020-01-01T00:00:00Z", f"{XSD}dateTime"),
            id="without a zone, and with one",
        ),
        pytest.param(literal("P1M", f"{XSD}duration"), literal("P30D", f"{XSD}duration"), id="a month, and 30 days"),
        pytest.param(literal("P1D"), literal("PT24H"), id="durations without a datatype"),
        pytest.param(literal("2020-01-01Z"), literal("2020-01-01+00:00"), id="dates without a datatype"),
        pytest.param(
            literal("2020-01-01T01:00:00+01:00", f"{XSD}string"),
            literal("2020-01-01T00:00:00Z", f"{XSD}dateTime"),
            id="a string, and an instant",
        ),
        pytest.param(literal("point(1 2)"), literal("POINT(1 2)", WKT), id="a text, and a geometry"),
        pytest.param(literal("%c3"), literal("%C3"), id="texts with percent signs"),
        pytest.param(iri("http://example.org/A"), iri("http://example.org/a"), id="the case of an IRI"),
        pytest.param(iri("http://example.org/\u00e9"), iri("http://example.org/e\u0301"), id="IRIs stay as they are"),
    ],
)
def test_what_means_something_else_differs(mine: dict[str, str], other: dict[str, str]) -> None:
    assert compared(mine, other).score == compared(other, mine).score == 0.0


@pytest.mark.parametrize("text", ["2020-01-01T01:00:00+01:00", "P1D", "POINT(1 2)", "http://example.org/%c3%a9"])
def test_a_value_equals_a_text_that_is_written_like_it(text: str) -> None:
    terms = [literal(text, datatype) for datatype in (f"{XSD}dateTime", f"{XSD}duration", WKT, f"{XSD}string", None)]
    terms.append(iri(text))
    assert all(compared(mine, other).score == 1.0 for mine in terms for other in terms)


def test_rows_that_are_equal_by_value_are_not_shown_as_differing() -> None:
    mine = results([literal(f"2020-01-0{day}T00:00:00Z", f"{XSD}dateTime") for day in (1, 2, 3)])
    other = results([literal(f"2020-01-0{day}T01:00:00+01:00", f"{XSD}dateTime") for day in (1, 2, 4)])
    found = compare_sparql_results(mine, other)
    assert (found.missing_rows, found.extra_rows) == ([("2020-01-03T00:00:00Z",)], [("2020-01-04T01:00:00+01:00",)])
    assert found.row_f1 == pytest.approx(2 / 3)
    assert 0.6 < found.closeness < 1.0


def test_cells_are_shown_as_they_are_written() -> None:
    mine = results([literal("cafe\u0301"), literal("a")])
    assert compare_sparql_results(mine, results([literal("a"), literal("b")])).missing_rows == [("cafe\u0301",)]


@pytest.mark.parametrize(
    "spelling",
    [
        (lambda at: literal(f"P{at}Y", f"{XSD}duration"), lambda at: literal(f"P{12 * at}M", f"{XSD}duration")),
        (lambda at: literal(f"POINT({at} 1)", WKT), lambda at: literal(f"point ({at}.0 1)", WKT)),
        (lambda at: iri(f"http://example.org/%c3/{at}"), lambda at: iri(f"http://example.org/%C3/{at}")),
        (lambda at: literal(f"e\u0301 {at}"), lambda at: literal(f"\u00e9 {at}")),
    ],
)
def test_the_nearest_of_several_steps_is_told_by_value(spelling: Any) -> None:
    one, other = spelling
    mine = results([one(at) for at in range(5)])
    near = compare_sparql_results(mine, results([other(at) for at in (0, 1, 2, 3, 9)]))
    far = compare_sparql_results(mine, results([other(at) for at in (0, 1, 7, 8, 9)]))
    assert 0.0 < far.closeness < near.closeness < 1.0
    assert near.missing_row_count == near.extra_row_count == 1


def test_steps_take_the_rules_of_the_config() -> None:
    from_store = [literal("2020-01-01T00:00:00Z", f"{XSD}dateTime")]
    from_tool = [literal("2020-01-01T00:00:00.000Z", f"{XSD}dateTime")]
    reference = {"name": "sparql_query", "output": results(from_store)}
    actual = StepView({"name": "sparql_query", "output": results(from_tool)})
    assert match_row_steps(StepView(reference), actual).score == 1.0
    switched_off = StepView({**reference, "values": ValuesConfig(times=False)})
    assert match_row_steps(switched_off, actual).score == 0.0


@pytest.mark.full
def test_polygons_of_thousands_of_corners_are_compared_quickly() -> None:
    corners = [[(at * 0.001, row + at * 0.002) for at in range(5_000)] for row in range(10)]

    def column(before: str, digits: int) -> list[dict[str, str]]:
        texts = (", ".join(f"{x:.{digits}f} {y:.{digits}f}" for x, y in row) for row in corners)
        return [literal(f"{before}(({text}))", WKT) for text in texts]

    with processor_seconds(2):
        assert compare_sparql_results(results(column("POLYGON", 4)), results(column("Polygon ", 6))).score == 1.0


def test_points_that_all_lie_within_the_tolerance_of_the_next_are_compared_quickly() -> None:
    mine = [literal(f"POINT({1_000 + at * 0.007:.3f} 1)", WKT) for at in range(2_000)]
    other = [literal(f"POINT({1_000 + at * 0.007 + 0.002:.3f} 1)", WKT) for at in range(2_000)]
    with processor_seconds(4):
        found = compare_sparql_results(results(mine), results(list(reversed(other))), tolerance=1e-5)
        assert found.score == 1.0
