import json

import pytest
from langchain_core.messages import ToolMessage


def call(tool, **args):
    return tool.invoke({"type": "tool_call", "id": "call_1", "name": tool.name, "args": args})


def test_the_tools_are_described_for_the_model(tools):
    assert sorted(tools) == ["autocomplete_search", "retrieval", "sparql_query"]
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


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("sparql_query", {"query": "INSERT DATA { <urn:a> <urn:b> 1 }"}, "Only SELECT"),
        ("sparql_query", {"query": "SELECT * { SERVICE <urn:a> { ?s ?p ?o } }"}, "SERVICE is not allowed"),
        ("sparql_query", {"query": "SELECT"}, "no valid SPARQL"),
        ("sparql_query", {}, "validation error"),
        ("autocomplete_search", {"query": "OSLO", "limit": 0}, "limit is 0, but must be from 1 to 50"),
        ("retrieval", {"query": "ice", "k": 51}, "k is 51, but must be from 1 to 50"),
    ],
)
def test_a_tool_that_fails_gives_a_message_of_status_error(tools, name, args, message):
    given = call(tools[name], **args)
    assert isinstance(given, ToolMessage)
    assert given.status == "error"
    assert message in given.text
