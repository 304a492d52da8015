"""Steps: the calls that models asked for, which runs of tools carry them out, and which messages answer them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from graphrag_eval_lc.capture.history import KnownMessage
from graphrag_eval_lc.capture.llm_calls import ProviderCall, ProviderResult
from graphrag_eval_lc.capture.messages import id_of, says_unparsed
from graphrag_eval_lc.capture.record import Record, ToolRun
from graphrag_eval_lc.capture.responses import Part, Step
from graphrag_eval_lc.capture.values import Outcome, documents_in, message_outcome, to_plain

_EDIT_NOTE = "Note: a human reviewer replaced this tool call"  # LangChain's, before the output of an edited call

# A place in the order of a run, as pairs of a rank and a place in it: of each branch around it, then its own.
Order = tuple[Any, ...]


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
    order: Order  # the order of its step: its branch, the rank of the message, and the place in its list of calls
    asked_at: float = 0.0
    is_reported: bool = False  # whether a model's callback reported the message
    is_expected: bool = False  # whether the run is to answer it
    is_settled: bool = False  # whether it needs no step: it was withdrawn, or is that of a schema
    has_kept_args: bool = False
    steps: list[Step] = field(default_factory=list)  # the steps that carry it out
    answer: Outcome | None = None  # the answer in messages, if a tool ran for it
    models: int = 0  # how many model calls had begun before that message
    is_answered: bool = False  # whether a message answered it

    def is_like(self, call: ToolCall) -> bool:
        """Return whether a call has the same id, name and arguments."""
        return self.call_id == call["id"] and self.name == call["name"] and self.args == call["args"]

    @property
    def message_id(self) -> str | None:
        """The id of its message."""
        return None if self.source is None else id_of(self.source.form)


class Steps:
    """The calls and steps of a tree. Its methods are called in the order of the tree's events."""

    def __init__(self, part: Part) -> None:
        self.all: list[Step] = []  # in the order in which they were found
        self.step_of: dict[Record, Step] = {}  # the step of each run of a tool or retriever that is one
        self.outer_of: dict[Step, Record | None] = {}  # the tool around each step
        self.calls: list[AskedCall] = []  # all that the models asked for
        self.waiting: dict[AskedCall, None] = {}  # those that need a step and have none
        self.schemas: set[str] = set()  # the names of schemas for structured output, whose calls no tool answers
        self.at_provider: dict[str | None, Step] = {}  # the calls of the provider's tools without a result
        self._part = part
        self._options = part.tree.options
        self._by_id: dict[str | None, list[AskedCall]] = {}
        self._runs: dict[Step, list[Record]] = {}  # the attempts of each step
        self._by_hand: dict[tuple[Record | None, str | None], list[Step]] = {}  # the steps without a call

    # --- calls ---

    def add_call(self, call: AskedCall) -> None:
        """Add a call."""
        self.calls.append(call)
        self.waiting[call] = None
        self._by_id.setdefault(call.call_id, []).append(call)
        if call.source is not None:
            call.source.calls.append(call)

    def settle_call(self, call: AskedCall) -> None:
        """Note that a call needs no step."""
        call.is_settled = True
        self.waiting.pop(call, None)

    def copied(self, call: ToolCall) -> AskedCall | None:
        """Return the call of a callback that a message repeats: a handover and a state may carry copies."""
        alike = [asked for asked in self._by_id.get(call["id"], ()) if asked.is_like(call)]
        return next((asked for asked in reversed(alike) if asked.is_reported or asked.source is None), None)

    def with_id(self, call_id: str | None, record: Record) -> list[AskedCall]:
        """Return the calls with an id that a record may run or answer.

        They are the last one in its graph run, else the last of all, with those of the same message. A call without a
        message counts in its own graph run only: a tool next to or around this one may use the same id.
        """
        calls = [each for each in self._by_id.get(call_id, ()) if each.source is not None or each.scope is record.scope]
        last = next((call for call in reversed(calls) if call.scope is record.scope), calls[-1] if calls else None)
        if last is None or last.source is None:
            return [] if last is None else [last]
        place = last.source, last.scope, last.parent
        return [call for call in calls if (call.source, call.scope, call.parent) == place]

    def answers_in(
        self, prompt: Sequence[BaseMessage], known: Callable[[Any], KnownMessage]
    ) -> Iterator[tuple[AskedCall, ToolMessage]]:
        """Yield the waiting calls that a prompt's tool messages answer, with the messages.

        A tool message answers a call of the model's message before it, which may be a copy of the one that asked. The
        prompt is read from its end up to a message whose calls are all settled.
        """
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
                    sharing = [place for place, each in enumerate(message.tool_calls) if each["id"] == call.call_id]
                    later = sum(place > call.place for place in sharing)  # they are answered in the order of the calls
                    for answer in answers.get(call.call_id, [])[later : later + 1]:
                        yield call, answer
                answers = {}
                if not calls:
                    break

    # --- runs of tools and retrievers ---

    def started(self, record: Record, tool: ToolRun, event: int, branch: Order) -> None:
        """Note that a tool or retriever starts: a step, or one more attempt at one."""
        call = self._call_of(record, tool) if record.kind == "tool" else None
        steps = self._by_hand.setdefault((record.parent, record.name), []) if call is None else call.steps
        step = self._attempted(steps, tool, is_call=call is not None)
        name = record.name or ""
        if step is None:
            order: Order = (*branch, (event, 0), 0) if call is None else (*call.order, *([len(steps)] if steps else ()))
            step = Step(name, self._kept(name, tool.args), record.run_id, None, order, tool.call_id)
            step.started_at = tool.started_at
            if call is not None:
                self._link(step, call)
            else:
                steps.append(step)
            self.all.append(step)
            self.outer_of[step] = record.outer
        else:  # another attempt, or it resumes after a pause; the time counts from the first start
            step.attempts += step.status != "pending"
            step.run_id, step.args, step.status = record.run_id, self._kept(name, tool.args), "open"
        self.step_of[record] = step
        self._runs.setdefault(step, []).append(record)

    def ended(self, record: Record, tool: ToolRun) -> None:
        """Note the outcome of a tool or retriever."""
        step = self.step_of.get(record)
        if step is not None and tool.outcome is not None and tool.ended is not None:
            self._settle(step, tool.outcome, tool)
            step.elapsed_sec = tool.ended - self._run_of(step, 0).started

    def _run_of(self, step: Step, attempt: int = -1) -> ToolRun:
        tool = self._runs[step][attempt].tool
        assert tool is not None
        return tool

    def _attempted(self, steps: Sequence[Step], tool: ToolRun, *, is_call: bool) -> Step | None:
        """Return the step of which a run is another attempt: one that waits, or one with the same arguments.

        Without a call it is one only if ``with_retry`` says so.
        """
        waiting = next((step for step in steps if step.status == "pending"), None) if is_call else None
        if waiting is not None or not (is_call or tool.is_retry):
            return waiting
        ran = (step for step in reversed(steps) if step in self._runs)
        return next((step for step in ran if self._run_of(step, 0).args == tool.args), None)

    def _call_of(self, record: Record, tool: ToolRun) -> AskedCall | None:
        """Return the call that a tool carries out: by its id, of several the first that is free, else by arguments."""
        if tool.call_id is None:
            alike = [call for call in self.calls if call.name == record.name and call.args == tool.args]
            alike = [call for call in alike if not call.is_settled]
            free = next((call for call in alike if not call.steps), None)
            return free or next((call for call in reversed(alike) if call.steps[-1].status == "error"), None)
        calls = self.with_id(tool.call_id, record)
        if len(calls) < 2:
            return calls[0] if calls else None
        sent = _sent_to(record, calls)
        for call in sent:
            if any(self._runs[step][-1].node is record.node for step in call.steps):
                return call
        same = sent or [call for call in calls if call.name == record.name and call.args == tool.args]
        free_calls = [call for call in same or calls if not call.steps]
        return (free_calls or same or calls)[0]

    def _link(self, step: Step, call: AskedCall) -> None:
        """Note that a step carries out a call."""
        step.has_call = True
        step.call_id = step.call_id or call.call_id
        step.has_message = call.message_id is not None
        call.steps.append(step)
        self.waiting.pop(call, None)

    # --- messages that answer calls ---

    def answer(
        self,
        message: ToolMessage,
        calls: Sequence[AskedCall],
        record: Record,
        *,
        models: int = 0,
        is_from_cache: bool = False,
    ) -> None:
        """Note that a tool message answers one of some calls, all with its id.

        ``models`` is how many model calls had begun before it: the last message before the next one counts.
        """
        outcome = message_outcome(self._part.tree.as_read(message))
        call = self._answered_call(calls, outcome.text, record)
        if call is None:
            return
        call.is_answered = True
        if call.name in self.schemas:
            if not call.is_settled and says_unparsed(message):
                self._part.unparsed.append((call.name, call.call_id))
            self.settle_call(call)
        elif call.is_settled or (call.steps and not call.steps[0].is_from_message):
            if call.answer is None or call.models == models:
                call.answer, call.models = outcome, models
        elif call.steps:
            self._settle(call.steps[0], outcome)  # of several that answer a call the last counts
        else:
            step = self._step_by_hand(message, outcome.text, record.outer)
            if step is not None:
                step.order = call.order
            else:
                args, root_id = self.kept_args(call), self._part.tree.root_id
                step = Step(call.name, args, root_id, None, call.order, is_from_message=True)
                step.started_at, step.is_from_cache = call.asked_at, is_from_cache
                self._settle(step, outcome)
                self.all.append(step)
                self.outer_of[step] = call.parent
            self._link(step, call)

    def _answered_call(self, calls: Sequence[AskedCall], text: str, record: Record) -> AskedCall | None:
        """Return the call that a tool message answers; of several with one id the one whose text it has."""
        sent = calls if len(calls) == 1 else _sent_to(record, calls)
        if len(sent) == 1:
            return sent[0]
        for call in calls:
            outcomes = [self._run_of(step).outcome for step in call.steps if step in self._runs]
            if any(outcome is not None and outcome.text == text for outcome in outcomes):
                return call
        return next((call for call in calls if not call.is_answered), None)

    def _step_by_hand(self, message: ToolMessage, text: str, outer: Record | None) -> Step | None:
        """Return the step of a tool that was run by hand, with other arguments than the model asked for."""
        for steps in self._by_hand.values():
            for step in reversed(steps):
                record = self._runs[step][-1]
                own = None if record.tool is None or record.kind != "tool" else record.tool.outcome
                is_free = step.call_id is None and not step.has_call and record.outer is outer
                if is_free and own is not None and own.text == text and message.name in (None, step.name):
                    return step
        return None

    def compare_answers(self) -> None:
        """If a model saw another outcome than the tool's own, the step has what it saw, and the own one too."""
        for call in self.calls:
            step, outcome = call.steps[0] if len(call.steps) == 1 else None, call.answer
            if step is None or outcome is None or step not in self._runs:
                continue
            tool = self._run_of(step)
            own = tool.outcome
            if own is None or tool.call_id is None or step.status in ("open", "pending"):
                continue
            is_same = own.text == outcome.text or (tool.answer_id is None and own.status == "success")
            is_unchanged = own.status == outcome.status and (is_same or own.status == "error")
            if not is_unchanged and not outcome.text.startswith(_EDIT_NOTE):
                step.own, artifact = Outcome(own.status, step.text), step.artifact
                self._settle(step, outcome)
                step.artifact = artifact

    # --- tools of the provider ---

    def provider_called(self, call: ProviderCall, record: Record, order: Order, at: float) -> None:
        """Note a call of one of the provider's own tools; it is a step when its result is known."""
        args, root_id = self._kept(call.name, call.args), self._part.tree.root_id
        step = self.at_provider[call.call_id] = Step(call.name, args, root_id, None, order, call.call_id)
        step.started_at = at
        self.outer_of[step] = record.outer

    def provider_answered(self, result: ProviderResult) -> None:
        """Note the result of such a call, or that a later message has the call."""
        step = self.at_provider.pop(result.call_id, None)
        if step is not None and result.outcome is not None:
            self._settle(step, result.outcome)
            self.all.append(step)

    # --- what is kept ---

    def kept_args(self, call: AskedCall) -> dict[str, Any]:
        """Return what is kept of a call's arguments."""
        return dict(call.args) if call.has_kept_args else self._kept(call.name, call.args)

    def _kept(self, name: str, args: Any) -> dict[str, Any]:
        return self._options.kept_args(to_plain(args), name, self._part.warnings)

    def _settle(self, step: Step, outcome: Outcome, tool: ToolRun | None = None) -> None:
        """End a step with what is kept of an outcome; ``tool`` is the run that has it."""
        retrieved = (documents_in(outcome.artifact), None) if tool is None else tool.retrieved()
        step.end(self._options.kept_outcome(outcome, step.name, self._part.warnings, retrieved))


def _sent_to(record: Record, calls: Sequence[AskedCall]) -> list[AskedCall]:
    """Return those of some calls with one id that are like the only such call which was sent to a record's node."""
    loose = () if record.node is None else record.node.loose_calls
    sent = [(call["name"], call["args"]) for call in loose if call["id"] == calls[0].call_id]
    return [call for call in calls if [(call.name, call.args)] == sent]
