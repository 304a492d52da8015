"""Cypher's results: one result in eight shapes and more is equal in all of them, and different from each other one."""

import json
from itertools import product
from typing import Any

import pytest

from graphrag_eval_lc.matching.rows import compare_sparql_results

OSLO = {"name": "Oslo", "height": 23.5}
BERGEN = {"name": "Bergen"}


def shapes(km: float = 463.0, place: str = "Bergen", kind: str = "NEAR") -> dict[str, Any]:
    """Return a node, a relationship and a path in the shapes of stores and tools."""
    start, end, more = dict(OSLO), {"name": place}, {"km": km}
    node = {"elementId": "4:a:0", "labels": ["City"], "properties": start}
    other = {"elementId": "4:a:1", "labels": ["City"], "properties": end}
    between = {
        "elementId": "5:a:0",
        "startNodeElementId": "4:a:0",
        "endNodeElementId": "4:a:1",
        "type": kind,
        "properties": more,
    }
    shown = f"<Node element_id='4:b:7' labels=frozenset({{'City'}}) properties={start!r}>"
    other_shown = f"<Node element_id='4:b:8' labels=frozenset({{'City'}}) properties={end!r}>"
    edge_shown = f"<Relationship element_id='5:b:1' nodes=({shown}, {other_shown}) type={kind!r} properties={more!r}>"
    inner = {"offset": 0, "table": 0}
    lady = {"_ID": inner, "_LABEL": "City", "founded": None, **start}
    other_lady = {"_ID": {"offset": 1, "table": 0}, "_LABEL": "City", "height": None, **end}
    lady_edge = {"_SRC": inner, "_DST": {"offset": 1, "table": 0}, "_LABEL": kind, "_ID": inner, **more}
    data = [{"n": start, "r": (start, kind, end), "p": [start, kind, end]}]
    return {
        "data": data,
        "data as JSON": json.dumps(data),
        "data as Python shows it": repr(data),
        "records as Python shows them": f"[<Record n={shown} r={edge_shown} p=[{shown}, {edge_shown}, {other_shown}]>]",
        "Query API": {"data": {"fields": ["n", "r", "p"], "values": [[node, between, [node, between, other]]]}},
        "typed Query API": {
            "data": {
                "fields": ["n", "r", "p"],
                "values": [[_typed(node), _typed(between), [_typed(node), _typed(between), _typed(other)]]],
            }
        },
        "transactional API": {
            "results": [
                {
                    "columns": ["n", "r", "p"],
                    "data": [
                        {
                            "row": [start, more, [start, more, end]],
                            "meta": [
                                {"type": "node"},
                                {"type": "relationship"},
                                [{"type": "node"}, {"type": "relationship"}, {"type": "node"}],
                            ],
                        }
                    ],
                }
            ],
            "errors": [],
        },
        "ladybug": json.dumps([{"n": lady, "r": lady_edge, "p": {"_NODES": [lady, other_lady], "_RELS": [lady_edge]}}]),
        "cells as texts": [{"n": json.dumps(node), "r": repr(between), "p": json.dumps([node, between, other])}],
    }


def _typed(entity: dict[str, Any]) -> dict[str, Any]:
    kind = "Node" if "labels" in entity else "Relationship"
    names = {
        "elementId": "_element_id",
        "labels": "_labels",
        "type": "_type",
        "startNodeElementId": "_start_node_element_id",
        "endNodeElementId": "_end_node_element_id",
    }
    value = {names[key]: inner for key, inner in entity.items() if key in names}
    properties = {
        key: {"$type": "Float", "_value": str(each)} if isinstance(each, float) else {"$type": "String", "_value": each}
        for key, each in entity["properties"].items()
    }
    return {"$type": kind, "_value": {**value, "_properties": properties}}


NAMES = list(shapes())


@pytest.mark.parametrize(("one", "other"), list(product(NAMES, NAMES)))
def test_equal_results_of_different_shapes_match(one: str, other: str) -> None:
    # The older API tells no type and data() no properties, so that a relationship and a path are not told apart.
    is_told = {one[:4], other[:4]} != {"data", "tran"}
    compared = compare_sparql_results(shapes()[one], shapes()[other], None if is_told else ["n", "p"])
    assert compared.score == 1.0, compared.reason


@pytest.mark.parametrize(("one", "other"), list(product(NAMES, NAMES)))
def test_a_path_to_another_node_does_not_match_in_any_shape(one: str, other: str) -> None:
    assert compare_sparql_results(shapes()[one], shapes(place="Bodø")[other], ["p"]).score == 0.0


TELL_PROPERTIES = [name for name in NAMES if not name.startswith("data")]


@pytest.mark.parametrize(("one", "other"), list(product(TELL_PROPERTIES, TELL_PROPERTIES)))
def test_a_relationship_with_other_properties_does_not_match_where_both_tell_them(one: str, other: str) -> None:
    assert compare_sparql_results(shapes()[one], shapes(km=400.0)[other], ["r"]).score == 0.0


TELL_TYPES = [name for name in NAMES if name != "transactional API"]


@pytest.mark.parametrize(("one", "other"), list(product(TELL_TYPES, TELL_TYPES)))
def test_a_relationship_of_another_type_does_not_match_where_both_tell_it(one: str, other: str) -> None:
    assert compare_sparql_results(shapes()[one], shapes(kind="FAR")[other], ["r"]).score == 0.0


def score(one: Any, other: Any, **options: Any) -> float:
    return compare_sparql_results([{"v": one}], [{"v": other}], **options).score


def node(*labels: str, **properties: Any) -> dict[str, Any]:
    return {"elementId": str(id(properties)), "labels": list(labels), "properties": properties}


