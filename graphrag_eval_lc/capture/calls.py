"""The tool calls that models ask for, the steps that carry them out, and the model calls that count."""

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from graphrag_eval_lc.capture.outputs import Outcome, message_outcome, to_plain
from graphrag_eval_lc.capture.record import ModelRun, Record, id_of
from graphrag_eval_lc.records import ModelCall

# A place in the order of a run, as pairs of a rank and a place in it: of each branch around it, then its own.
Order = tuple[Any, ...]


@dataclass(slots=True, eq=False, repr=False)
class Step:
    """One step of a run."""

    name: str
    args: dict[str, Any]
    run_id: UUID  # the id of the tool's run, the last one where there were several attempts
    parent: "Step | None"  # the step inside which this one runs
    order: Order  # its place among the steps with the same parent
    call_id: str | None = None
    message_id: str | None = None  # the id of the message that asked for it
    # what it is known by when a paused run is resumed: message, call, place and number of the run
    key: tuple[Any, ...] | None = None
    has_call: bool = False  # whether a call of a model is known that it carries out
    # open while it runs, pending while the run is paused inside it
    status: Literal["open", "pending", "success", "error"] = "open"
    text: str = ""  # the output, or the error
    artifact: Any = None
    attempts: int = 1
    started_at: float = 0.0
    elapsed_sec: float | None = None
    full_length: int | None = None  # the characters of the text, where it was cut
    own: Outcome | None = None  # the tool's own outcome, where the model saw another one
    is_from_message: bool = False  # whether no callback told of it, only a message
    is_from_cache: bool = False  # whether it is from langgraph's cache of nodes
    is_forced: bool = False  # whether it had not ended when its run did

    @property
    def id(self) -> str:
        """The id of the tool call, else that of the run."""
        return self.call_id or str(self.run_id)

    def end(self, kept: Outcome) -> None:
        """Take the outcome."""
        self.status, self.text, self.artifact = kept.status, kept.text, kept.artifact
        self.full_length = kept.full_length
        if kept.k is not None:
            self.args["k"] = kept.k if self.args.get("k") is None else self.args["k"]


@dataclass(slots=True, eq=False, repr=False)
class CountedCall:
    """A model call as a response has it."""

    call: ModelCall
    run: ModelRun | None = None  # what was recorded of it; None where only its message tells
    problems: Sequence[str] = ()
    parent: Step | None = None  # the step inside which it runs
    is_cache_hit: bool = False
    # whether only a message told of it, one with an id, unlike those of a node's own code
    is_from_elsewhere: bool = False
    output_message: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class Execution:
    """The runs of a tool that make one step: its attempts."""

    step: Step
    records: list[Record]

    @property
    def last(self) -> Record:
        """The last attempt."""
        return self.records[-1]


@dataclass(slots=True, eq=False, repr=False)
class AskedCall:
    """One tool call of one model's message."""

    key: Any  # what the message is known by; None where only the call itself was seen
    message_id: str | None  # the id of that message
    # the provider's id of the call. Some providers use the same one in every message, or for all calls
    call_id: str | None
    name: str
    args: Any
    place: int  # its place in the message
    scope: Record  # the graph run in which the message was written or first seen
    parent: Record | None  # the tool around it
    order: Order  # where the step belongs: its branch, the rank of the message, and the place in its list of calls
    asked: int  # the number of the event
    asked_at: float
    is_reported: bool = False  # whether a model's callback told of the message
    is_expected: bool = False  # whether the run is to answer it
    is_seen: bool = False  # whether the message of a callback was seen in a list, perhaps as a copy
    is_shown: bool = False  # whether a later prompt held it while it waited
    is_settled: bool = False  # whether it needs no step: it was withdrawn, or is that of a schema
    has_kept_args: bool = False
    executions: list[Execution] = field(default_factory=list)  # the steps of callbacks that carry it out
    answer: "Answer | None" = None  # the message that answers it
    answers: "list[Answer]" = field(default_factory=list)
    step: Step | None = None  # the step, where only the answer tells of it

    def is_like(self, call: ToolCall) -> bool:
        """Return whether a call has the same id, name and arguments."""
        return self.call_id == call["id"] and self.name == call["name"] and self.args == call["args"]

    @property
    def waits(self) -> bool:
        """Whether it needs a step and has none."""
        return not (self.is_settled or self.executions or self.step is not None)


