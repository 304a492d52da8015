"""The passes over executions and answers: which runs of tools carry out which calls, and what messages tell of them."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from graphrag_eval_lc.capture.calls import Answer, AskedCall, Execution, Order, Step, answers_in
from graphrag_eval_lc.capture.calls_without_tools import says_unparsed
from graphrag_eval_lc.capture.outputs import Outcome, documents_in, to_plain
from graphrag_eval_lc.capture.reading import ReadMessages
from graphrag_eval_lc.capture.record import Record, ToolRun, Tree
from graphrag_eval_lc.capture.redaction import kept_args, kept_outcome

_EDIT_NOTE = "Note: a human reviewer replaced this tool call"  # LangChain's, before the output of an edited call


class Steps:
    """The steps of a tree."""

    def __init__(self, tree: Tree, read: ReadMessages) -> None:
        self.all: list[Step] = []  # the steps, in the order in which they were found
        self.step_of: dict[Record, Step] = {}  # the step of each tool or retriever that is one
        self.outer_of: list[tuple[Step, Record | None]] = []  # the tool around each step
        self.waiting: dict[AskedCall, None] = {}  # the calls that need a step and have none
        # name and id of the calls for structured output that did not parse
        self.unparsed: list[tuple[str, str | None]] = []
        self.warnings: list[str] = []
        self._tree = tree
        self._options = tree.options
        self._read = read
        self._loose: dict[str, list[Execution]] = {}

    # --- the pass over executions ---

    def find_executions(self) -> None:
        """Make steps of the runs of tools and retrievers, with the calls that they carry out."""
        retried: dict[tuple[Record | None, str | None], list[Execution]] = {}
        for record, begin in self._read.begins.items():
            tool = record.tool
            if tool is None or (record.kind == "retriever" and record.is_inside_step):
                continue
            call = self._call_of(record, tool, begin) if record.kind == "tool" else None
            if call is not None:
                execution = _attempted(call.executions, tool)
                if execution is None:
                    execution = self._execute(record, tool, begin, call)
                    call.executions.append(execution)
                else:
                    self._try_again(execution, record, tool)
            else:
                failed = retried.setdefault((record.parent, record.name), [])
                again = next((each for each in reversed(failed) if tool.is_retry and _is_of(each, tool)), None)
                if again is None:
                    failed.append(self._execute(record, tool, begin, None))
                else:
                    self._try_again(again, record, tool)

    def _call_of(self, record: Record, tool: ToolRun, begin: int) -> AskedCall | None:
        """Return the call that a tool carries out: by its id, else by name and arguments."""
        calls = self._read.calls
        if tool.call_id is not None:
            return calls.call_to_run(record, begin, self._read.branches[record])
        call = calls.call_like(record, begin)
        if call is None and tool.answer_id and record.scope is not None:
            answered = calls.answered_by(tool.answer_id, record.scope)
            call = next((each for each in answered if not each.executions), None)
        return call

    def _execute(self, record: Record, tool: ToolRun, begin: int, call: AskedCall | None) -> Execution:
        order: Order = (*self._read.branches[record], (begin, 0), 0)
        if call is not None:
            order = (*call.order, len(call.executions)) if call.executions else call.order
        args = self.kept(record.name or "", tool.args)
        step = Step(record.name or "", args, record.run_id, None, order, tool.call_id)
        step.started_at = tool.started_at
        if call is not None:
            _link(step, call, len(call.executions))
        elif tool.call_id is None:
            step.call_id = tool.answer_id
        execution = Execution(step, [record])
        self.step_of[record] = step
        self.all.append(step)
        self.outer_of.append((step, record.outer))
        self._take_outcome(execution, tool)
        return execution

    def _try_again(self, execution: Execution, record: Record, tool: ToolRun) -> None:
        """Begin another attempt, or go on after a pause; the time counts from the first start."""
        step = execution.step
        step.attempts += step.status != "pending"
        execution.records.append(record)
        step.run_id, step.args, step.status = record.run_id, self.kept(step.name, tool.args), "open"
        self.step_of[record] = step
        self._take_outcome(execution, tool)

    def _take_outcome(self, execution: Execution, tool: ToolRun) -> None:
        if tool.outcome is not None and tool.ended is not None:
            self.settle(execution.step, tool.outcome, tool)
            execution.step.elapsed_sec = tool.ended - _first_tool(execution).started

    # --- the pass over answers ---

    def find_answers(self) -> None:
        """Make steps of the calls that only messages answer, and compare the answers of others."""
        for record, step in self.step_of.items():
            own = None if record.tool is None or record.kind != "tool" else record.tool.outcome
            if own is not None and own.status != "pending" and step.call_id is None and not step.has_call:
                self._loose.setdefault(own.text, []).append(Execution(step, [record]))
        _part_by_place([each for each in self._read.log if isinstance(each, Answer) and len(each.calls) > 1])
        for each in self._read.log:
            if isinstance(each, AskedCall):
                if each.waits:
                    self.waiting[each] = None
            elif isinstance(each, Answer):
                self._answer(each)
            elif isinstance(each, Record):
                if self.waiting and each.model is not None:
                    for call, message in answers_in(self.waiting, each.model.prompt):
                        answered = self._tree.as_read(message)
                        self._answer(Answer(answered, [call], each.outer, self._read.begins[each]))
            elif each.call.waits:
                each.call.is_settled = True
                self.waiting.pop(each.call, None)
        for call in self._read.calls.all:
            if len(call.executions) == 1 and call.answer is not None:
                self._compare(call, call.executions[0], call.answer)

    def _answer(self, answer: Answer) -> None:
        outcome = answer.outcome()
        call = _answered_call(answer, outcome.text)
        if call is None:
            return
        call.answers.append(answer)
        if call.name in self._read.schemas:
            if not call.is_settled and (answer.is_unparsed or says_unparsed(answer.message)):
                self.unparsed.append((call.name, call.call_id))
            call.is_settled = True
            self.waiting.pop(call, None)
            return
        if call.executions or call.is_settled:
            if call.answer is None or call.answer.models == answer.models:
                call.answer = answer
            return
        if call.step is not None:
            self.settle(call.step, outcome)  # of several that answer a call the last counts
            return
        execution = self._loose_execution(answer, outcome.text)
        self.waiting.pop(call, None)
        if execution is not None:
            _link(execution.step, call, 0)
            execution.step.order = call.order
            call.executions.append(execution)
            return
        call.step = step = Step(
            call.name, self.kept_args(call), self._tree.root_id, None, call.order, is_from_message=True
        )
        _link(step, call, 0)
        step.started_at, step.is_from_cache = call.asked_at, answer.is_from_cache
        self.settle(step, outcome)
        self.all.append(step)
        self.outer_of.append((step, call.parent))

    def kept_args(self, call: AskedCall) -> dict[str, Any]:
        """Return what is kept of a call's arguments."""
        return dict(call.args) if call.has_kept_args else self.kept(call.name, call.args)

    def kept(self, name: str, args: Any) -> dict[str, Any]:
        """Return what is kept of a tool's arguments."""
        return kept_args(to_plain(args), self._options, name, self.warnings)

    def settle(self, step: Step, outcome: Outcome, tool: ToolRun | None = None) -> None:
        """End a step with what is kept of an outcome; ``tool`` is the run that has it."""
        retrieved = (documents_in(outcome.artifact), None) if tool is None else tool.retrieved()
        step.end(kept_outcome(outcome, self._options, step.name, self.warnings, retrieved))

    def _loose_execution(self, answer: Answer, text: str) -> Execution | None:
        """Return the run of a tool by hand, with other arguments than the model asked for."""
        found = self._loose.get(text, [])
        for execution in reversed(found):
            record = execution.last
            is_before = self._read.begins[record] < answer.event
            if is_before and record.outer is answer.parent and answer.message.name in (None, execution.step.name):
                found.remove(execution)
                return execution
        return None

    def _compare(self, call: AskedCall, execution: Execution, answer: Answer) -> None:
        """Where the model saw another outcome than the tool's own, the step has what it saw, and the own one too."""
        tool = execution.last.tool
        step = execution.step
        if tool is None or tool.outcome is None or tool.call_id is None or step.status in ("open", "pending"):
            return
        own, outcome = tool.outcome, answer.outcome()
        is_same = own.text == outcome.text or (tool.answer_id is None and own.status == "success")
        if own.status == outcome.status and (is_same or own.status == "error"):
            return
        if outcome.text.startswith(_EDIT_NOTE):
            return
        step.own = Outcome(own.status, step.text)
        artifact = step.artifact
        self.settle(step, outcome)
        step.artifact = artifact


