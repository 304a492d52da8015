"""Which message each form of a message is, and which messages were there before the run."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage

from graphrag_eval_lc.capture.calls import KnownMessage, Seen
from graphrag_eval_lc.capture.llm_calls import has_run_id
from graphrag_eval_lc.capture.messages import as_message, role_and_content
from graphrag_eval_lc.capture.record import MessageList, Record, id_of, is_same_version
from graphrag_eval_lc.registry.metrics import INPUT_TOKENS, OUTPUT_TOKENS

_LAST_OF_PROMPT = 8
_USER_ROLES = ("human", "user")
_MODEL_ROLES = ("ai", "assistant", "AIMessageChunk")
_ROLES = {"user": "human", "assistant": "ai", "AIMessageChunk": "ai"}


class NewMessage(NamedTuple):
    """A message of a model or tool that is new in a list; ``is_unknown``: no callback and no list had it before."""

    message: AIMessage | ToolMessage
    known: KnownMessage
    is_unknown: bool = False


class Reading(NamedTuple):
    """What was read in one list of messages."""

    new: Sequence[NewMessage] = ()  # what is new in it, in order
    before: BaseMessage | None = None  # the known message before that
    removed: Sequence[str | None] = ()  # the ids of messages that a state is to drop
    passed_over: Sequence[Any] = ()  # the list, if no message was known and none is the run's own


class History:
    """The messages of a run, each with one identity, and which of them were there before it.

    Args:
        ends: The ids of the last messages of the handler's earlier runs; a message up to one of them is older than
            this run, unless another rule decides first.
        nameless: The messages that had no id when they were first read.
    """

    def __init__(self, ends: set[str], nameless: set[int]) -> None:
        self._ends_before = ends
        self._ends: set[str] = set()  # those of this run: of the runs of a block
        self._nameless = nameless
        self._question: str | None = None
        self._may_replace = False  # whether the input may take the place of messages before others
        self._known: dict[Any, KnownMessage] = {}  # by id, else by object
        self._counted: dict[Any, list[KnownMessage]] = {}  # the messages whose model calls count, by their tokens
        self._old: list[tuple[Any, ...]] = []
        self._old_keys: set[Any] | None = None
        self.has_own = False  # whether any message of the run itself was seen

    # --- which message it is ---

    def known(self, item: Any) -> KnownMessage:
        """Return the message of which an item is a form: by its id, which langgraph may give later, or the object."""
        key = id_of(item) or id(item)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = KnownMessage(item)
        return known

    def _note(self, item: Any, seen: Seen) -> KnownMessage:
        known = self.known(item)
        known.form, known.seen = item, seen
        self.has_own = self.has_own or seen is not Seen.OLD
        return known

    def add_reported(self, message: AIMessage, known: KnownMessage, node: Record | None) -> None:
        """Note a message that a model's callback reported, whose call counts."""
        if known.seen is None:
            self._note(message, Seen.REPORTED)
        self.count(message, known, node, is_reported=True)

    def count(self, message: AIMessage, known: KnownMessage, node: Record | None, *, is_reported: bool = False) -> None:
        """Note that a message's model call counts, with the node of the call, or where the message was first seen."""
        known.counted, known.node, known.is_reported = message, node, is_reported
        known.had_id = self._has_own_id(message)
        self._counted.setdefault(_tokens(message), []).append(known)

    def is_counted(self, message: AIMessage, known: KnownMessage, node: Record | None) -> bool:
        """Return whether a message's model call counts already, perhaps that of another form of it.

        On its way through an agent a message is copied, renamed, given another id or made anew; its call counts once.
        """
        if known.counted is not None:
            return True
        if message.usage_metadata is None:
            alike = [each for found in self._counted.values() for each in found]
        else:
            alike = [*self._counted.get(_tokens(message), ()), *self._counted.get(None, ())]
        had_id = self._has_own_id(message)
        return any(_is_form_of(message, each, node, had_id=had_id) for each in alike)

    def _has_own_id(self, item: Any) -> bool:
        """Return whether a message had an id when it was first seen."""
        return id_of(item) is not None and id(item) not in self._nameless

    def _seen(self, item: Any) -> Seen | None:
        return self.known(item).seen

    # --- what was there before the run ---

    def add_input(self, lists: Sequence[MessageList], question: str | None, *, has_thread: bool) -> list[Sequence[Any]]:
        """Note the run's own input and its question, and return the input's lists of messages.

        On a thread messages with ids may take the place of others in the middle of the state.
        """
        self._question = question
        for messages in lists:
            self.add_old(messages.items)
            self._may_replace = self._may_replace or (has_thread and any(map(self._has_own_id, messages.items)))
        return [messages.items for messages in lists]

    def add_end(self, lists: Sequence[MessageList]) -> list[str]:
        """Note and return the ids of the last messages of the run's output."""
        lasts = (each.items[-1] if each.items else each.before for each in lists)
        ends = [identifier for last in lasts if (identifier := id_of(last)) is not None]
        self._ends.update(ends)
        return ends

    def add_history(
        self, state: Sequence[MessageList], given: Sequence[MessageList] | None, *, is_graph: bool = True
    ) -> None:
        """Note as old what a thread's state held before the run, or a graph in it, went on with the thread.

        Each node's output is read. So if no message of a graph's state was seen, only what follows the graph's
        input is new. Without a graph nothing was read: what follows the end of an earlier run is new.

        Args:
            state: The state at the end, or the input of a graph's first node.
            given: The lists of messages in the graph's input; None for the run's own.
            is_graph: Whether it is the state of a graph.
        """
        before = self._old if given is None else [each.items for each in given if each.items]
        for messages, known in state:
            if known is not None or (self.has_own and any(self._seen(item) is not None for item in messages)):
                continue
            end = _end_of_copy(messages, before)
            if end is None and not is_graph:
                end = self._end_of_earlier(messages) or None
            self.add_old(messages[:end])

    def add_old(self, messages: Sequence[Any]) -> None:
        """Note messages that were there before the run."""
        if messages and self._seen(messages[-1]) is None:
            self._old.append(tuple(messages))
            self._old_keys = None
            self._note(messages[-1], Seen.OLD)

    def add_prompt(self, prompt: Sequence[BaseMessage]) -> None:
        """Note the run's first prompt as old, up to the run's question.

        Without the question in it, up to the user's last message: a function has loaded the history itself.
        """
        if prompt and self._seen(prompt[-1]) is None:
            if (asked := _end_of(prompt, self._holds_question)) is not None:
                self.add_old(prompt[:asked])
                return
            roles = [message.type for message in prompt[-_LAST_OF_PROMPT:]]
            if "human" in roles:
                self.add_old(prompt[: len(prompt) - roles[::-1].index("human")])

    def is_old(self, item: Any) -> bool:
        """Return whether a message was there before the run."""
        seen = self._seen(item)
        return self._is_among_old(item) if seen is None else seen is Seen.OLD

    def read(self, messages: MessageList, unknown: Literal["new", "old", "elsewhere"] = "new") -> Reading:
        """Return what is new in a list, and note it.

        Args:
            messages: What was not read before of it.
            unknown: What a list without any known message is taken for: new, older than the run, or another
                conversation.
        """
        items = messages.items
        before = None if messages.before is None else as_message(messages.before)
        if unknown == "old" and not self.has_own:
            own = self._end_of_input(messages)
            self.add_old(items[:own])
            if own is None or own == len(items):
                return Reading(passed_over=items)
            before, items = (as_message(items[own - 1]) if own else before), items[own:]
        unread, how, before = self._unread(items, before)
        if not unread:
            return Reading(before=before)
        first = 0
        if before is None:
            first_known = next((place for place, seen in enumerate(how) if seen is not None), None)
            if unknown == "new":
                first = self._count_old(unread[:first_known])
            elif first_known is not None:
                first = first_known
            elif unknown == "old":
                self.add_old(unread)
                return Reading(passed_over=items)
            else:
                first = len(unread)
        older = first if unknown == "new" else 0
        noted = [self._note(item, Seen.OLD if place < older else Seen.READ) for place, item in enumerate(unread)]
        if first:
            before = noted[first - 1].message
        new: list[NewMessage] = []
        removed: list[str | None] = []
        for known, seen in zip(noted[first:], how[first:], strict=True):
            message = known.message
            if isinstance(message, (AIMessage, ToolMessage)):
                new.append(NewMessage(message, known, is_unknown=seen is None))
            elif isinstance(message, RemoveMessage):
                removed.append(message.id)
        return Reading(new, before, removed, items if first and first == len(unread) else ())

    def _unread(
        self, items: Sequence[Any], before: BaseMessage | None
    ) -> tuple[list[Any], list[Seen | None], BaseMessage | None]:
        """Return the end of a list after the last known message, how each was seen, and that known message.

        A message that takes the place of a known one is read once more.
        """
        unread: list[Any] = []
        how: list[Seen | None] = []
        for item in reversed(items):
            known = self.known(item)
            if known.seen in (None, Seen.REPORTED) or not is_same_version(known.form, item):
                unread.append(item)
                how.append(known.seen)
            elif role_and_content(item)[0] != "tool":
                before = as_message(item)
                break
        unread.reverse()
        how.reverse()
        return unread, how, before

    def _end_of_input(self, messages: MessageList) -> int | None:
        """Return the place behind the run's input in its first state; what follows comes from langgraph's cache."""
        if self._may_replace:
            return None
        if messages.before is not None:
            return 0 if self._seen(messages.before) is Seen.OLD else None
        return _end_of_copy(messages.items, self._old)

    def _is_among_old(self, item: Any) -> bool:
        if not self._old:
            return False
        if self._old_keys is None:
            old = [each for messages in self._old for each in messages]
            self._old_keys = {*map(id, old), *map(id_of, old)} - {None}
        return id(item) in self._old_keys or id_of(item) in self._old_keys

    def _count_old(self, unread: Sequence[Any]) -> int:
        """Return how many messages at the beginning of a list of unknown ones are older than the run.

        The first of these decides: a message that is known as old, copies of the run's input, the question itself, the
        end of an earlier run, a message that holds the question.
        """
        for end in (
            _end_of(unread, self._is_among_old),
            _end_of_copy(unread, self._old),
            _end_of(unread, self._is_question),
        ):
            if end is not None:
                return end
        start = self._end_of_earlier(unread)
        rest = unread[start:] or unread  # a state that is nothing but an earlier one was kept for this question
        asking = next((item for item in rest if self._holds_question(item)), None)
        if asking is None:
            return start
        return _end_of(unread, lambda item: _is_copy(asking, item)) or start  # asked again in each turn

    def _end_of_earlier(self, messages: Sequence[Any]) -> int:
        """Return the place behind the end of an earlier run; 0 if there is none."""
        for end in range(len(messages), 0, -1):
            identifier = id_of(messages[end - 1])
            if identifier in self._ends_before or identifier in self._ends:
                return end
        return 0

    def _is_question(self, item: Any) -> bool:
        role, content = role_and_content(item)
        return role in _USER_ROLES and bool(content) and content == self._question

    def _holds_question(self, item: Any) -> bool:
        """Return whether a user's message has the run's question in it."""
        role, content = role_and_content(item)
        if role not in _USER_ROLES:
            return False
        if not self._question or not isinstance(content, str) or self._question not in content:
            return False
        return re.search(rf"(?<!\w){re.escape(self._question)}(?!\w)", content) is not None


