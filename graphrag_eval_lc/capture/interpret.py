"""What the records of a run mean: its steps, model calls, answer and warnings, found in named passes."""

from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from time import perf_counter
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.history import History, KnownMessage, Reading
from graphrag_eval_lc.capture.kept import KeptMessages, given_messages
from graphrag_eval_lc.capture.llm_calls import (
    ProviderCall,
    answer_problems,
    first_generation,
    generated_message,
    is_cache_hit,
    is_generated,
    message_result,
    model_call,
    provider_events,
)
from graphrag_eval_lc.capture.messages import (
    answer_in,
    answer_text,
    as_message,
    field_of,
    id_of,
    is_class_name,
    is_handoff_message,
    schema_names,
    updates_in,
    whole_answer,
)
from graphrag_eval_lc.capture.record import ModelRun, Record, Tree
from graphrag_eval_lc.capture.responses import CountedCall, Part, Step, WaitingCall, unfinished_text
from graphrag_eval_lc.capture.steps import AskedCall, Order, Steps
from graphrag_eval_lc.capture.values import Outcome
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.texts import listed


def interpreted(tree: Tree, reported_ids: set[str], ends: set[str]) -> Part:
    """Return what a tree means, which stays as it is. Never raises: what cannot be interpreted is warned of.

    Args:
        tree: The records of one root run or block.
        reported_ids: The ids of all messages in the callbacks of models, of all runs of the handler.
        ends: The ids of the last messages of its earlier runs.
    """
    part = Part(tree, perf_counter() - tree.started if tree.elapsed_sec is None else tree.elapsed_sec)
    of_error = list[str]()
    part.error = None if tree.error is None else part.kept_error(tree.error, of_error)
    run = _Interpretation(part, reported_ids, ends)
    passes: Sequence[Callable[[], None]] = (
        run.take_over_waiting,
        run.read_events,
        run.steps.compare_answers,
        run.finish_model_calls,
        run.finish_steps,
        run.find_answer,
        run.find_what_is_left,
    )
    for each in passes:
        try:
            each()
        except Exception as error:
            part.warn_of(error)
    part.warnings += of_error
    return part


