"""Messages and their tool calls: which is which, which were there before the run, and whose model calls count."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolCall, ToolMessage

from graphrag_eval_lc.capture.llm_calls import has_run_id
from graphrag_eval_lc.capture.messages import as_message, role_and_content
from graphrag_eval_lc.capture.outputs import Outcome
from graphrag_eval_lc.capture.record import MessageList, Record, id_of, is_same_version
from graphrag_eval_lc.capture.responses import Step

_USER_ROLES = ("human", "user")
_ROLES = {"user": "human", "assistant": "ai", "AIMessageChunk": "ai"}


# A place in the order of a run, as pairs of a rank and a place in it: of each branch around it, then its own.
Order = tuple[Any, ...]


@dataclass(slots=True, eq=False, repr=False)
class KnownMessage:
    """One message of a run in all its forms: objects, dicts, copies with another id, messages made anew from it."""

    form: Any  # the form that was read last
    is_read: bool = False  # whether it was read in a list
    is_old: bool = False  # whether it was there before the run, or is what the run was asked
    calls: "list[AskedCall]" = field(default_factory=list)  # in all graph runs, as others' messages may have the id
    counted: AIMessage | None = None  # the form whose model call counts
    is_reported: bool = False  # whether a model's callback reported that form
    node: Record | None = None  # the node of the model call, or where the message was first seen
    reported_from: int = -1  # the number of the event with which the last model call began that reported it

    def calls_in(self, record: Record) -> "list[AskedCall]":
        """Return the calls in a record's graph run and tool, else all."""
        here = [call for call in self.calls if call.scope is record.scope and call.parent is record.outer]
        return here or self.calls


@dataclass(slots=True, eq=False, repr=False)
class AskedCall:
    """One tool call of one model's message."""

    source: KnownMessage | None  # the message; None if only the call itself was seen
    # the provider's id of the call. Some providers use the same one in every message, or for all calls
    call_id: str | None
    name: str
    args: Any
    place: int  # its place in the message
    scope: Record | None  # the graph run in which the message was written or first seen
    parent: Record | None  # the tool around it
    order: Order  # where the step belongs: its branch, the rank of the message, and the place in its list of calls
    asked_at: float = 0.0
    is_reported: bool = False  # whether a model's callback reported the message
    is_expected: bool = False  # whether the run is to answer it
    is_seen: bool = False  # whether the message of a callback was seen in a list, perhaps as a copy
    is_shown: bool = False  # whether a later prompt held it while it waited
    is_settled: bool = False  # whether it needs no step: it was withdrawn, or is that of a schema
    has_kept_args: bool = False
    steps: list[Step] = field(default_factory=list)  # the steps that carry it out
    answer: Outcome | None = None  # what the message says that answers it, if a tool ran for it
    models: int = 0  # how many model calls had begun before that message
    answered_at: int | None = None  # the number of the event of the last message that answers it, and its text
    answered_text: str | None = None

    def is_like(self, call: ToolCall) -> bool:
        """Return whether a call has the same id, name and arguments."""
        return self.call_id == call["id"] and self.name == call["name"] and self.args == call["args"]

    @property
    def message_id(self) -> str | None:
        """The id of its message."""
        return None if self.source is None else id_of(self.source.form)