def _end_of(messages: Sequence[Any], is_last: Callable[[Any], bool]) -> int | None:
    """Return the place behind the last message of a kind."""
    return next((end for end in range(len(messages), 0, -1) if is_last(messages[end - 1])), None)


def _end_of_copy(messages: Sequence[Any], given: Sequence[Sequence[Any]]) -> int | None:
    """Return the place behind the last copy of a given list, or else of the user's message at its end."""
    for old in given:
        for end in range(len(messages), len(old) - 1, -1):
            if all(map(_is_copy, reversed(old), reversed(messages[end - len(old) : end]))):
                return end
    asking = [old[-1] for old in given if role_and_content(old[-1])[0] in _USER_ROLES]
    return _end_of(messages, lambda item: any(_is_copy(each, item) for each in asking))


def _is_copy(one: Any, other: Any) -> bool:
    role, content = role_and_content(one)
    other_role, other_content = role_and_content(other)
    return bool(_ROLES.get(role, role) == _ROLES.get(other_role, other_role) and content == other_content)


def _tokens(message: AIMessage) -> Any:
    usage = message.usage_metadata
    return None if usage is None else (usage.get(INPUT_TOKENS), usage.get(OUTPUT_TOKENS))


def _is_form_of(message: AIMessage, known: KnownMessage, node: Record | None, *, had_id: bool) -> bool:
    """Return whether a message is another form of one whose model call is counted."""
    other = known.counted
    if other is None:
        return False
    answers = _answer_id(message), _answer_id(other)
    is_same_answer = None not in answers and answers[0] == answers[1]
    if None not in answers and not is_same_answer:
        return False
    if not (known.is_reported or had_id or known.had_id):
        return False  # a node's own code made both, one for each answer
    if has_run_id(message) and has_run_id(other):
        return False
    has_same_tokens = message.usage_metadata is not None and message.usage_metadata == other.usage_metadata
    if has_same_tokens and (is_same_answer or (known.is_reported and known.node is node)):
        return True  # whatever was made of its text
    is_alike = message.content == other.content and message.tool_calls == other.tool_calls
    return is_alike and (has_same_tokens or message.usage_metadata is None or other.usage_metadata is None)


def _answer_id(message: AIMessage) -> Any:
    """Return the provider's id of the answer, if the message keeps it."""
    metadata: Mapping[str, Any] = message.response_metadata
    return metadata.get("id") or None
