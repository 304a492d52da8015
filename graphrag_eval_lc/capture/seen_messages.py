"""The messages that a run has met: which are older than the run, and which of those in a state are new to it."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage

from graphrag_eval_lc.capture.messages import as_message, message_lists, role_and_content

_LAST_OF_PROMPT = 8
_USER_ROLES = ("human", "user")
_MODEL_ROLES = ("ai", "assistant", "AIMessageChunk")
_ROLES = {"user": "human", "assistant": "ai", "AIMessageChunk": "ai"}


class _Met(Enum):
    """How a message was met."""

    OLD = "it stood before the run, or is what the run was asked"
    TOLD = "a model's callback told of it; what stands before it in a list was not read yet"
    READ = "it was read in a list, as was all that stands before it"


class NewMessage(NamedTuple):
    """A message of a model or tool that is new in a list; ``is_told`` where a model's callback has told of it."""

    message: AIMessage | ToolMessage
    is_told: bool


class Reading(NamedTuple):
    """What was read in one list of messages.

    Attributes:
        new: What is new in it, in order.
        before: The known message before that.
        removed: The ids of messages that a state is to drop.
        passed_over: The list, where none of its messages was known and none is the run's.
    """

    new: Sequence[NewMessage] = ()
    before: BaseMessage | None = None
    removed: Sequence[str | None] = ()
    passed_over: Sequence[Any] = ()


