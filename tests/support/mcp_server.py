"""An MCP server over stdio with one tool per form of result. Tests start it as a process."""

import json
from typing import Any

from mcp.server.fastmcp import FastMCP, Image
from mcp.types import CallToolResult, EmbeddedResource, TextContent, TextResourceContents

server = FastMCP("graph", log_level="ERROR")
RESULTS = {
    "head": {"vars": ["line"]},
    "results": {"bindings": [{"line": {"type": "uri", "value": f"urn:line:{name}"}} for name in "ab"]},
}


@server.tool()
def rows(count: int) -> list[dict[str, Any]]:
    """Give rows."""
    return [{"id": place, "name": f"æ{place}"} for place in range(count)]


@server.tool()
def names(count: int) -> list[str]:
    """Give names."""
    return ["a", "b", "c"][:count]


@server.tool(structured_output=False)
def rows_without_structure(count: int) -> list[dict[str, Any]]:
    """Give rows as an older server does."""
    return [{"id": place} for place in range(count)]


@server.tool(structured_output=False)
def names_without_structure() -> list[str]:
    """Give names as an older server does."""
    return ["a", "b"]


@server.tool()
def sparql_query(query: str) -> dict[str, Any]:
    """Ask the graph."""
    return RESULTS


@server.tool()
def sparql_text(query: str) -> str:
    """Ask the graph for a text."""
    return json.dumps(RESULTS)


@server.tool()
def sparql_rows(query: str) -> list[dict[str, Any]]:
    """Ask the graph for its rows."""
    return [{"line": "urn:line:a"}, {"line": "urn:line:b"}]


@server.tool()
def own_result() -> dict[str, list[int]]:
    """Give an object with a key that servers use themselves."""
    return {"result": [1]}


@server.tool()
def count() -> int:
    """Give a number."""
    return 3


@server.tool()
def picture() -> Image:
    """Give an image."""
    return Image(data=b"x", format="png")


@server.tool(structured_output=False)
def picture_with_words() -> list[Any]:
    """Give a text and an image."""
    return ["a line", Image(data=b"x", format="png")]


@server.tool()
def resource() -> CallToolResult:
    """Give the text of a resource, and the value beside it."""
    contents = TextResourceContents(uri="file:///lines.txt", text="2 lines", mimeType="text/plain")  # type: ignore[arg-type]
    blocks = [EmbeddedResource(type="resource", resource=contents), TextContent(type="text", text="as asked")]
    return CallToolResult(content=blocks, structuredContent={"lines": ["a", "b"]})


@server.tool()
def broken() -> list[str]:
    """Fail."""
    raise ValueError("no such store")


if __name__ == "__main__":
    server.run()
