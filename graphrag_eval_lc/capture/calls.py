"""The tool calls that models ask for, the steps that carry them out, and the model calls that count."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from graphrag_eval_lc.capture.outputs import Outcome
from graphrag_eval_lc.capture.record import ModelRun, Record, Tree, WaitingCall, id_of
from graphrag_eval_lc.capture.redaction import kept_text
from graphrag_eval_lc.records import ModelCall
from graphrag_eval_lc.texts import error_text

UNKNOWN_ERROR = "unknown error"  # if an option leaves nothing of it

# A place in the order of a run, as pairs of a rank and a place in it: of each branch around it, then its own.
Order = tuple[Any, ...]


@dataclass(slots=True, eq=False, repr=False)
class Step:
    """One step of a run."""

    name: str
    args: dict[str, Any]
    run_id: UUID  # the id of the tool's run, the last one if there were several attempts
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
    full_length: int | None = None  # the characters of the text, if it was cut
    own: Outcome | None = None  # the tool's own outcome, if the model saw another one
    is_from_message: bool = False  # whether no callback reported it, only a message
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
    run: ModelRun | None = None  # what was recorded of it; None if only its message shows it
    problems: Sequence[str] = ()
    parent: Step | None = None  # the step inside which it runs
    is_cache_hit: bool = False
    # whether only a message shows it, one with an id, unlike those of a node's own code
    is_from_elsewhere: bool = False
    output_message: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class Part:
    """What one run, or one block of code, adds to a response."""

    tree: Tree
    elapsed_sec: float
    error: str | None = None  # as it is kept
    warnings: list[str] = field(default_factory=list)  # those of the interpretation
    steps: list[Step] = field(default_factory=list)
    model_calls: list[CountedCall] = field(default_factory=list)
    answer: str | None = None  # the answer; None while the run is paused
    draft: str | None = None  # the answer of a paused run, were it the end
    standing: str | None = None  # the answer in the state of a thread, perhaps from before the run
    # name and id of the calls that nobody answered
    unanswered: list[tuple[str, str | None]] = field(default_factory=list)
    # those of the calls for structured output that did not parse
    unparsed: list[tuple[str, str | None]] = field(default_factory=list)
    cached_models: int = 0  # how many model calls langgraph's cache of nodes answered
    waiting: list[WaitingCall] = field(default_factory=list)  # the calls that wait, for the run that resumes this one
    ends: list[str] = field(default_factory=list)  # the ids of the last messages of its outputs

    def warn_of(self, error: Exception) -> None:
        """Warn of a part of the run that could not be interpreted."""
        text = self.kept_error(error_text(error), list[str]())
        self.warnings.append(f"capture could not interpret a part of the run: {text}")

    def kept_error(self, error: str, warnings: list[str] | None = None) -> str:
        """Return an error as it is kept."""
        warnings = self.warnings if warnings is None else warnings
        return kept_text(error, self.tree.options, "error", warnings) or UNKNOWN_ERROR


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
    asked_at: float
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
