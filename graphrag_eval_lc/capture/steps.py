"""Decides which messages of a run are new, and matches each tool call with the tool's run and the answer."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from graphrag_eval_lc.capture.llm_calls import ProviderEvent, has_run_id
from graphrag_eval_lc.capture.messages import USER, as_message, end_of, id_of, role_and_content, says_unparsed
from graphrag_eval_lc.capture.record import MessageList, Record, ToolRun, Tree, is_same_version
from graphrag_eval_lc.capture.responses import Part, Step
from graphrag_eval_lc.capture.values import Outcome, documents_in, message_outcome, to_plain

_EDIT_NOTE = "Note: a human reviewer replaced this tool call"  # LangChain's, before the output of an edited call

# A sort key for the steps of a run: (rank, position) for each branch around the step, then for the step itself.
Order = tuple[Any, ...]


@dataclass(slots=True, eq=False, repr=False)
class KnownMessage:
    """One message of a run in all its forms: message objects, dicts, and copies with the same id."""

    form: Any  # the form that was read last
    is_read: bool = False  # whether it was read in a list
    is_old: bool = False  # whether it is older than the run, or is part of the run's input
    calls: "list[AskedCall]" = field(default_factory=list)
    counted: AIMessage | None = None  # the form for which a model call was counted
    is_reported: bool = False  # whether a model's callback reported that form
    node: Record | None = None  # the node of the model call, or of the first list with the message
    reported_from: int = -1  # the rank of the start of the last model call that reported it


class History:
    """The messages of a run, one ``KnownMessage`` each; ``ends`` are the ids of the last messages of earlier runs."""

    def __init__(self, tree: Tree, ends: set[str]) -> None:
        self.has_own = False  # whether any message of the run itself was read
        self._ends = ends
        self._earlier_ids = tree.earlier.message_ids
        self._had_id = tree.had_id
        self._question: str | None = None
        self._may_replace = False  # whether input messages have ids, by which they may replace messages in a state
        self._known: dict[Any, KnownMessage] = {}  # by id or, without one, by object
        self._counted: list[KnownMessage] = []  # the messages for which a model call was counted
        self._old: list[Sequence[Any]] = []  # lists of messages that are older than the run

    def known(self, item: Any) -> KnownMessage:
        """Return the message to which a form belongs, found by its id or, without one, by the object."""
        key = (item.id if isinstance(item, BaseMessage) else id_of(item)) or id(item)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = KnownMessage(item)
        return known

    def count(self, message: AIMessage, node: Record | None, *, is_reported: bool = False) -> None:
        """Count the model call of a message; ``node`` is that of the call, or of the first list with the message."""
        known = self.known(message)
        known.counted, known.node, known.is_reported = message, node, is_reported
        self._counted.append(known)

    def is_counted(self, message: AIMessage, node: Record | None) -> bool:
        """Return whether a message's model call was counted, possibly for a copy with another name or id."""
        if self.known(message).counted is not None:
            return True
        has_id, usage = has_run_id(message), message.usage_metadata
        for known in self._counted:
            other = known.counted
            if other is None or (has_id and has_run_id(other)):
                continue
            if not (known.is_reported or self._had_id(message) or self._had_id(other)):
                continue  # a node's own code made both, for two different answers
            answer_ids = message.response_metadata.get("id"), other.response_metadata.get("id")  # the provider's
            has_same_tokens = usage is not None and usage == other.usage_metadata
            if all(answer_ids):
                is_same = answer_ids[0] == answer_ids[1]
            elif has_same_tokens and known.is_reported and known.node is node:
                is_same = True  # even if the node changed the text
            else:
                is_alike = message.content == other.content and message.tool_calls == other.tool_calls
                is_same = is_alike and (has_same_tokens or None in (usage, other.usage_metadata))
            if is_same:
                return True
        return False

    def is_old(self, item: Any) -> bool:
        """Return whether a message is older than the run."""
        known, key = self.known(item), id_of(item) or id(item)
        return known.is_old if known.is_read else any(key == (id_of(old) or id(old)) for old in chain(*self._old))

    def add_input(self, lists: Sequence[MessageList], question: str | None) -> None:
        """Note the run's own input and its question."""
        self._question = question
        for messages in lists:
            self._add_old(messages.items)
            self._may_replace = self._may_replace or any(map(self._had_id, messages.items))

    def add_history(self, state: Sequence[MessageList], *, is_graph: bool) -> None:
        """Mark as old what a thread's state held before this run, or before a graph in it continued the thread.

        This applies only to a list of which no message is known. In a graph's state the messages after the run's input
        are new. Without a graph, those after the end of an earlier run are new.
        """
        for messages, before in state:
            if before is None and not (self.has_own and any(self.known(item).is_read for item in messages)):
                end = _end_of(messages, self._earlier_ids) or self._end_of_copy(messages)
                if end is None and not is_graph:
                    end = _end_of(messages, self._ends)
                self._add_old(messages[:end])

    def _add_old(self, messages: Sequence[Any]) -> None:
        if messages:
            self._old.append(messages)
            last = self.known(messages[-1])
            last.form, last.is_read, last.is_old = messages[-1], True, True

    def read(
        self, messages: MessageList, *, is_input: bool = False, is_state: bool = False, is_handed_over: bool = False
    ) -> MessageList:
        """Return the new messages of models and tools in a list, and remember all of its messages.

        A list in a node's input that has no known message is older than the run, or belongs to another conversation.
        So does one that is handed over to a nested graph, up to the run's question. In both, and in other states
        (``is_state``), the messages from before a pause are old.
        """
        items, before = messages
        if (is_state or is_handed_over) and (own := _end_of(items, self._earlier_ids)):
            self._add_old(items[:own])
            before, items = items[own - 1], items[own:]
        elif is_input and not self.has_own:
            # What follows the run's input in its first state comes from langgraph's cache.
            own = None if self._may_replace else 0 if before is not None else self._end_of_copy(items)
            self._add_old(items[:own])
            if own is None:
                return MessageList(())
            before, items = items[own - 1] if own else before, items[own:]
        known = list(map(self.known, items))
        for end in range(len(items), 0, -1):
            if known[end - 1].is_read and is_same_version(known[end - 1].form, items[end - 1]):
                before, items, known = items[end - 1], items[end:], known[end:]
                break
        first = 0
        if before is None:
            while first < len(items) and not (known[first].is_read or known[first].is_reported):
                first += 1
            if first and not is_input:
                first = self.count_old(items[:first], needs_question=is_handed_over)
        for place, each in enumerate(known):
            each.form, each.is_read, each.is_old = items[place], True, place < first
        self.has_own = self.has_own or first < len(items)
        found = map(as_message, items[first:])
        new = [message for message in found if isinstance(message, (AIMessage, ToolMessage))]
        return MessageList(new, items[first - 1] if first else before)

    def count_old(self, items: Sequence[Any], *, needs_question: bool = False) -> int:
        """Return how many of some unknown messages are older than the run.

        They end with a copy of the run's input, with a user's message that contains the question or, unless the
        question is needed, with the end of an earlier run.
        """
        if (end := self._end_of_copy(items)) is not None:
            return end
        start = _end_of(items, self._ends) or 0
        rest = items[start:] or items  # if all of it is from an earlier run, look for the question in it
        asked = (each for each in map(role_and_content, rest) if each[0] == USER and isinstance(each[1], str))
        for asking in asked if self._question else ():
            if re.search(rf"(?<!\w){re.escape(self._question or '')}(?!\w)", asking[1]):
                return end_of(list(map(role_and_content, items)), asking.__eq__) or start  # its last repetition
        return len(items) if needs_question else start

    def _end_of_copy(self, messages: Sequence[Any]) -> int | None:
        """Return the index after the last copy of a list of old messages, or of the user's message at its end."""
        lasts = [role_and_content(old[-1]) for old in self._old]
        shown = list(map(role_and_content, messages)) if lasts else []
        ends = [end for end in range(len(shown), 0, -1) if shown[end - 1] in lasts]
        for old in self._old if ends else ():
            said = list(map(role_and_content, old))
            for end in ends:
                if shown[max(0, end - len(said)) : end] == said:
                    return end
        return next((end for end in ends if shown[end - 1][0] == USER), None)