@dataclass(slots=True, eq=False, repr=False)
class Answer:
    """A tool message that may answer one of some calls, and what it tells."""

    message: ToolMessage
    calls: Sequence[AskedCall]  # those calls, all with its id
    parent: Record | None
    event: int
    key: Any = None  # what the message is known by
    order: Order = ()  # its place among the messages of the run
    models: int = 0  # how many model calls had begun before it
    is_from_cache: bool = False  # whether it comes from langgraph's cache of nodes
    is_unparsed: bool = False  # whether no structured output parsed in the node that gave it

    def outcome(self) -> Outcome:
        """Return the outcome that the message tells."""
        return message_outcome(self.message)


class AskedCalls:
    """All tool calls that the models of one run asked for, by message and by id."""

    def __init__(self) -> None:
        self.all: list[AskedCall] = []
        self._by_id: dict[str | None, list[AskedCall]] = {}
        self._by_message: dict[Any, list[AskedCall]] = {}
        self._by_args: dict[str, list[AskedCall]] = {}

    def of_message(self, key: Any, record: Record) -> list[AskedCall]:
        """Return the calls of a message: those of this graph run and tool, as others' messages may have the same id."""
        calls = self._by_message.get(key, [])
        return [call for call in calls if call.scope is record.scope and call.parent is record.outer] or calls

    def add(self, call: AskedCall) -> AskedCall:
        """Add a call."""
        self.all.append(call)
        self._by_id.setdefault(call.call_id, []).append(call)
        if call.key is not None:
            self._by_message.setdefault(call.key, []).append(call)
        return call

    def note_copy(self, key: Any, calls: Iterable[AskedCall]) -> None:
        """Note the calls of a message that is a copy of others."""
        self._by_message.setdefault(key, list(calls))

    def adopt(self, message: AIMessage, call: ToolCall, place: int) -> AskedCall | None:
        """Return the last like call without a message that is this message's, which it then has."""
        for asked in reversed(self._by_id.get(call["id"], [])[-64:]):
            if asked.key is None and asked.name == call["name"]:
                asked.key, asked.message_id, asked.place, asked.is_seen = key_of(message), message.id, place, True
                self._by_message.setdefault(asked.key, []).append(asked)
                return asked
        return None

    def copied(self, call: ToolCall, *, is_made: bool, in_state: bool) -> AskedCall | None:
        """Return the earliest like call of a callback that was not seen in a list.

        Where all were seen and code made the message, return the last one: a handover carries copies. In a state there
        may also be copies of messages without an id.
        """
        alike = [asked for asked in self._by_id.get(call["id"], ()) if asked.is_like(call)]
        told = [
            asked
            for asked in alike
            if asked.is_reported or asked.key is None or (in_state and asked.message_id is None)
        ]
        for asked in told:
            if not asked.is_seen:
                asked.is_seen = True
                return asked
        return told[-1] if told and is_made else None

    def is_known(self, call_id: str | None, scope: Record, parent: Record | None, branch: Order) -> bool:
        """Return whether a call with this id may run in this graph run, inside this tool."""
        return any(self._is_here(call, scope, parent, branch) for call in self._by_id.get(call_id, ()))

    @staticmethod
    def _is_here(call: AskedCall, scope: Record, parent: Record | None, branch: Order) -> bool:
        """Return whether a call may run here.

        In a resumed run a call may have no message. It is meant here only within its own graph run, tool and branch:
        a tool beside or around this one may use the same id.
        """
        return (
            call.key is not None
            or call.scope is scope
            or (call.parent is parent and call.order[:-2] == branch[: len(call.order) - 2])
        )

    def answered_by(self, call_id: str, scope: Record) -> list[AskedCall]:
        """Return the calls that a lone tool message may answer: those with its id in the newest message."""
        return self._newest(self._by_id.get(call_id, []), scope)

    @staticmethod
    def _newest(calls: Sequence[AskedCall], scope: Record) -> list[AskedCall]:
        """Return the last call of the scope, else of all, with those of the same message."""
        if len(calls) < 2:
            return list(calls)
        last = next((call for call in reversed(calls) if call.scope is scope), calls[-1] if calls else None)
        if last is None:
            return []
        if last.key is None:
            return [last]
        of_last = last.key, last.scope, last.parent
        return [call for call in calls[-64:] if (call.key, call.scope, call.parent) == of_last]

    def call_to_run(self, record: Record, event: int, branch: Order) -> AskedCall | None:
        """Return the call that a tool with a call id carries out.

        It is one of the newest message that asked for the id before the tool began, or else of a node's own message,
        seen later. Of several with one id it is the first that nothing carries out, with the same arguments if any.
        """
        tool, scope = record.tool, record.scope
        if tool is None or scope is None:
            return None
        calls = self._by_id.get(tool.call_id, [])
        end = bisect_left(calls, event, key=attrgetter("asked"))
        before = calls[:end] if end <= 64 else calls[end - 64 : end]
        here = [call for call in before if self._is_here(call, scope, record.outer, branch)]
        newest = self._newest(here, scope)
        if not newest:
            made = (call for call in calls[end : end + 64] if not call.is_reported and not call.executions)
            return next((call for call in made if call.name == record.name and call.args == tool.args), None)
        if len(newest) == 1:
            return newest[0]
        sent = [call for call in record.node.loose_calls if call["id"] == tool.call_id] if record.node else []
        name, args = (sent[0]["name"], sent[0]["args"]) if len(sent) == 1 else (record.name, tool.args)
        same = [call for call in newest if call.name == name and call.args == args]
        taken = [call for call in same if len(sent) == 1 and any(e.last.node is record.node for e in call.executions)]
        free = [call for call in same or newest if not call.executions]
        return (taken or free or same or newest)[0]

    def call_like(self, record: Record, event: int) -> AskedCall | None:
        """Return the call that a tool without a call id carries out, by name and arguments.

        It is the first that nothing carries out, else the newest whose step failed: a retry.
        """
        if record.tool is None:
            return None
        if not self._by_args:
            for call in self.all:
                self._by_args.setdefault(_args_key(call.name, call.args), []).append(call)
        alike = self._by_args.get(_args_key(record.name or "", record.tool.args), [])
        before = [call for call in alike if call.asked < event and not call.is_settled]
        before = [call for call in before if call.scope is record.scope] or before
        for call in before:
            if not call.executions:
                return call
        failed = (call for call in reversed(before) if call.executions[-1].step.status == "error")
        return next(failed, None)


