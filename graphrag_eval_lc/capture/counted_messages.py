"""The messages of the model calls that a run has counted, by which a copy of one is told from another call's."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage

from graphrag_eval_lc.registry.metrics import INPUT_TOKENS, OUTPUT_TOKENS

# The ids of messages that LangChain or a provider gives to what a model wrote.
_RUN_ID = re.compile(r"(?:lc_)?run-.|chatcmpl-.|(?:msg|resp)_[0-9A-Za-z]{16}")


def has_run_id(message: AIMessage) -> bool:
    """Tell whether a message has an id that only what a model wrote has."""
    return message.id is not None and _RUN_ID.match(message.id) is not None


# A message, its id as it was then (langgraph gives messages one later), its node, and whether a callback told of it.
_Counted = tuple[AIMessage, str | None, UUID, bool]


class CountedMessages:
    """The messages whose model calls a run has counted, each as it was first met.

    A message is copied, renamed, given another id or made anew on its way through an agent; the model's call costs
    once all the same.
    """

    __slots__ = ("_all", "_by_tokens")

    def __init__(self) -> None:
        self._all: list[_Counted] = []
        self._by_tokens: dict[Any, list[_Counted]] | None = None  # made when it is first needed

    def clear(self) -> None:
        """Forget all messages."""
        self._all.clear()
        self._by_tokens = None

    def add(self, message: AIMessage, node_id: UUID, *, is_told: bool) -> None:
        """Note a message whose call is counted.

        Args:
            message: The message.
            node_id: The node of a graph in which the model was called, or the message first met.
            is_told: Whether a model's callback told of it.
        """
        counted = (message, message.id, node_id, is_told)
        self._all.append(counted)
        if self._by_tokens is not None:
            self._by_tokens.setdefault(_tokens(message), []).append(counted)

    def has(self, message: AIMessage, node_id: UUID) -> bool:
        """Tell whether the call that a message tells of is counted already."""
        return any(_is_copy(message, counted, node_id) for counted in self._alike(message))

    def _alike(self, message: AIMessage) -> Iterable[_Counted]:
        if message.usage_metadata is None:
            return self._all
        if self._by_tokens is None:
            self._by_tokens = {}
            for counted in self._all:
                self._by_tokens.setdefault(_tokens(counted[0]), []).append(counted)
        return (*self._by_tokens.get(_tokens(message), ()), *self._by_tokens.get(None, ()))


def _tokens(message: AIMessage) -> Any:
    usage = message.usage_metadata
    return None if usage is None else (usage.get(INPUT_TOKENS), usage.get(OUTPUT_TOKENS))


def _is_copy(message: AIMessage, counted: _Counted, node_id: UUID) -> bool:
    """Tell whether a message is another form of one that was counted."""
    other, other_id, other_node_id, is_told = counted
    if message is other or (message.id is not None and message.id == other_id):
        return True
    answers = _answer_id(message), _answer_id(other)
    is_same_answer = None not in answers and answers[0] == answers[1]
    if None not in answers and not is_same_answer:
        return False
    if not is_told and message.id is None and other_id is None:
        return False  # a node's own code made both, one for each answer
    if has_run_id(message) and other_id is not None and _RUN_ID.match(other_id):
        return False
    has_same_tokens = message.usage_metadata is not None and message.usage_metadata == other.usage_metadata
    if has_same_tokens and (is_same_answer or (is_told and other_node_id == node_id)):
        return True  # whatever was made of its text
    is_alike = message.content == other.content and message.tool_calls == other.tool_calls
    return is_alike and (has_same_tokens or message.usage_metadata is None or other.usage_metadata is None)


def _answer_id(message: AIMessage) -> Any:
    """Give the provider's id of the answer, where the message keeps it."""
    metadata: Mapping[str, Any] = message.response_metadata
    return metadata.get("id") or None
