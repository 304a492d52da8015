"""The tools that can be found in an agent before it is asked anything."""

from collections.abc import Iterable, Iterator, Mapping

from langchain_core.tools import BaseTool

_DEEPEST = 12
_INNER = ("bound", "first", "last", "builder", "runnable")
_SEVERAL = ("nodes", "middle", "steps", "branches")


def tools_in(runnable: object) -> dict[str, BaseTool]:
    """Return the tools of an agent by their names, in its order.

    The nodes of a graph and of its subgraphs are searched for LangGraph's ``ToolNode``. Tools that a function calls
    itself, and those of an agent on a server, are not visible.
    """
    found: dict[str, BaseTool] = {}
    for name, tool in _tools_below(runnable, set(), 0):
        found.setdefault(name, tool)
    return found


def _tools_below(node: object, seen: set[int], depth: int) -> Iterator[tuple[str, BaseTool]]:
    if node is None or id(node) in seen or depth > _DEEPEST:
        return
    seen.add(id(node))
    tools = getattr(node, "tools_by_name", None)
    if isinstance(tools, Mapping) and all(isinstance(each, BaseTool) for each in tools.values()):
        yield from ((str(name), tool) for name, tool in tools.items())
        return
    parts = [getattr(node, name, None) for name in _INNER]
    for name in _SEVERAL:
        several = getattr(node, name, None)
        if isinstance(several, Mapping):
            parts.extend(several.values())
        elif isinstance(several, Iterable) and not isinstance(several, str | bytes):
            parts.extend(several)
    for part in parts:
        yield from _tools_below(part, seen, depth + 1)
