"""The MCP server, started by the command and called by the real client over standard input and output."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark

pytestmark = pytest.mark.full
mcp = pytest.importorskip("mcp")
TOOLS = {"list_runs", "failures", "explain", "compare", "validate", "lint"}
DATASET = """
- template_id: sums
  questions:
""" + "".join(
    f"""
  - id: q{number}
    question_text: {number} + 1?
    reference_steps: [[{{name: add, args: {{}}, output: "2"}}]]
"""
    for number in range(1, 13)
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    (folder / "qa.yaml").write_text(DATASET)
    for name in ("monday", "tuesday"):
        run_benchmark(
            lambda question: "password=hunter22", folder / "qa.yaml", output_dir=folder / name, progress="off"
        )
    return folder


def answers(folder: Path, *calls: tuple[str, dict[str, Any]]) -> tuple[list[Any], list[str]]:
    """Return the server's tools and its answers to the calls."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def ask() -> tuple[list[Any], list[str]]:
        command = StdioServerParameters(command=sys.executable, args=["-m", "graphrag_eval_lc", "mcp", str(folder)])
        async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            found = [await session.call_tool(name, arguments) for name, arguments in calls]
            return tools, [each.content[0].text for each in found]

    return asyncio.run(ask())


def test_a_coding_agent_reads_runs(runs: Path) -> None:
    tools, (listed, failed, second, explained, compared, valid, linted, unknown) = answers(
        runs,
        ("list_runs", {}),
        ("failures", {"run": "monday"}),
        ("failures", {"run": "monday", "page": 2}),
        ("explain", {"question_id": "q3"}),
        ("compare", {"a": "monday"}),
        ("validate", {}),
        ("lint", {"run": "tuesday"}),
        ("explain", {"question_id": "q3", "run": "mondey"}),
    )
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.annotations.readOnlyHint for tool in tools)
    assert [line.split(":")[0] for line in listed.splitlines()[:2]] == ["tuesday", "monday"]
    assert failed.startswith("0 of 12 right, 12 wrong")
    assert failed.count("the agent did not call add") == 10
    assert failed.endswith("(12 questions, page 1 of 2; next: page=2)")
    assert second.endswith("(12 questions, page 2 of 2)")
    assert explained.startswith("q3 of sums: 3 + 1?")
    assert "hunter22" not in explained
    assert "No question changed." in compared
    assert "none of 12 responses has a tool call" in valid
    assert linted.startswith("0 queries checked")
    assert unknown == "Error: no finished run is called 'mondey'. Did you mean monday?"
