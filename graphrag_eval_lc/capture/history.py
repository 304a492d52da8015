"""The messages of a run: which is which, which are older than the run, and whose model calls count."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, ToolMessage

from graphrag_eval_lc.capture.llm_calls import has_run_id
from graphrag_eval_lc.capture.messages import as_message, id_of, role_and_content
from graphrag_eval_lc.capture.record import MessageList, Record, Tree, is_same_version

_USER = "human"
_ROLES = {"user": _USER, "assistant": "ai", "AIMessageChunk": "ai"}


@dataclass(slots=True, eq=False, repr=False)
class KnownMessage:
    """One message of a run in all its forms: objects, dicts, copies with another id, messages made from it."""

    form: Any  # the form that was read last
    is_read: bool = False  # whether it was read in a list
    is_old: bool = False  # whether it is older than the run, or is what the run was asked
    calls: list[Any] = field(default_factory=list)  # its ``AskedCall``s
    counted: AIMessage | None = None  # the form whose model call counts
    is_reported: bool = False  # whether a model's callback reported that form
    node: Record | None = None  # the node of the model call, or of the first list with the message
    reported_from: int = -1  # the number of the event with which the last model call began that reported it


class Reading(NamedTuple):
    """What was read in one list of messages."""

    new: Sequence[AIMessage | ToolMessage] = ()  # the messages of models and tools that are new in it, in order
    before: Any = None  # the known message before that


class History:
    """The messages of a run, each with one identity.

    Args:
        tree: The records of the run.
        ends: The ids of the last messages of the handler's earlier runs; a message up to one of them is older than
            this run, unless another rule decides first.
    """

    def __init__(self, tree: Tree, ends: set[str]) -> None:
        self.has_own = False  # whether any message of the run itself was read
        self._ends = ends
        self.had_id = tree.had_id
        self._question: str | None = None
        self._may_replace = False  # whether messages of the input may replace others in a state, by their ids
        self._known: dict[Any, KnownMessage] = {}  # by id, else by object
        self._counted: list[KnownMessage] = []  # the messages whose model calls count
        # role and content of each message in the lists of those that are older than the run
        self._old: list[list[tuple[Any, Any]]] = []
        self._old_keys: set[Any] = set()  # their ids, or else objects

    def known(self, item: Any) -> KnownMessage:
        """Return the message of which an item is a form: by its id, which langgraph may add later, or the object."""
        key = id_of(item) or id(item)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = KnownMessage(item)
        return known

    # --- whose model calls count ---

    def count(self, message: AIMessage, node: Record | None, *, is_reported: bool = False) -> None:
        """Note that a message's model call counts, with the node of the call, or of the first list with it."""
        known = self.known(message)
        known.counted, known.node, known.is_reported = message, node, is_reported
        self._counted.append(known)

    def is_counted(self, message: AIMessage, node: Record | None) -> bool:
        """Return whether a message's model call counts already, perhaps that of another form of it.

        On its way through an agent a message is copied, renamed, given another id or made again; its call counts once.
        """
        return self.known(message).counted is not None or any(
            known.counted is not None and self._is_form_of(message, known, known.counted, node)
            for known in self._counted
        )

    def _is_form_of(self, message: AIMessage, known: KnownMessage, other: AIMessage, node: Record | None) -> bool:
        if has_run_id(message) and has_run_id(other):
            return False
        if not (known.is_reported or self.had_id(message) or self.had_id(other)):
            return False  # a node's own code made both, one for each answer
        answer_ids = message.response_metadata.get("id"), other.response_metadata.get("id")  # the provider's
        if all(answer_ids):
            return bool(answer_ids[0] == answer_ids[1])
        usages = message.usage_metadata, other.usage_metadata
        has_same_tokens = usages[0] is not None and usages[0] == usages[1]
        if has_same_tokens and known.is_reported and known.node is node:
            return True  # whatever was made of its text
        is_alike = message.content == other.content and message.tool_calls == other.tool_calls
        return is_alike and (has_same_tokens or None in usages)

    # --- what is older than the run ---

    def is_old(self, item: Any) -> bool:
        """Return whether a message is older than the run."""
        known = self.known(item)
        return known.is_old if known.is_read else (id_of(item) or id(item)) in self._old_keys

    def add_input(self, lists: Sequence[MessageList], question: str | None) -> None:
        """Note the run's own input and its question."""
        self._question = question
        for messages in lists:
            self._add_old(messages.items)
            self._may_replace = self._may_replace or any(map(self.had_id, messages.items))

    def add_history(self, state: Sequence[MessageList], *, is_graph: bool) -> None:
        """Note as old what a thread's state held before the run, or before a graph in it continued the thread.

        Each node's output is read. So if no message of a graph's state was seen, only what follows the run's input is
        new. Without a graph nothing was read: what follows the end of an earlier run is new.
        """
        for messages, known in state:
            if known is None and not (self.has_own and any(self.known(item).is_read for item in messages)):
                end = self._end_of_copy(messages)
                if end is None and not is_graph:
                    end = self._end_of_earlier(messages) or None
                self._add_old(messages[:end])

    def _add_old(self, messages: Sequence[Any]) -> None:
        if messages:
            self._old.append(list(map(_shown, messages)))
            self._old_keys |= {id_of(item) or id(item) for item in messages}
            self._note(messages[-1], is_old=True)

    def _note(self, item: Any, *, is_old: bool) -> None:
        known = self.known(item)
        known.form, known.is_read, known.is_old = item, True, is_old
        self.has_own = self.has_own or not is_old

    def read(self, messages: MessageList, *, is_input: bool = False) -> Reading:
        """Return what is new in a list, and note it.

        In a node's input a list without any known message is older than the run, or another conversation.
        """
        items, before = messages
        if is_input and not self.has_own:
            # What follows the run's input in its first state comes from langgraph's cache.
            own = None if self._may_replace else 0 if before is not None else self._end_of_copy(items)
            self._add_old(items[:own])
            if own is None:
                return Reading()
            before, items = items[own - 1] if own else before, items[own:]
        if start := _end_of(items, self._is_read) or 0:
            before, items = items[start - 1], items[start:]
        first = 0
        if before is None:
            first = next((place for place, item in enumerate(items) if self.known(item).is_read), len(items))
            first = first if is_input else self._count_old(items[:first])
        for place, item in enumerate(items):
            self._note(item, is_old=place < first)
        found = [as_message(item) for item in items[first:]]
        new = [message for message in found if isinstance(message, (AIMessage, ToolMessage))]
        return Reading(new, items[first - 1] if first else before)

    def _is_read(self, item: Any) -> bool:
        """Return whether this version of a message was read."""
        known = self.known(item)
        return known.is_read and is_same_version(known.form, item)

    def _count_old(self, items: Sequence[Any]) -> int:
        """Return how many messages at the beginning of a list of unknown ones are older than the run.

        The first of these decides: copies of the run's input, the end of an earlier run, a message with the question.
        """
        if (end := self._end_of_copy(items)) is not None:
            return end
        start = self._end_of_earlier(items)
        rest = items[start:] or items  # a state that is nothing but an earlier one was kept for this question
        asking = next((shown for item in rest if self._has_question(shown := _shown(item))), None)
        if asking is None:
            return start
        return _end_of(items, lambda item: _shown(item) == asking) or start  # asked again in each turn

    def _end_of_earlier(self, messages: Sequence[Any]) -> int:
        """Return the place behind the end of an earlier run; 0 if there is none."""
        return _end_of(messages, lambda item: id_of(item) in self._ends) or 0

    def _end_of_copy(self, messages: Sequence[Any]) -> int | None:
        """Return the place behind the last copy of a list of old messages, else of the user's message at its end."""
        shown = list(map(_shown, messages)) if self._old else []
        for old in self._old:
            for end in range(len(shown), len(old) - 1, -1):
                if shown[end - 1] == old[-1] and shown[end - len(old) : end] == old:
                    return end
        asking = [old[-1] for old in self._old if old[-1][0] == _USER]
        return _end_of(shown, asking.__contains__) if asking else None

    def _has_question(self, shown: tuple[Any, Any]) -> bool:
        """Return whether a user's message, as role and content, has the run's question in its text."""
        role, content = shown
        if role != _USER or not self._question or not isinstance(content, str):
            return False
        return re.search(rf"(?<!\w){re.escape(self._question)}(?!\w)", content) is not None


def _end_of(messages: Sequence[Any], is_last: Callable[[Any], bool]) -> int | None:
    """Return the place behind the last message of a kind."""
    for end in range(len(messages), 0, -1):
        if is_last(messages[end - 1]):
            return end
    return None


def _shown(item: Any) -> tuple[Any, Any]:
    """Return role and content of a message, in which copies of it are equal."""
    role, content = role_and_content(item)
    return _ROLES.get(role, role), content
