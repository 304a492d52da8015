"""The passes over executions and answers: which runs of tools carry out which calls, and what messages say of them."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from graphrag_eval_lc.capture.calls import Answer, AskedCall, Order, Part, Step, answers_in
from graphrag_eval_lc.capture.calls_without_tools import says_unparsed
from graphrag_eval_lc.capture.outputs import Outcome, documents_in, to_plain
from graphrag_eval_lc.capture.reading import ReadMessages
from graphrag_eval_lc.capture.record import Record, ToolRun
from graphrag_eval_lc.capture.redaction import kept_args, kept_outcome

_EDIT_NOTE = "Note: a human reviewer replaced this tool call"  # LangChain's, before the output of an edited call


class Steps:
    """The steps of a tree."""

    def __init__(self, part: Part, read: ReadMessages) -> None:
        self.all: list[Step] = []  # the steps, in the order in which they were found
        self.step_of: dict[Record, Step] = {}  # the step of each tool or retriever that is one
        self.waiting: dict[AskedCall, None] = {}  # the calls that need a step and have none
        self._part = part
        self._tree = part.tree
        self._options = part.tree.options
        self._read = read
        self._runs: dict[Step, list[Record]] = {}  # the attempts of each step
        self._by_hand: dict[str, list[Step]] = {}  # the steps without a call, by their output

    def add(self, step: Step, outer: Record | None) -> None:
        """Add a step, with the tool around it."""
        self.all.append(step)
        self._read.outer_of.append((step, outer))

    # --- the pass over executions ---

    def find_executions(self) -> None:
        """Make steps of the runs of tools and retrievers, with the calls that they carry out."""
        by_hand: dict[tuple[Record | None, str | None], list[Step]] = {}  # the steps without a call
        for record, begin in self._read.begins.items():
            tool = record.tool
            if tool is None or (record.kind == "retriever" and record.is_inside_step):
                continue
            call = self._call_of(record, tool, begin) if record.kind == "tool" else None
            steps = by_hand.setdefault((record.parent, record.name), []) if call is None else call.steps
            same = self._attempted(steps, tool, is_call=call is not None)
            if same is None:
                steps.append(self._step(record, tool, begin, call))
            else:  # another attempt, or it resumes after a pause; the time counts from the first start
                same.attempts += same.status != "pending"
                same.run_id, same.args, same.status = record.run_id, self.kept(same.name, tool.args), "open"
                self._take_outcome(same, record, tool)

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
        ordered = steps if is_call else reversed(steps)
        return next((step for step in ordered if self._first_run(step).args == tool.args), None)

    def _first_run(self, step: Step) -> ToolRun:
        tool = self._runs[step][0].tool
        assert tool is not None
        return tool

    def _call_of(self, record: Record, tool: ToolRun, begin: int) -> AskedCall | None:
        """Return the call that a tool carries out: by its id, else by name and arguments, else by its answer's id."""
        calls = self._read.calls
        if tool.call_id is not None:
            branch = self._read.branches[record]
            return self._called(calls.to_run(tool.call_id, tool.args, record, begin, branch), record, tool)
        alike = calls.like(record.name or "", tool.args)
        before = [call for call in alike if call.asked < begin and not call.is_settled]
        free = next((call for call in before if not call.steps), None)
        retried = (call for call in reversed(before) if call.steps and call.steps[-1].status == "error")
        if (found := free or next(retried, None)) is not None:
            return found
        answered = calls.answered_by(tool.answer_id, record.scope) if tool.answer_id else ()
        return next((call for call in answered if not call.steps), None)

    def _called(self, calls: Sequence[AskedCall], record: Record, tool: ToolRun) -> AskedCall | None:
        """Return the call that a tool carries out of several with its id: the first without a step, if any like it."""
        if len(calls) < 2:
            return calls[0] if calls else None
        sent = [call for call in record.node.loose_calls if call["id"] == tool.call_id] if record.node else []
        name, args = (sent[0]["name"], sent[0]["args"]) if len(sent) == 1 else (record.name, tool.args)
        same = [call for call in calls if call.name == name and call.args == args]
        if len(sent) == 1:
            for call in same:
                if any(self._runs[step][-1].node is record.node for step in call.steps):
                    return call
        free = [call for call in same or calls if not call.steps]
        return (free or same or calls)[0]

    def _step(self, record: Record, tool: ToolRun, begin: int, call: AskedCall | None) -> Step:
        order: Order = (*self._read.branches[record], (begin, 0), 0)
        if call is not None:
            order = (*call.order, len(call.steps)) if call.steps else call.order
        args = self.kept(record.name or "", tool.args)
        step = Step(record.name or "", args, record.run_id, None, order, tool.call_id)
        step.started_at = tool.started_at
        if call is not None:
            _link(step, call, len(call.steps))
        elif tool.call_id is None:
            step.call_id = tool.answer_id
        self.add(step, record.outer)
        self._take_outcome(step, record, tool)
        return step

    def _take_outcome(self, step: Step, record: Record, tool: ToolRun) -> None:
        self.step_of[record] = step
        self._runs.setdefault(step, []).append(record)
        if tool.outcome is not None and tool.ended is not None:
            self.settle(step, tool.outcome, tool)
            step.elapsed_sec = tool.ended - self._first_run(step).started

    # --- the pass over answers ---

    def find_answers(self) -> None:
        """Make steps of the calls that only messages answer, and compare the answers of others."""
        for record, step in self.step_of.items():
            own = None if record.tool is None or record.kind != "tool" else record.tool.outcome
            if own is not None and own.status != "pending" and step.call_id is None and not step.has_call:
                self._by_hand.setdefault(own.text, []).append(step)
        _part_by_place([each for each in self._read.log if isinstance(each, Answer) and len(each.calls) > 1])
        for each in self._read.log:
            if isinstance(each, AskedCall):
                if each.waits:
                    self.waiting[each] = None
            elif isinstance(each, Answer):
                self._answer(each)
            elif isinstance(each, Record):
                if self.waiting and each.model is not None:
                    for call, message in answers_in(self.waiting, each.model.prompt, self._read.known):
                        answered = self._tree.as_read(message)
                        self._answer(Answer(answered, [call], each.outer, self._read.begins[each]))
            elif each.call.waits:
                each.call.is_settled = True
                self.waiting.pop(each.call, None)
        for call in self._read.calls.all:
            if len(call.steps) == 1 and call.answer is not None:
                self._compare(call.steps[0], call.answer)

    def _answer(self, answer: Answer) -> None:
        outcome = answer.outcome()
        call = self._answered_call(answer, outcome.text)
        if call is None:
            return
        call.answers.append(answer)
        if call.name in self._read.schemas:
            if not call.is_settled and (answer.is_unparsed or says_unparsed(answer.message)):
                self._part.unparsed.append((call.name, call.call_id))
            call.is_settled = True
            self.waiting.pop(call, None)
            return
        if call.is_settled or (call.steps and not call.steps[0].is_from_message):
            if call.answer is None or call.answer.models == answer.models:
                call.answer = answer
            return
        if call.steps:
            self.settle(call.steps[0], outcome)  # of several that answer a call the last counts
            return
        self.waiting.pop(call, None)
        step = self._step_by_hand(answer, outcome.text)
        if step is not None:
            step.order = call.order
        else:
            step = Step(call.name, self.kept_args(call), self._tree.root_id, None, call.order, is_from_message=True)
            step.started_at, step.is_from_cache = call.asked_at, answer.is_from_cache
            self.settle(step, outcome)
            self.add(step, call.parent)
        _link(step, call, 0)
        call.steps.append(step)

    def kept_args(self, call: AskedCall) -> dict[str, Any]:
        """Return what is kept of a call's arguments."""
        return dict(call.args) if call.has_kept_args else self.kept(call.name, call.args)

    def kept(self, name: str, args: Any) -> dict[str, Any]:
        """Return what is kept of a tool's arguments."""
        return kept_args(to_plain(args), self._options, name, self._part.warnings)

    def settle(self, step: Step, outcome: Outcome, tool: ToolRun | None = None) -> None:
        """End a step with what is kept of an outcome; ``tool`` is the run that has it."""
        retrieved = (documents_in(outcome.artifact), None) if tool is None else tool.retrieved()
        step.end(kept_outcome(outcome, self._options, step.name, self._part.warnings, retrieved))

    def _step_by_hand(self, answer: Answer, text: str) -> Step | None:
        """Return the step of a tool that was run by hand, with other arguments than the model asked for."""
        found = self._by_hand.get(text, [])
        for step in reversed(found):
            record = self._runs[step][-1]
            is_before = self._read.begins[record] < answer.event
            if is_before and record.outer is answer.parent and answer.message.name in (None, step.name):
                found.remove(step)
                return step
        return None

    def _compare(self, step: Step, answer: Answer) -> None:
        """If the model saw another outcome than the tool's own, the step has what it saw, and the own one too."""
        tool = self._runs[step][-1].tool if step in self._runs else None
        if tool is None or tool.outcome is None or tool.call_id is None or step.status in ("open", "pending"):
            return
        own, outcome = tool.outcome, answer.outcome()
        is_same = own.text == outcome.text or (tool.answer_id is None and own.status == "success")
        if own.status == outcome.status and (is_same or own.status == "error"):
            return
        if outcome.text.startswith(_EDIT_NOTE):
            return
        step.own, artifact = Outcome(own.status, step.text), step.artifact
        self.settle(step, outcome)
        step.artifact = artifact

    def _answered_call(self, answer: Answer, text: str) -> AskedCall | None:
        """Return the call that a tool message answers; of several with one id the one whose text it has."""
        if len(answer.calls) == 1:
            return answer.calls[0]
        calls = [call for call in answer.calls if call.name == answer.message.name] or list(answer.calls)
        calls = [call for call in calls if not call.answers or call.answers[-1].event != answer.event] or calls
        same = next((call for call in calls if text in self._texts_of(call)), None)
        if same is not None or any(step in self._runs for call in answer.calls for step in call.steps):
            return same
        return next((call for call in calls if not call.answers), None)

    def _texts_of(self, call: AskedCall) -> Iterator[str | None]:
        """Yield the texts that a call's tools and messages returned."""
        for step in call.steps:
            tool = self._runs[step][-1].tool if step in self._runs else None
            yield None if tool is None or tool.outcome is None else tool.outcome.text
        yield from (answer.outcome().text for answer in call.answers[-1:])


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
        calls, places = group[0].calls, {key: place for place, key in enumerate(dict.fromkeys(a.source for a in group))}
        if len(places) == len(calls):
            for answer in group:
                answer.calls = [calls[places[answer.source]]]