class AskedCalls:
    """All tool calls that the models of one run asked for."""

    def __init__(self) -> None:
        self.all: list[AskedCall] = []
        self.waiting: dict[AskedCall, None] = {}  # those that need a step and have none
        self._by_id: dict[str | None, list[AskedCall]] = {}

    def add(self, call: AskedCall) -> None:
        """Add a call."""
        self.all.append(call)
        self.waiting[call] = None
        self._by_id.setdefault(call.call_id, []).append(call)
        if call.source is not None:
            call.source.calls.append(call)

    def settle(self, call: AskedCall) -> None:
        """Note that a call needs no step."""
        call.is_settled = True
        self.waiting.pop(call, None)

    def copied(self, call: ToolCall) -> AskedCall | None:
        """Return the call of a callback that a message repeats: the earliest like it that no list had, else the last.

        A handover carries copies, and states have copies of messages without an id.
        """
        alike = [asked for asked in self._by_id.get(call["id"], ()) if asked.is_like(call)]
        alike = [asked for asked in alike if asked.is_reported or asked.source is None]
        return next((asked for asked in alike if not asked.is_seen), alike[-1] if alike else None)

    def with_id(self, call_id: str | None, record: Record, branch: Order) -> list[AskedCall]:
        """Return the calls with an id that a record may run or answer.

        They are the last one in its graph run, else the last of all, with those of the same message. In a resumed run
        a call may have no message. It is meant only within its own graph run, or its tool and branch: a tool next to or
        around this one may use the same id.
        """
        calls = [
            call
            for call in self._by_id.get(call_id, [])[-64:]
            if call.source is not None
            or call.scope is record.scope
            or (call.parent is record.outer and call.order[:-2] == branch[: len(call.order) - 2])
        ]
        last = next((call for call in reversed(calls) if call.scope is record.scope), calls[-1] if calls else None)
        if last is None or last.source is None:
            return [] if last is None else [last]
        place = last.source, last.scope, last.parent
        return [call for call in calls if (call.source, call.scope, call.parent) == place]

    def like(self, name: str, args: Any) -> list[AskedCall]:
        """Return the calls with this name and these arguments."""
        return [call for call in self.all if call.name == name and call.args == args]

    def answers_in(
        self, prompt: Sequence[BaseMessage], known: Callable[[Any], KnownMessage]
    ) -> list[tuple[AskedCall, ToolMessage]]:
        """Return the waiting calls that a prompt's tool messages answer, with the messages.

        A tool message answers a call of the model's message before it, which may be a copy of the one that asked. The
        prompt is read from its end up to a message whose calls are all settled.
        """
        found: list[tuple[AskedCall, ToolMessage]] = []
        answers: dict[str | None, list[ToolMessage]] = {}
        left = list(self.waiting)
        for message in reversed(prompt) if left else ():
            if isinstance(message, ToolMessage):
                answers.setdefault(message.tool_call_id, []).append(message)
            elif isinstance(message, AIMessage) and message.tool_calls:
                source = known(message)
                calls = [call for call in left if call.source is source]
                for asked in () if source.calls else message.tool_calls:
                    calls += [each for each in left if each.is_like(asked)][-1:]
                for call in calls:
                    left.remove(call)
                    call.is_shown = True
                    sharing = [place for place, each in enumerate(message.tool_calls) if each["id"] == call.call_id]
                    later = sum(place > call.place for place in sharing)  # they are answered in the order of the calls
                    found += [(call, answer) for answer in answers.get(call.call_id, [])[later : later + 1]]
                answers = {}
                if not calls:
                    break
        return found


class Reading(NamedTuple):
    """What was read in one list of messages."""

    new: Sequence[AIMessage | ToolMessage] = ()  # the messages of models and tools that are new in it, in order
    before: Any = None  # the known message before that
    removed: Sequence[str | None] = ()  # the ids of messages that a state is to drop
    passed_over: Sequence[Any] = ()  # the list, if no message was known and none is the run's own