def _first_tool(execution: Execution) -> ToolRun:
    tool = execution.records[0].tool
    assert tool is not None
    return tool


def _attempted(executions: Sequence[Execution], tool: ToolRun) -> Execution | None:
    """Return the execution of which a run is another attempt: one that waits, or one with the same arguments."""
    for execution in executions:
        if execution.step.status == "pending":
            return execution
    return next((each for each in executions if _is_of(each, tool)), None)


def _is_of(execution: Execution, tool: ToolRun) -> bool:
    """Return whether a run has the arguments of an execution."""
    return _first_tool(execution).args == tool.args


def _link(step: Step, call: AskedCall, number: int) -> None:
    """Note that a step carries out a call."""
    step.has_call = True
    step.call_id = step.call_id or call.call_id
    step.message_id = call.message_id
    if call.message_id is not None:
        step.key = (call.message_id, call.call_id, call.place, number)


def _part_by_place(answers: Sequence[Answer]) -> None:
    """Find which call each of the tool messages answers whose calls share one id: the n-th message the n-th call."""
    groups: dict[Any, list[Answer]] = {}
    for answer in answers:
        answer.calls = sorted(answer.calls, key=attrgetter("place"))
        groups.setdefault((answer.models, *answer.calls), []).append(answer)
    for group in groups.values():
        group.sort(key=attrgetter("order"))
        calls, places = group[0].calls, {key: place for place, key in enumerate(dict.fromkeys(a.key for a in group))}
        if len(places) == len(calls):
            for answer in group:
                answer.calls = [calls[places[answer.key]]]


def _answered_call(answer: Answer, text: str) -> AskedCall | None:
    """Return the call that a tool message answers; of several with one id the one whose text it has."""
    if len(answer.calls) == 1:
        return answer.calls[0]
    calls = [call for call in answer.calls if call.name == answer.message.name] or list(answer.calls)
    calls = [call for call in calls if not call.answers or call.answers[-1].event != answer.event] or calls
    same = next((call for call in calls if text in _texts_of(call)), None)
    if same is not None or any(call.executions for call in answer.calls):
        return same
    return next((call for call in calls if not call.answers), None)


def _texts_of(call: AskedCall) -> Iterator[str | None]:
    """Yield the texts that a call's tools and messages returned."""
    for execution in call.executions:
        tool = execution.last.tool
        yield None if tool is None or tool.outcome is None else tool.outcome.text
    yield from (answer.outcome().text for answer in call.answers[-1:])