class _Interpretation:
    """One tree while it is interpreted."""

    def __init__(self, part: Part, reported_ids: set[str], ends: set[str]) -> None:
        self.steps = Steps(part)
        self._part = part
        self._tree = part.tree
        self._kept = KeptMessages(part.tree.options, part.warnings)
        part.messages, part.tools = self._kept.messages, self._kept.tools
        self._reported_ids = reported_ids
        self._history = History(part.tree, ends)
        # the model calls in their order, what was recorded of them, and the tools around
        self._models: list[tuple[CountedCall, ModelRun | None, Record | None]] = []
        self._begins: dict[Record, int] = {}  # the number of the event with which each record begins
        self._branches: dict[Record, Order] = {}  # the place of each record among parallel branches
        self._tasks: dict[tuple[Record, Any], list[tuple[str, Any]]] = {}  # path and rank of those that run in parallel
        self._tops: list[Record] = []  # the root or the runs of a block, as they ended
        self._top: Record | None = None  # the one of the root or the runs of a block that is under way
        self._event = self._ranks = 0
        self._at = 0.0
        self._is_state = False  # whether what is read is a state of a graph, and no node's output
        self._graphs_read: set[Record | None] = set()  # the graphs of which this run has read a state

    # --- the pass over what the paused run left that this one resumes ---

    def take_over_waiting(self) -> None:
        """Take over the calls that the run which this one resumes has left waiting."""
        if self._tree.resumes is not None and self._tree.events:
            root = self._tree.events[0][0].scope
            for call in self._tree.resumes.waiting:
                source, order = self._history.known({"id": call.message_id}), ((-1, 0), call.place)
                taken = AskedCall(source, call.call_id, call.name, call.args, call.place, root, None, order)
                taken.asked_at, taken.is_reported, taken.has_kept_args = call.asked_at, True, True
                self.steps.add_call(taken)

    # --- the pass over events: calls that models ask for, tools that run, and messages that answer ---

    def read_events(self) -> None:
        """Read all events in their order."""
        for event, (record, is_end, at) in enumerate(self._tree.events):
            self._event, self._at, self._ranks = event, at, 0
            try:
                if is_end:
                    self._read_end(record)
                else:
                    self._begins[record] = event
                    self._place(record)
                    self._read_start(record)
            except Exception as error:
                self._part.warn_of(error)

    def _place(self, record: Record) -> None:
        """Find the place of a record among parallel branches: by langgraph's paths of tasks, else by their start."""
        parent = record.parent
        if parent is None or parent.kind == "block":
            self._branches[record] = (self._rank(), "") if parent is not None else ()
            return
        branch = self._branches.get(parent, ())
        if record.path is not None and (record.is_node or record.path != parent.path):
            tasks, order = self._tasks.setdefault((parent, record.graph_step), []), task_order(record.path)
            place = bisect(tasks, order, key=itemgetter(0))
            rank = tasks[place][1] if place < len(tasks) else self._rank()
            tasks.insert(place, (order, rank))
            branch = (*branch, rank, order)
        self._branches[record] = branch

    def _rank(self) -> tuple[int, int]:
        """Return the next number in the order of the run."""
        self._ranks += 1
        return self._event, self._ranks

    def _read_start(self, record: Record) -> None:
        if (record.is_top or record.is_node) and record.kind == "chain":
            self._is_state = record.is_node
            if record.is_top:
                self._top, record.continues_thread = record, record.continues_thread or not record.has_input
                self._graphs_read.clear()
            if record.is_top and not self._history.has_own:
                self._history.add_input(record.input_messages, self._tree.question)
            else:
                lists = [each for each in record.input_messages if each.items]
                self._take_in([self._history.read(each, is_input=True) for each in lists], record)
            if record.is_node and record.input_messages:
                self._graphs_read.add(record.scope)
        if record.model is not None:
            self._models.append((CountedCall({}), record.model, record.outer))
            for call, message in self.steps.answers_in(record.model.prompt, self._history.known):
                self.steps.answer(message, [call], record)
        if record.tool is not None:
            if record.tool.call_id is not None and not self.steps.with_id(record.tool.call_id, record):
                started = ToolCall(name=record.name or "", args=record.tool.args, id=record.tool.call_id)
                self._ask(None, {0: started}, record)  # no message is known to have asked for it
            if record.kind == "tool" or not record.is_inside_step:
                self.steps.started(record, record.tool, self._event, self._branches[record])

    def _read_end(self, record: Record) -> None:
        if record.model is not None:
            self._model_ended(record, record.model)
        if record.tool is not None:
            self.steps.ended(record, record.tool)
        if record.is_top:
            self._tops.append(record)
            if record.kind == "chain":
                if record.continues_thread:
                    self._history.add_history(record.output_messages, is_graph=record.is_graph)
                self._read_output(record)
                lasts = (each.items[-1] if each.items else each.before for each in record.output_messages)
                self._part.ends += [identifier for last in lasts if (identifier := id_of(last)) is not None]
        elif record.is_node:
            self._read_output(record)
        else:
            self._is_state = False
            for message in chain.from_iterable(messages.items for messages in record.output_messages):
                if isinstance(message, ToolMessage):
                    self._note_answer(message, self.steps.with_id(message.tool_call_id, record), record)

    def _model_ended(self, record: Record, model: ModelRun) -> None:
        message = model.message
        if message is None:
            return
        begin, known = self._begins[record], self._history.known(message)
        if known.reported_from > begin:  # it hands on the message of another model, as a router does
            self._models = [each for each in self._models if each[1] is not model]
            return
        known.reported_from = begin
        self._history.count(message, record.node, is_reported=True)
        self._note_provider_steps(message, record)
        if model.calls:
            asked = dict(enumerate(model.calls))
            self._ask(known, asked, record, is_reported=True, is_expected=not model.is_structured)

    def _read_output(self, record: Record) -> None:
        """Read a node's output, or a root's, for calls without a callback: they never ran, or ran out of sight."""
        self._is_state = record.is_top and (record.is_graph or record.is_graph_run)
        readings = [self._history.read(messages) for messages in record.output_messages]
        for reading in readings:
            self.steps.schemas.update(schema_names(reading.new, record.output))
        self._take_in(readings, record)

    def _take_in(self, readings: Iterable[Reading], record: Record) -> None:
        """Take calls, answers and model calls from new messages."""
        for reading in readings:
            asking = None if reading.before is None else as_message(reading.before)
            calls = self._calls_in(asking, record) if isinstance(asking, AIMessage) else []
            for message in reading.new:
                if isinstance(message, AIMessage):
                    calls = self._new_from_model(message, record)
                else:
                    answered = [call for call in calls if call.call_id == message.tool_call_id]
                    self._note_answer(message, answered or self.steps.with_id(message.tool_call_id, record), record)

    def _note_answer(self, message: ToolMessage, calls: Sequence[AskedCall], record: Record) -> None:
        if calls:
            is_cached = self._is_from_cache(record)
            self.steps.answer(message, calls, record, models=len(self._models), is_from_cache=is_cached)

    def _is_from_cache(self, record: Record) -> bool:
        """Return whether what is new comes from langgraph's cache: it is in a state, and no node returned it.

        What is in the first state of a resumed run may also be from before the pause, or from a human.
        """
        is_resumed = self._top is None or not self._top.has_input
        return self._is_state and (not is_resumed or record.scope in self._graphs_read)

    def _ask(
        self,
        source: KnownMessage | None,
        tool_calls: dict[int, ToolCall],
        record: Record,
        *,
        is_reported: bool = False,
        is_expected: bool = False,
    ) -> list[AskedCall]:
        """Note and return calls of a message, by their places in it."""
        rank, branch = self._rank(), self._branches[record]
        asked: list[AskedCall] = []
        for place, call in tool_calls.items():
            order = (*branch, rank, place)
            made = AskedCall(source, call["id"], call["name"], call["args"], place, record.scope, record.outer, order)
            made.asked_at, made.is_reported, made.is_expected = self._at, is_reported, is_expected
            self.steps.add_call(made)
            asked.append(made)
        return asked

    def _calls_in(self, message: AIMessage, record: Record, *, is_new: bool = False) -> list[AskedCall]:
        """Return the calls of a message as it is now: an edited one has the same ids.

        Those that the agent has removed from it need no step. In a new message (``is_new``) there are perhaps more, or
        those of a message of which this one is a copy.
        """
        source = self._history.known(message)
        here = [call for call in source.calls if call.scope is record.scope and call.parent is record.outer]
        left = here or list(source.calls)
        found: list[AskedCall] = []
        asked: dict[int, ToolCall] = {}
        for place, call in enumerate(message.tool_calls):
            same = next((each for each in left if each.call_id == call["id"]), None)
            if same is not None:
                left.remove(same)
            elif not is_new:
                continue
            elif (same := self.steps.copied(call)) is None:
                asked[place] = call
                continue
            else:
                source.calls.append(same)
            same.name, same.args, same.has_kept_args = call["name"], call["args"], False
            found.append(same)
        for call_left in left:
            if not call_left.steps:
                self.steps.settle_call(call_left)
        return found + (self._ask(source, asked, record, is_expected=True) if asked else [])

    def _new_from_model(self, message: AIMessage, record: Record) -> list[AskedCall]:
        """Note a model's message that is new in a list, perhaps one that no callback reported; return its calls."""
        if is_handoff_message(message):
            return []
        if not self._history.is_counted(message, record.node):
            if message.id in self._reported_ids:
                self._part.cached_models += self._is_from_cache(record)
            else:
                self._note_provider_steps(message, record)
                if is_generated(message):
                    self._history.count(message, record.node)
                    if self._is_from_cache(record):
                        self._part.cached_models += 1
                    else:
                        self._add_unreported_call(message, record)
        return self._calls_in(message, record, is_new=True)

    def _note_provider_steps(self, message: AIMessage, record: Record) -> None:
        """Note the calls of the provider's own tools in a message, which have no callbacks."""
        for event in provider_events(message):
            if isinstance(event, ProviderCall):
                order = (*self._branches[record], self._rank(), 0)
                self.steps.provider_called(event, record, order, self._at)
            else:
                self.steps.provider_answered(event)

    def _add_unreported_call(self, message: AIMessage, record: Record) -> None:
        """Note a model call that only its message shows."""
        result = message_result(message)
        call = model_call(result)
        problems = answer_problems(result, call.get("finish_reason"), self._tree.options, self._part.warnings)
        counted = CountedCall(call, problems=problems, is_from_elsewhere=self._tree.had_id(message))
        if self._tree.options.keep_messages:
            counted.gave = self._kept.add(given_messages([message]))
        self._models.append((counted, None, record.outer))

    # --- the passes over model calls and steps: what was recorded of them, and the steps around ---

    def finish_model_calls(self) -> None:
        """Complete the model calls with what was recorded of them; those under way do not count yet."""
        tree, part = self._tree, self._part
        for counted, run, outer in self._models:
            counted.parent = None if outer is None else self.steps.step_of.get(outer)
            if run is not None and run.given is not None:
                counted.given, counted.gave = self._kept.add(run.given), self._kept.add(run.gave)
                counted.tools = self._kept.add_tools(run.tools)
            if run is not None:
                counted.call, counted.is_cache_hit = run.call.copy(), is_cache_hit(run.message)
                if run.first_token is not None:
                    counted.call["first_token_sec"] = run.first_token - run.started
                if run.error is not None:
                    counted.call["error"] = part.kept_error(run.error)
                elif run.result is not None:
                    reason = run.call.get("finish_reason")
                    counted.problems = answer_problems(run.result, reason, tree.options, part.warnings)
                elif tree.has_ended and not run.has_ended:
                    counted.call[ELAPSED_SEC] = tree.started + part.elapsed_sec - run.started
                    counted.call["error"] = unfinished_text(part.error)
            if run is None or run.has_ended or tree.has_ended:
                part.model_calls.append(counted)

    def finish_steps(self) -> None:
        """Put the steps in order, each with the step inside which it ran, and close those that had not ended."""
        tree, part, step_of = self._tree, self._part, self.steps.step_of
        for each, outer in self.steps.outer_of.items():
            each.parent = None if outer is None else step_of.get(outer)
        if tree.has_ended:
            for record, step in step_of.items():
                if step.status == "open" and record.tool is not None:
                    step.end(Outcome("error", unfinished_text(part.error)))
                    step.elapsed_sec, step.is_forced = tree.started + part.elapsed_sec - record.tool.started, True
        part.steps = in_order(self.steps.all)

    # --- the passes over the outputs: the answer, and what nobody answered ---

    def find_answer(self) -> None:
        """Find the answer in the outputs of the root, or of the runs of a block: the last one counts."""
        for record in self._tops:
            if record.kind == "chain":
                self._read_answer(record)
            elif isinstance(record.output, LLMResult) and (generation := first_generation(record.output)) is not None:
                message = generated_message(record.output)
                text = generation.text if message is None else answer_text(message)
                self._part.answer = None if message is not None and message.tool_calls else text

    def _read_answer(self, record: Record) -> None:
        part, output = self._part, record.output
        is_new = not (record.continues_thread and record.is_graph)

        def is_given(name: str) -> bool:
            nodes = (record for record, is_end, _ in self._tree.events if is_end and record.is_node)
            updates = chain.from_iterable(updates_in(node.output) for node in nodes)
            return is_new or any(field_of(update, name) is not None for update in updates)

        answer = answer_in(output, self._history.is_old, is_given=is_given)
        is_state = record.is_graph if record.has_nodes is None else record.has_nodes
        if answer is None and not is_state:
            answer = whole_answer(output)
        if self._tree.is_paused:
            part.draft = answer
        elif answer is not None or (isinstance(output, AIMessage) and output.tool_calls):
            part.answer = answer
        if answer is None and record.continues_thread:
            part.standing = answer_in(output)

    def find_what_is_left(self) -> None:
        """Warn of calls that nobody answered, or leave them to the caller or to the run that resumes this one."""
        tree, part = self._tree, self._part
        last = tree.events[-1][0] if tree.events else None
        output = None if last is None or not last.is_root else last.output
        message = generated_message(output) if isinstance(output, LLMResult) else output
        left = [call for call in self.steps.waiting if call.is_expected]
        if left and isinstance(message, AIMessage) and message.tool_calls:
            for call in left:
                call.is_expected = False
            names = listed([f"{call.name} ({call.call_id})" for call in left])
            part.warnings.append(
                f"the run returns a message with tool calls to its caller: {names}; to record a loop around such calls "
                'as one response, wrap it in: with capture_run(question_id="...")'
            )
        for call in self.steps.waiting:
            if call.message_id is not None:
                args = self.steps.kept_args(call)
                waiting = WaitingCall(call.message_id, call.call_id, call.name, args, call.place, call.asked_at)
                part.waiting.append(waiting)
        if tree.has_ended and tree.error is None:
            ran = {step.name for step in self.steps.all}
            loose = Counter(step.name for step in self.steps.all if not step.has_call)
            for call in self.steps.waiting:
                if loose[call.name] > 0:  # a tool may have run it with other arguments
                    loose[call.name] -= 1
                elif call.is_expected and (call.name in ran or not is_class_name(call.name)):
                    part.unanswered.append((call.name, call.call_id))  # its node may read that of a class itself
        if self.steps.at_provider and not tree.is_paused:
            lost = [f"{tree.options.step_name(step.name)} ({step.id})" for step in self.steps.at_provider.values()]
            part.warnings.append(f"requested from the provider's tools, without a result: {listed(lost)}")


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Return steps in the order in which models asked for them, each followed by the steps inside it."""
    children: dict[Step | None, list[Step]] = {}
    for step in sorted(steps, key=lambda step: step.order):
        children.setdefault(step.parent, []).append(step)

    def walk(parent: Step | None) -> Iterator[Step]:
        for step in children.get(parent, ()):
            yield step
            yield from walk(step)

    return list(walk(None))


@lru_cache(maxsize=1024)
def task_order(path: object) -> str:
    """Return langgraph's path of a task as a text that sorts parallel tasks as in the state.

    Example:
        >>> task_order(("__pregel_push", 2, False)) < task_order(("__pregel_push", 10, False))
        True
    """
    if isinstance(path, list | tuple):
        return ",".join(map(task_order, path))
    return f"{path:010d}" if isinstance(path, int) else str(path)