def _end_of(messages: Sequence[Any], ids: Collection[str]) -> int | None:
    """Return the index after the last message that has one of some ids, or None."""
    return end_of(messages, lambda item: id_of(item) in ids) if ids else None


# --- calls and their steps ---


@dataclass(slots=True, eq=False, repr=False)
class AskedCall:
    """One tool call of one model's message."""

    source: KnownMessage | None  # the message; None if only the call itself was seen
    call_id: str | None  # the provider's id of the call; some providers repeat it in every message, or for all calls
    name: str
    args: Any
    place: int  # its index in the message
    scope: Record | None  # the graph run in which the message was written or first seen
    parent: Record | None  # the tool around it
    order: Order  # the sort key of its step: its branch, the rank of the message, and its index there
    asked_at: float = 0.0
    is_reported: bool = False  # whether a model's callback reported the message
    is_expected: bool = False  # whether the run should answer it
    is_settled: bool = False  # whether it needs no step: it was withdrawn, or it is structured output
    has_kept_args: bool = False  # whether its args are redacted already
    steps: list[Step] = field(default_factory=list)  # the steps that carry it out
    answer: Outcome | None = None  # the answer in messages, if a tool ran for it
    models: int = 0  # how many model calls had begun before the message with that answer
    is_answered: bool = False  # whether a message answered it

    def is_like(self, call: ToolCall) -> bool:
        """Return whether a call has the same id, name and arguments."""
        return self.call_id == call["id"] and self.name == call["name"] and self.args == call["args"]

    @property
    def message_id(self) -> str | None:
        """The id of its message."""
        return None if self.source is None else id_of(self.source.form)


