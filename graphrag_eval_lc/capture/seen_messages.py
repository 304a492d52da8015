"""Which messages of a run are new, and whose model calls are counted already."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from itertools import takewhile
from typing import Any, Literal, NamedTuple
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage

from graphrag_eval_lc.capture.messages import as_message, message_lists, role_and_content
from graphrag_eval_lc.registry.metrics import INPUT_TOKENS, OUTPUT_TOKENS

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
        passed_over: The whole list, where no message was known and none is the run's own.
    """

    new: Sequence[NewMessage] = ()
    before: BaseMessage | None = None
    removed: Sequence[str | None] = ()
    passed_over: Sequence[Any] = ()


class SeenMessages:
    """All messages that a run has met.

    A message is known by its id, and without one by the object itself, to which langgraph gives an id later. Lists
    are read from their end up to the first known message, and what stood before the run is searched only where it
    must be: a turn costs the same however long its history is.

    Args:
        ends: The ids of the last messages of the handler's earlier runs; a message up to one of them is older than
            this run, where nothing better tells. This run adds its own.

    Attributes:
        has_own: Whether any message of the run itself was met.
    """

    __slots__ = ("_by_id", "_ends", "_nameless", "_objects", "_old", "_old_keys", "_question", "has_own")

    def __init__(self, ends: set[str] | None = None) -> None:
        self._ends: set[str] = set() if ends is None else ends
        self._question: str | None = None
        self._by_id: dict[str, _Met] = {}
        self._objects: dict[int, tuple[Any, _Met]] = {}
        # Counts of the dicts and pairs without an id that were read; states make messages with ids of them.
        self._nameless: dict[Any, int] = {}
        self._old: list[tuple[Any, ...]] = []
        self._old_keys: set[Any] | None = None
        self.has_own = False

    def add_told(self, message: AIMessage) -> None:
        """Note a message that a model's callback told of."""
        if self._find(message) is None:
            self._note(message, _Met.TOLD)

    def add_input(self, inputs: Any, question: str | None) -> list[Sequence[Any]]:
        """Note the run's own input and its question, and return the input's lists of messages."""
        self._question = question
        lists = list(message_lists(inputs))
        for messages in lists:
            self.add_old(messages)
        return lists

    def add_end(self, output: Any) -> None:
        """Note the last messages of the run's output."""
        for messages in message_lists(output):
            if (identifier := _id_of(messages[-1])) is not None:
                self._ends.add(identifier)

    def add_history(
        self, state: Any, given: Sequence[Sequence[Any]] | None, *, is_start: bool = False, is_graph: bool = True
    ) -> None:
        """Note as old what a thread's state held before the run, or a graph in it, went on with the thread.

        Each node's output is read. So where no message of a graph's state was met, only what follows the graph's
        input is new. Without a graph nothing was read: what follows the end of an earlier run is new.

        Args:
            state: The state at the end, or the input of a graph's first node.
            given: The lists of messages in the graph's input; None for the run's own.
            is_start: Whether it is the state at the start, where the given messages themselves are no history.
            is_graph: Whether it is the state of a graph.
        """
        given = self._old if given is None else given
        for messages in message_lists(state):
            if is_start and (length := _length_of_copy(messages, given)):
                self.add_old(messages[:-length])
                continue
            unread, told, before = self._unread(messages)
            if before is not None or True in told:
                continue
            end = _end_of_copy(unread, given)
            if end is None and not is_graph:
                end = self._end_of_earlier(unread) or None
            self.add_old(unread[:end])

    def add_old(self, messages: Sequence[Any]) -> None:
        """Note messages that stood before the run; reading stops at the last of them."""
        if messages and self._find(messages[-1]) is None:
            self._old.append(tuple(messages))
            self._old_keys = None
            self._note(messages[-1], _Met.OLD)

    def add_prompt(self, prompt: Sequence[BaseMessage]) -> None:
        """Note the run's first prompt as old, up to the run's question.

        Without the question in it, up to the user's last message: a function has loaded the history itself.
        """
        if prompt and self._find(prompt[-1]) is None:
            if (asked := self._end_of_question(prompt, self._holds_question)) is not None:
                self.add_old(prompt[:asked])
                return
            roles = [message.type for message in prompt[-_LAST_OF_PROMPT:]]
            if "human" in roles:
                self.add_old(prompt[: len(prompt) - roles[::-1].index("human")])

    def is_old(self, item: Any) -> bool:
        """Return whether a message stood before the run."""
        met = self._find(item)
        return self._is_among_old(item) if met is None else met is _Met.OLD

    def read(self, value: Any, *, unknown: Literal["new", "old", "elsewhere"] = "new") -> list[Reading]:
        """Return what is new in a node's input or output, and note it.

        Args:
            value: The input or output.
            unknown: What a list without any known message is taken for: new, older than the run, or another
                conversation.
        """
        return [self._read_list(messages, unknown) for messages in message_lists(value)]

    def _read_list(self, messages: Sequence[Any], unknown: str) -> Reading:
        if unknown == "old" and not self.has_own:
            self.add_old(messages)
            return Reading(passed_over=messages)
        unread, told, before = self._unread(messages)
        if before is not None and not unread:
            return Reading(before=before)
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
        if first:
            before = as_message(unread[first - 1])
        new: list[NewMessage] = []
        removed: list[str | None] = []
        for item, is_told in zip(unread[first:], told[first:], strict=True):
            message = as_message(item)
            if isinstance(message, (AIMessage, ToolMessage)):
                new.append(NewMessage(message, is_told))
            elif isinstance(message, RemoveMessage):
                removed.append(message.id)
        return Reading(new, before, removed, messages if first and first == len(unread) else ())

    def _unread(self, messages: Sequence[Any]) -> tuple[list[Any], list[bool], BaseMessage | None]:
        """Return the unread end of a list, whether callbacks told of each message, and the known one before it.

        Known tool messages are passed over: those of parallel nodes come in one by one.
        """
        unread: list[Any] = []
        told: list[bool] = []
        before = None
        for item in reversed(messages):
            met = self._find(item)
            if met is None or met is _Met.TOLD:
                unread.append(item)
                told.append(met is not None)
            elif role_and_content(item)[0] != "tool":
                before = as_message(item)
                break
        unread.reverse()
        told.reverse()
        return unread, told, before

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
        self.has_own = self.has_own or met is not _Met.OLD
        identifier = _id_of(item)
        if identifier is not None:
            self._by_id[identifier] = met
            return
        self._objects[id(item)] = (item, met)
        if met is _Met.READ and not isinstance(item, BaseMessage):
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
        """Return how many messages at the beginning of a list of unknown ones are older than the run.

        The first of these tells: the same object as an old message, copies of the run's input or of its last
        question, the question itself, the end of an earlier run, a message that holds the question. Without a model's
        message in the list it does not matter.
        """
        if not any(role_and_content(item)[0] in _MODEL_ROLES for item in unread):
            return 0
        for count in range(len(unread), 0, -1):
            if self._is_among_old(unread[count - 1]):
                return count
        end = _end_of_copy(unread, self._old)
        if end is not None:
            return end
        if (end := self._end_of_question(unread, self._is_question)) is not None:
            return end
        start = self._end_of_earlier(unread)
        rest = unread[start:] or unread  # a state that is nothing but an earlier one was kept for this question
        asking = next((item for item in rest if self._holds_question(item)), None)
        if asking is None:
            return start
        return max(end for end, item in enumerate(unread, 1) if _is_copy(asking, item))  # asked again in each turn

    def _end_of_earlier(self, messages: Sequence[Any]) -> int:
        """Return the place behind the end of an earlier run; 0 where there is none."""
        return next((end for end in range(len(messages), 0, -1) if _id_of(messages[end - 1]) in self._ends), 0)

    @staticmethod
    def _end_of_question(messages: Sequence[Any], is_asked: Callable[[Any], bool]) -> int | None:
        """Return the place behind the last message that is the run's question."""
        return next((end for end in range(len(messages), 0, -1) if is_asked(messages[end - 1])), None)

    def _is_question(self, item: Any) -> bool:
        role, content = role_and_content(item)
        return role in _USER_ROLES and bool(content) and content == self._question

    def _holds_question(self, item: Any) -> bool:
        """Return whether a user's message is of the run's input, or has the run's question in it."""
        role, content = role_and_content(item)
        if role not in _USER_ROLES:
            return False
        if self._find(item) is _Met.OLD:
            return True
        if not self._question or not isinstance(content, str) or self._question not in content:
            return False
        return re.search(rf"(?<!\w){re.escape(self._question)}(?!\w)", content) is not None


