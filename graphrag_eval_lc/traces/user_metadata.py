"""What users put into a trace, without what frameworks and tracers put beside it."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.capture.outputs import to_plain

QUESTION_ID = "question_id"
# Of LangChain, LangGraph, LangSmith and Langfuse.
_BEGINNINGS = ("ls_", "lc_", "langgraph_", "checkpoint_ns", "thread_id", "run_attempt", "revision_id", "LANGSMITH_")
_KEYS = frozenset({QUESTION_ID, "is_langchain_root", "tool_call_id", "color"})


def user_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's own part of metadata as plain values.

    Example:
        >>> user_metadata({"ls_provider": "openai", "question_id": "q1", "release": 2})
        {'release': 2}
    """
    own = {str(key): value for key, value in metadata.items() if not str(key).startswith(_BEGINNINGS)}
    return {key: to_plain(value) for key, value in own.items() if key not in _KEYS}
