"""Tools of a real MCP server: their output is one JSON text, as from a local tool."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.matching import match_steps

pytestmark = pytest.mark.full
SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
CALLS: list[tuple[str, dict[str, Any]]] = [
    *(("rows", {"count": count}) for count in (2, 1, 0)),
    *(("names", {"count": count}) for count in (2, 1, 0)),
    *(("rows_without_structure", {"count": count}) for count in (2, 1)),
    ("names_without_structure", {}),
    *((name, {"query": "?"}) for name in ("sparql_query", "sparql_text", "sparql_rows")),
    *((name, {}) for name in ("own_result", "count", "picture", "picture_with_words", "resource", "broken")),
]


class Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


async def run_all() -> tuple[list[Any], dict[str, str]]:
    """Return the steps of an agent that calls all tools in parallel, and the outputs of some manual calls."""
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_mcp_adapters.tools import load_mcp_tools

    client = MultiServerMCPClient({"graph": {"command": sys.executable, "args": [str(SERVER)], "transport": "stdio"}})
    asking = [{"name": name, "args": args, "id": f"c{place}"} for place, (name, args) in enumerate(CALLS)]
    model = Model(messages=iter([AIMessage("", tool_calls=asking), AIMessage("done")]))
    async with client.session("graph") as session:
        tools = await load_mcp_tools(session)
        handler = GraphRAGEvalCallbackHandler()
        await create_agent(model, tools).ainvoke({"messages": [("user", "hi")]}, config={"callbacks": [handler]})
        by_hand = {}
        for tool in tools:
            if tool.name in ("sparql_query", "rows_without_structure", "picture"):
                alone = GraphRAGEvalCallbackHandler()
                await tool.ainvoke({"query": "?", "count": 2}, config={"callbacks": [alone]})
                by_hand[tool.name] = alone.response()["actual_steps"][0]["output"]
    return list(handler.response()["actual_steps"]), by_hand


@pytest.fixture(scope="module")
def found() -> tuple[list[Any], dict[str, str]]:
    return asyncio.run(run_all())


@pytest.fixture
def steps(found: tuple[list[Any], dict[str, str]]) -> list[Any]:
    return found[0]


def outputs(steps: list[Any], name: str) -> list[str]:
    return [step["output"] for step in steps if step["name"] == name]


def test_every_call_is_a_step_in_order(steps: list[Any]) -> None:
    assert [step["name"] for step in steps] == [name for name, _ in CALLS]
    assert {step["name"] for step in steps if step["status"] == "error"} == {"broken"}


def test_lists_of_any_length_are_json(steps: list[Any]) -> None:
    row = [{"id": 0, "name": "æ0"}, {"id": 1, "name": "æ1"}]
    assert [json.loads(text) for text in outputs(steps, "rows")] == [row, row[:1], []]
    assert "æ" in outputs(steps, "rows")[0]
    assert [json.loads(text) for text in outputs(steps, "names")] == [["a", "b"], ["a"], []]


def test_without_structured_content_several_blocks_of_json_are_a_list(steps: list[Any]) -> None:
    assert [json.loads(text) for text in outputs(steps, "rows_without_structure")] == [
        [{"id": 0}, {"id": 1}],
        {"id": 0},
    ]
    assert outputs(steps, "names_without_structure") == ["ab"]


def test_single_blocks_are_unchanged(steps: list[Any]) -> None:
    assert json.loads(outputs(steps, "own_result")[0]) == {"result": [1]}
    assert outputs(steps, "count") == ["3"]


def test_images_and_other_blocks_are_unchanged(steps: list[Any]) -> None:
    (image,) = json.loads(outputs(steps, "picture")[0])
    assert (image["type"], image["mime_type"], image["base64"]) == ("image", "image/png", "eA==")
    assert [block["type"] for block in json.loads(outputs(steps, "picture_with_words")[0])] == ["text", "image"]
    assert json.loads(outputs(steps, "resource")[0]) == {"lines": ["a", "b"]}


def test_server_error_is_an_error_step(steps: list[Any]) -> None:
    assert [step["error"] for step in steps if step["name"] == "broken"] == [
        "Error executing tool broken: no such store"
    ]


def test_structured_content_is_also_the_artifact(steps: list[Any]) -> None:
    assert steps[0]["artifact"] == {"structured_content": {"result": json.loads(steps[0]["output"])}}


@pytest.mark.parametrize(
    ("name", "media_type", "reference"),
    [
        ("sparql_query", "application/sparql-results+json", None),
        ("sparql_text", "application/sparql-results+json", None),
        ("sparql_rows", "application/json", '[{"line": "urn:line:a"}, {"line": "urn:line:b"}]'),
    ],
)
def test_results_match_their_reference(name: str, media_type: str, reference: str | None, steps: list[Any]) -> None:
    lines = [{"line": {"type": "uri", "value": f"urn:line:{letter}"}} for letter in "ba"]
    output = reference or json.dumps({"head": {"vars": ["line"]}, "results": {"bindings": lines}})
    expected: Any = {"name": name, "args": {}, "output": output, "output_media_type": media_type}
    assert match_steps([[expected]], steps).steps_score == 1.0


def test_manually_called_tools_have_the_same_output(found: tuple[list[Any], dict[str, str]]) -> None:
    steps, by_hand = found
    assert by_hand["sparql_query"] == outputs(steps, "sparql_query")[0]
    assert by_hand["rows_without_structure"] == outputs(steps, "rows_without_structure")[0]
    assert json.loads(by_hand["picture"])[0]["type"] == "image"
