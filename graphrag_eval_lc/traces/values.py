"""Values of traces go in, plain values come out: texts of JSON or Python, documents, metadata of users."""

import ast
from collections.abc import Mapping
from typing import Any, Final

from graphrag_eval_lc.capture.values import to_plain
from graphrag_eval_lc.json_values import json_text, parse_json

QUESTION_ID: Final = "question_id"
# What LangChain, LangGraph, LangSmith and Langfuse add to the metadata.
_BEGINNINGS: Final = (
    "ls_", "lc_", "langgraph_", "checkpoint_ns", "thread_id", "run_attempt", "revision_id", "LANGSMITH_",
)  # fmt: skip
_KEYS: Final = frozenset({QUESTION_ID, "is_langchain_root", "tool_call_id", "color"})
_TEXTS: Final = ("content", "page_content", "text")


def parsed(value: Any) -> Any:
    """Return the value of a JSON text that holds an object or a list; anything else as it is.

    Example:
        >>> parsed('{"a": 1}'), parsed("a"), parsed("12")
        ({'a': 1}, 'a', '12')
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return parse_json(value)
    except (ValueError, RecursionError):
        return value


def as_mapping(value: Any) -> Any:
    """Return the mapping in a text of JSON or Python; anything else as it is.

    Example:
        >>> as_mapping("{'query': 'a'}"), as_mapping("a")
        ({'query': 'a'}, 'a')
    """
    value = parsed(value)
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        literal = ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value
    return literal if isinstance(literal, dict) and all(isinstance(key, str) for key in literal) else value


def document(item: Any) -> Any:
    """Return a retrieved document as ``{"id", "text"}``; anything else as it is."""
    if not isinstance(item, Mapping):
        return item
    inner = item.get("document", item)
    inner = inner.get("kwargs", inner) if isinstance(inner, Mapping) else {}
    text = next((inner[key] for key in _TEXTS if isinstance(inner.get(key), str)), None)
    if text is None:
        return item
    metadata = parsed(inner.get("metadata"))
    identifier = inner.get("id")
    if identifier is None and isinstance(metadata, Mapping):
        identifier = metadata.get("id")
    return {"text": text} if identifier is None else {"id": identifier, "text": text}


def only_text(value: Mapping[str, Any]) -> str | None:
    """Return the only text among the values of a mapping, as of a function with one input of any name.

    Example:
        >>> only_text({"asked": "Why?", "k": 3}), only_text({"asked": "Why?", "user": "me"})
        ('Why?', None)
    """
    texts = [item for item in value.values() if isinstance(item, str)]
    return texts[0] if len(texts) == 1 else None


def text_or_none(value: Any) -> str | None:
    """Return a value as a text; None if it is missing or empty."""
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json_text(value)


def user_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's own part of metadata as plain values, without what frameworks and tracers add.

    Example:
        >>> user_metadata({"ls_provider": "openai", "question_id": "q1", "release": 2})
        {'release': 2}
    """
    own = {str(key): value for key, value in metadata.items() if not str(key).startswith(_BEGINNINGS)}
    return {key: to_plain(value) for key, value in own.items() if key not in _KEYS}
