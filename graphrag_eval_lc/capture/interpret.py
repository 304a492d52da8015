"""What the records of a run mean: its steps, model calls, answer and warnings, found in named passes."""

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import itemgetter
from time import perf_counter
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.answer_problems import answer_problems
from graphrag_eval_lc.capture.calls import (
    Answer,
    AskedCall,
    AskedCalls,
    Execution,
    Order,
    Step,
    WaitingCall,
    answers_in,
    key_of,
)
from graphrag_eval_lc.capture.calls_without_tools import (
    ProviderTools,
    is_class_name,
    says_unparsed,
    schema_names,
)
from graphrag_eval_lc.capture.kept_messages import KeptMessages
from graphrag_eval_lc.capture.llm_calls import (
    finish_reason,
    generated_message,
    is_generated,
    message_result,
    model_usage,
    result_model_name,
)
from graphrag_eval_lc.capture.messages import (
    answer_in,
    answer_text,
    is_handoff_message,
    unanswered_calls,
    whole_answer,
)
from graphrag_eval_lc.capture.outputs import Outcome, to_plain
from graphrag_eval_lc.capture.reading import CountedMessages, History, NewMessage, Reading
from graphrag_eval_lc.capture.record import Facts, ModelRun, Record, ToolRun, Tree
from graphrag_eval_lc.capture.redaction import KeptOutcome, kept_args, kept_outcome, kept_text
from graphrag_eval_lc.records import ModelCall
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.texts import error_text, listed


@dataclass(slots=True, eq=False, repr=False)
class CountedCall:
    """A model call as a response has it.

    Attributes:
        run: What was recorded of it; None where only its message tells.
        parent: The step inside which it runs.
        is_from_elsewhere: Whether only a message told of it, one with an id, unlike those of a node's own code.
    """

    call: ModelCall
    run: ModelRun | None = None
    problems: Sequence[str] = ()
    parent: Step | None = None
    is_cache_hit: bool = False
    is_from_elsewhere: bool = False
    output_message: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class Part:
    """What one run, or one block of code, adds to a response.

    Attributes:
        answer: The answer; None while the run is paused.
        draft: The answer of a paused run, were it the end.
        standing: The answer in the state of a thread, perhaps from before the run.
        unanswered: Name and id of the calls that nobody answered.
        unparsed: Those of the calls for structured output that did not parse.
        cached_models: How many model calls langgraph's cache of nodes answered.
        waiting: The calls that wait, for the run that resumes this one.
        ends: The ids of the last messages of its outputs.
    """

    question_id: str | None
    question: str | None
    run_ids: list[UUID]
    tags: list[str]
    metadata: dict[str, Any]
    started_at: float
    elapsed_sec: float
    is_paused: bool
    has_ended: bool
    error: str | None
    kept: KeptMessages | None
    warnings: dict[str, None]
    steps: list[Step] = field(default_factory=list)
    model_calls: list[CountedCall] = field(default_factory=list)
    answer: str | None = None
    draft: str | None = None
    standing: str | None = None
    unanswered: list[tuple[str, str | None]] = field(default_factory=list)
    unparsed: list[tuple[str, str | None]] = field(default_factory=list)
    cached_models: int = 0
    waiting: list[WaitingCall] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)


def unfinished_text(error: str | None) -> str:
    """Return the error of a step or model call that had not ended when its run did."""
    return error or "Unfinished: the run ended before this call did"


def interpreted(tree: Tree, told_ids: set[str], ends: set[str]) -> Part:
    """Return what a tree means, which stays as it is.

    Args:
        tree: The records of one root run or block.
        told_ids: The ids of all messages in the callbacks of models, of all runs of the handler.
        ends: The ids of the last messages of its earlier runs.
    """
    return _Interpretation(tree, told_ids, ends).part()


