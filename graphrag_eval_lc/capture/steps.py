"""The tool calls that models ask for, and the steps that carry them out."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count
from time import perf_counter, time
from typing import Any, Literal
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from graphrag_eval_lc.capture.outputs import NO_ARTIFACT, to_plain
from graphrag_eval_lc.capture.redaction import CaptureOptions, KeptOutcome, Retrieval, kept_args

# A place in the order of a run, as pairs of a rank and a place in it: of each branch around it, then its own.
Order = tuple[int | str, ...]


@dataclass(slots=True, eq=False)
class AskedCall:
    """One tool call of one model message.

    Attributes:
        message_id: The id of the message; None where only the call itself was seen.
        call_id: The provider's id of the call. Some providers use the same ids in every message.
        scope: The graph run in which the message was written or first seen.
        order: Where the step belongs: its branch, the rank of the message, and the place in its list of calls.
        is_told: Whether a model's callback told of the message.
        is_expected: Whether the run is to answer it.
        is_met: Whether the message of a callback was met in a list, perhaps as a copy.
        is_shown: Whether a later prompt held it while it waited.
        step: The step that carries it out.
        is_settled: Whether it needs no step any more.
    """

    message_id: str | None
    call_id: str | None
    name: str
    args: Any
    scope: UUID
    parent: "Step | None"
    order: Order
    asked_at: float
    is_told: bool = False
    is_expected: bool = False
    is_met: bool = False
    is_shown: bool = False
    step: "Step | None" = None
    is_settled: bool = False

    def is_like(self, call: ToolCall) -> bool:
        """Return whether a call has the same id, name and arguments."""
        return self.call_id == call["id"] and self.name == call["name"] and self.args == call["args"]


@dataclass(slots=True, eq=False)
class Step:
    """One step of a run.

    Attributes:
        run_id: The id of the tool's run, the last one where there were several attempts.
        parent: The step inside which this one runs.
        order: Its place among the steps with the same parent.
        status: ``open`` while it runs, ``pending`` while the run is paused inside it.
        text: The output, or the error.
        full_length: The characters of the text, where it was cut.
        text_hash: The hash of the text before any option was applied.
        is_from_message: Whether no callback told of it, only a message.
        is_forced: Whether it had not ended when its run did.
        retrievals: The runs of retrievers inside it, where their documents are wanted.
    """

    name: str
    args: dict[str, Any]
    run_id: UUID
    parent: "Step | None"
    order: Order
    call: AskedCall | None = None
    call_id: str | None = None
    status: Literal["open", "pending", "success", "error"] = "open"
    text: str = ""
    artifact: Any = NO_ARTIFACT
    attempts: int = 1
    started_at: float = field(default_factory=time)
    started: float | None = field(default_factory=perf_counter)
    elapsed_sec: float | None = None
    full_length: int | None = None
    text_hash: int | None = None
    is_from_message: bool = False
    is_forced: bool = False
    retrievals: Sequence[Retrieval] = ()

    @property
    def id(self) -> str:
        """The id of the tool call, else that of the run."""
        return self.asked_id or str(self.run_id)

    @property
    def asked_id(self) -> str | None:
        """The id of the tool call, where it has one."""
        return self.call_id or (self.call.call_id if self.call is not None else None)

    def start_again(self, run_id: UUID, args: dict[str, Any]) -> None:
        """Begin another attempt, or go on after a pause; the time counts from the first start."""
        self.attempts += self.status != "pending"
        self.run_id, self.args, self.status = run_id, args, "open"
        self.retrievals = ()

    def end(self, kept: KeptOutcome) -> None:
        """Take the outcome."""
        self.status, self.text, self.artifact = kept.status, kept.text, kept.artifact
        self.full_length, self.text_hash = kept.full_length, kept.text_hash
        if kept.k is not None:
            self.args["k"] = kept.k if self.args.get("k") is None else self.args["k"]
        self.retrievals = ()
        if self.started is not None:
            self.elapsed_sec = (perf_counter() if kept.ended is None else kept.ended) - self.started


_MAX_PASSED = 32  # messages of a prompt that are passed over in the search for those that answer calls

CallsOfMessage = dict[str | None, AskedCall]


class AskedCalls:
    """All tool calls that the models of one run asked for.

    Attributes:
        branch: Where the event that is being recorded belongs among parallel branches.
    """

    __slots__ = ("_by_id", "_ranks", "_waiting", "branch")

    def __init__(self) -> None:
        self._by_id: dict[str | None, list[AskedCall]] = {}
        self._waiting: dict[AskedCall, None] = {}
        self._ranks = count()
        self.branch: Order = ()

    def __reduce__(self) -> tuple[type["AskedCalls"], tuple[()]]:
        """Leave the calls behind in a copy of a handler: their answers cannot reach it."""
        return AskedCalls, ()

    def next_rank(self) -> int:
        """Return the next number in the order of the run."""
        return next(self._ranks)

    def next_order(self, place: int = 0) -> Order:
        """Return the next place in the order of the run, inside the present branch."""
        return (*self.branch, next(self._ranks), place)

    def clear(self) -> None:
        """Forget all calls."""
        self._by_id.clear()
        self._waiting.clear()

    @property
    def waiting(self) -> Iterable[AskedCall]:
        """The calls that need a step and have none yet, in the order of the messages."""
        return self._waiting.keys()

    def settle(self, call: AskedCall) -> None:
        """Note that a call needs no step any more."""
        call.is_settled = True
        self._waiting.pop(call, None)

    def is_known(self, call_id: str | None, scope: UUID, parent: Step | None) -> bool:
        """Return whether a call with this id may run in this graph run, inside this step."""
        return bool(self._here(call_id, scope, parent))

    def _here(self, call_id: str | None, scope: UUID, parent: Step | None) -> list[AskedCall]:
        """Return the calls with an id that may run here.

        In a resumed run a call may have no message. It is meant here only within its own graph run, step and branch:
        a tool beside or around this one may use the same id.
        """
        return [
            call
            for call in self._by_id.get(call_id, ())
            if call.message_id is not None
            or call.scope == scope
            or (call.parent is parent and call.order[:-2] == self.branch[: len(call.order) - 2])
        ]

    # --- calls are asked for ---

    def ask(
        self,
        message_id: str | None,
        tool_calls: Iterable[ToolCall],
        scope: UUID,
        parent: Step | None,
        *,
        is_told: bool = False,
        is_expected: bool = False,
    ) -> CallsOfMessage:
        """Note and return the calls of a message; a call that waits already is not noted twice.

        Unless ``is_told``: each callback of a model tells of another message.
        """
        rank, now = self.next_rank(), time()
        branch = self.branch
        calls: CallsOfMessage = {}
        for place, call in enumerate(tool_calls):
            asked = self._waiting_like(call, scope, is_told=is_told)
            if asked is None:
                order = (*branch, rank, place)
                asked = AskedCall(message_id, call["id"], call["name"], call["args"], scope, parent, order, now)
                asked.is_told, asked.is_expected = is_told, is_expected
                self._by_id.setdefault(call["id"], []).append(asked)
                self._waiting[asked] = None
            calls[call["id"]] = asked
        return calls

    def _waiting_like(self, call: ToolCall, scope: UUID, *, is_told: bool) -> AskedCall | None:
        alike = (asked for asked in self._by_id.get(call["id"], ()) if asked.is_like(call) and asked.scope == scope)
        return next((asked for asked in alike if not asked.is_settled and not (is_told and asked.is_told)), None)

    def ask_unheard(
        self, message: AIMessage, scope: UUID, parent: Step | None, *, is_generated: bool
    ) -> CallsOfMessage:
        """Note and return the calls of a message that no callback told of; ``is_generated``: a model wrote it.

        It may be a copy, or a node's own message whose tools ran before it was seen: such calls are known.
        """
        copied: CallsOfMessage = {}
        for call in message.tool_calls:
            if (asked := self._copied(call, is_made=not is_generated)) is not None:
                copied[call["id"]] = asked
        unheard = [call for call in message.tool_calls if call["id"] not in copied]
        return {**copied, **self.ask(message.id, unheard, scope, parent, is_expected=True)} if unheard else copied

    def _copied(self, call: ToolCall, *, is_made: bool) -> AskedCall | None:
        """Return the earliest like call of a callback that was not met in a list.

        Where all were met and code made the message, return the last that was carried out: a handover carries copies.
        """
        heard = [
            asked
            for asked in self._by_id.get(call["id"], ())
            if (asked.is_told or (asked.message_id is None and asked.step is not None)) and asked.is_like(call)
        ]
        for asked in heard:
            if not asked.is_met:
                asked.is_met = True
                return asked
        carried_out = [asked for asked in heard if is_made and asked.is_told and asked.step is not None]
        return carried_out[-1] if carried_out else None

    def meet(self, message: AIMessage) -> CallsOfMessage:
        """Return the calls of a known message, and settle those that the agent has removed from it."""
        calls: CallsOfMessage = {}
        for call in message.tool_calls:
            for asked in self._by_id.get(call["id"], ()):
                if message.id is not None and asked.message_id == message.id:
                    calls[call["id"]], asked.is_met = asked, True
        self.withdraw(message.id, kept=calls)
        return calls

    def withdraw(self, message_id: str | None, kept: Iterable[str | None] = ()) -> None:
        """Settle the waiting calls of a removed message, but for the kept ones."""
        if message_id is not None:
            for asked in [asked for asked in self._waiting if asked.message_id == message_id]:
                if asked.call_id not in kept:
                    self.settle(asked)

    # --- calls are carried out, or answered ---

    def call_to_run(self, call_id: str, args: Any, scope: UUID, parent: Step | None) -> AskedCall | None:
        """Return the call that a starting tool carries out.

        Of several that wait, the newest with the same arguments is taken, else the newest; without a waiting one it
        is the newest of all: a retry.
        """
        asked = self._in_scope(self._here(call_id, scope, parent), scope)
        waiting = [call for call in asked if not call.is_settled]
        same_args = [call for call in waiting if call.args == args] if len(waiting) > 1 else []
        return next(reversed(same_args or waiting or asked), None)

    def call_like(self, name: str, args: Any, scope: UUID) -> AskedCall | None:
        """Return the call that a tool without a call id carries out, by name and arguments.

        It is the first that waits, else the newest whose step failed: a retry.
        """
        alike = [
            call
            for calls in self._by_id.values()
            for call in self._in_scope(calls, scope)
            if call.name == name and call.args == args
        ]
        waiting = [call for call in alike if not call.is_settled]
        failed = [call for call in alike if call.step is not None and call.step.status == "error"]
        return next(iter(waiting or failed[-1:]), None)

    def call_answered(self, call_id: str, scope: UUID) -> AskedCall | None:
        """Return the call that a lone tool message answers: the newest with its id."""
        return next(reversed(self._in_scope(self._by_id.get(call_id, []), scope)), None)

    def answers_in(self, prompt: Sequence[BaseMessage]) -> list[tuple[AskedCall, ToolMessage]]:
        """Return the waiting calls that a prompt's tool messages answer, with the messages, in order.

        A tool message answers a call of the model's message before it, which may be a copy of the one that asked. The
        prompt is read from its end up to a message whose calls are all settled.
        """
        found: list[tuple[AskedCall, ToolMessage]] = []
        answers: dict[str, ToolMessage] = {}
        waiting = list(self._waiting)
        passed = 0
        for message in reversed(prompt):
            if isinstance(message, ToolMessage):
                answers.setdefault(message.tool_call_id, message)  # of several with one id the last counts
            elif isinstance(message, AIMessage) and message.tool_calls:
                calls = self._taken_from(waiting, message)
                for call in calls:
                    call.is_shown = True
                found += [(call, answers[call.call_id]) for call in calls if call.call_id in answers]
                answers = {}
                if not calls or not waiting:
                    break
            elif (passed := passed + 1) > _MAX_PASSED:
                break
        found.reverse()
        return found

    @staticmethod
    def _taken_from(waiting: list[AskedCall], message: AIMessage) -> list[AskedCall]:
        """Remove and return those waiting calls that are a message's: by its id, else by likeness."""
        calls = [call for call in waiting if message.id is not None and call.message_id == message.id]
        if not calls:
            alike = (
                next((asked for asked in reversed(waiting) if asked.is_like(call)), None) for call in message.tool_calls
            )
            calls = [call for call in alike if call is not None]
        for call in calls:
            waiting.remove(call)
        calls.reverse()
        return calls

    @staticmethod
    def _in_scope(calls: list[AskedCall], scope: UUID) -> list[AskedCall]:
        return [call for call in calls if call.scope == scope] or calls