def _end_of_copy(messages: Sequence[Any], given: Sequence[Sequence[Any]]) -> int | None:
    """Return the place behind the last copy of a given list, or else of the user's message at its end."""
    for old in given:
        for end in range(len(messages), len(old) - 1, -1):
            if all(map(_is_copy, reversed(old), reversed(messages[end - len(old) : end]))):
                return end
    for old in given:
        for end in range(len(messages), 0, -1):
            if role_and_content(old[-1])[0] in _USER_ROLES and _is_copy(old[-1], messages[end - 1]):
                return end
    return None


def _length_of_copy(messages: Sequence[Any], given: Sequence[Sequence[Any]]) -> int:
    """Return how many messages at the end of a list are copies of a given list's end."""
    lengths = (sum(1 for _ in takewhile(bool, map(_is_copy, reversed(old), reversed(messages)))) for old in given)
    return max(lengths, default=0)


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


# Ids that LangChain or a provider gives to a model's message.
_RUN_ID = re.compile(r"(?:lc_)?run-.|chatcmpl-.|(?:msg|resp)_[0-9A-Za-z]{16}")


def has_run_id(message: AIMessage) -> bool:
    """Return whether a message's id shows that a model wrote it."""
    return message.id is not None and _RUN_ID.match(message.id) is not None


# A message, its id at that time (langgraph gives one later), its node, and whether a callback told of it.
_Counted = tuple[AIMessage, str | None, UUID, bool]


class CountedMessages:
    """The messages whose model calls a run has counted, each as it was first met.

    On its way through an agent a message is copied, renamed, given another id or made anew; its call counts once.
    """

    __slots__ = ("_all", "_by_tokens")

    def __init__(self) -> None:
        self._all: list[_Counted] = []
        self._by_tokens: dict[Any, list[_Counted]] | None = None  # made when it is first needed

    def add(self, message: AIMessage, node_id: UUID, *, is_told: bool) -> None:
        """Note a message whose call is counted, with the node of the call, or where the message was first met."""
        counted = (message, message.id, node_id, is_told)
        self._all.append(counted)
        if self._by_tokens is not None:
            self._by_tokens.setdefault(_tokens(message), []).append(counted)

    def has(self, message: AIMessage, node_id: UUID) -> bool:
        """Return whether a message's model call is counted already."""
        return any(_is_form_of(message, counted, node_id) for counted in self._alike(message))

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


def _is_form_of(message: AIMessage, counted: _Counted, node_id: UUID) -> bool:
    """Return whether a message is another form of one that was counted."""
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
    """Return the provider's id of the answer, where the message keeps it."""
    metadata: Mapping[str, Any] = message.response_metadata
    return metadata.get("id") or None