class _Interpretation:
    """The passes over one tree: messages, executions, answers, model calls, what is left."""

    def __init__(self, tree: Tree, told_ids: set[str], ends: set[str]) -> None:
        self.tree = tree
        self.options = tree.options
        self.warnings = dict(tree.warnings)
        self.kept = tree.kept if tree.has_ended or tree.kept is None else tree.kept.snapshot()
        self.told_ids = told_ids
        self.history = History(set(ends))
        self.counted = CountedMessages(tree.nameless)
        self.calls = AskedCalls()
        self.log: list[AskedCall | Answer | Record | tuple[Any, ...]] = []  # what the pass over answers reads
        self.models: list[Record | CountedCall] = []
        self.provider = ProviderTools()
        self.provider_places: list[tuple[Record, Order, float]] = []
        self.schemas: set[str] = set()
        self.steps: list[Step] = []
        self.step_of: dict[Record, Step] = {}
        self.parents: list[tuple[Step | CountedCall, Record | None]] = []
        self.told_by: dict[str, list[Record]] = {}
        self.branches: dict[Record, Order] = {}
        self.tasks: dict[Record, tuple[Any, list[tuple[str, Any]]]] = {}
        self.begins: dict[Record, int] = {}
        self.event = 0
        self.at = 0.0
        self.ranks = 0
        self.model_count = 0
        self.from_state = False
        self.given_fields: set[str] = set()
        self.top: Record | None = None
        self.waiting: dict[AskedCall, None] = {}
        self.result = self._empty_part()

    def _empty_part(self) -> Part:
        tree = self.tree
        elapsed = perf_counter() - tree.started if tree.elapsed_sec is None else tree.elapsed_sec
        return Part(
            tree.question_id,
            tree.question,
            list(tree.run_ids),
            tree.tags,
            tree.metadata,
            tree.started_at,
            elapsed,
            tree.is_paused,
            tree.has_ended,
            tree.error,
            self.kept,
            self.warnings,
        )

    def part(self) -> Part:
        """Return the result of all passes."""
        passes = (
            self._take_over_waiting, self._read_messages, self._find_executions, self._find_answers,
            self._find_provider_steps, self._find_model_calls, self._finish_steps, self._find_what_is_left,
        )  # fmt: skip
        for each in passes:
            try:
                each()
            except Exception as error:
                self._warn_of(error)
        return self.result

    def _warn_of(self, error: Exception) -> None:
        """Warn of what could not be interpreted; the rest stays."""
        text = kept_text(error_text(error), self.options, "error", list[str]())
        self.warnings[f"capture could not interpret a part of the run: {text}"] = None

    # --- calls that an earlier run left waiting ---

    def _take_over_waiting(self) -> None:
        paused = None if self.tree.resumes is None else self.tree.resumes.part
        if paused is None or not self.tree.events:
            return
        root = self.tree.events[0][0].scope
        for call in paused.waiting:
            if root is not None:
                taken = AskedCall(
                    call.message_id, call.message_id, call.call_id, call.name, call.args, call.place, root, None,
                    ((-1, 0), call.place), -1, call.asked_at, is_told=True, is_met=True, has_kept_args=True,
                )  # fmt: skip
                self.log.append(self.calls.add(taken))

    # --- the pass over messages: which calls are asked for, and by which messages they are answered ---

    def _read_messages(self) -> None:
        for event, (record, is_end, at) in enumerate(self.tree.events):
            self.event, self.at, self.ranks = event, at, 0
            try:
                if is_end:
                    self._read_end(record)
                else:
                    self.begins[record] = event
                    self._place(record)
                    self._read_start(record)
            except Exception as error:
                self._warn_of(error)

    def _place(self, record: Record) -> None:
        """Find the place of a record among parallel branches: by langgraph's paths of tasks, else by their start."""
        parent = record.parent
        if parent is None or parent.is_block:
            self.branches[record] = (self._rank(), "") if parent is not None else ()
            return
        branch = self.branches.get(parent, ())
        if record.path is not None and (record.is_node or record.path != parent.path):
            step, tasks = self.tasks.get(parent, (None, []))
            if step != record.graph_step or not tasks:
                tasks = []
                self.tasks[parent] = (record.graph_step, tasks)
            order = task_order(record.path if isinstance(record.path, tuple) else str(record.path))
            place = bisect(tasks, order, key=itemgetter(0)) if tasks else 0
            rank = tasks[place][1] if place < len(tasks) else self._rank()
            tasks.insert(place, (order, rank))
            branch = (*branch, rank, order)
        self.branches[record] = branch

    def _rank(self) -> tuple[int, int]:
        """Return the next number in the order of the run."""
        self.ranks += 1
        return self.event, self.ranks

    def _read_start(self, record: Record) -> None:
        if record.opens is not None:
            self.history.add_history(record.given, record.opens.given, is_start=True)
        if record.is_top or record.is_node:
            if record.kind == "chain" and not record.is_block:
                self._node_started(record)
        if record.model is not None:
            self._model_started(record, record.model)
        tool = record.tool
        if tool is not None and tool.call_id is not None:
            if not self.calls.take(record, tool.call_id, self.branches[record]):
                made: ToolCall = {"name": record.name or "", "args": tool.asked_args, "id": tool.call_id}
                self._ask(None, [made], record)[0].is_taken = True
        if record.parsed is not None:
            for call in self._met_calls(record.parsed):
                call.is_expected = False

    def _read_end(self, record: Record) -> None:
        if record.model is not None:
            self._model_ended(record, record.model)
        if record.is_top:
            self._top_ended(record)
        elif record.is_node:
            self._node_ended(record)
        elif record.is_graph:
            self.history.add_history(record.gave, record.given)
            self._loose_answers(record)
        elif record.gave:
            self._loose_answers(record)

    def _loose_answers(self, record: Record) -> None:
        self.from_state = False
        for messages in record.gave:
            for message in messages.items:
                if isinstance(message, ToolMessage) and record.scope is not None:
                    calls = self.calls.answered_by(message.tool_call_id, record.scope)
                    self._note_answer(message, calls, record)

    def _model_started(self, record: Record, model: ModelRun) -> None:
        self.model_count += 1
        if model.prompt:
            if not self.calls.all and not self.models:
                self.history.add_prompt(model.prompt)
            else:
                self.log.append(record)
        self.models.append(record)

    def _model_ended(self, record: Record, model: ModelRun) -> None:
        message = model.message
        if message is None:
            return
        told = self.told_by.setdefault(message.id, []) if message.id is not None else []
        if model.is_known and not model.is_cache_hit:
            begin = self.begins[record]
            if any(self.begins[other] > begin for other in told):
                self.models.remove(record)  # it hands on the message of another model, as a router does
                return
        told.append(record)
        self.history.add_told(message)
        self.counted.add(message, record.node, is_told=True)
        self._note_provider_calls(message, record)
        if model.calls:
            asked = self._ask(message, model.calls, record, is_told=True)
            for call in asked:
                call.is_expected = model.unanswered_tool not in ("", call.name)

    def _node_started(self, record: Record) -> None:
        """Read the input of a root or a node: older messages, calls that wait for its tools, and what is new.

        The input of a nested graph is not taken for older than the run: a node may have made it just now.
        """
        self.from_state = record.is_node
        scope = record.scope
        if record.is_top:
            self.top, record.goes_on = record, record.goes_on or record.inputs is None
        if record.is_top and not self.history.has_own:
            passed_over = self.history.add_input(record.given, self.tree.question)
        else:
            is_of_root = scope is not None and scope.is_root
            unknown: Any = "old" if is_of_root else "elsewhere"
            readings = [self.history.read(messages, unknown) for messages in record.given]
            passed_over = [reading.passed_over for reading in readings]
            self._take_in(readings, record)
        for messages in passed_over:
            if (waiting := unanswered_calls(messages)) is not None:
                self._ask_or_update(waiting[0], waiting[1], record)
        branch = self.branches[record]
        loose = [
            call
            for call in record.loose_calls
            if scope is not None and not self.calls.is_known(call["id"], scope, record.outer, branch)
        ]
        if loose:
            self._ask(None, loose, record)

    def _node_ended(self, record: Record) -> None:
        """Read a node's output, or a root's, for calls without a callback: they never ran, or ran out of sight."""
        self.from_state = record.is_top and (record.is_graph or record.is_graph_run)
        facts = record.facts or Facts()
        self.given_fields |= facts.fields
        readings = [self.history.read(messages) for messages in record.gave]
        is_unparsed = False
        if any(len(reading.new) > 1 for reading in readings):
            is_unparsed = facts.is_from_agent and facts.response is None
            for reading in readings:
                new = [each.message for each in reading.new]
                self.schemas |= set(schema_names(new, facts.response, is_of_model_node=facts.is_from_agent))
        self._take_in(readings, record, is_unparsed=is_unparsed)

    def _top_ended(self, record: Record) -> None:
        output = record.output
        self.result.error = self.tree.error
        if isinstance(output, LLMResult):
            message = generated_message(output)
            if message is not None:
                self.result.answer = None if message.tool_calls else answer_text(message)
            elif output.generations and output.generations[0]:
                self.result.answer = output.generations[0][0].text
            return
        if record.kind != "chain":
            return
        if record.goes_on:
            self.history.add_history(record.gave, None, is_graph=record.is_graph)
        self._node_ended(record)
        self._find_answer(record, output)
        self.result.ends += self.history.add_end(record.gave)

    def _take_in(self, readings: Iterable[Reading], record: Record, *, is_unparsed: bool = False) -> None:
        """Take calls, answers and model calls from new messages; ``is_unparsed``: no structured output parsed."""
        for reading in readings:
            asking = reading.before if isinstance(reading.before, AIMessage) else None
            calls = [] if asking is None else self._met_calls(asking, record)
            if asking is not None and asking.tool_calls and not calls and self.history.is_old(asking):
                calls = self._ask_again(asking, reading.new, record)
            for message_id in reading.removed:
                self._withdraw(self.calls.of_message(message_id))
            for message, is_told, is_edited in self._without_superseded(reading.new, record):
                if isinstance(message, AIMessage):
                    asking = message
                    if is_told or is_edited:
                        calls = self._met_calls(message, record)
                    else:
                        calls = self._unheard(message, record)
                    continue
                answered = [call for call in calls if call.call_id == message.tool_call_id]
                is_of_asking = asking is not None and any(
                    call["id"] == message.tool_call_id for call in asking.tool_calls
                )
                if not is_of_asking and record.scope is not None:
                    answered = self.calls.answered_by(message.tool_call_id, record.scope)
                self._note_answer(message, answered, record, is_unparsed=is_unparsed)

    def _without_superseded(self, messages: Sequence[NewMessage], record: Record) -> Iterator[NewMessage]:
        """Leave out tool messages whose call, of the same model's message, is answered once more later."""
        left: Counter[str] = Counter()
        superseded: set[int] = set()
        for place in range(len(messages) - 1, -1, -1):
            message = messages[place].message
            if isinstance(message, AIMessage):
                left.clear()
                continue
            call_id = message.tool_call_id
            left[call_id] += 1
            if left[call_id] > 1 and left[call_id] > self._sharing(messages[:place], call_id, record):
                superseded.add(place)
        yield from (each for place, each in enumerate(messages) if place not in superseded)

    def _sharing(self, messages: Sequence[NewMessage], call_id: str, record: Record) -> int:
        """Return how many calls of the message before these have an id."""
        for each in reversed(messages):
            if isinstance(each.message, AIMessage):
                return sum(call["id"] == call_id for call in each.message.tool_calls)
        return 1 if record.scope is None else len(self.calls.answered_by(call_id, record.scope))

    def _note_answer(
        self, message: ToolMessage, calls: Sequence[AskedCall], record: Record, *, is_unparsed: bool = False
    ) -> None:
        if calls:
            next((call for call in calls if not call.is_taken), calls[0]).is_taken = True
            self.log.append(
                Answer(message, calls, record.outer, self.event, self.model_count, self.from_state, is_unparsed)
            )

    def _ask(
        self,
        message: AIMessage | None,
        tool_calls: Sequence[ToolCall],
        record: Record,
        *,
        is_told: bool = False,
        is_expected: bool = False,
        places: Sequence[int] | None = None,
    ) -> list[AskedCall]:
        """Note and return the calls of a message; one that is known without its message is not noted twice."""
        scope = record.scope
        if scope is None:
            return []
        rank, branch = self._rank(), self.branches.get(record, ())
        asked: list[AskedCall] = []
        for number, call in enumerate(tool_calls):
            known = self.calls.waiting_like(call, scope, is_told=is_told)
            if known is None:
                place = number if places is None else places[number]
                known = AskedCall(
                    None if message is None else key_of(message),
                    None if message is None else message.id,
                    call["id"],
                    call["name"],
                    call["args"],
                    place,
                    scope,
                    record.outer,
                    (*branch, rank, place),
                    self.event,
                    self.at,
                    is_told,
                    is_expected or is_told,
                )
                self.log.append(self.calls.add(known))
            asked.append(known)
        return asked

    def _ask_or_update(self, message: AIMessage, tool_calls: Sequence[ToolCall], record: Record) -> list[AskedCall]:
        """Note the calls of a message that was there before."""
        found = self._met_calls(message, record)
        left = list(found)
        for place, call in enumerate(tool_calls):
            same = next((each for each in left if each.call_id == call["id"]), None)
            if same is None:
                found += self._ask(message, [call], record, places=[place])
            else:
                left.remove(same)
        return found

    def _met_calls(self, message: AIMessage, record: Record | None = None) -> list[AskedCall]:
        """Return the calls of a known message, as it is now: an edited one has the same ids.

        Those that the agent has removed from it need no step.
        """
        known = self.calls.of_message(key_of(message))
        found: list[AskedCall] = []
        for call in message.tool_calls:
            same = next((each for each in known if each.call_id == call["id"] and each not in found), None)
            if same is None:
                continue
            same.is_met = True
            if not same.is_taken and (same.name, same.args) != (call["name"], call["args"]):
                same.name, same.args, same.has_kept_args = call["name"], call["args"], False
            if same.asked < 0 and record is not None and record.scope is not None:
                same.scope = record.scope
            found.append(same)
        self._withdraw([call for call in known if call not in found])
        return found

    def _withdraw(self, calls: Iterable[AskedCall]) -> None:
        for call in calls:
            self.log.append(("withdrawn", call))

    def _ask_again(self, asking: AIMessage, new: Iterable[NewMessage], record: Record) -> list[AskedCall]:
        """Note the calls of an earlier run's message that this run answers out of sight, as a deployed graph does."""
        answers = takewhile(lambda message: isinstance(message, ToolMessage), (each.message for each in new))
        answered = {message.tool_call_id for message in answers if isinstance(message, ToolMessage)}
        scope, branch = record.scope, self.branches[record]
        if scope is None:
            return []
        calls: list[AskedCall] = []
        for place, call in enumerate(asking.tool_calls):
            if call["id"] in answered:
                adopted = self.calls.adopt(asking, call, place)
                if adopted is not None:
                    calls.append(adopted)
                elif not self.calls.is_known(call["id"], scope, record.outer, branch):
                    calls += self._ask(asking, [call], record, places=[place])
        return calls

    def _unheard(self, message: AIMessage, record: Record) -> list[AskedCall]:
        """Note a model's message that no callback told of in this form, and return its calls."""
        if is_handoff_message(message):
            return []
        is_models = is_generated(message)
        is_from_cache = self.from_state and self.top is not None and self.top.inputs is not None
        if not self.counted.has(message, record.node):
            if message.id in self.told_ids:
                self.result.cached_models += is_from_cache and self.tree.resumes is None
            else:
                self._note_provider_calls(message, record)
                if is_models:
                    self.counted.add(message, record.node, is_told=False)
                    if is_from_cache:
                        self.result.cached_models += 1
                    else:
                        self._add_unheard_call(message, record)
        copied = [
            self.calls.copied(call, is_made=not is_models, in_state=self.from_state) for call in message.tool_calls
        ]
        places = [place for place, call in enumerate(copied) if call is None]
        unheard = [message.tool_calls[place] for place in places]
        calls = [call for call in copied if call is not None]
        if unheard:
            calls += self._ask(message, unheard, record, is_expected=True, places=places)
        self.calls.note_copy(key_of(message), calls)
        return calls

    def _add_unheard_call(self, message: AIMessage, record: Record) -> None:
        """Note a model call of which only its message tells."""
        result = message_result(message)
        reason = finish_reason(result)
        name = result_model_name(result)
        call: ModelCall = {"model": name} if name else {}
        call.update(model_usage(result))
        if reason is not None:
            call["finish_reason"] = reason
        warnings: list[str] = []
        counted = CountedCall(call, problems=answer_problems(result, reason, self.options, warnings))
        counted.is_from_elsewhere = message.id is not None and id(message) not in self.tree.nameless
        if self.kept is not None:
            counted.output_message = self.kept.place(message, warnings)
        self.warnings.update(dict.fromkeys(warnings))
        self.parents.append((counted, record.outer))
        self.models.append(counted)

    def _note_provider_calls(self, message: AIMessage, record: Record) -> None:
        for _ in range(self.provider.read(message)):
            self.provider_places.append((record, (*self.branches.get(record, ()), self._rank(), 0), self.at))

    # --- the pass over executions ---

    def _find_executions(self) -> None:
        retried: dict[tuple[Record | None, str | None], list[Execution]] = {}
        for record, begin in self.begins.items():
            tool = record.tool
            if tool is None or (record.kind == "retriever" and record.is_inside_step):
                continue
            call = None
            if record.kind == "tool":
                call = self._call_of(record, tool, begin)
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
        if tool.call_id is None:
            call = self.calls.call_like(record, begin)
            if call is None and tool.answer_id and record.scope is not None:
                answered = self.calls.answered_by(tool.answer_id, record.scope)
                call = next((each for each in answered if not each.executions), None)
            return call
        branch = self.branches[record]
        return self.calls.call_to_run(record, begin, branch)

    def _execute(self, record: Record, tool: ToolRun, begin: int, call: AskedCall | None) -> Execution:
        order: Order = (*self.branches[record], (begin, 0), 0)
        if call is not None:
            order = (*call.order, len(call.executions)) if call.executions else call.order
        step = Step(record.name or "", dict(tool.args), record.run_id, None, order, tool.call_id)
        step.started_at = tool.started_at
        if call is not None:
            _link(step, call, len(call.executions))
        elif tool.call_id is None:
            step.call_id = tool.answer_id
        execution = Execution(step, [record])
        self.step_of[record] = step
        self.steps.append(step)
        self.parents.append((step, record.outer))
        _take_outcome(execution)
        return execution

    def _try_again(self, execution: Execution, record: Record, tool: ToolRun) -> None:
        """Begin another attempt, or go on after a pause; the time counts from the first start."""
        step = execution.step
        step.attempts += step.status != "pending"
        execution.records.append(record)
        step.run_id, step.args, step.status = record.run_id, dict(tool.args), "open"
        self.step_of[record] = step
        _take_outcome(execution)

    # --- the pass over answers ---

    def _find_answers(self) -> None:
        waiting: dict[AskedCall, None] = {}
        loose: dict[int, list[Execution]] = {}
        for record, step in self.step_of.items():
            tool = record.tool
            if record.kind == "tool" and tool is not None and tool.call_id is None and not step.has_call:
                if tool.kept is not None and tool.kept.text_hash is not None and step.call_id is None:
                    loose.setdefault(tool.kept.text_hash, []).append(Execution(step, [record]))
        for each in self.log:
            if isinstance(each, AskedCall):
                if each.waits:
                    waiting[each] = None
            elif isinstance(each, Answer):
                self._answer(each, waiting, loose)
            elif isinstance(each, Record):
                if waiting and each.model is not None:
                    for call, message in answers_in(waiting, each.model.prompt):
                        self._answer(Answer(message, [call], each.outer, self.begins[each]), waiting, loose)
            else:
                call = each[1]
                if call.waits:
                    call.is_settled = True
                    waiting.pop(call, None)
        self.waiting = waiting
        for call in self.calls.all:
            if len(call.executions) == 1 and call.answer is not None:
                self._compare(call, call.executions[0], call.answer)

    def _answer(self, answer: Answer, waiting: dict[AskedCall, None], loose: dict[int, list[Execution]]) -> None:
        outcome = answer.outcome()
        text_hash = hash(outcome.text)
        call = _answered_call(answer, text_hash)
        if call is None:
            return
        call.answers.append(answer)
        if call.name in self.schemas:
            if not call.is_settled and (answer.is_unparsed or says_unparsed(answer.message)):
                self.result.unparsed.append((call.name, call.call_id))
            call.is_settled = True
            waiting.pop(call, None)
            return
        if call.executions or call.is_settled:
            if call.answer is None or call.answer.models == answer.models:
                call.answer = answer
            return
        if call.step is not None:
            self._settle(call.step, outcome)  # of several that answer a call the last counts
            return
        execution = self._loose_execution(answer, text_hash, loose)
        waiting.pop(call, None)
        if execution is not None:
            _link(execution.step, call, 0)
            execution.step.order = call.order
            call.executions.append(execution)
            return
        call.step = step = Step(
            call.name, self._kept_args(call), self.tree.root_id, None, call.order, is_from_message=True
        )
        _link(step, call, 0)
        step.started_at, step.is_from_cache = call.asked_at, answer.is_from_state and call.asked >= 0
        self._settle(step, outcome)
        self.steps.append(step)
        self.parents.append((step, call.parent))

    def _kept_args(self, call: AskedCall) -> dict[str, Any]:
        if call.has_kept_args:
            return dict(call.args)
        warnings: list[str] = []
        kept = kept_args(to_plain(call.args), self.options, call.name, warnings)
        self.warnings.update(dict.fromkeys(warnings))
        return kept

    def _settle(self, step: Step, outcome: Outcome) -> None:
        kept = kept_outcome(outcome, self.options, step.name)
        step.end(kept)
        self.warnings.update(dict.fromkeys(kept.warnings))

    def _loose_execution(self, answer: Answer, text_hash: int, loose: dict[int, list[Execution]]) -> Execution | None:
        """Return the run of a tool by hand, with other arguments than the model asked for."""
        found = loose.get(text_hash, [])
        for execution in reversed(found):
            record = execution.last
            is_before = self.begins[record] < answer.event
            if is_before and record.outer is answer.parent and answer.message.name in (None, execution.step.name):
                found.remove(execution)
                return execution
        return None

    def _compare(self, call: AskedCall, execution: Execution, answer: Answer) -> None:
        """Where the model saw another outcome than the tool's own, the step has what it saw, and the own one too."""
        tool = execution.last.tool
        step = execution.step
        if tool is None or tool.kept is None or tool.call_id is None or step.status in ("open", "pending"):
            return
        own = tool.kept
        outcome = answer.outcome()
        is_same = own.text_hash == hash(outcome.text) or (tool.answer_id is None and own.status == "success")
        if own.status == outcome.status and (is_same or own.status == "error"):
            return
        self._settle(step, outcome)
        step.own, step.artifact = own, own.artifact

    # --- provider calls, model calls, and what is left ---

    def _find_provider_steps(self) -> None:
        """Note the calls of the provider's own tools in models' messages; they have ended already."""
        places = iter(self.provider_places)
        lost: list[tuple[str, str | None]] = []
        for call in self.provider.calls:
            record, order, at = next(places)
            if call.status is None:
                if not call.is_approved:
                    lost.append((self.options.step_name(call.name), call.call_id))
                continue
            warnings: list[str] = []
            args = kept_args(to_plain(call.args), self.options, call.name, warnings)
            self.warnings.update(dict.fromkeys(warnings))
            step = Step(call.name, args, self.tree.root_id, None, order, call_id=call.call_id)
            step.started_at = at
            self._settle(step, Outcome(call.status, call.text))
            self.steps.append(step)
            self.parents.append((step, record.outer))
        if lost and not self.tree.is_paused:
            names = listed([f"{name} ({call_id})" for name, call_id in lost])
            self.warnings[f"asked of the provider's tools, and no result came: {names}"] = None

    def _find_model_calls(self) -> None:
        tree = self.tree
        for model in self.models:
            if isinstance(model, CountedCall):
                self.result.model_calls.append(model)
                continue
            run = model.model
            if run is None or (run.call is None and not tree.has_ended):
                continue
            call = run.call
            if call is None:
                call = {"model": run.asked_name} if run.asked_name else {}
                call[ELAPSED_SEC] = perf_counter() - run.started
                call["error"] = unfinished_text(tree.error)
            counted = CountedCall(call, run, run.problems, None, run.is_cache_hit)
            counted.output_message = run.output_message
            self.parents.append((counted, model.outer))
            self.result.model_calls.append(counted)

    def _finish_steps(self) -> None:
        for each, outer in self.parents:
            each.parent = None if outer is None else self.step_of.get(outer)
        if self.tree.has_ended:
            for step in self.steps:
                if step.status == "open":
                    step.end(KeptOutcome("error", unfinished_text(self.tree.error)))
                    step.is_forced = True
        self.result.steps = in_order(self.steps)

    def _find_answer(self, record: Record, output: Any) -> None:
        result = self.result
        may_be_older = record.goes_on and record.is_graph
        answer = answer_in(
            output,
            self.history.is_old,
            is_given=lambda name: not may_be_older or name in self.given_fields,
        )
        is_state = record.is_graph if record.has_nodes is None else record.has_nodes
        if answer is None and not is_state:
            answer = whole_answer(output)
        if self.tree.is_paused:
            result.draft = answer
        elif answer is not None or (isinstance(output, AIMessage) and output.tool_calls):
            result.answer = answer
        if answer is None and record.goes_on:
            result.standing = answer_in(output)

    def _find_what_is_left(self) -> None:
        """Warn of calls that nobody answered, or leave them to the caller or to the run that resumes this one."""
        tree, result = self.tree, self.result
        last = self.tree.events[-1][0] if self.tree.events else None
        output = None if last is None or not last.is_root else last.output
        message = generated_message(output) if isinstance(output, LLMResult) else output
        if isinstance(message, AIMessage) and message.tool_calls:
            self._leave_to_the_caller()
        for call in self.waiting:
            if call.scope.is_top and isinstance(call.key, str):
                args = self._kept_args(call)
                result.waiting.append(WaitingCall(call.key, call.call_id, call.name, args, call.place, call.asked_at))
        if tree.has_ended and tree.error is None:
            result.unanswered = self._unanswered()

    def _leave_to_the_caller(self) -> None:
        """Note that the run returns a message with calls, which its caller is to answer."""
        left = [call for call in self.waiting if call.is_expected]
        for call in left:
            call.is_expected = False
        if left:
            names = listed([f"{call.name} ({call.call_id})" for call in left])
            self.warnings[
                f"the run gives its caller a message that asks for tools: {names}; to record a loop around such calls "
                'as one response, put it into: with capture_run(question_id="...")'
            ] = None

    def _unanswered(self) -> list[tuple[str, str | None]]:
        """Return name and id of the calls that nobody answered; a tool may have run one with other arguments."""
        ran = {step.name for step in self.steps}
        loose = Counter(step.name for step in self.steps if not step.has_call)
        unanswered: list[tuple[str, str | None]] = []
        for call in self.waiting:
            if loose[call.name] > 0:
                loose[call.name] -= 1
            elif call.is_expected and (call.name in ran or not _is_read_by_its_node(call)):
                unanswered.append((call.name, call.call_id))
        return unanswered