class SeenMessages:
    """All messages that a run has met.

    Messages are known by their id, and those without one by the object itself (langgraph gives the same object an
    id later). Lists are read from their end up to the first message that was read before, and what stood before the
    run is not looked through unless it has to be: a turn costs the same however long its history is.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, _Met] = {}
        self._objects: dict[int, tuple[Any, _Met]] = {}
        # How many were read as dicts without an id, of which states make messages that have one.
        self._nameless: dict[Any, int] = {}
        self._old: list[tuple[Any, ...]] = []
        self._old_keys: set[Any] | None = None
        self._told: dict[Any, tuple[AIMessage, UUID]] = {}
        self._has_own = False

    def __reduce__(self) -> tuple[type["SeenMessages"], tuple[()]]:
        """Leave the messages behind where a handler is copied or pickled: they are known by the objects they are."""
        return SeenMessages, ()

    @property
    def has_own(self) -> bool:
        """Whether any message of the run itself was met."""
        return self._has_own

    def clear(self) -> None:
        """Forget all messages."""
        for kept in (self._by_id, self._objects, self._nameless, self._old, self._told):
            kept.clear()
        self._old_keys = None

    def add_told(self, message: AIMessage, node_id: UUID) -> None:
        """Note a message that a model's callback told of, in a node of a graph."""
        if self._find(message) is None:
            self._note(message, _Met.TOLD)
            self._told[_key(message)] = message, node_id

    def add_old(self, messages: Sequence[Any]) -> None:
        """Note messages that stood before the run; the last of them is where reading stops."""
        if messages and self._find(messages[-1]) is None:
            self._old.append(tuple(messages))
            self._old_keys = None
            self._note(messages[-1], _Met.OLD)

    def add_prompt(self, prompt: Sequence[BaseMessage]) -> None:
        """Note what stands in the first prompt of the run, up to the user's last message, as older than the run."""
        if prompt and self._find(prompt[-1]) is None:
            roles = [message.type for message in prompt[-_LAST_OF_PROMPT:]]
            if "human" in roles:
                self.add_old(prompt[: len(prompt) - roles[::-1].index("human")])

    def is_old(self, item: Any) -> bool:
        """Tell whether a message stood before the run."""
        met = self._find(item)
        return self._is_among_old(item) if met is None else met is _Met.OLD

    def is_told_again(self, message: AIMessage, node_id: UUID) -> bool:
        """Tell whether a new message is one that a callback told of in the same node, made anew; each counts once."""
        for key, (told, told_in) in self._told.items():
            is_alike = told.content == message.content and told.tool_calls == message.tool_calls
            if told_in == node_id and (is_alike or told.usage_metadata == message.usage_metadata is not None):
                del self._told[key]
                return True
        return False

    def read(self, value: Any, *, unknown: Literal["new", "old", "elsewhere"] = "new") -> list[Reading]:
        """Give what is new in a node's input or output, and note it.

        Args:
            value: The input or output.
            unknown: What a list holds of which no message is known: new ones, ones that are older than the run, or
                those of another conversation.
        """
        return [self._read_list(messages, unknown) for messages in message_lists(value)]

    def _read_list(self, messages: Sequence[Any], unknown: str) -> Reading:
        if unknown == "old" and not self._has_own:
            self.add_old(messages)
            return Reading(passed_over=messages)
        unread, before = self._unread(messages)
        told = [self._find(item) is _Met.TOLD for item in unread]
        first = 0
        if before is None:
            first_told = told.index(True) if True in told else None
            if unknown == "new":
                first = self._count_old(unread[:first_told])
            elif first_told is not None:
                first = first_told
            elif unknown == "old":
                self.add_old(messages)
                return Reading(passed_over=messages)
            else:
                first = len(unread)
        older = first if unknown == "new" else 0
        for place, item in enumerate(unread):
            self._note(item, _Met.OLD if place < older else _Met.READ)
            self._told.pop(_key(item), None)
            self._told.pop(id(item), None)  # told of before it had an id
        new = list(zip(map(as_message, unread[first:]), told[first:], strict=True))
        return Reading(
            [NewMessage(each, is_told) for each, is_told in new if isinstance(each, (AIMessage, ToolMessage))],
            before,
            [each.id for each, _ in new if isinstance(each, RemoveMessage)],
            messages if first and first == len(unread) else (),
        )

    def _unread(self, messages: Sequence[Any]) -> tuple[list[Any], BaseMessage | None]:
        """Give the end of a list that was not read yet, and the known message before it.

        Known tool messages are passed over: those of parallel nodes come in one by one.
        """
        unread: list[Any] = []
        for item in reversed(messages):
            met = self._find(item)
            if met is None or met is _Met.TOLD:
                unread.append(item)
            elif role_and_content(item)[0] != "tool":
                unread.reverse()
                return unread, as_message(item)
        unread.reverse()
        return unread, None

    def _find(self, item: Any) -> _Met | None:
        identifier = _id_of(item)
        met = None if identifier is None else self._by_id.get(identifier)
        if met is not None:
            return met
        entry = self._objects.get(id(item))
        if entry is not None:
            return entry[1]
        if self._nameless and identifier is not None and (key := _content_key(item)) in self._nameless:
            self._nameless[key] -= 1
            if not self._nameless[key]:
                del self._nameless[key]
            self._note(item, _Met.READ)
            return _Met.READ
        return None

    def _note(self, item: Any, met: _Met) -> None:
        self._has_own = self._has_own or met is not _Met.OLD
        identifier = _id_of(item)
        if identifier is not None:
            self._by_id[identifier] = met
            return
        self._objects[id(item)] = (item, met)
        if met is _Met.READ and isinstance(item, Mapping):
            key = _content_key(item)
            self._nameless[key] = self._nameless.get(key, 0) + 1

    # --- what stood before the run ---

    def _is_among_old(self, item: Any) -> bool:
        if not self._old:
            return False
        if self._old_keys is None:
            self._old_keys = {key for messages in self._old for each in messages for key in (_key(each), id(each))}
        return id(item) in self._old_keys or _id_of(item) in self._old_keys

    def _count_old(self, unread: Sequence[Any]) -> int:
        """Give how many messages at the beginning of a list of unknown ones are older than the run.

        They are the same objects, or else copies: of all that the run was given, or of its last question. Only where
        a model's message is among them it matters.
        """
        if not any(role_and_content(item)[0] in _MODEL_ROLES for item in unread):
            return 0
        for count in range(len(unread), 0, -1):
            if self._is_among_old(unread[count - 1]):
                return count
        copied = [len(old) for old in self._old if len(old) <= len(unread) and all(map(_is_copy, old, unread))]
        if copied:
            return max(copied)
        for old in self._old:
            for count in range(len(unread), 0, -1):
                if role_and_content(old[-1])[0] in _USER_ROLES and _is_copy(old[-1], unread[count - 1]):
                    return count
        return 0


def _key(item: Any) -> Any:
    return _id_of(item) or id(item)


def _id_of(item: Any) -> str | None:
    identifier = item.id if isinstance(item, BaseMessage) else item.get("id") if isinstance(item, Mapping) else None
    return identifier if isinstance(identifier, str) else None


def _content_key(item: Any) -> Any:
    message = as_message(item)
    if message is None:
        return None
    calls = [call["id"] for call in message.tool_calls] if isinstance(message, AIMessage) else ()
    answered = message.tool_call_id if isinstance(message, ToolMessage) else None
    return message.type, str(message.content), tuple(calls), answered


def _is_copy(one: Any, other: Any) -> bool:
    role, content = role_and_content(one)
    other_role, other_content = role_and_content(other)
    return bool(_ROLES.get(role, role) == _ROLES.get(other_role, other_role) and content == other_content)