class _Attempt(NamedTuple):
    record: Record
    tool: ToolRun


class Steps:
    """The calls and steps of a tree. Its methods are called in the order of the tree's events."""

    def __init__(self, part: Part) -> None:
        self.all: list[Step] = []  # in the order in which they were found
        self.step_of: dict[Record | None, Step] = {}  # by run of a tool or retriever, if it is a step
        self.calls: list[AskedCall] = []  # all calls that models requested
        self.waiting: dict[AskedCall, None] = {}  # the calls that still need a step
        self.schemas: set[str] = set()  # the names of schemas for structured output
        self.at_provider: dict[str | None, Step] = {}  # the calls of the provider's tools without a result
        self._part = part
        self._by_id: dict[str | None, list[AskedCall]] = {}
        self._attempts: dict[Step, list[_Attempt]] = {}  # of each step that a callback reported
        self._by_hand: dict[tuple[Record | None, str | None], list[Step]] = {}  # the steps without a call

    def add_call(self, call: AskedCall) -> None:
        """Add a call, which waits for its step."""
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
        """Return the known call of which a message's call is a copy, as handovers and states repeat calls."""
        alike = [asked for asked in self._by_id.get(call["id"], ()) if asked.is_like(call)]
        return next((asked for asked in reversed(alike) if asked.is_reported or asked.source is None), None)

    def with_id(self, call_id: str | None, record: Record) -> list[AskedCall]:
        """Return the calls with an id that a record may run or answer.

        They are the last such call in the record's graph run (or of all, if it has none), and the others with that id
        in the same message. A call whose message is unknown counts only in its own graph run, as a tool elsewhere may
        use the same id.
        """
        scope = record.scope
        calls = [each for each in self._by_id.get(call_id, ()) if each.source is not None or each.scope is scope]
        if len(calls) < 2:
            return calls
        last = next((call for call in reversed(calls) if call.scope is scope), calls[-1])
        if last.source is None:
            return [last]
        place = last.source, last.scope, last.parent
        return [call for call in calls if (call.source, call.scope, call.parent) == place]

    def answers_in(
        self, prompt: Sequence[BaseMessage], known: Callable[[Any], KnownMessage]
    ) -> Iterator[tuple[AskedCall, ToolMessage]]:
        """Yield each waiting call that a tool message in a prompt answers, with that message.

        A tool message answers a call of the model's message before it, which may be a copy of the original. The prompt
        is read from its end up to a message without waiting calls.
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

    def started(self, record: Record, tool: ToolRun, order: Order) -> None:
        """Note that a tool or retriever starts: as a new step, or as another attempt at an existing one.

        It is another attempt if a step of the same call is pending or has the same arguments. Without a call, only
        the tag of ``with_retry`` marks another attempt, and the step has the given order.
        """
        call = self._call_of(record, tool) if record.kind == "tool" else None
        steps = self._by_hand.setdefault((record.parent, record.name), []) if call is None else call.steps
        step = next((each for each in steps if each.status == "pending"), None) if call is not None else None
        if step is None and (call is not None or tool.is_retry):
            ran = (each for each in reversed(steps) if each in self._attempts)
            step = next((each for each in ran if self._attempts[each][0].tool.args == tool.args), None)
        name = record.name or ""
        args = self._part.tree.options.kept_args(tool.args.copy(), name, self._part.warnings)
        if step is None:
            if call is not None:
                order = (*call.order, len(steps)) if steps else call.order
            step = Step(name, args, record.run_id, self.step_of.get(record.outer), order, tool.call_id)
            step.started_at = tool.started_at
            self.all.append(step)
            if call is None:
                steps.append(step)
            else:
                self._link(step, call)
        else:  # another attempt, or it resumes after a pause; the time counts from the first start
            step.attempts += step.status != "pending"
            step.run_id, step.args, step.status = record.run_id, args, "open"
        self.step_of[record] = step
        self._attempts.setdefault(step, []).append(_Attempt(record, tool))

    def ended(self, record: Record, tool: ToolRun) -> None:
        """Note the outcome of a tool or retriever."""
        step = self.step_of.get(record)
        if step is not None and tool.outcome is not None:
            self._settle(step, tool.outcome, tool)
            step.elapsed_sec = tool.ended - self._attempts[step][0].tool.started

    def _call_of(self, record: Record, tool: ToolRun) -> AskedCall | None:
        """Return the call that a tool carries out, found by its id or, without one, by name and arguments.

        If several calls match, the first one without a step is meant.
        """
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
            if any(self._attempts[step][-1].record.node is record.node for step in call.steps):
                return call
        same = sent or [call for call in calls if call.name == record.name and call.args == tool.args] or calls
        return next((call for call in same if not call.steps), same[0])

    def _link(self, step: Step, call: AskedCall) -> None:
        """Note that a step carries out a call."""
        step.has_call = True
        step.call_id = step.call_id or call.call_id
        step.has_message = call.message_id is not None
        call.steps.append(step)
        self.waiting.pop(call, None)

    def answer(
        self, message: ToolMessage, calls: Sequence[AskedCall], record: Record, models: int = 0, is_cached: bool = False
    ) -> None:
        """Note that a tool message answers one of ``calls``, which all have its id.

        If several messages answer a call, the last one before the next model call counts: ``models`` is the number of
        model calls that had begun.
        """
        if not calls:
            return
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
            self._settle(call.steps[0], outcome)  # the last message that answers a call counts
        else:
            step = self._step_by_hand(message, outcome.text, record.outer)
            if step is None:
                root_id, parent = self._part.tree.root_id, self.step_of.get(call.parent)
                step = Step(call.name, self.kept_args(call), root_id, parent, call.order, started_at=call.asked_at)
                step.is_from_message, step.is_from_cache = True, is_cached
                self.all.append(step)
                self._settle(step, outcome)
            step.order = call.order
            self._link(step, call)

    def _answered_call(self, calls: Sequence[AskedCall], text: str, record: Record) -> AskedCall | None:
        """Return the call that a tool message answers; if several share the id, one whose outcome has the same text."""
        sent = calls if len(calls) == 1 else _sent_to(record, calls)
        if len(sent) == 1:
            return sent[0]
        for call in calls:
            outcomes = [self._attempts[step][-1].tool.outcome for step in call.steps if step in self._attempts]
            if any(outcome is not None and outcome.text == text for outcome in outcomes):
                return call
        return next((call for call in calls if not call.is_answered), None)

    def _step_by_hand(self, message: ToolMessage, text: str, outer: Record | None) -> Step | None:
        """Return the step of a tool that a node's code ran itself, with other arguments than the model requested."""
        for steps in self._by_hand.values():
            for step in reversed(steps):
                record, tool = self._attempts[step][-1]
                own = tool.outcome if record.kind == "tool" and record.outer is outer else None
                if (
                    step.call_id is None
                    and not step.has_call
                    and own is not None
                    and own.text == text
                    and message.name in (None, step.name)
                ):
                    return step
        return None

    def compare_answers(self) -> None:
        """Find steps whose model saw another outcome than the tool returned: the step shows that, and keeps both."""
        for call in self.calls:
            step, outcome = call.steps[0] if len(call.steps) == 1 else None, call.answer
            if step is None or outcome is None or step not in self._attempts:
                continue
            tool = self._attempts[step][-1].tool
            own = tool.outcome
            if own is None or tool.call_id is None or step.status in ("open", "pending"):
                continue
            is_same = own.text == outcome.text or (tool.answer_id is None and own.status == "success")
            is_unchanged = own.status == outcome.status and (is_same or own.status == "error")
            if not is_unchanged and not outcome.text.startswith(_EDIT_NOTE):
                step.own, artifact = Outcome(own.status, step.text), step.artifact
                self._settle(step, outcome)
                step.artifact = artifact

    def at_the_provider(self, event: ProviderEvent, record: Record, order: Order, at: float) -> None:
        """Note a call of one of the provider's own tools, or its result; the call becomes a step with its result."""
        if event.name is None:
            step = self.at_provider.pop(event.call_id, None)
            if step is not None and event.outcome is not None:
                self.all.append(step)
                self._settle(step, event.outcome)
        else:
            args = self._part.tree.options.kept_args(to_plain(event.args), event.name, self._part.warnings)
            root_id, parent = self._part.tree.root_id, self.step_of.get(record.outer)
            step = Step(event.name, args, root_id, parent, order, event.call_id, started_at=at)
            self.at_provider[event.call_id] = step

    def kept_args(self, call: AskedCall) -> dict[str, Any]:
        """Return a call's arguments after redaction, as a dict."""
        if call.has_kept_args:
            return dict(call.args)
        return self._part.tree.options.kept_args(to_plain(call.args), call.name, self._part.warnings)

    def _settle(self, step: Step, outcome: Outcome, tool: ToolRun | None = None) -> None:
        """End a step with an outcome, redacted and cut; ``tool`` is the run that returned it, if any."""
        retrieved = (documents_in(outcome.artifact), None) if tool is None else tool.retrieved()
        step.end(self._part.tree.options.kept_outcome(outcome, step.name, self._part.warnings, retrieved))


def _sent_to(record: Record, calls: Sequence[AskedCall]) -> list[AskedCall]:
    """Return the calls equal to the one call with their id in the input of a record's node; none if it has several."""
    loose = () if record.node is None else record.node.loose_calls
    sent = [(call["name"], call["args"]) for call in loose if call["id"] == calls[0].call_id]
    return [call for call in calls if [(call.name, call.args)] == sent]
