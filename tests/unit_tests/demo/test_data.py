"""The demo's graph, documents and time series are consistent."""

import json

import pytest

from graphrag_eval_lc.demo import DOCUMENTS_PATH, TIME_SERIES_PATH

PREFIX = "PREFIX cim: <https://cim.ucaiug.io/ns#>\nPREFIX nc: <https://cim4.eu/ns/nc#>\n"


def count(graph, pattern, what="*"):
    result = json.loads(graph.query(f"{PREFIX}SELECT (COUNT({what}) AS ?n) {{ {pattern} }}"))
    return int(result["results"]["bindings"][0]["n"]["value"])


@pytest.mark.parametrize(
    "without",
    [
        "?s a ?class . FILTER(STRSTARTS(STR(?s), 'urn:')) FILTER NOT EXISTS { ?s cim:IdentifiedObject.name ?name }",
        "?s cim:IdentifiedObject.mRID ?mrid . FILTER(STR(?s) != CONCAT('urn:uuid:', ?mrid))",
        "?s ?p ?o . FILTER(STRSTARTS(STR(?o), 'urn:uuid:')) FILTER NOT EXISTS { ?o a ?class }",
        "?s a cim:Substation . FILTER NOT EXISTS { ?s cim:Substation.Region/cim:SubGeographicalRegion.Region ?land }",
        "?s a cim:VoltageLevel . FILTER NOT EXISTS { ?s cim:VoltageLevel.Substation/a cim:Substation }",
        "?s a cim:PowerTransformer . FILTER NOT EXISTS { ?s cim:Equipment.EquipmentContainer/a cim:Substation }",
        "?s a cim:SynchronousMachine . FILTER NOT EXISTS { ?s cim:RotatingMachine.GeneratingUnit ?unit }",
        "?s a cim:ACLineSegment . FILTER NOT EXISTS { ?s cim:Conductor.length ?km FILTER(?km > 0) }",
    ],
)
def test_required_properties_are_present(graph, without):
    assert count(graph, without) == 0


@pytest.mark.parametrize(
    ("class_name", "ends"),
    [
        ("ACLineSegment", "?end cim:Terminal.ConductingEquipment ?s ; cim:Terminal.ConnectivityNode ?node"),
        ("DCLineSegment", "?end cim:DCTerminal.DCConductingEquipment ?s ; cim:DCBaseTerminal.DCNode ?node"),
        ("PowerTransformer", "?end cim:PowerTransformerEnd.PowerTransformer ?s ; cim:TransformerEnd.BaseVoltage ?node"),
    ],
)
def test_each_line_and_transformer_connects_two_different_nodes(graph, class_name, ends):
    query = f"""{PREFIX}SELECT ?s {{ ?s a cim:{class_name} . {ends} }}
    GROUP BY ?s HAVING (COUNT(DISTINCT ?end) != 2 || COUNT(DISTINCT ?node) != 2)"""
    assert json.loads(graph.query(query))["results"]["bindings"] == []
    assert count(graph, f"?s a cim:{class_name} . {ends}", "DISTINCT ?end") == 2 * count(
        graph, f"?s a cim:{class_name}"
    )


def test_names_are_unique_in_their_class(graph):
    things = [(thing.name, thing.class_iri) for thing in graph.named_things()]
    assert len(set(things)) == len(things)


def test_documents_are_short_and_distinct_with_unique_ids():
    documents = [json.loads(line) for line in DOCUMENTS_PATH.read_text(encoding="utf-8").splitlines()]
    assert 110 <= len(documents) <= 140
    assert len({document["id"] for document in documents}) == len({document["text"] for document in documents})
    assert len({document["id"] for document in documents}) == len(documents)
    for document in documents:
        assert document["id"].startswith("https://example.org/grid/doc/")
        assert 40 <= len(document["text"].split()) <= 120


def test_each_generating_unit_and_dc_line_has_one_time_series_named_after_it(graph):
    query = f"""{PREFIX}SELECT ?mrid ?name {{
      VALUES ?class {{ cim:HydroGeneratingUnit cim:WindGeneratingUnit cim:DCLineSegment }}
      ?s a ?class ; cim:IdentifiedObject.mRID ?mrid ; cim:IdentifiedObject.name ?name }}"""
    rows = json.loads(graph.query(query))["results"]["bindings"]
    name_of = {row["mrid"]["value"]: row["name"]["value"] for row in rows}
    listed = [json.loads(line) for line in TIME_SERIES_PATH.read_text(encoding="utf-8").splitlines()]
    assert sorted(series["mrid"] for series in listed) == sorted(name_of)
    assert len({series["external_id"] for series in listed}) == len(listed)
    for series in listed:
        assert series["name"].startswith(f"{name_of[series['mrid']]} ")
        assert series["low"] < series["high"]
