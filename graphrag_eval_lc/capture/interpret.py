"""Interprets the records of a run: reads its events in order, and finds its steps, model calls, answer and warnings."""

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, count
from operator import itemgetter
from time import perf_counter
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture import llm_calls, messages
from graphrag_eval_lc.capture.record import MessageList, ModelRun, Record, Thread, Tree
from graphrag_eval_lc.capture.responses import CountedCall, Part, Step, unfinished_text
from graphrag_eval_lc.capture.steps import AskedCall, History, KnownMessage, Order, Steps
from graphrag_eval_lc.capture.values import Outcome
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.texts import listed

_MOST_IDS = 200  # of the last messages before a pause
_CLOSED = "GeneratorExit"  # the error of a run whose caller stopped reading its stream


def interpreted(tree: Tree, reported_ids: set[str], ends: set[str]) -> Part:
    """Return the interpretation of a tree without changing the tree. Never raises: a pass that fails adds a warning.

    ``reported_ids`` are the ids of all messages that models' callbacks reported, in any run of the handler. ``ends``
    are the ids of the last messages of earlier runs.
    """
    part = Part(tree, perf_counter() - tree.started if tree.elapsed_sec is None else tree.elapsed_sec)
    part.error = None if tree.error is None else part.kept_error(tree.error)
    of_error, part.warnings = part.warnings, []  # these come last
    run = _Interpretation(part, reported_ids, ends)
    for each in (
        run.read_events,
        run.steps.compare_answers,
        run.finish_model_calls,
        run.finish_steps,
        run.find_answer,
        run.find_what_is_left,
        run.leave_to_the_next_run,
    ):
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
        self._reported_ids = reported_ids
        self._history = History(part.tree, ends)
        self._models: list[tuple[ModelRun, Record | None]] = []  # each model call, and the tool inside which it ran
        self._begins: dict[Record, int] = {}  # the rank of each model call's start
        self._branches: dict[Record, Order] = {}  # the position of each record among parallel branches
        self._tasks: dict[tuple[Record, Any], list[tuple[str, int]]] = {}  # path and rank of parallel tasks
        self._top: Record | None = None  # the root, or the run that a block called last
        self._ended_tops: list[Record] = []
        self._rank = count()  # numbers in the order of the run
        self._event_time = 0.0
        self._graphs_read: set[Record | None] = set()  # the graphs whose state was read in this run
        self._prompt: Sequence[BaseMessage] = ()  # the first prompt of the run
        self._prompted_ids: set[str | None] = set()  # of the messages in it up to the question, for an @entrypoint

    # --- the pass over events: calls that models ask for, tools that run, and messages that answer ---

    def read_events(self) -> None:
        """Read all events in their order, after the unanswered calls of the paused run that this one resumes."""
        rank = next(self._rank)
        for call in self._tree.earlier.waiting if self._tree.events else ():
            source, root = self._history.known(call.source.form), self._tree.events[0][0].scope
            self.steps.add_call(replace(call, source=source, scope=root, order=(rank, call.place), steps=[]))
        for record, is_end, at in self._tree.events:
            self._event_time = at
            try:
                if is_end:
                    self._read_end(record)
                else:
                    self._branches[record] = self._branch_of(record)
                    self._read_start(record)
            except Exception as error:
                self._part.warn_of(error)

    def _branch_of(self, record: Record) -> Order:
        """Return a record's position among parallel branches, by langgraph's task path or by its start."""
        parent = record.parent
        if parent is None or parent.kind == "block":
            return () if parent is None else (next(self._rank), "")
        branch = self._branches.get(parent, ())
        if record.path is None or (record.path == parent.path and not record.is_node):
            return branch
        tasks, order = self._tasks.setdefault((parent, record.graph_step), []), task_order(record.path)
        place = bisect(tasks, order, key=itemgetter(0))
        rank = tasks[place][1] if place < len(tasks) else next(self._rank)
        tasks.insert(place, (order, rank))
        return (*branch, rank, order)

    def _read_start(self, record: Record) -> None:
        if record.kind == "chain" and (record.is_top or record.is_node):
            if record.is_top:
                self._top, record.continues_thread = record, record.continues_thread or not record.has_input
                self._graphs_read.clear()
                self._prompt = ()
            if record.is_top and not self._history.has_own:
                self._history.add_input(record.input_messages, self._tree.question)
            else:
                lists, is_state = [each for each in record.input_messages if each.items], record.is_node
                readings = [self._history.read(each, is_input=True, is_state=is_state) for each in lists]
                self._take_in(readings, record, is_state=is_state)
            if record.is_node and record.input_messages:
                self._graphs_read.add(record.scope)
        elif record.input_messages:  # what a chain or a node's code hands over to a nested graph
            self._take_in([self._history.read(each, is_handed_over=True) for each in record.input_messages], record)
        if record.model is not None:
            self._models.append((record.model, record.outer))
            self._begins[record] = next(self._rank)
            self._prompt = self._prompt or record.model.prompt
            for call, message in self.steps.answers_in(record.model.prompt, self._history.known):
                self.steps.answer(message, [call], record)
        if record.tool is not None:
            if record.tool.call_id is not None and not self.steps.with_id(record.tool.call_id, record):
                started = ToolCall(name=record.name or "", args=record.tool.args, id=record.tool.call_id)
                self._ask(None, {0: started}, record)  # no message is known to have asked for it
            if record.kind == "tool" or not record.is_inside_step:
                self.steps.started(record, record.tool, (*self._branches[record], next(self._rank), 0))

    def _read_end(self, record: Record) -> None:
        if record.model is not None:
            self._model_ended(record, record.model)
        if record.tool is not None:
            self.steps.ended(record, record.tool)
        if record.is_top:
            self._ended_tops.append(record)
        if record.kind == "chain" and record.is_top:
            if record.continues_thread:
                self._history.add_history(record.output_messages, is_graph=record.is_graph)
            self._read_output(record)
        elif record.is_node:
            self._read_output(record)
        elif record.is_graph:
            readings = [self._history.read(each, is_state=True) for each in record.output_messages]
            self._take_in(readings, record, is_state=True)
        else:
            self._take_in(record.output_messages, record)

    def _model_ended(self, record: Record, model: ModelRun) -> None:
        message = model.message
        if message is None:
            return
        begin, known = self._begins[record], self._history.known(message)
        if known.reported_from > begin:  # it only passes on the message of another model, as a router does
            self._models = [each for each in self._models if each[0] is not model]
            return
        known.reported_from = begin
        self._history.count(message, record.node, is_reported=True)
        self._note_provider_steps(message, record)
        if model.calls:
            asked = dict(enumerate(model.calls))
            self._ask(known, asked, record, is_reported=True, is_expected=not model.is_structured)

    def _read_output(self, record: Record) -> None:
        """Read the output of a node or root, which may hold calls and answers that no callback reported."""
        is_state = record.is_top and (record.is_graph or record.is_graph_run)
        readings = [self._history.read(each, is_state=is_state) for each in record.output_messages]
        if self._is_new_entrypoint(record):  # its messages may be in any order, those before the question too
            history = self._prompt[: self._history.count_old(self._prompt)]
            self._prompted_ids |= {message.id for message in history if message.id is not None}
            readings = [
                MessageList([each for each in items if each.id not in self._prompted_ids], before)
                for items, before in readings
            ]
        for reading in readings:
            if len(reading.items) > 1:
                self.steps.schemas.update(messages.schema_names(reading.items, record.output))
        self._take_in(readings, record, is_state=is_state)

    def _is_new_entrypoint(self, record: Record) -> bool:
        """Return whether a record is the function of an @entrypoint that does not continue after a pause."""
        is_function = record.is_node and record.parent is not None and record.parent.has_nodes is False
        return is_function and self._top is not None and self._top.has_input

    def _take_in(self, readings: Iterable[MessageList], record: Record, *, is_state: bool = False) -> None:
        """Note the tool calls, tool answers and model calls in new messages.

        They come from langgraph's cache if they are in a state and no node returned them. The first state of a resumed
        run is an exception: its messages may be from before the pause, or from a human. If nobody changed the state
        during the pause, they are not: those from before it are known.
        """
        top = self._top
        is_resumed = top is None or not (top.has_input or top.is_unchanged)
        is_cached = is_state and (not is_resumed or record.scope in self._graphs_read)
        for reading in readings:
            asking = None if reading.before is None else messages.as_message(reading.before)
            calls = self._calls_in(asking, record) if isinstance(asking, AIMessage) else []
            for message in reading.items:
                if isinstance(message, AIMessage):
                    calls = self._new_from_model(message, record, is_cached)
                else:
                    answered = [call for call in calls if call.call_id == message.tool_call_id]
                    answered = answered or self.steps.with_id(message.tool_call_id, record)
                    self.steps.answer(message, answered, record, len(self._models), is_cached)

    def _ask(
        self,
        source: KnownMessage | None,
        tool_calls: dict[int, ToolCall],
        record: Record,
        *,
        is_reported: bool = False,
        is_expected: bool = False,
    ) -> list[AskedCall]:
        """Note and return calls of a message; the keys of ``tool_calls`` are their indices in it."""
        rank, branch = next(self._rank), self._branches[record]
        asked: list[AskedCall] = []
        for place, call in tool_calls.items():
            order = (*branch, rank, place)
            made = AskedCall(source, call["id"], call["name"], call["args"], place, record.scope, record.outer, order)
            made.asked_at, made.is_reported, made.is_expected = self._event_time, is_reported, is_expected
            self.steps.add_call(made)
            asked.append(made)
        return asked

    def _calls_in(self, message: AIMessage, record: Record, *, is_new: bool = False) -> list[AskedCall]:
        """Return the calls of a message in its present version.

        An edited call keeps its id. A removed call needs no step. A message that is new in its list (``is_new``) may
        add calls, or may be a copy that repeats the calls of another message.
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

    def _new_from_model(self, message: AIMessage, record: Record, is_cached: bool) -> list[AskedCall]:
        """Note a model's message that is new in a list and return its calls; a callback may not have reported it."""
        if messages.is_handoff_message(message):
            return []
        if not self._history.is_counted(message, record.node):
            if self._is_new_entrypoint(record):  # the cache of a @task leaves only the age of a message in its output
                is_old = llm_calls.is_from_before(message, self._tree.started_at)
                is_cached = is_cached or is_old or message.id in self._reported_ids
            if message.id in self._reported_ids:
                self._part.cached_models += is_cached
            else:
                self._note_provider_steps(message, record)
                if llm_calls.is_generated(message):
                    self._history.count(message, record.node)
                    self._part.cached_models += is_cached
                    if not is_cached:  # a call that only its message shows
                        run = ModelRun({}, has_ended=True, result=llm_calls.message_result(message), message=message)
                        run.call, run.is_from_elsewhere = llm_calls.model_call(run.result), self._tree.had_id(message)
                        run.gave = llm_calls.given_messages([message]) if self._tree.options.keep_messages else ()
                        self._models.append((run, record.outer))
        return self._calls_in(message, record, is_new=True)

    def _note_provider_steps(self, message: AIMessage, record: Record) -> None:
        """Note the calls of the provider's own tools in a message, which have no callbacks."""
        for event in llm_calls.provider_events(message):
            order = (*self._branches[record], next(self._rank), 0)
            self.steps.at_the_provider(event, record, order, self._event_time)

    # --- the passes over model calls and steps: completes each and finds the step around it ---

    def finish_model_calls(self) -> None:
        """Add times, errors, problems and kept messages to the model calls; calls still under way do not count."""
        tree, part = self._tree, self._part
        kept = llm_calls.KeptMessages(tree.options, part.warnings) if tree.options.keep_messages else None
        if kept is not None:
            part.messages, part.tools = kept.messages, kept.tools
        for run, outer in self._models:
            call = run.call.copy()
            counted = CountedCall(call, self.steps.step_of.get(outer))
            counted.is_cache_hit, counted.is_from_elsewhere = llm_calls.is_cache_hit(run.message), run.is_from_elsewhere
            if kept is not None:
                counted.given = None if run.given is None else kept.add(run.given)
                counted.gave, counted.tools = kept.add(run.gave), kept.add_tools(run.tools)
            if run.first_token is not None:
                call["first_token_sec"] = run.first_token - run.started
            if run.error is not None:
                call["error"] = part.kept_error(run.error)
            elif run.result is not None:
                reason = call.get("finish_reason")
                counted.problems = llm_calls.answer_problems(run.result, reason, tree.options, part.warnings)
            elif tree.has_ended and not run.has_ended:
                call[ELAPSED_SEC] = tree.started + part.elapsed_sec - run.started
                call["error"] = unfinished_text(part.error)
            if run.has_ended or tree.has_ended:
                part.model_calls.append(counted)

    def finish_steps(self) -> None:
        """Order the steps, and close as errors those that had not ended when the run did."""
        tree, part = self._tree, self._part
        for record, step in self.steps.step_of.items() if tree.has_ended else ():
            if step.status == "open" and record is not None and record.tool is not None:
                step.end(Outcome("error", unfinished_text(part.error)))
                step.elapsed_sec, step.is_forced = tree.started + part.elapsed_sec - record.tool.started, True
        part.steps = in_order(self.steps.all)

    # --- the passes over the outputs: the answer, and the calls without an answer ---

    def find_answer(self) -> None:
        """Find the answer in the root's output; in a block, the last run with an answer counts."""
        for record in self._ended_tops:
            if record.kind == "chain":
                self._read_answer(record)
                continue
            first, message = llm_calls.generated(record.output)
            if message is not None:
                self._part.answer = None if message.tool_calls else messages.answer_text(message)
            elif first is not None:
                self._part.answer = first.text
        if self._tree.error == _CLOSED and not self.steps.waiting:
            self._read_last_node()

    def _read_last_node(self) -> None:
        """Find the answer in the last node's output, if the caller stopped reading after it: the agent did not fail."""
        ended = (each for each, is_end, _ in reversed(self._tree.events) if is_end)
        node = next((each for each in ended if each.is_node and each.parent is self._top), None)
        lasts = () if node is None else [each.items[-1] if each.items else each.before for each in node.output_messages]
        message = messages.as_message(lasts[-1]) if lasts else None
        if isinstance(message, AIMessage) and not message.tool_calls and not self._history.is_old(message):
            self._part.answer, self._part.error = messages.answer_text(message), None
            self._part.warnings.append("the stream of the run was closed after this answer, before the run ended")

    def _read_answer(self, record: Record) -> None:
        part, output = self._part, record.output
        is_new = not (record.continues_thread and record.is_graph)

        def is_given(name: str) -> bool:
            nodes = (record for record, is_end, _ in self._tree.events if is_end and record.is_node)
            updates = chain.from_iterable(messages.updates_in(node.output) for node in nodes)
            return is_new or any(messages.field_of(update, name) is not None for update in updates)

        answer = messages.answer_in(output, self._history.is_old, is_given=is_given, left_out=self._prompted_ids)
        is_state = record.is_graph if record.has_nodes is None else record.has_nodes
        if answer is None and not is_state:
            answer = messages.whole_answer(output)
        if self._tree.is_paused:
            part.draft = answer
        elif answer is not None or (isinstance(output, AIMessage) and output.tool_calls):
            part.answer = answer
        if answer is None and record.continues_thread:
            part.standing = messages.answer_in(output)

    def find_what_is_left(self) -> None:
        """Warn about calls without an answer, unless the caller or the run that resumes this one may answer them."""
        tree, part, waiting = self._tree, self._part, list(self.steps.waiting)
        last = tree.events[-1][0] if tree.events else None
        output = None if last is None or last.parent is not None else last.output
        message = llm_calls.generated(output)[1] if isinstance(output, LLMResult) else output
        left = [call for call in waiting if call.is_expected]
        if left and isinstance(message, AIMessage) and message.tool_calls:
            for call in left:
                call.is_expected = False
            names = listed([f"{call.name} ({call.call_id})" for call in left])
            part.warnings.append(
                f"the run returns a message with tool calls to its caller: {names}; to record a loop around such calls "
                'as one response, wrap it in: with capture_run(question_id="...")'
            )
        if tree.has_ended and tree.error is None:
            ran = {step.name for step in self.steps.all}
            loose = Counter(step.name for step in self.steps.all if not step.has_call)
            for call in waiting:
                if loose[call.name] > 0:  # a tool may have run it with other arguments
                    loose[call.name] -= 1
                # A call of a schema, named like a class, may be read by its node, without a tool.
                elif call.is_expected and (call.name in ran or not messages.is_class_name(call.name)):
                    part.unanswered.append((call.name, call.call_id))
        if self.steps.at_provider and not tree.is_paused:
            lost = [f"{tree.options.step_name(step.name)} ({step.id})" for step in self.steps.at_provider.values()]
            part.warnings.append(f"requested from the provider's tools, without a result: {listed(lost)}")

    def leave_to_the_next_run(self) -> None:
        """Leave what the next run on the thread needs, without any of this run's records."""
        tree = self._tree
        outputs = (each for top in self._ended_tops if top.kind == "chain" for each in top.output_messages)
        lasts = [each.items[-1] if each.items else each.before for each in outputs]
        ends = [identifier for last in lasts if (identifier := messages.id_of(last)) is not None]
        self._part.thread = Thread(ends)
        if not tree.is_paused:
            return
        waiting: list[AskedCall] = []
        for call in self.steps.waiting:
            if call.message_id is not None:
                source, args = KnownMessage({"id": call.message_id}), self.steps.kept_args(call)
                kept = replace(call, source=source, args=args, scope=None, parent=None, is_expected=False)
                kept.is_reported = kept.has_kept_args = True
                waiting.append(kept)
        ids = dict.fromkeys([*tree.earlier.message_ids, *filter(None, map(messages.id_of, tree.known.values()))])
        self._part.thread = Thread(ends, dict.fromkeys([*ids, *ends][-_MOST_IDS:]), waiting)


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Return steps in the order in which models asked for them, each followed by the steps inside it."""
    children: dict[Step | None, list[Step]] = {}
    for step in sorted(steps, key=lambda step: step.order):
        children.setdefault(step.parent, []).append(step)

    def inside(parent: Step | None) -> list[Step]:
        return [each for step in children.get(parent, ()) for each in (step, *inside(step))]

    return inside(None)


@lru_cache(maxsize=1024)
def task_order(path: object) -> str:
    """Return langgraph's task path as text that sorts parallel tasks as langgraph does: 2 before 10."""
    if isinstance(path, list | tuple):
        return ",".join(map(task_order, path))
    return f"{path:010d}" if isinstance(path, int) else str(path)