def _args_key(name: str, args: Any) -> str:
    return json.dumps([name, to_plain(args)], sort_keys=True)


def key_of(message: Any) -> Any:
    """Return what a message is known by: its id, which langgraph may give later, or the object itself."""
    return (message.id if isinstance(message, BaseMessage) else id_of(message)) or id(message)


def answers_in(waiting: Iterable[AskedCall], prompt: Sequence[BaseMessage]) -> list[tuple[AskedCall, ToolMessage]]:
    """Return the waiting calls that a prompt's tool messages answer, with the messages, in order.

    A tool message answers a call of the model's message before it, which may be a copy of the one that asked. The
    prompt is read from its end up to a message whose calls are all settled.
    """
    found: list[tuple[AskedCall, ToolMessage]] = []
    answers: dict[str, list[ToolMessage]] = {}
    left = list(waiting)
    for message in reversed(prompt):
        if isinstance(message, ToolMessage):
            answers.setdefault(message.tool_call_id, []).append(message)
        elif isinstance(message, AIMessage) and message.tool_calls:
            calls = _taken_from(left, message)
            for call in calls:
                call.is_shown = True
                if answer := _answer_to(call, message, answers.get(call.call_id or "", [])):
                    found.append((call, answer))
            answers = {}
            if not calls or not left:
                break
    found.reverse()
    return found


def _answer_to(call: AskedCall, asking: AIMessage, answers: Sequence[ToolMessage]) -> ToolMessage | None:
    """Return the message that answers a call, of those with its id, from the last to the first: the last counts.

    If several calls of a message share the id, the messages are in the order of the calls.
    """
    sharing = [place for place, each in enumerate(asking.tool_calls) if each["id"] == call.call_id]
    if len(sharing) > 1 and call.place in sharing and len(answers) >= len(sharing):
        return answers[len(sharing) - 1 - sharing.index(call.place)]
    return answers[0] if answers else None


def _taken_from(waiting: list[AskedCall], message: AIMessage) -> list[AskedCall]:
    """Remove and return those waiting calls that are a message's: by its id, else by likeness."""
    calls = [call for call in waiting if message.id is not None and call.message_id == message.id]
    if calls:
        for call in calls:
            waiting.remove(call)
    else:
        for asked in message.tool_calls:
            like = next((each for each in reversed(waiting) if each.is_like(asked)), None)
            if like is not None:
                calls.append(like)
                waiting.remove(like)
    calls.reverse()
    return calls
