import json

import pytest
from langchain_core.messages import ToolMessage


def call(tool, **args):
    return tool.invoke({"type": "tool_call", "id": "call_1", "name": tool.name, "args": args})


def test_the_tools_are_described_for_the_model(tools):
    assert sorted(tools) == [
        "autocomplete_search",
        "now",
        "retrieval",
        "retrieve_data_points",
        "retrieve_time_series",
        "sparql_query",
    ]
    for tool in tools.values():
        assert "Args:" not in tool.description
        assert all(argument.get("description") for argument in tool.args.values())


def test_autocomplete_search_gives_sparql_json_results_with_a_typed_rank(tools):
    result = json.loads(tools["autocomplete_search"].invoke({"query": "OSLO", "result_class": "cim:Substation"}))
    assert result["head"]["vars"] == ["iri", "name", "class", "rank"]
    [row] = result["results"]["bindings"]
    assert row["iri"] == {"type": "uri", "value": "urn:uuid:e09642e5-8ea7-5990-a973-ac4a1fe2a7c8"}
    assert row["rank"] == {
        "type": "literal",
        "value": "1.0",
        "datatype": "http://www.w3.org/2001/XMLSchema#double",
    }


def test_retrieval_gives_a_json_array_of_id_and_text(tools):
    found = json.loads(tools["retrieval"].invoke({"query": "icing patrols look for ice", "k": 3}))
    assert [sorted(document) for document in found] == [["id", "text"]] * 3
    assert found[0]["id"] == "https://example.org/grid/doc/procedure-icing"


FEDA_EEMSHAVEN = "33493c83-6d76-5b77-8648-005e165add0c"


def test_retrieve_time_series_gives_a_json_array_of_what_the_thing_has(tools):
    found = json.loads(tools["retrieve_time_series"].invoke({"mrid": FEDA_EEMSHAVEN}))
    assert [sorted(series) for series in found] == [["external_id", "mrid", "name", "unit"]]
    assert (found[0]["external_id"], found[0]["mrid"]) == ("flow-2001", FEDA_EEMSHAVEN)


@pytest.mark.parametrize("aggregates", ["max", ["max"]])
def test_retrieve_data_points_takes_one_aggregate_or_several(tools, aggregates):
    args = {"external_id": "flow-2001", "start": "2h-ago", "end": "now", "aggregates": aggregates, "granularity": "1h"}
    given = json.loads(tools["retrieve_data_points"].invoke(args))
    assert (given["externalId"], given["unit"]) == ("flow-2001", "MW")
    assert [sorted(point) for point in given["datapoints"]] == [["max", "timestamp"]] * 2


def test_now_stands_still(tools):
    assert tools["now"].invoke({}) == "2025-11-12T09:30:00Z"


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("sparql_query", {"query": "INSERT DATA { <urn:a> <urn:b> 1 }"}, "Only SELECT"),
        ("sparql_query", {"query": "SELECT * { SERVICE <urn:a> { ?s ?p ?o } }"}, "SERVICE is not allowed"),
        ("sparql_query", {"query": "SELECT"}, "not valid SPARQL"),
        ("sparql_query", {}, "validation error"),
        ("autocomplete_search", {"query": "OSLO", "limit": 0}, "limit is 0, but must be from 1 to 50"),
        ("retrieve_time_series", {"mrid": f"urn:uuid:{FEDA_EEMSHAVEN}"}, "without urn:uuid: before it"),
        ("retrieve_time_series", {"mrid": "FEDA"}, "mrid is 'FEDA', but must be a UUID"),
        ("retrieve_data_points", {"external_id": "x", "start": "2h-ago", "end": "now"}, "Unknown time series 'x'"),
        ("retrieve_data_points", {"external_id": "flow-2001", "start": "now", "end": "now"}, "is not before end"),
        ("retrieve_data_points", {"external_id": "flow-2001", "start": "2h-ago"}, "validation error"),
        ("retrieval", {"query": "ice", "k": 51}, "k is 51, but must be from 1 to 50"),
    ],
)
def test_a_tool_that_fails_gives_a_message_of_status_error(tools, name, args, message):
    given = call(tools[name], **args)
    assert isinstance(given, ToolMessage)
    assert given.status == "error"
    assert message in given.text
