"""What an MCP tool gave, as one text: its blocks, or the value that they were made of."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_eval_lc.capture.outputs import to_plain
from graphrag_eval_lc.json_values import json_text, parse_json

_NOT_JSON: Any = object()
_WRAPPED = "result"  # FastMCP gives values that are no objects as {"result": value}


def mcp_text(content: Any, artifact: Any = None) -> str | None:
    """Give the text of what ``langchain-mcp-adapters`` makes of a tool's result; None where it is to be read as ever.

    The blocks of a list, one for each element, are the JSON of the list: from the structured content beside them, and
    without it where each of them is JSON. A single block stays as it is, unless it stands for a list of one. Images
    and files stay among their blocks.

    Args:
        content: The content of the tool's message, or what the tool returned where it was called by hand.
        artifact: That of the message.

    Example:
        >>> blocks = [{"type": "text", "text": text, "id": f"lc_{text}"} for text in ("a", "b")]
        >>> mcp_text(blocks, {"structured_content": {"result": ["a", "b"]}})
        '["a", "b"]'
    """
    texts = _texts(content)
    if texts is None:
        return None
    structured = artifact.get("structured_content") if isinstance(artifact, Mapping) else None
    if isinstance(structured, Mapping):
        return _of_structured(structured, texts)
    if not texts or not all(_is_made_by_langchain(block) for block in content):
        return None
    if len(texts) > 1 and all(_parsed(text) is not _NOT_JSON for text in texts):
        return f"[{', '.join(text.strip() for text in texts)}]"
    return "".join(texts)


def _texts(content: Any) -> list[str] | None:
    """Give the texts of blocks that are nothing else; None for other content."""
    if not isinstance(content, list):
        return None
    texts = [block.get("text") if _is_text_block(block) else None for block in content]
    return [text for text in texts if isinstance(text, str)] if None not in texts else None


def _is_text_block(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _is_made_by_langchain(block: Mapping[str, Any]) -> bool:
    """Tell whether a block has an id of LangChain's own making, as the adapters' have, and no tool's own."""
    return str(block.get("id")).startswith("lc_")


def _of_structured(structured: Mapping[str, Any], texts: Sequence[str]) -> str:
    value = _unwrapped(structured, texts)
    if len(texts) == 1 and (not isinstance(value, list) or _parsed(texts[0]) == value):
        return texts[0]
    return json_text(value, to_plain=to_plain)


def _unwrapped(structured: Mapping[str, Any], texts: Sequence[str]) -> Any:
    """Give the value in ``{"result": value}`` where the server put it there, which shows in the blocks beside it.

    They are those of the value, and not the one of the whole object.
    """
    if set(structured) != {_WRAPPED}:
        return structured
    value = structured[_WRAPPED]
    if len(texts) != 1:
        return value if len(_leaves(value)) == len(texts) else structured
    parsed = _parsed(texts[0])
    if parsed == structured:
        return structured
    leaves = _leaves(value)
    is_of_value = parsed == value or (len(leaves) == 1 and _is_text_of(leaves[0], texts[0], parsed))
    return value if is_of_value else structured


def _leaves(value: Any) -> list[Any]:
    """Give the values for which FastMCP makes a block each: lists are flattened, and None has no block."""
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [] if value is None else [value]


def _is_text_of(leaf: Any, text: str, parsed: Any) -> bool:
    return text == leaf or parsed == leaf or (isinstance(leaf, Mapping) and isinstance(parsed, Mapping))


def _parsed(text: str) -> Any:
    try:
        return parse_json(text, allow_nan=False)
    except (ValueError, RecursionError):
        return _NOT_JSON