EQUAL = [
    ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}),
    ([0.1, 0.2], [0.1 + 1e-12, 0.2]),
    ([1, None], [1.0, None]),
    ({"a": None}, {}),
    (node("A", "B", x=1), node("B", "A", x=1, y=None)),
    (["2020-01-01T00:00:00.000000000"], ["2020-01-01 00:00:00"]),
    (["2020-01-01T00:00:00Z"], ["2020-01-01T01:00:00+01:00[Europe/Oslo]"]),
    (["P14M3DT4.5S"], ["P1Y2M3DT4.500000000S"]),
    ("P1DT1S", "1 day, 0:00:01"),
    ([14, 3, 4, 500_000_000], "P14M3DT4.5S"),
    ("POINT(1.0 2.0)", {"srid": 7203, "x": 1, "y": 2}),
    ({"crs": "wgs-84", "longitude": 1.5, "latitude": 2}, "SRID=4326;POINT (1.5 2)"),
    ({"type": "Point", "coordinates": [1, 2]}, [1.0, 2.0]),
    ("point({x: 1.0, y: 2.0, crs: 'cartesian'})", "POINT(1 2)"),
    ('{"a": [1, 2]}', {"a": [1, 2]}),
    ("{'a': [1, 2]}", '{"a": [1.0, 2]}'),
    (["å"], ["a\u030a"]),
    ({"value": 5, "unit": "kV"}, {"unit": "kV", "value": 5.0}),
]
UNEQUAL = [
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {"b": 1}),
    ([1, 2], [2, 1]),
    ([1, 2], [1, 2, None]),
    ([], {}),
    ([[]], [None]),
    ([1], 1),
    (["12"], [12.5]),
    ([0.1], [0.1 + 1e-6]),
    (node("A", x=1), node("B", x=1)),
    (node("A", x=1), node("A", x=1, y=2)),
    (["2020-01-01T00:00:00Z"], ["2020-01-01T00:00:00+01:00"]),
    ("P1M", "P30D"),
    ("POINT(1 2)", "POINT(2 1)"),
    ("SRID=4326;POINT(1 2)", "SRID=7203;POINT(1 2)"),
    ({"a/b": 1}, {"a": {"b": 1}}),
    ({"0": 1}, [1]),
    ({"value": 5, "unit": "kV"}, {"value": 5, "unit": "V"}),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
@pytest.mark.parametrize("form", [lambda rows: rows, json.dumps, repr], ids=["parsed", "JSON", "Python"])
def test_equal_values_match(one: Any, other: Any, form: Any) -> None:
    compared = compare_sparql_results(form([{"v": one}]), form([{"w": other}]))
    assert compared.score == 1.0, compared.reason
    assert compare_sparql_results(form([{"v": other}]), form([{"w": one}])).score == 1.0


@pytest.mark.parametrize(("one", "other"), UNEQUAL)
def test_unequal_values_do_not_match(one: Any, other: Any) -> None:
    assert score(one, other) == score(other, one) == 0.0


def test_nodes_are_told_by_the_keys_that_are_chosen() -> None:
    one, other = node("City", iri="urn:oslo", seen=1), node("Place", iri="urn:oslo", seen=2)
    assert score(one, other) == 0.0
    assert score(one, other, node_keys=["iri"]) == 1.0
    assert score(one["properties"], other, node_keys=["iri"]) == 1.0
    assert score(one, node("City", iri="urn:bergen", seen=1), node_keys=["iri"]) == 0.0
    assert score(node("City", seen=1), node("City", seen=2), node_keys=["iri"]) == 0.0


def test_a_users_own_id_counts_and_the_ids_of_the_store_do_not() -> None:
    assert score(node("City", id=1), node("City", id=2)) == 0.0
    assert (
        score({"_ID": {"offset": 1, "table": 0}, "_LABEL": "A"}, {"_ID": {"offset": 2, "table": 0}, "_LABEL": "A"})
        == 1.0
    )


def test_the_order_of_lists_counts_unless_it_is_switched_off() -> None:
    assert score([1, 2, 2], [2, 1, 2]) == 0.0
    assert score([1, 2, 2], [2, 1, 2], list_order=False) == 1.0
    assert score([1, 2, 2], [2, 1, 1], list_order=False) == 0.0
    assert score([0.3, 10], [10.0, 0.3 + 1e-12], list_order=False) == 1.0


def test_the_reason_shows_nodes_as_cypher_writes_them() -> None:
    compared = compare_sparql_results([{"n": node("City", name="Oslo")}], [{"n": node("City", name="Bergen")}])
    assert "(:City {name: Oslo})" in compared.reason
    assert compared.extra_rows == [("(:City {name: Bergen})",)]


def test_numbers_that_are_near_several_others_are_paired_off() -> None:
    reference = [{"v": [0.0, "a"]}, {"v": [1.5e-8, "a"]}]
    assert compare_sparql_results(reference, [{"v": [0.8e-8, "a"]}, {"v": [2e-8, "a"]}]).score == 1.0
    assert compare_sparql_results(reference, [{"v": [3e-8, "a"]}, {"v": [2e-8, "a"]}]).score == 0.0


def test_strictly_compared_values_have_no_tolerance() -> None:
    assert score([0.1], [0.1], strict=True) == 1.0
    assert score([0.1], [0.1 + 1e-12], strict=True) == 0.0


def test_texts_of_times_match_in_columns_of_their_own() -> None:
    one = '[{"t": "2020-01-01T03:04:05.000000000", "d": "PT1M"}]'
    assert (
        compare_sparql_results(one, "[{'t': neo4j.time.DateTime(2020, 1, 1, 3, 4, 5, 0), 'd': 'PT60S'}]").score == 1.0
    )
    assert compare_sparql_results(one, '[{"t": "2020-01-01 03:04:05", "d": "PT61S"}]').score == 0.0
