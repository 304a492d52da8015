"""Content blocks as one text."""

from typing import Any

_TEXT_BLOCKS = frozenset({None, "text", "output_text"})


def content_text(content: Any) -> str:
    """Return the text of a message's content, which may be a list of blocks; thoughts and pictures have none.

    Example:
        >>> content_text([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Oslo"}, " it is."])
        'Oslo it is.'
    """
    if isinstance(content, list):
        return "".join(map(_block_text, content))
    return content if isinstance(content, str) else ""


def _block_text(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) and block.get("type") in _TEXT_BLOCKS else block
    return text if isinstance(text, str) else ""
