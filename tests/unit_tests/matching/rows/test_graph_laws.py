"""Laws of values of a property graph: whatever stands in cells is compared without an error, and equals itself."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_speed import processor_seconds

from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.rows import compare_sparql_results, read_sparql_results

KEYS = st.sampled_from(
    ["name", "labels", "properties", "type", "id", "elementId", "_ID", "_LABEL", "_NODES", "_RELS", "srid", "x", "y",
     "$type", "_value", "start", "end", "segments", "crs", "value", "coordinates", "longitude", "latitude", "a/b"]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["KNOWS", "Node", "Relationship", "Path", "Point", "P1D", "2020-01-01T00:00:00Z", "POINT(1 2)",
                     "[1", "{}", "<Node ", "[1, 2]", "wgs-84", "PathSummary"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)
ROWS = st.lists(st.fixed_dictionaries({"v": VALUES, "w": VALUES}), min_size=1, max_size=4)


@pytest.mark.full
@given(ROWS, ROWS, st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_nothing_raises(one: Any, other: Any, list_order: bool, strict: bool) -> None:
    compared = compare_sparql_results(one, other, list_order=list_order, strict=strict, node_keys=["name"])
    assert compared.score in (0.0, 1.0)
    assert compared.reason


@pytest.mark.full
@given(ROWS, st.randoms())
@settings(max_examples=100, deadline=None)
def test_rows_equal_themselves_in_another_order_and_as_python_shows_them(rows: Any, shuffle: random.Random) -> None:
    try:
        results = read_sparql_results(rows)
    except UnreadableOutput:
        return
    if results.faults:
        return
    other = [dict(reversed(row.items())) for row in rows]
    shuffle.shuffle(other)
    compared = compare_sparql_results(rows, other)
    assert compared.score == 1.0, compared.reason


@pytest.mark.full
@given(st.text(alphabet="<>[](){}'\",:= NodeRelationshipPathlabels0123frozenset.neo4jtimeDate", max_size=80))
@settings(max_examples=500, deadline=None)
def test_texts_like_a_drivers_objects_are_read_or_refused(text: str) -> None:
    for beginning in ("[{'n': <Node ", "[<Record n=", "[{'n': neo4j.time.", "[{'n': frozenset("):
        try:
            read_sparql_results(beginning + text)
        except UnreadableOutput:
            continue


def test_a_users_map_like_an_envelope_is_a_value() -> None:
    for kind in ("PathSummary", "Node", "Relationship", "Integer", "Path", 5, None):
        for value in ({}, {"size": "a"}, {"start": 1}, [], "a", None, {"_properties": 1}):
            one = [{"v": {"$type": kind, "_value": value}, "w": 1}]
            assert compare_sparql_results(one, one).score == 1.0


def test_deep_values_are_refused_with_a_reason() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    assert "nested more than 60 deep" in compare_sparql_results([{"v": 1}], [{"v": deep}]).reason


@pytest.mark.full
def test_a_value_that_holds_itself_many_times_is_refused() -> None:
    wide: Any = [1]
    for _ in range(50):
        wide = [wide, wide]
    with processor_seconds(60):
        assert "values" in compare_sparql_results([{"v": 1}], [{"v": wide}]).reason


@pytest.mark.full
def test_many_long_lists_are_compared_in_time() -> None:
    source = random.Random(7)
    rows = [{"v": [source.randrange(1000) for _ in range(100)]} for _ in range(1_000)]
    wrong = json.loads(json.dumps(rows))
    wrong[5]["v"][7] += 1
    assert compare_sparql_results(json.dumps(rows), json.dumps(rows[::-1])).score == 1.0
    compared = compare_sparql_results(json.dumps(rows), json.dumps(wrong))
    assert compared.outcome == "mismatch"
    assert compared.missing_row_count == 1