def _is_read_by_its_node(call: AskedCall) -> bool:
    """Return whether a call is probably a schema's, whose arguments the code around the model read itself.

    Its name is that of a class, and no other model and no state got to see it.
    """
    return call.is_told and not call.is_met and not call.is_shown and is_class_name(call.name)


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
    return _first_tool(execution).asked_args == tool.asked_args


def _link(step: Step, call: AskedCall, number: int) -> None:
    """Note that a step carries out a call."""
    step.has_call = True
    step.call_id = step.call_id or call.call_id
    step.message_id = call.message_id
    if call.message_id is not None:
        step.key = (call.message_id, call.call_id, call.place, number)


def _take_outcome(execution: Execution) -> None:
    tool = execution.last.tool
    if tool is None or tool.kept is None:
        return
    execution.step.end(tool.kept)
    if tool.ended is not None:
        execution.step.elapsed_sec = tool.ended - _first_tool(execution).started


def _answered_call(answer: Answer, text_hash: int) -> AskedCall | None:
    """Return the call that a tool message answers; of several with one id the one whose text it has."""
    calls = [call for call in answer.calls if call.name == answer.message.name] or list(answer.calls)
    if len(calls) < 2:
        return calls[0] if calls else None
    calls = [call for call in calls if not call.answers or call.answers[-1].event != answer.event] or calls
    return next((call for call in calls if text_hash in _texts_of(call)), None) or next(
        (call for call in calls if not call.answers and not call.executions), calls[0]
    )