class History:
    """The messages of a run, each with one identity.

    Args:
        ends: The ids of the last messages of the handler's earlier runs; a message up to one of them is older than
            this run, unless another rule decides first.
        nameless: The messages that had no id when they were first read.
    """

    def __init__(self, ends: set[str], nameless: set[int]) -> None:
        self.has_own = False  # whether any message of the run itself was read
        self._ends = ends
        self._nameless = nameless
        self._question: str | None = None
        self._may_replace = False
        self._known: dict[Any, KnownMessage] = {}  # by id, else by object
        self._counted: list[KnownMessage] = []  # the messages whose model calls count
        self._old: list[Sequence[Any]] = []  # the lists of messages that were there before
        self._old_keys: set[Any] = set()  # their ids and objects

    # --- which message it is ---

    def known(self, item: Any) -> KnownMessage:
        """Return the message of which an item is a form: by its id, which langgraph may give later, or the object."""
        key = id_of(item) or id(item)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = KnownMessage(item)
        return known

    def count(self, message: AIMessage, node: Record | None, *, is_reported: bool = False) -> None:
        """Note that a message's model call counts, with the node of the call, or where the message was first seen."""
        known = self.known(message)
        known.counted, known.node, known.is_reported = message, node, is_reported
        self.has_own = self.has_own or is_reported
        self._counted.append(known)

    def is_counted(self, message: AIMessage, node: Record | None) -> bool:
        """Return whether a message's model call counts already, perhaps that of another form of it.

        On its way through an agent a message is copied, renamed, given another id or made anew; its call counts once.
        """
        return self.known(message).counted is not None or any(
            self._is_form_of(message, known, node) for known in self._counted
        )

    def _is_form_of(self, message: AIMessage, known: KnownMessage, node: Record | None) -> bool:
        other = known.counted
        if other is None or (has_run_id(message) and has_run_id(other)):
            return False
        if not (known.is_reported or self.has_own_id(message) or self.has_own_id(other)):
            return False  # a node's own code made both, one for each answer
        answer_ids = message.response_metadata.get("id"), other.response_metadata.get("id")  # the provider's
        is_same_answer = answer_ids[0] == answer_ids[1] and bool(answer_ids[0])
        if all(answer_ids) and not is_same_answer:
            return False
        usages = message.usage_metadata, other.usage_metadata
        has_same_tokens = usages[0] is not None and usages[0] == usages[1]
        if has_same_tokens and (is_same_answer or (known.is_reported and known.node is node)):
            return True  # whatever was made of its text
        is_alike = message.content == other.content and message.tool_calls == other.tool_calls
        return is_alike and (has_same_tokens or None in usages)

    def has_own_id(self, item: Any) -> bool:
        """Return whether a message had an id when it was first seen."""
        return id_of(item) is not None and id(item) not in self._nameless

    # --- what was there before the run ---

    def is_old(self, item: Any) -> bool:
        """Return whether a message was there before the run."""
        known = self.known(item)
        return known.is_old if known.is_read else self._is_among_old(item)

    def add_input(self, lists: Sequence[MessageList], question: str | None) -> None:
        """Note the run's own input and its question. Messages with ids may take the place of others in a state."""
        self._question = question
        for messages in lists:
            self._add_old(messages.items)
            self._may_replace = self._may_replace or any(map(self.has_own_id, messages.items))

    def add_history(self, state: Sequence[MessageList], given: Sequence[MessageList] | None, *, is_graph: bool) -> None:
        """Note as old what a thread's state held before the run, or a graph in it, went on with the thread.

        Each node's output is read. So if no message of a graph's state was seen, only what follows the graph's
        input is new. Without a graph nothing was read: what follows the end of an earlier run is new.
        ``given`` are the lists of messages in the graph's input; None for the run's own.
        """
        before = self._old if given is None else [each.items for each in given if each.items]
        for messages, known in state:
            if known is not None or (self.has_own and any(self.known(item).is_read for item in messages)):
                continue
            end = _end_of_copy(messages, before)
            if end is None and not is_graph:
                end = self._end_of_earlier(messages) or None
            self._add_old(messages[:end])

    def _add_old(self, messages: Sequence[Any]) -> None:
        if messages and not self.known(messages[-1]).is_read:
            self._old.append(messages)
            self._old_keys |= {*map(id, messages), *map(id_of, messages)} - {None}
            self._note(messages[-1], is_old=True)

    def _note(self, item: Any, *, is_old: bool) -> None:
        known = self.known(item)
        known.form, known.is_read, known.is_old = item, True, is_old
        self.has_own = self.has_own or not is_old

    def read(self, messages: MessageList, unknown: Literal["new", "old", "elsewhere"] = "new") -> Reading:
        """Return what is new in a list, and note it.

        ``unknown`` is what a list without any known message is taken for: new, older than the run, or another
        conversation.
        """
        items, before = messages
        if unknown == "old" and not self.has_own:
            own = self._end_of_input(messages)
            self._add_old(items[:own])
            if own is None or own == len(items):
                return Reading(passed_over=items)
            before, items = items[own - 1] if own else before, items[own:]
        unread, before = self._unread(items, before)
        first = 0
        if before is None:
            first = next((place for place, item in enumerate(unread) if self._is_known(item)), len(unread))
            first = self._count_old(unread[:first]) if unknown == "new" else first
        for place, item in enumerate(unread):
            self._note(item, is_old=place < first)
        before = unread[first - 1] if first else before
        found = [as_message(item) for item in unread[first:]]
        new = [message for message in found if isinstance(message, (AIMessage, ToolMessage))]
        removed = [message.id for message in found if isinstance(message, RemoveMessage)]
        return Reading(new, before, removed, items if first and first == len(unread) else ())

    def _unread(self, items: Sequence[Any], before: Any) -> tuple[list[Any], Any]:
        """Return the end of a list after the last known message, and that message.

        A message that takes the place of a known one is read once more.
        """
        unread: list[Any] = []
        for item in reversed(items):
            known = self.known(item)
            if not known.is_read or not is_same_version(known.form, item):
                unread.append(item)
            elif role_and_content(item)[0] != "tool":
                before = item
                break
        unread.reverse()
        return unread, before

    def _end_of_input(self, messages: MessageList) -> int | None:
        """Return the place behind the run's input in its first state; what follows comes from langgraph's cache."""
        if self._may_replace:
            return None
        if messages.before is not None:
            return 0 if self.is_old(messages.before) else None
        return _end_of_copy(messages.items, self._old)

    def _is_known(self, item: Any) -> bool:
        known = self.known(item)
        return known.is_read or known.counted is not None

    def _is_among_old(self, item: Any) -> bool:
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
        return _end_of(messages, lambda item: id_of(item) in self._ends) or 0

    def _is_question(self, item: Any) -> bool:
        role, content = role_and_content(item)
        return role in _USER_ROLES and content == self._question

    def _holds_question(self, item: Any) -> bool:
        """Return whether a user's message has the run's question in it."""
        role, content = role_and_content(item)
        if role not in _USER_ROLES or not self._question or not isinstance(content, str):
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
