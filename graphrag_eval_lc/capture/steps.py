"""Steps: which runs of tools carry out which calls, and what messages say of calls."""

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import ToolMessage

from graphrag_eval_lc.capture.history import AskedCall, AskedCalls, Order
from graphrag_eval_lc.capture.llm_calls import ProviderCall, ProviderResult
from graphrag_eval_lc.capture.messages import says_unparsed
from graphrag_eval_lc.capture.outputs import Outcome, documents_in, message_outcome, to_plain
from graphrag_eval_lc.capture.record import Record, ToolRun
from graphrag_eval_lc.capture.responses import Part, Step

_EDIT_NOTE = "Note: a human reviewer replaced this tool call"  # LangChain's, before the output of an edited call


class Steps:
    """The steps of a tree. Its methods are called in the order of the tree's events."""

    def __init__(self, part: Part, calls: AskedCalls) -> None:
        self.all: list[Step] = []  # in the order in which they were found
        self.step_of: dict[Record, Step] = {}  # the step of each run of a tool or retriever that is one
        self.outer_of: dict[Step, Record | None] = {}  # the tool around each step
        self.schemas: set[str] = set()  # the names of schemas for structured output, whose calls no tool answers
        self.at_provider: dict[str | None, Step] = {}  # the calls of the provider's tools without a result
        self._part = part
        self._tree = part.tree
        self._options = part.tree.options
        self._calls = calls
        self._runs: dict[Step, list[Record]] = {}  # the attempts of each step
        self._by_hand: dict[tuple[Record | None, str | None], list[Step]] = {}  # the steps without a call

    def add(self, step: Step, outer: Record | None) -> None:
        """Add a step, with the tool around it."""
        self.all.append(step)
        self.outer_of[step] = outer

    # --- runs of tools and retrievers ---

    def started(self, record: Record, tool: ToolRun, event: int, branch: Order) -> None:
        """Note that a tool or retriever starts: a step, or one more attempt at one."""
        call = self._call_of(record, tool, branch) if record.kind == "tool" else None
        steps = self._by_hand.setdefault((record.parent, record.name), []) if call is None else call.steps
        step = self._attempted(steps, tool, is_call=call is not None)
        if step is None:
            order: Order = (*branch, (event, 0), 0)
            if call is not None:
                order = (*call.order, len(steps)) if steps else call.order
            step = Step(record.name or "", self.kept(record.name or "", tool.args), record.run_id, None, order)
            step.call_id, step.started_at = tool.call_id, tool.started_at
            if call is not None:
                self._link(step, call)
            else:
                steps.append(step)
            self.add(step, record.outer)
        else:  # another attempt, or it resumes after a pause; the time counts from the first start
            step.attempts += step.status != "pending"
            step.run_id, step.args, step.status = record.run_id, self.kept(step.name, tool.args), "open"
        self.step_of[record] = step
        self._runs.setdefault(step, []).append(record)

    def ended(self, record: Record, tool: ToolRun, branch: Order) -> None:
        """Note the outcome of a tool or retriever."""
        step = self.step_of.get(record)
        if step is None or tool.outcome is None or tool.ended is None:
            return
        if tool.answer_id is not None and step.call_id is None and not step.has_call:
            answered = self._calls.with_id(tool.answer_id, record, branch)
            call = next((call for call in answered if not call.steps), None)
            if call is None:
                step.call_id = tool.answer_id
            else:
                step.order = call.order
                self._link(step, call)
        self.settle(step, tool.outcome, tool)
        step.elapsed_sec = tool.ended - self._first_run(step).started

    def _attempted(self, steps: Sequence[Step], tool: ToolRun, *, is_call: bool) -> Step | None:
        """Return the step of which a run is another attempt: one that waits, or one with the same arguments.

        Without a call it is one only if ``with_retry`` says so.
        """
        if is_call:
            waiting = next((step for step in steps if step.status == "pending"), None)
            if waiting is not None:
                return waiting
        elif not tool.is_retry:
            return None
        ran = [step for step in steps if step in self._runs]
        return next((step for step in reversed(ran) if self._first_run(step).args == tool.args), None)

    def _first_run(self, step: Step) -> ToolRun:
        tool = self._runs[step][0].tool
        assert tool is not None
        return tool

    def _call_of(self, record: Record, tool: ToolRun, branch: Order) -> AskedCall | None:
        """Return the call that a tool carries out: by its id, else by name and arguments."""
        if tool.call_id is not None:
            return self._called(self._calls.with_id(tool.call_id, record, branch), record, tool)
        alike = [call for call in self._calls.like(record.name or "", tool.args) if not call.is_settled]
        free = next((call for call in alike if not call.steps), None)
        return free or next((call for call in reversed(alike) if call.steps[-1].status == "error"), None)

    def _called(self, calls: Sequence[AskedCall], record: Record, tool: ToolRun) -> AskedCall | None:
        """Return the call that a tool carries out of several with its id: the first without a step, if any like it."""
        if len(calls) < 2:
            return calls[0] if calls else None
        sent = _sent_to(record, calls, tool.call_id)
        for call in sent:
            if any(self._runs[step][-1].node is record.node for step in call.steps):
                return call
        same = sent or [call for call in calls if call.name == record.name and call.args == tool.args]
        free = [call for call in same or calls if not call.steps]
        return (free or same or calls)[0]

    def _link(self, step: Step, call: AskedCall) -> None:
        """Note that a step carries out a call."""
        step.has_call = True
        step.call_id = step.call_id or call.call_id
        step.message_id = call.message_id
        if call.message_id is not None:
            step.key = (call.message_id, call.call_id, call.place, len(call.steps))
        call.steps.append(step)
        self._calls.waiting.pop(call, None)

    # --- messages that answer calls ---

    def answer(
        self,
        message: ToolMessage,
        calls: Sequence[AskedCall],
        record: Record,
        event: int,
        *,
        models: int = 0,
        is_from_cache: bool = False,
    ) -> None:
        """Note that a tool message answers one of some calls, all with its id.

        ``models`` is how many model calls had begun before it: the last message before the next one counts.
        """
        outcome = message_outcome(message)
        call = self._answered_call(message, calls, outcome.text, record, event)
        if call is None:
            return
        call.answered_at, call.answered_text = event, outcome.text
        if call.name in self.schemas:
            if not call.is_settled and says_unparsed(message):
                self._part.unparsed.append((call.name, call.call_id))
            self._calls.settle(call)
        elif call.is_settled or (call.steps and not call.steps[0].is_from_message):
            if call.answer is None or call.models == models:
                call.answer, call.models = outcome, models
        elif call.steps:
            self.settle(call.steps[0], outcome)  # of several that answer a call the last counts
        else:
            step = self._step_by_hand(message, outcome.text, record.outer)
            if step is not None:
                step.order = call.order
            else:
                step = Step(call.name, self.kept_args(call), self._tree.root_id, None, call.order, is_from_message=True)
                step.started_at, step.is_from_cache = call.asked_at, is_from_cache
                self.settle(step, outcome)
                self.add(step, call.parent)
            self._link(step, call)

    def _answered_call(
        self, message: ToolMessage, calls: Sequence[AskedCall], text: str, record: Record, event: int
    ) -> AskedCall | None:
        """Return the call that a tool message answers; of several with one id the one whose text it has."""
        sent = calls if len(calls) == 1 else _sent_to(record, calls, message.tool_call_id)
        if len(sent) == 1:
            return sent[0]
        named = [call for call in calls if call.name == message.name] or list(calls)
        named = [call for call in named if call.answered_at != event] or named
        same = next((call for call in named if text in self._texts_of(call)), None)
        if same is not None or any(step in self._runs for call in calls for step in call.steps):
            return same
        return next((call for call in named if call.answered_at is None), None)

    def _texts_of(self, call: AskedCall) -> Iterator[str | None]:
        """Yield the texts that a call's tools and messages returned."""
        for step in call.steps:
            tool = self._runs[step][-1].tool if step in self._runs else None
            yield None if tool is None or tool.outcome is None else tool.outcome.text
        yield call.answered_text

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
        for call in self._calls.all:
            step, outcome = call.steps[0] if len(call.steps) == 1 else None, call.answer
            tool = self._runs[step][-1].tool if step in self._runs else None
            if step is None or outcome is None or tool is None or tool.outcome is None or tool.call_id is None:
                continue
            own = tool.outcome
            is_same = own.text == outcome.text or (tool.answer_id is None and own.status == "success")
            is_unchanged = own.status == outcome.status and (is_same or own.status == "error")
            if step.status in ("open", "pending") or is_unchanged or outcome.text.startswith(_EDIT_NOTE):
                continue
            step.own, artifact = Outcome(own.status, step.text), step.artifact
            self.settle(step, outcome)
            step.artifact = artifact

    # --- tools of the provider ---

    def provider_called(self, call: ProviderCall, record: Record, order: Order, at: float) -> None:
        """Note a call of one of the provider's own tools; it is a step when its result is known."""
        step = Step(call.name, self.kept(call.name, call.args), self._tree.root_id, None, order, call.call_id)
        step.started_at = at
        self.at_provider[call.call_id] = step
        self.outer_of[step] = record.outer

    def provider_answered(self, result: ProviderResult) -> None:
        """Note the result of such a call, or that a later message has the call."""
        step = self.at_provider.pop(result.call_id, None)
        if step is not None and result.outcome is not None:
            self.settle(step, result.outcome)
            self.all.append(step)

    # --- what is kept ---

    def kept_args(self, call: AskedCall) -> dict[str, Any]:
        """Return what is kept of a call's arguments."""
        return dict(call.args) if call.has_kept_args else self.kept(call.name, call.args)

    def kept(self, name: str, args: Any) -> dict[str, Any]:
        """Return what is kept of a tool's arguments."""
        return self._options.kept_args(to_plain(args), name, self._part.warnings)

    def settle(self, step: Step, outcome: Outcome, tool: ToolRun | None = None) -> None:
        """End a step with what is kept of an outcome; ``tool`` is the run that has it."""
        retrieved = (documents_in(outcome.artifact), None) if tool is None else tool.retrieved()
        step.end(self._options.kept_outcome(outcome, step.name, self._part.warnings, retrieved))


def _sent_to(record: Record, calls: Sequence[AskedCall], call_id: str | None) -> list[AskedCall]:
    """Return those of some calls that are like the one call with their id which was sent to a record's node."""
    sent = [call for call in record.node.loose_calls if call["id"] == call_id] if record.node is not None else []
    if len(sent) != 1:
        return []
    return [call for call in calls if call.name == sent[0]["name"] and call.args == sent[0]["args"]]