def _texts_of(call: AskedCall) -> Iterator[int | None]:
    """Yield the hashes of the texts that a call's tools and messages gave."""
    for execution in call.executions:
        tool = execution.last.tool
        yield None if tool is None or tool.kept is None else tool.kept.text_hash
    yield from (hash(answer.outcome().text) for answer in call.answers[-1:])


def task_order(path: object) -> str:
    """Return langgraph's path of a task as a text that sorts parallel tasks as in the state.

    Example:
        >>> task_order(("__pregel_push", 2, False)) < task_order(("__pregel_push", 10, False))
        True
    """
    if isinstance(path, list | tuple):
        return ",".join(map(task_order, path))
    return f"{path:010d}" if isinstance(path, int) else str(path)


def in_order(steps: Iterable[Step]) -> list[Step]:
    """Return steps in the order in which models asked for them, each followed by the steps inside it."""
    children: dict[Step | None, list[Step]] = {}
    for step in steps:
        children.setdefault(step.parent, []).append(step)
    for siblings in children.values():
        siblings.sort(key=lambda step: step.order)
    return list(_walk(children, None))


def _walk(children: dict[Step | None, list[Step]], parent: Step | None) -> Iterator[Step]:
    for step in children.get(parent, ()):
        yield step
        yield from _walk(children, step)
