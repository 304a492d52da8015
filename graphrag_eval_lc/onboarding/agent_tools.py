"""The tools that can be found in an agent before it is asked anything."""

from collections.abc import Iterable, Iterator, Mapping

from langchain_core.tools import BaseTool

_DEEPEST = 12
_INNER = ("bound", "first", "last", "builder", "runnable")
_LISTS = ("middle", "steps", "branches")


def tools_in(runnable: object) -> dict[str, BaseTool]:
    """Return the tools of an agent by their names, in its order.

    The nodes of a graph are looked through, those of subgraphs too, for LangGraph's ``ToolNode``. What a function calls
    by itself cannot be seen, and neither can the tools of an agent on a server.

    Args:
        runnable: A compiled graph or another Runnable.

    Example:
        >>> from langchain_core.tools import tool
        >>> from langgraph.prebuilt import ToolNode
        >>> @tool
        ... def run_query(query: str) -> str:
        ...     "Run a SPARQL query."
        ...     return "[]"
        >>> list(tools_in(ToolNode([run_query])))
        ['run_query']
    """
    found: dict[str, BaseTool] = {}
    for tools in _tool_tables(runnable, set(), 0):
        for name, tool in tools.items():
            found.setdefault(str(name), tool)
    return found


def _tool_tables(node: object, seen: set[int], depth: int) -> Iterator[Mapping[str, BaseTool]]:
    if node is None or id(node) in seen or depth > _DEEPEST:
        return
    seen.add(id(node))
    tools = getattr(node, "tools_by_name", None)
    if isinstance(tools, Mapping) and all(isinstance(each, BaseTool) for each in tools.values()):
        yield tools
        return
    for part in _parts(node):
        yield from _tool_tables(part, seen, depth + 1)


def _parts(node: object) -> Iterator[object]:
    nodes = getattr(node, "nodes", None)
    if isinstance(nodes, Mapping):
        yield from nodes.values()
    for name in _INNER:
        yield getattr(node, name, None)
    for name in _LISTS:
        several = getattr(node, name, None)
        if isinstance(several, Mapping):
            yield from several.values()
        elif isinstance(several, Iterable) and not isinstance(several, str | bytes):
            yield from several
