"""The pass over messages: which calls models ask for, which messages answer them, and what the answer is."""

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from operator import itemgetter
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.calls import Answer, AskedCall, AskedCalls, CountedCall, Order, key_of
from graphrag_eval_lc.capture.calls_without_tools import ProviderTools, is_from_agent, schema_names, structured_response
from graphrag_eval_lc.capture.history import CountedMessages, History, NewMessage, Reading
from graphrag_eval_lc.capture.kept_messages import KeptMessages
from graphrag_eval_lc.capture.llm_calls import (
    answer_problems,
    generated_message,
    is_generated,
    message_result,
    model_call,
)  # fmt: skip
from graphrag_eval_lc.capture.messages import (
    answer_fields,
    answer_in,
    answer_text,
    is_handoff_message,
    last_of_model,
    unanswered_calls,
    whole_answer,
)
from graphrag_eval_lc.capture.record import ModelRun, Record, Tree, id_of


class Withdrawn(NamedTuple):
    """A call that the agent has removed from its message."""

    call: AskedCall


class ReadMessages:
    """What the messages of a tree tell, read in the order of its events."""

    def __init__(self, tree: Tree, reported_ids: set[str], ends: set[str], kept: KeptMessages | None) -> None:
        self.calls = AskedCalls()  # the calls that models asked for
        # those calls, prompts, answers and withdrawals in their order
        self.log: list[AskedCall | Answer | Record | Withdrawn] = []
        # the model calls in their order: those of callbacks, and those of which only a message tells
        self.models: list[Record | CountedCall] = []
        self.schemas: set[str] = set()  # the names of schemas for structured output, whose calls no tool answers
        # the calls of the provider's own tools, and provider_places where and when each was made
        self.provider = ProviderTools()
        self.provider_places: list[tuple[Record, Order, float]] = []
        self.begins: dict[Record, int] = {}  # the number of the event with which each record begins
        self.branches: dict[Record, Order] = {}  # the place of each record among parallel branches
        self.outer_of: list[tuple[CountedCall, Record | None]] = []
        self.warnings: list[str] = []
        self.answer: str | None = None  # see Part
        self.draft: str | None = None  # see Part
        self.standing: str | None = None  # see Part
        self.ends: list[str] = []  # see Part
        self.cached_models = 0  # see Part
        self._tree = tree
        self._kept = kept
        self._reported_ids = reported_ids
        self._history = History(ends)
        self._counted = CountedMessages(tree.nameless)
        self._reported_by: dict[str, list[Record]] = {}
        self._tasks: dict[Record, tuple[Any, list[tuple[str, Any]]]] = {}
        self._given_fields: set[str] = set()
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
            if root is not None:
                taken = AskedCall(
                    call.message_id, call.message_id, call.call_id, call.name, call.args, call.place, root, None,
                    ((-1, 0), call.place), -1, call.asked_at, is_reported=True, is_seen=True, has_kept_args=True,
                )  # fmt: skip
                self.log.append(self.calls.add(taken))

    # --- the pass over messages: which calls are asked for, and by which messages they are answered ---

    def read(self) -> Iterator[Exception]:
        """Read all messages; yield what went wrong."""
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
                yield error

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
        if record.starts_graph is not None:
            self._history.add_history(record.input_messages, record.starts_graph.input_messages, is_start=True)
        if (record.is_top or record.is_node) and record.kind == "chain" and not record.is_block:
            self._node_started(record)
        if record.model is not None:
            self._model_started(record, record.model)
        if record.tool is not None and record.tool.call_id is not None:
            self._tool_started(record, record.tool.call_id, record.tool.args)
        if record.parsed is not None:
            for call in self._seen_calls(record.parsed, record):
                call.is_expected = False

    def _tool_started(self, record: Record, call_id: str, args: dict[str, Any]) -> None:
        """Note the call of a tool for which no message is known to have asked."""
        scope, branch = record.scope, self.branches[record]
        if scope is not None and not self.calls.is_known(call_id, scope, record.outer, branch):
            self._ask(None, [ToolCall(name=record.name or "", args=args, id=call_id)], record)

    def _read_end(self, record: Record) -> None:
        if record.model is not None:
            self._model_ended(record, record.model)
        if record.is_top:
            self._top_ended(record)
        elif record.is_node:
            self._node_ended(record)
        else:
            if record.is_graph:
                self._history.add_history(record.output_messages, record.input_messages)
            self._loose_answers(record)

    def _loose_answers(self, record: Record) -> None:
        self._is_state = False
        for messages in record.output_messages:
            for message in messages.items:
                if isinstance(message, ToolMessage) and record.scope is not None:
                    calls = self.calls.answered_by(message.tool_call_id, record.scope)
                    self._note_answer(message, calls, record)

    def _model_started(self, record: Record, model: ModelRun) -> None:
        self._model_count += 1
        if model.prompt:
            if not self.calls.all and not self.models:
                self._history.add_prompt(model.prompt)
            else:
                self.log.append(record)
        self.models.append(record)

    def _model_ended(self, record: Record, model: ModelRun) -> None:
        message = model.message
        if message is None:
            return
        told = self._reported_by.setdefault(message.id, []) if message.id is not None else []
        if told and not model.is_cache_hit:
            begin = self.begins[record]
            if any(self.begins[other] > begin for other in told):
                self.models.remove(record)  # it hands on the message of another model, as a router does
                return
        told.append(record)
        self._history.add_reported(message)
        self._counted.add(message, record.node, is_reported=True)
        self._note_provider_calls(message, record)
        if model.calls:
            asked = self._ask(message, model.calls, record, is_reported=True)
            for call in asked:
                call.is_expected = model.unanswered_tool not in ("", call.name)

    def _node_started(self, record: Record) -> None:
        """Read the input of a root or a node: older messages, calls that wait for its tools, and what is new.

        The input of a nested graph is not taken for older than the run: a node may have made it just now.
        """
        self._is_state = record.is_node
        scope = record.scope
        if record.is_top:
            self._top, record.continues_thread = record, record.continues_thread or not record.has_input
        if record.is_top and not self._history.has_own:
            nameless, given = self._tree.nameless, [item for each in record.input_messages for item in each.items]
            may_replace = bool(self._tree.thread_ids) and any(
                id_of(each) and id(each) not in nameless for each in given
            )
            passed_over = self._history.add_input(record.input_messages, self._tree.question, may_replace=may_replace)
        else:
            is_of_root = scope is not None and scope.is_root
            unknown: Any = "old" if is_of_root else "elsewhere"
            readings = [self._history.read(messages, unknown) for messages in record.input_messages if messages.items]
            passed_over = [reading.passed_over for reading in readings]
            self._take_in(readings, record)
        for messages in passed_over:
            message, answers = last_of_model(messages)
            if (waiting := unanswered_calls(messages)) is not None:
                self._ask_or_update(waiting[0], waiting[1], record)
            elif (
                message is not None
                and self._tree.resumes is not None
                and self.calls.of_message(key_of(message), record)
            ):
                self._take_in([Reading([NewMessage(answer, is_reported=False) for answer in answers], message)], record)
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
        self._is_state = record.is_top and (record.is_graph or record.is_graph_run)
        scope = record.scope
        if record.is_node and scope is not None and scope.is_root and (scope.continues_thread or scope.is_block):
            self._given_fields.update(answer_fields(record.output))
        readings = [self._history.read(messages) for messages in record.output_messages]
        is_unparsed = False
        if any(len(reading.new) > 1 for reading in readings):
            is_of_agent, response = is_from_agent(record), structured_response(record.output)
            is_unparsed = is_of_agent and response is None
            for reading in readings:
                new = [each.message for each in reading.new]
                self.schemas |= set(schema_names(new, response, is_of_model_node=is_of_agent))
        self._take_in(readings, record, is_unparsed=is_unparsed)

    def _top_ended(self, record: Record) -> None:
        output = record.output
        if isinstance(output, LLMResult):
            message = generated_message(output)
            if message is not None:
                self.answer = None if message.tool_calls else answer_text(message)
            elif output.generations and output.generations[0]:
                self.answer = output.generations[0][0].text
            return
        if record.kind != "chain":
            return
        if record.continues_thread:
            self._history.add_history(record.output_messages, None, is_graph=record.is_graph)
        self._node_ended(record)
        self._find_answer(record, output)
        self.ends += self._history.add_end(record.output_messages)

    def _take_in(self, readings: Iterable[Reading], record: Record, *, is_unparsed: bool = False) -> None:
        """Take calls, answers and model calls from new messages; ``is_unparsed``: no structured output parsed."""
        for reading in readings:
            if not (reading.new or reading.removed or isinstance(reading.before, AIMessage)):
                continue
            asking = reading.before if isinstance(reading.before, AIMessage) else None
            calls = [] if asking is None else self._seen_calls(asking, record)
            if asking is not None and asking.tool_calls and not calls and self._history.is_old(asking):
                calls = self._ask_again(asking, reading.new, record)
            for message_id in reading.removed:
                self._withdraw(self.calls.of_message(message_id, record))
            for message, is_reported, is_edited in self._without_superseded(reading.new, record):
                if isinstance(message, AIMessage):
                    asking = message
                    is_known = is_reported or is_edited
                    calls = self._seen_calls(message, record) if is_known else self._unreported(message, record)
                    continue
                answered = [call for call in calls if call.call_id == message.tool_call_id]
                asked_ids = [] if asking is None else [call["id"] for call in asking.tool_calls]
                if message.tool_call_id not in asked_ids and record.scope is not None:
                    answered = self.calls.answered_by(message.tool_call_id, record.scope)
                self._note_answer(message, answered, record, is_unparsed=is_unparsed)

    def _without_superseded(self, messages: Sequence[NewMessage], record: Record) -> Sequence[NewMessage]:
        """Leave out tool messages whose call, of the same model's message, is answered once more later."""
        if len(messages) < 2:
            return messages
        kept: list[NewMessage] = []
        left: Counter[str] = Counter()
        for place in range(len(messages) - 1, -1, -1):
            message = messages[place].message
            if isinstance(message, AIMessage):
                left.clear()
            else:
                call_id = message.tool_call_id
                left[call_id] += 1
                if left[call_id] > 1 and left[call_id] > self._sharing(messages[:place], call_id, record):
                    continue
            kept.append(messages[place])
        kept.reverse()
        return kept

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
            read, order = self._tree.as_read(message), (*self.branches[record], self._rank(), 0)
            answer = Answer(read, calls, record.outer, self._event, key_of(message), order, self._model_count)
            answer.is_from_cache, answer.is_unparsed = self._is_from_cache(), is_unparsed
            self.log.append(answer)

    def _ask(
        self,
        message: AIMessage | None,
        tool_calls: Sequence[ToolCall],
        record: Record,
        *,
        is_reported: bool = False,
        is_expected: bool = False,
        places: Sequence[int] | None = None,
    ) -> list[AskedCall]:
        """Note and return the calls of a message."""
        scope = record.scope
        if scope is None:
            return []
        rank, branch = self._rank(), self.branches.get(record, ())
        asked: list[AskedCall] = []
        for number, call in enumerate(tool_calls):
            place = number if places is None else places[number]
            made = AskedCall(
                None if message is None else key_of(message),
                None if message is None else message.id,
                call["id"],
                call["name"],
                call["args"],
                place,
                scope,
                record.outer,
                (*branch, rank, place),
                self._event,
                self._at,
                is_reported,
                is_expected or is_reported,
            )
            self.log.append(self.calls.add(made))
            asked.append(made)
        return asked

    def _ask_or_update(self, message: AIMessage, tool_calls: Sequence[ToolCall], record: Record) -> list[AskedCall]:
        """Note the calls of a message that was there before."""
        found = self._seen_calls(message, record)
        left = list(found)
        for place, call in enumerate(tool_calls):
            same = next((each for each in left if each.call_id == call["id"]), None)
            if same is not None:
                left.remove(same)
            elif message.id is None and (copied := self.calls.copied(call, is_made=True, in_state=True)) is not None:
                found.append(copied)
            else:
                found += self._ask(message, [call], record, places=[place])
        return found

    def _seen_calls(self, message: AIMessage, record: Record) -> list[AskedCall]:
        """Return the calls of a known message, as it is now: an edited one has the same ids.

        Those that the agent has removed from it need no step.
        """
        known = self.calls.of_message(key_of(message), record)
        found: list[AskedCall] = []
        for call in message.tool_calls:
            same = next((each for each in known if each.call_id == call["id"] and each not in found), None)
            if same is None:
                continue
            same.is_seen = True
            if (same.name, same.args) != (call["name"], call["args"]):
                same.name, same.args, same.has_kept_args = call["name"], call["args"], False
            if same.asked < 0 and record.scope is not None:
                same.scope = record.scope
            found.append(same)
        self._withdraw([call for call in known if call not in found])
        return found

    def _withdraw(self, calls: Iterable[AskedCall]) -> None:
        for call in calls:
            self.log.append(Withdrawn(call))

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

    def _unreported(self, message: AIMessage, record: Record) -> list[AskedCall]:
        """Note a model's message that no callback told of in this form, and return its calls."""
        if is_handoff_message(message):
            return []
        is_models = is_generated(message)
        is_from_cache = self._is_from_cache()
        if not self._counted.has(message, record.node):
            if message.id in self._reported_ids:
                self.cached_models += is_from_cache and self._tree.resumes is None
            else:
                self._note_provider_calls(message, record)
                if is_models:
                    self._counted.add(message, record.node, is_reported=False)
                    if is_from_cache:
                        self.cached_models += 1
                    else:
                        self._add_unheard_call(message, record)
        copied = [
            self.calls.copied(call, is_made=not is_models, in_state=self._is_state) for call in message.tool_calls
        ]
        places = [place for place, call in enumerate(copied) if call is None]
        unheard = [message.tool_calls[place] for place in places]
        calls = [call for call in copied if call is not None]
        if unheard:
            calls += self._ask(message, unheard, record, is_expected=True, places=places)
        self.calls.note_copy(key_of(message), calls)
        return calls

    def _is_from_cache(self) -> bool:
        """Return whether what is new comes from langgraph's cache: it is in a state, and no node gave it.

        In a resumed run it may also be from before the pause.
        """
        return self._is_state and self._top is not None and self._top.has_input

    def _add_unheard_call(self, message: AIMessage, record: Record) -> None:
        """Note a model call of which only its message tells."""
        result = message_result(message)
        call = model_call(result)
        problems = answer_problems(result, call.get("finish_reason"), self._tree.options, self.warnings)
        counted = CountedCall(call, problems=problems)
        counted.is_from_elsewhere = message.id is not None and id(message) not in self._tree.nameless
        if self._kept is not None:
            counted.output_message = self._kept.index(message)
        self.outer_of.append((counted, record.outer))
        self.models.append(counted)

    def _note_provider_calls(self, message: AIMessage, record: Record) -> None:
        for _ in range(self.provider.read(message)):
            self.provider_places.append((record, (*self.branches.get(record, ()), self._rank(), 0), self._at))

    def _find_answer(self, record: Record, output: Any) -> None:
        may_be_older = record.continues_thread and record.is_graph
        answer = answer_in(
            output, self._history.is_old, is_given=lambda name: not may_be_older or name in self._given_fields
        )
        is_state = record.is_graph if record.has_nodes is None else record.has_nodes
        if answer is None and not is_state:
            answer = whole_answer(output)
        if self._tree.is_paused:
            self.draft = answer
        elif answer is not None or (isinstance(output, AIMessage) and output.tool_calls):
            self.answer = answer
        if answer is None and record.continues_thread:
            self.standing = answer_in(output)


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
