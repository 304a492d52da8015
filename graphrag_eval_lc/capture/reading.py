"""The pass over messages: which of them are new, which calls models ask for, and which messages answer these."""

from bisect import bisect
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain, count, takewhile
from operator import itemgetter
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.calls import AskedCall, AskedCalls, CountedCall, KnownMessage, Order, Part
from graphrag_eval_lc.capture.calls_without_tools import ProviderCall, provider_events, schema_names
from graphrag_eval_lc.capture.history import History, Reading
from graphrag_eval_lc.capture.llm_calls import answer_problems, is_generated, message_result, model_call
from graphrag_eval_lc.capture.messages import answer_fields, as_message, is_handoff_message, last_of_model
from graphrag_eval_lc.capture.record import ModelRun, Record, id_of
from graphrag_eval_lc.capture.steps import Steps


class ReadMessages:
    """What the messages of a tree say, read in the order of its events."""

    def __init__(self, part: Part, reported_ids: set[str], ends: set[str]) -> None:
        self.calls = AskedCalls()  # the calls that models asked for
        self.steps = Steps(part, self.calls)
        self.models: list[CountedCall] = []  # the model calls in their order
        self.begins: dict[Record, int] = {}  # the number of the event with which each record begins
        self.branches: dict[Record, Order] = {}  # the place of each record among parallel branches
        self.outer_of: list[tuple[CountedCall, Record | None]] = []  # the tool around each model call
        self.tops: list[Record] = []  # the root or the runs of a block, as they ended
        self.given_fields: set[str] = set()  # the names of the answer fields that nodes have set
        self._part = part
        self._tree = part.tree
        self._reported_ids = reported_ids
        self._history = History(ends, part.tree.nameless)
        self.known = self._history.known
        self.is_old = self._history.is_old
        self._tasks: dict[Record, tuple[Any, list[tuple[str, Any]]]] = {}
        self._top: Record | None = None
        self._event = self._ranks = self._model_count = 0
        self._at = 0.0
        self._is_state = False  # whether what is read is a state of a graph, and no node's output

    # --- calls that an earlier run left waiting ---

    def take_over_waiting(self) -> None:
        """Take over the calls that the run which this one resumes has left waiting."""
        if self._tree.resumes is None or not self._tree.events:
            return
        root = self._tree.events[0][0].scope
        for call in self._tree.resumes.waiting:
            taken = AskedCall(
                self.known({"id": call.message_id}), call.call_id, call.name, call.args, call.place, root, None,
                ((-1, 0), call.place), call.asked_at, is_reported=True, is_seen=True, has_kept_args=True,
            )  # fmt: skip
            self.calls.add(taken)

    # --- the pass over messages: which calls are asked for, and by which messages they are answered ---

    def read(self) -> None:
        """Read all messages."""
        for event, (record, is_end, at) in enumerate(self._tree.events):
            self._event, self._at, self._ranks = event, at, 0
            try:
                if is_end:
                    self._read_end(record)
                else:
                    self.begins[record] = event
                    self._place(record)
                    self._read_start(record)
            except Exception as error:
                self._part.warn_of(error)

    def _place(self, record: Record) -> None:
        """Find the place of a record among parallel branches: by langgraph's paths of tasks, else by their start."""
        parent = record.parent
        if parent is None or parent.is_block:
            self.branches[record] = (self._rank(), "") if parent is not None else ()
            return
        branch = self.branches.get(parent, ())
        if record.path is not None and (record.is_node or record.path != parent.path):
            step, tasks = self._tasks.get(parent, (None, []))
            if step != record.graph_step or not tasks:
                tasks = []
                self._tasks[parent] = (record.graph_step, tasks)
            order = task_order(record.path if isinstance(record.path, tuple) else str(record.path))
            place = bisect(tasks, order, key=itemgetter(0)) if tasks else 0
            rank = tasks[place][1] if place < len(tasks) else self._rank()
            tasks.insert(place, (order, rank))
            branch = (*branch, rank, order)
        self.branches[record] = branch

    def _rank(self) -> tuple[int, int]:
        """Return the next number in the order of the run."""
        self._ranks += 1
        return self._event, self._ranks

    def _read_start(self, record: Record) -> None:
        if (record.is_top or record.is_node) and record.kind == "chain" and not record.is_block:
            self._node_started(record)
        if record.model is not None:
            self._model_started(record, record.model)
        if record.tool is not None and record.tool.call_id is not None:
            started = ToolCall(name=record.name or "", args=record.tool.args, id=record.tool.call_id)
            if not self._with_id(started["id"], record):
                self._ask(None, [started], record)  # no message is known to have asked for it
        if record.tool is not None and not (record.kind == "retriever" and record.is_inside_step):
            self.steps.started(record, record.tool, self._event, self.branches[record])

    def _read_end(self, record: Record) -> None:
        if record.model is not None:
            self._model_ended(record, record.model)
        if record.tool is not None:
            self.steps.ended(record, record.tool, self.branches[record])
        if record.is_top:
            self._top_ended(record)
        elif record.is_node:
            self._node_ended(record)
        else:
            if record.is_graph:
                self._history.add_history(record.output_messages, record.input_messages, is_graph=True)
            self._is_state = False
            for message in chain.from_iterable(messages.items for messages in record.output_messages):
                if isinstance(message, ToolMessage):
                    self._note_answer(message, self._with_id(message.tool_call_id, record), record)

    def _model_started(self, record: Record, model: ModelRun) -> None:
        self._model_count += 1
        if model.prompt:
            for call, message in self.calls.answers_in(model.prompt, self.known):
                self.steps.answer(self._tree.as_read(message), [call], record, self._event)
        counted = CountedCall({}, model)
        self.models.append(counted)
        self.outer_of.append((counted, record.outer))

    def _model_ended(self, record: Record, model: ModelRun) -> None:
        message = model.message
        if message is None:
            return
        begin, known = self.begins[record], self.known(message)
        if known.reported_from > begin:
            # It hands on the message of another model, as a router does.
            self.models = [counted for counted in self.models if counted.run is not model]
            return
        known.reported_from = begin
        self._history.count(message, record.node, is_reported=True)
        self._note_provider_steps(message, record)
        if model.calls:
            self._ask(known, model.calls, record, is_reported=True, is_expected=not model.is_structured)

    def _node_started(self, record: Record) -> None:
        """Read the input of a root or a node: older messages, calls that wait for its tools, and what is new.

        The input of a nested graph is not taken for older than the run: a node may have made it just now.
        """
        self._is_state = record.is_node
        if record.is_top:
            self._top, record.continues_thread = record, record.continues_thread or not record.has_input
        if record.is_top and not self._history.has_own:
            self._history.add_input(record.input_messages, self._tree.question)
            passed_over: list[Sequence[Any]] = [messages.items for messages in record.input_messages]
        else:
            unknown: Any = "old" if record.scope is not None and record.scope.is_root else "elsewhere"
            readings = [self._history.read(messages, unknown) for messages in record.input_messages if messages.items]
            passed_over = [reading.passed_over for reading in readings]
            self._take_in(readings, record)
        for messages in passed_over:
            message, answers = last_of_model(messages)
            if message is not None and self.known(message).calls:  # those that a paused run left open
                self._take_in([Reading(answers, message)], record)
        loose = [call for call in record.loose_calls if not self._with_id(call["id"], record)]
        if loose:
            self._ask(None, loose, record)

    def _node_ended(self, record: Record) -> None:
        """Read a node's output, or a root's, for calls without a callback: they never ran, or ran out of sight."""
        self._is_state = record.is_top and (record.is_graph or record.is_graph_run)
        if record.is_node:
            self.given_fields.update(answer_fields(record.output))
        readings = [self._history.read(messages) for messages in record.output_messages]
        for reading in readings:
            self.steps.schemas |= set(schema_names(reading.new, record))
        self._take_in(readings, record)

    def _top_ended(self, record: Record) -> None:
        self.tops.append(record)
        if record.kind == "chain" and not isinstance(record.output, LLMResult):
            if record.continues_thread:
                self._history.add_history(record.output_messages, None, is_graph=record.is_graph)
            self._node_ended(record)
            lasts = (each.items[-1] if each.items else each.before for each in record.output_messages)
            self._part.ends += [identifier for last in lasts if (identifier := id_of(last)) is not None]

    def _take_in(self, readings: Iterable[Reading], record: Record) -> None:
        """Take calls, answers and model calls from new messages."""
        for reading in readings:
            before = None if reading.before is None else as_message(reading.before)
            asking = before if isinstance(before, AIMessage) else None
            calls = (
                [] if asking is None else self._calls_in(asking, record, new=self._answered_old(asking, reading.new))
            )
            for message_id in reading.removed:
                self._withdraw(self.known({"id": message_id}).calls_in(record))
            for message in reading.new:
                if isinstance(message, AIMessage):
                    asking, calls = message, self._new_from_model(message, record)
                    continue
                answered = [call for call in calls if call.call_id == message.tool_call_id]
                asked_ids = [] if asking is None else [call["id"] for call in asking.tool_calls]
                if message.tool_call_id not in asked_ids:
                    answered = self._with_id(message.tool_call_id, record)
                self._note_answer(message, answered, record)

    def _answered_old(self, asking: AIMessage, new: Sequence[AIMessage | ToolMessage]) -> Sequence[str]:
        """Return the ids of calls of an earlier run that this run answers out of sight, as a deployed graph does."""
        if not asking.tool_calls or self.known(asking).calls or not self._history.is_old(asking):
            return ()
        answers = takewhile(lambda message: isinstance(message, ToolMessage), new)
        return [message.tool_call_id for message in answers if isinstance(message, ToolMessage)]

    def _note_answer(self, message: ToolMessage, calls: Sequence[AskedCall], record: Record) -> None:
        if calls:
            answered = self._tree.as_read(message)
            is_cached = self._is_from_cache()
            self.steps.answer(answered, calls, record, self._event, models=self._model_count, is_from_cache=is_cached)

    def _with_id(self, call_id: str | None, record: Record) -> list[AskedCall]:
        return self.calls.with_id(call_id, record, self.branches[record])

    def _ask(
        self,
        source: KnownMessage | None,
        tool_calls: Iterable[ToolCall],
        record: Record,
        *,
        is_reported: bool = False,
        is_expected: bool = False,
        places: Sequence[int] | None = None,
    ) -> list[AskedCall]:
        """Note and return the calls of a message."""
        rank, branch = self._rank(), self.branches[record]
        asked: list[AskedCall] = []
        for place, call in zip(count() if places is None else places, tool_calls, strict=False):
            made = AskedCall(
                source, call["id"], call["name"], call["args"], place, record.scope, record.outer,
                (*branch, rank, place), self._at, is_reported, is_expected,
            )  # fmt: skip
            self.calls.add(made)
            asked.append(made)
        return asked

    def _calls_in(
        self,
        message: AIMessage,
        record: Record,
        *,
        new: Collection[str | None] = (),
        is_expected: bool = False,
    ) -> list[AskedCall]:
        """Return the calls of a message as it is now: an edited one has the same ids.

        Those that the agent has removed from it need no step. ``new``: the ids of the calls that are noted if they are
        not known; they may be those of a message of which this one is a copy.
        """
        source = self.known(message)
        left = list(source.calls_in(record))
        found: list[AskedCall] = []
        asked: dict[int, ToolCall] = {}
        for place, call in enumerate(message.tool_calls):
            same = next((each for each in left if each.call_id == call["id"]), None)
            if same is not None:
                left.remove(same)
            elif call["id"] not in new:
                continue
            elif (same := self.calls.copied(call)) is None:
                asked[place] = call
                continue
            else:
                source.calls.append(same)
            same.is_seen = True
            same.name, same.args, same.has_kept_args = call["name"], call["args"], False
            found.append(same)
        self._withdraw(left)
        if asked:
            found += self._ask(source, asked.values(), record, is_expected=is_expected, places=list(asked))
        return found

    def _withdraw(self, calls: Iterable[AskedCall]) -> None:
        for call in calls:
            if not call.steps:
                self.calls.settle(call)

    def _new_from_model(self, message: AIMessage, record: Record) -> list[AskedCall]:
        """Note a model's message that is new in a list, perhaps one that no callback reported, and return its calls."""
        if is_handoff_message(message):
            return []
        is_models, is_from_cache = is_generated(message), self._is_from_cache()
        if not self._history.is_counted(message, record.node):
            if message.id in self._reported_ids:
                self._part.cached_models += is_from_cache and self._tree.resumes is None
            else:
                self._note_provider_steps(message, record)
                if is_models:
                    self._history.count(message, record.node)
                    if is_from_cache:
                        self._part.cached_models += 1
                    else:
                        self._add_unreported_call(message, record)
        new = [call["id"] for call in message.tool_calls]
        return self._calls_in(message, record, new=new, is_expected=True)

    def _note_provider_steps(self, message: AIMessage, record: Record) -> None:
        """Note the calls of the provider's own tools in a message, which have no callbacks."""
        for event in provider_events(message):
            if isinstance(event, ProviderCall):
                order = (*self.branches[record], self._rank(), 0)
                self.steps.provider_called(event, record, order, self._at)
            else:
                self.steps.provider_answered(event)

    def _is_from_cache(self) -> bool:
        """Return whether what is new comes from langgraph's cache: it is in a state, and no node gave it.

        In a resumed run it may also be from before the pause.
        """
        return self._is_state and self._top is not None and self._top.has_input

    def _add_unreported_call(self, message: AIMessage, record: Record) -> None:
        """Note a model call that only its message shows."""
        result = message_result(message)
        call = model_call(result)
        problems = answer_problems(result, call.get("finish_reason"), self._tree.options, self._part.warnings)
        counted = CountedCall(call, problems=problems)
        counted.is_from_elsewhere = self._history.has_own_id(message)
        if self._tree.kept is not None:
            counted.output_message = self._tree.kept.index(message)
        self.outer_of.append((counted, record.outer))
        self.models.append(counted)


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