class Steps:
    """The steps of one run, with the calls that they carry out. Their warnings are added to the run's.

    In its methods ``scope`` is the graph run around a step or call, and ``parent`` the step inside which it runs.

    Attributes:
        root_id: The run id of the root, which stands in steps without a callback.
        calls: All calls that models asked for.
        taken: The steps, in the order in which they were first known.
        unparsed: Name and id of the calls for structured output that did not parse.
    """

    __slots__ = ("_options", "_warnings", "calls", "root_id", "taken", "unparsed")

    def __init__(self, root_id: UUID, options: CaptureOptions, warnings: dict[str, None]) -> None:
        self.root_id = root_id
        self._options = options
        self._warnings = warnings
        self.calls = AskedCalls()
        self.taken: list[Step] = []
        self.unparsed: list[tuple[str, str | None]] = []

    def snapshot(self, warnings: dict[str, None]) -> "tuple[Steps, dict[Step | None, Step]]":
        """Return a copy for a copy of the handler, and the copy of each step; waiting calls are left out."""
        copies: dict[Step | None, Step] = {step: copy(step) for step in self.taken}
        for step in copies.values():
            step.parent = copies.get(step.parent)
            if step.call is not None:
                step.call = replace(step.call, args=None, parent=None, step=None)
        copied = Steps(self.root_id, self._options, warnings)
        copied.taken, copied.unparsed = list(copies.values()), self.unparsed[:]
        return copied, copies

    def tool_started(
        self,
        run_id: UUID,
        name: str,
        args: dict[str, Any],
        kept: dict[str, Any],
        call_id: str | None,
        scope: UUID,
        parent: Step | None,
    ) -> Step:
        """Return the step of a tool that starts: a new one, or that of an earlier attempt.

        The model's call is found by its id, else by the arguments; ``kept`` is what is kept of these.
        """
        if call_id is None:
            call = self.calls.call_like(name, args, scope)
        elif (call := self.calls.call_to_run(call_id, args, scope, parent)) is None:
            made: ToolCall = {"name": name, "args": args, "id": call_id, "type": "tool_call"}
            self.calls.ask(None, [made], scope, parent)
            call = self.calls.call_to_run(call_id, args, scope, parent)
        if call is not None and call.step is not None:
            call.step.start_again(run_id, kept)
            return call.step
        return self.add(Step(name, kept, run_id, parent, self.calls.next_order(), call_id=call_id), call)

    def retriever_started(self, run_id: UUID, name: str, args: dict[str, Any], parent: Step | None) -> Step:
        """Return the step of a retriever that runs outside of tools."""
        return self.add(Step(name, args, run_id, parent, self.calls.next_order()))

    def add(self, step: Step, call: AskedCall | None = None) -> Step:
        """Add a step, and return it; ``call`` is the one that it carries out."""
        if call is not None:
            self.link(step, call)
        self.taken.append(step)
        return step

    def link(self, step: Step, call: AskedCall) -> None:
        """Note that a step carries out a call."""
        step.call, step.order = call, call.order
        call.step = step
        self.calls.settle(call)

    def ended(self, step: Step, kept: KeptOutcome, call_id: str | None, scope: UUID) -> None:
        """Settle a step; ``call_id`` is that of its message, for steps that started without a call."""
        self.settle(step, kept)
        if step.call is None and call_id:
            step.call_id = call_id
            call = self.calls.call_answered(call_id, scope)
            if call is not None and not call.is_settled:
                self.link(step, call)

    def settle(self, step: Step, kept: KeptOutcome) -> None:
        """End a step, and take its warnings."""
        step.end(kept)
        if kept.warnings:
            self._warnings.update(dict.fromkeys(kept.warnings))

    def kept_args(self, name: str, args: Any) -> dict[str, Any]:
        """Return what is kept of a call's arguments."""
        warnings: list[str] = []
        kept = kept_args(to_plain(args), self._options, name, warnings)
        self._warnings.update(dict.fromkeys(warnings))
        return kept

    def close(self, unfinished: str) -> None:
        """End open steps with this error, and let go of the calls' arguments."""
        for step in self.taken:
            if step.status == "open":
                step.end(KeptOutcome("error", unfinished))
                step.is_forced = True
            if step.call is not None:
                step.call.args = None  # only the kept ones stay
