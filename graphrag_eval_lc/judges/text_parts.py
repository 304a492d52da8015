"""Texts in parts: content blocks as one text, and halves of a text that is too long for a model."""

from typing import Any

_LEAST_PART = 200  # characters; what is shorter does not get a request below a model's bound
_BREAKS = ("\n\n", "\n", ". ", " ")
_NEAR_THE_MIDDLE = 0.25  # of the text, on each side


def halves_of(text: str) -> list[str]:
    r"""Return two parts of a text, cut near its middle, between paragraphs, lines, sentences or words where it can be.

    Returns:
        One part, the whole text, where it is too short to be cut.

    Example:
        >>> [part.strip() for part in halves_of("One line.\n" * 30 + "\n" + "Another.\n" * 30)][1][:8]
        'Another.'
    """
    if len(text) < 2 * _LEAST_PART:
        return [text]
    middle, reach = len(text) // 2, int(len(text) * _NEAR_THE_MIDDLE)
    for separator in _BREAKS:
        before = text.rfind(separator, middle - reach, middle)
        after = text.find(separator, middle, middle + reach)
        found = [place for place in (before, after) if place >= 0]
        if found:
            cut = min(found, key=lambda place: abs(place - middle)) + len(separator)
            return [text[:cut], text[cut:]]
    return [text[:middle], text[middle:]]


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
