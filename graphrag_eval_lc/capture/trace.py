"""What is known of one root run: its steps, model calls, answer and end."""

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from itertools import takewhile
from time import perf_counter, time
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.answer_problems import answer_problems
from graphrag_eval_lc.capture.calls_without_tools import (
    is_class_name,
    is_from_agent,
    provider_calls,
    says_unparsed,
    schema_names,
    structured_response,
)
from graphrag_eval_lc.capture.kept_messages import KeptMessages, Noted, places
from graphrag_eval_lc.capture.llm_calls import (
    OpenModelCall,
    finish_reason,
    generated_message,
    is_cache_hit,
    is_generated,
    message_result,
    model_usage,
    result_model_name,
)
from graphrag_eval_lc.capture.messages import (
    answer_fields,
    answer_in,
    answer_text,
    is_handoff_message,
    is_interrupted,
    message_lists,
    tool_calls_in,
    unanswered_calls,
    whole_answer,
)
from graphrag_eval_lc.capture.outputs import Outcome, is_command, message_outcome, to_plain
from graphrag_eval_lc.capture.redaction import CaptureOptions, KeptOutcome, kept_args, kept_outcome
from graphrag_eval_lc.capture.seen_messages import CountedMessages, NewMessage, Reading, SeenMessages
from graphrag_eval_lc.capture.steps import AskedCall, AskedCalls, CallsOfMessage, Order, Step
from graphrag_eval_lc.capture.trace_messages import _without_superseded
from graphrag_eval_lc.records import ModelCall
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.texts import listed

_NO_NAMES: frozenset[str] = frozenset()


class Trace:
    """The state of one root run. It is changed under its handler's lock, and no more once it has ended.

    Args:
        root_id: The run id of the root.
        question_id: The metadata ``question_id`` of the root.
        options: What is kept of its steps.
        told_ids: The ids of all messages that models' callbacks told the handler of, in any of its runs.
        ends: The ids of the messages with which any of its runs ended.

    Attributes:
        answer: The answer; none while the run waits for somebody.
        draft: What would be the answer of a run that waits.
        standing: What would be the answer of a run that goes on with a thread, wherever it stood before.
        goes_on: Whether it goes on with a thread that was there before.
        is_graph: Whether it is a graph, whose nodes tell of what they give.
    """

    __slots__ = (
        "_calls",
        "_counted",
        "_elapsed_sec",
        "_given_fields",
        "_options",
        "_schemas",
        "_seen",
        "_started",
        "_told_ids",
        "answer",
        "draft",
        "error",
        "goes_on",
        "has_begun",
        "has_ended",
        "is_forgotten",
        "is_graph",
        "is_paused",
        "kept",
        "metadata",
        "model_calls",
        "question",
        "question_id",
        "resumes",
        "root_id",
        "run_ids",
        "standing",
        "started_at",
        "steps",
        "tags",
        "thread_ids",
        "unanswered",
        "unparsed",
        "warnings",
    )

    def __init__(
        self,
        root_id: UUID,
        question_id: str | None,
        options: CaptureOptions,
        told_ids: set[str] | None = None,
        ends: set[str] | None = None,
    ) -> None:
        self._options = options
        self._told_ids: set[str] = set() if told_ids is None else told_ids
        self.root_id = root_id
        self.question_id = question_id
        self.steps: list[Step] = []
        self.model_calls: list[OpenModelCall] = []
        self.warnings: dict[str, None] = {}
        self.question: str | None = None
        self.answer: str | None = None
        self.draft: str | None = None
        self.standing: str | None = None
        self.goes_on = False
        self.is_graph = False
        self.error: str | None = None
        self.unanswered: Sequence[tuple[str, str | None]] = ()
        self.unparsed: Sequence[tuple[str, str | None]] = ()
        self.is_paused = False
        self.has_ended = False
        self.is_forgotten = False
        self.has_begun = True  # a block has, once something runs in it
        self.thread_ids = _NO_NAMES
        self.resumes: Trace | None = None  # the paused run that this one goes on with
        self.run_ids: list[UUID] = []  # by which LangChain knows the root, or the runs of a block
        self.started_at = time()
        self.tags: list[str] = []
        self.metadata: dict[str, Any] = {}
        self.kept = KeptMessages(options) if options.keep_messages else None
        self._started = perf_counter()
        self._elapsed_sec: float | None = None
        self._calls = AskedCalls()
        self._seen = SeenMessages(ends)
        self._counted = CountedMessages()
        self._schemas = _NO_NAMES
        self._given_fields = _NO_NAMES

    @property
    def elapsed_sec(self) -> float:
        """Seconds from the start to the end, or to now."""
        return perf_counter() - self._started if self._elapsed_sec is None else self._elapsed_sec

    @property
    def branch(self) -> Order:
        """Where the event that is being recorded belongs among parallel branches."""
        return self._calls.branch

    @branch.setter
    def branch(self, branch: Order) -> None:
        self._calls.branch = branch

    def next_rank(self) -> int:
        """Return the next number in the order of the run."""
        return self._calls.next_rank()

    def snapshot(self) -> "Trace":
        """Return a copy for a copy of the handler, which no event reaches: where it has not ended, it never will."""
        copied = copy(self)
        copied._elapsed_sec = self.elapsed_sec
        copied._calls, copied._seen, copied._counted = AskedCalls(), SeenMessages(), CountedMessages()
        copied.warnings = dict(self.warnings)
        copied.run_ids = list(self.run_ids)
        copied.kept = None if self.kept is None else self.kept.snapshot()
        copied.model_calls = [copy(call) for call in self.model_calls]
        steps: dict[Step | None, Step] = {step: copy(step) for step in self.steps}
        for step in steps.values():
            step.parent = steps.get(step.parent)
            if step.call is not None:
                step.call = replace(step.call, args=None, parent=None, step=None)
        for model_call in copied.model_calls:
            model_call.parent = steps.get(model_call.parent)
        copied.steps = list(steps.values())
        return copied

    def is_resumed_by(self, other: "Trace") -> bool:
        """Return whether another run, which resumes one, can be meant for this one: by its threads and question."""
        if self.question_id is not None and other.question_id not in (None, self.question_id):
            return False
        if self.thread_ids and other.thread_ids:
            return not self.thread_ids.isdisjoint(other.thread_ids)
        return self.question_id == other.question_id

    def start_earlier(self, seconds: float) -> None:
        """Move the start back: the run had begun before it was known."""
        self._started -= seconds
        self.started_at -= seconds

    def warn(self, *warnings: str) -> None:
        """Note what is to be warned of, each text once."""
        self.warnings.update(dict.fromkeys(warnings))

    def tool_started(
        self,
        run_id: UUID,
        name: str,
        args: dict[str, Any],
        kept: dict[str, Any],
        call_id: str | None,
        scope: UUID,
        parent: Step | None,
    ) -> Step:
        """Return the step of a tool that starts: a new one, or that of an earlier attempt.

        Args:
            run_id: The run of the tool.
            name: The tool's name.
            args: Its arguments, by which the model's call is found.
            kept: What is kept of them.
            call_id: The provider's id of the call, where the tool was told.
            scope: The graph run around it.
            parent: The step inside which it runs.
        """
        call = (
            self._calls.call_to_run(call_id, args, scope, parent)
            if call_id is not None
            else self._calls.call_like(name, args, scope)
        )
        if call is None and call_id is not None:
            self._calls.ask(None, [{"name": name, "args": args, "id": call_id, "type": "tool_call"}], scope, parent)
            call = self._calls.call_to_run(call_id, args, scope, parent)
        if call is not None and call.step is not None:
            call.step.start_again(run_id, kept)
            return call.step
        return self._new_step(Step(name, kept, run_id, parent, self._calls.next_order(), call_id=call_id), call)

    def retriever_started(self, run_id: UUID, name: str, args: dict[str, Any], parent: Step | None) -> Step:
        """Return the step of a retriever that runs outside of tools."""
        return self._new_step(Step(name, args, run_id, parent, self._calls.next_order()), None)

    def _new_step(self, step: Step, call: AskedCall | None) -> Step:
        if call is not None:
            self._link(step, call)
        self.steps.append(step)
        return step

    def _link(self, step: Step, call: AskedCall) -> None:
        step.call, step.order = call, call.order
        call.step = step
        self._calls.settle(call)

    def step_ended(self, step: Step, run_id: UUID, kept: KeptOutcome, call_id: str | None, scope: UUID) -> None:
        """Settle a step; the end of an attempt that was given up counts no more.

        Args:
            step: The step.
            run_id: The run that ended.
            kept: What is kept of its end.
            call_id: The call that the tool's message answers, for steps that started without one.
            scope: The graph run around it.
        """
        if self.has_ended or step.run_id != run_id:
            return
        self._settle(step, kept)
        self.is_paused = self.is_paused or kept.status == "pending"
        if step.call is None and call_id:
            step.call_id = call_id
            call = self._calls.call_answered(call_id, scope)
            if call is not None and not call.is_settled:
                self._link(step, call)

    def _settle(self, step: Step, kept: KeptOutcome) -> None:
        step.end(kept)
        if kept.warnings:
            self.warn(*kept.warnings)

    def _kept_args(self, name: str, args: Any) -> dict[str, Any]:
        warnings: list[str] = []
        kept = kept_args(to_plain(args), self._options, name, warnings)
        self.warn(*warnings)
        return kept

    def model_started(
        self,
        model: str | None,
        prompt: Sequence[BaseMessage],
        parent: Step | None,
        *,
        unanswered_tool: str | None = None,
    ) -> OpenModelCall:
        """Return the record of a model call that starts, and read its prompt for what answers earlier calls.

        A loop that people write themselves calls plain functions, and may show their results to nobody but the model.
        What stands before the user's last message in the first prompt is older than the run.
        """
        if self._calls.waiting:
            for asked, message in self._calls.answers_in(prompt):
                self._answer(asked, message, parent)
        elif not self.model_calls:
            self._seen.add_prompt(prompt)
        call = OpenModelCall(model, perf_counter(), unanswered_tool, started_at=time(), parent=parent)
        self.model_calls.append(call)
        return call

    def model_ended(
        self, call: OpenModelCall, result: LLMResult, scope: UUID, parent: Step | None, node_id: UUID
    ) -> None:
        """Note what a model call cost and which tools its message asks for."""
        message = generated_message(result)
        call.is_cache_hit = is_cache_hit(message)
        call.record = self._model_record(call, result)
        if message is not None and message.id in self._told_ids and self._is_passed_on(call, message):
            self.model_calls.remove(call)
        elif message is not None:
            call.message_id = message.id
            self._seen.add_told(message)
            self._counted.add(message, node_id, is_told=True)
            if message.id is not None:
                self._told_ids.add(message.id)
            self._add_provider_steps(message, parent)
            if message.tool_calls:
                asked = self._calls.ask(message.id, message.tool_calls, scope, parent, is_told=True, is_expected=True)
                for each in asked.values():
                    each.is_expected = call.unanswered_tool not in ("", each.name)

    def _is_passed_on(self, call: OpenModelCall, message: AIMessage) -> bool:
        """Return whether a model hands on what another one answered that it called, such as a router of models."""
        return not call.is_cache_hit and any(
            other.message_id == message.id and other.started is not None and other.started >= (call.started or 0)
            for other in self.model_calls
            if other is not call
        )

    def model_failed(self, call: OpenModelCall, error: str, result: Any) -> None:
        """Note a model call that failed, with the tokens that were reported until then."""
        call.record = self._model_record(call, result if isinstance(result, LLMResult) else LLMResult(generations=[]))
        call.record["error"] = error

    def keep_output(self, call: OpenModelCall, output: Iterable[int | Noted]) -> None:
        """Keep what a model call gave, where that is wanted."""
        if self.kept is not None:
            call.output_message = next(iter(places(self.kept.messages, output)), None)

    @staticmethod
    def _model_record(call: OpenModelCall, result: LLMResult) -> ModelCall:
        model = result_model_name(result) or call.model
        record: ModelCall = {"model": model} if model else {}
        record.update(model_usage(result))
        if call.finish_reason is not None:
            record["finish_reason"] = call.finish_reason
        if call.started is not None:
            record[ELAPSED_SEC] = perf_counter() - call.started
        return record

    def node_started(self, inputs: Any, scope: UUID, parent: Step | None, node_id: UUID) -> None:
        """Note what the root or a node is given: older messages, calls that wait for its tools, and what is new.

        What only a nested graph is given is not taken for older than the run: a node may have made it just now.
        """
        is_root = node_id == self.root_id
        if is_root:
            self.goes_on, self.is_graph = inputs is None or is_command(inputs), False
        if is_root and not self._seen.has_own:
            passed_over = self._seen.add_input(inputs, self.question)
        else:
            readings = self._seen.read(inputs, unknown="old" if scope == self.root_id else "elsewhere")
            passed_over = [reading.passed_over for reading in readings]
            self._take_in(readings, scope, parent, node_id)
        for messages in passed_over:
            if (waiting := unanswered_calls(messages)) is not None:
                self._calls.ask(waiting[0].id, waiting[1], scope, parent)
        calls = tool_calls_in(inputs)
        loose_calls = [call for call in calls if not self._calls.is_known(call["id"], scope, parent)]
        if loose_calls:
            self._calls.ask(None, loose_calls, scope, parent)

    def node_ended(
        self, output: Any, scope: UUID, parent: Step | None, node_id: UUID, *, is_of_model_node: bool = False
    ) -> None:
        """Read a node's output for calls that no callback told of: they never ran, or ran out of sight."""
        if node_id != self.root_id:
            self.node_gave(output, scope)
        readings = self._seen.read(output)
        is_unparsed = False
        if readings and max([len(reading.new) for reading in readings]) > 1:  # a schema's call stands beside its answer
            response = structured_response(output)
            is_of_model_node = is_of_model_node and is_from_agent(output)
            is_unparsed = is_of_model_node and response is None
            for reading in readings:
                messages = [each.message for each in reading.new]
                self._schemas |= set(schema_names(messages, response, is_of_model_node=is_of_model_node))
        self._take_in(readings, scope, parent, node_id, is_unparsed=is_unparsed)

    def node_gave(self, output: Any, scope: UUID) -> None:
        """Note which fields for answers a node of the root sets; the thread may have them from before."""
        if self.goes_on and scope == self.root_id:
            self._given_fields |= set(answer_fields(output))

    def graph_goes_on(self, state: Any, inputs: Any, *, is_start: bool = False) -> None:
        """Note what a graph finds that goes on with a thread of its own, inside of this run.

        Args:
            state: What its first node is given, or its output.
            inputs: What the graph was given.
            is_start: Whether it starts.
        """
        self._seen.add_history(state, list(message_lists(inputs)), is_start=is_start)

    def chain_ended(self, output: Any, scope: UUID, parent: Step | None) -> None:
        """Read tool messages that a function gives which is no node, such as a ``@task``, where calls wait for them."""
        if self._calls.waiting:
            for message in output if isinstance(output, (list, tuple)) else (output,):
                if isinstance(message, ToolMessage):
                    self._answer(self._calls.call_answered(message.tool_call_id, scope), message, parent)

    def message_parsed(self, message: Any) -> None:
        """Note that a parser takes the calls of a message for its result: no tool needs to answer them."""
        if isinstance(message, AIMessage):
            for call in self._calls.meet(message).values():
                call.is_expected = False

    def _take_in(
        self, readings: Iterable[Reading], scope: UUID, parent: Step | None, node_id: UUID, *, is_unparsed: bool = False
    ) -> None:
        """Take calls, answers and model calls from messages that are new.

        ``is_unparsed`` tells that no structured output among them parsed.
        """
        for reading in readings:
            asking = reading.before if isinstance(reading.before, AIMessage) else None
            calls: CallsOfMessage = {} if asking is None else self._calls.meet(asking)
            if asking is not None and asking.tool_calls and not calls and self._seen.is_old(asking):
                calls = self._ask_again(asking, reading.new, scope, parent)
            for message_id in reading.removed:
                self._calls.withdraw(message_id)
            for message, is_told in _without_superseded(reading.new):
                if isinstance(message, AIMessage):
                    asking = message
                    calls = self._calls.meet(message) if is_told else self._unheard(message, scope, parent, node_id)
                elif asking is not None and any(call["id"] == message.tool_call_id for call in asking.tool_calls):
                    self._answer(calls.get(message.tool_call_id), message, parent, is_unparsed=is_unparsed)
                else:
                    call = self._calls.call_answered(message.tool_call_id, scope)
                    self._answer(call, message, parent, is_unparsed=is_unparsed)

    def _ask_again(
        self, asking: AIMessage, new: Iterable[NewMessage], scope: UUID, parent: Step | None
    ) -> CallsOfMessage:
        """Note the calls of an earlier run's message that this one answers out of sight, as a deployed graph does."""
        answers = takewhile(lambda message: isinstance(message, ToolMessage), (each.message for each in new))
        answered = {message.tool_call_id for message in answers if isinstance(message, ToolMessage)}
        left = [call for call in asking.tool_calls if call["id"] in answered]
        left = [call for call in left if not self._calls.is_known(call["id"], scope, parent)]
        return self._calls.ask(asking.id, left, scope, parent) if left else {}

    def _unheard(self, message: AIMessage, scope: UUID, parent: Step | None, node_id: UUID) -> CallsOfMessage:
        """Note a model's message that no callback told of, or not as this one, and give its calls."""
        if is_handoff_message(message):
            return {}
        is_models = is_generated(message)
        if message.id not in self._told_ids and not self._counted.has(message, node_id):
            self._add_provider_steps(message, parent)
            if is_models:
                self._counted.add(message, node_id, is_told=False)
                self._add_unheard_call(message, parent)
        return self._calls.ask_unheard(message, scope, parent, is_generated=is_models)

    def _add_unheard_call(self, message: AIMessage, parent: Step | None) -> None:
        """Note the model call of which nothing tells but its message."""
        result = message_result(message)
        call = OpenModelCall(None, None, is_cache_hit=is_cache_hit(message), finish_reason=finish_reason(result))
        call.record = self._model_record(call, result)
        call.is_from_elsewhere = message.id is not None
        call.parent = parent
        warnings: list[str] = []
        call.problems = answer_problems(result, call.finish_reason, self._options, warnings)
        if self.kept is not None:
            call.output_message = self.kept.place(message, warnings)
        self.warn(*warnings)
        self.model_calls.append(call)

    def _add_provider_steps(self, message: AIMessage, parent: Step | None) -> None:
        """Note the calls of the provider's own tools in a model's message, which have ended already."""
        for place, call in enumerate(provider_calls(message)):
            order = self._calls.next_order(place)
            args = self._kept_args(call.name, call.args)
            step = Step(call.name, args, self.root_id, parent, order, call_id=call.call_id, started=None)
            self._settle(step, kept_outcome(Outcome(call.status, call.text), self._options, call.name))
            self.steps.append(step)

    def _answer(
        self, call: AskedCall | None, message: ToolMessage, parent: Step | None, *, is_unparsed: bool = False
    ) -> None:
        """Settle a call with the tool message that answers it; that of a schema is no step."""
        if call is None:
            return
        if call.name in self._schemas:
            if not call.is_settled and (is_unparsed or says_unparsed(message)):
                self.unparsed = (*self.unparsed, (call.name, call.call_id))
            self._calls.settle(call)
            return
        outcome = message_outcome(message)
        if call.is_settled:
            if call.step is not None and call.step.is_from_message:  # of several that answer a call the last counts
                self._settle(call.step, kept_outcome(outcome, self._options, call.name))
            return
        step = self._step_without_call(message, hash(outcome.text), parent)
        if step is not None:
            self._link(step, call)
        else:
            args = self._kept_args(call.name, call.args)
            step = Step(call.name, args, self.root_id, call.parent, call.order, started=None, is_from_message=True)
            step.started_at = call.asked_at
            self._settle(step, kept_outcome(outcome, self._options, call.name))
            self._new_step(step, call)

    def _step_without_call(self, message: ToolMessage, text_hash: int, parent: Step | None) -> Step | None:
        """Return the step of a tool that a node ran by hand with other arguments than the model asked for."""
        for step in reversed(self.steps):
            is_loose = step.call is None and step.call_id is None and step.status != "open"
            if is_loose and step.parent is parent and step.text_hash == text_hash and message.name in (None, step.name):
                return step
        return None

    def root_ended(self, output: Any, *, is_state: bool | None = None) -> None:
        """Close the record with the root's output."""
        self.top_ended(output, is_state=is_state)
        message = generated_message(output) if isinstance(output, LLMResult) else output
        if isinstance(message, AIMessage) and message.tool_calls:
            self._leave_to_the_caller()
        self.close()

    def top_ended(self, output: Any, *, is_state: bool | None = None) -> None:
        """Take the answer from the output of the root, or of what a block calls: the last one counts.

        Args:
            output: What it gave.
            is_state: Whether that is the state of a graph, which is no answer as a whole; None where it may be.
        """
        self.error = None
        if isinstance(output, LLMResult):
            message = generated_message(output)
            if message is not None:
                self.answer = None if message.tool_calls else answer_text(message)
            elif output.generations and output.generations[0]:
                self.answer = output.generations[0][0].text
        else:
            self.is_paused = self.is_paused or is_interrupted(output)
            if self.goes_on:
                self._seen.add_history(output, None, is_graph=self.is_graph)
            self.node_ended(output, self.root_id, None, self.root_id)
            self._find_answer(output, is_state=is_state)
            self._seen.add_end(output)

    def _leave_to_the_caller(self) -> None:
        """Note that the run gives its caller a message with calls, which are none of its own to answer."""
        left = [call for call in self._calls.waiting if call.is_expected]
        for call in left:
            call.is_expected = False
        if left:
            names = listed([f"{call.name} ({call.call_id})" for call in left])
            self.warn(
                f"the run gives its caller a message that asks for tools: {names}; to record a loop around such calls "
                'as one response, put it into: with capture_run(question_id="...")'
            )

    def _find_answer(self, output: Any, *, is_state: bool | None) -> None:
        may_be_older = self.goes_on and self.is_graph
        answer = answer_in(
            output, self._seen.is_old, is_given=lambda field: not may_be_older or field in self._given_fields
        )
        if answer is None and not (self.is_graph if is_state is None else is_state):
            answer = whole_answer(output)
        if self.is_paused:
            self.draft = answer
        elif answer is not None or (isinstance(output, AIMessage) and output.tool_calls):
            self.answer = answer
        if answer is None and self.goes_on:
            self.standing = answer_in(output)

    def close(self, error: str | None = None) -> None:
        """End the record; steps and model calls that are still open are errors from now on.

        Args:
            error: Why the run failed, as it is kept.
        """
        if self.has_ended:
            return
        self.error = error
        self._elapsed_sec = perf_counter() - self._started
        unfinished = unfinished_text(error)
        for step in self.steps:
            if step.status == "open":
                step.end(KeptOutcome("error", unfinished))
                step.is_forced = True
            if step.call is not None:
                step.call.args = None  # only what was kept of them stays
        for call in self.model_calls:
            if call.record is None:
                self.model_failed(call, unfinished, None)
        self.has_ended = True
        if error is None and self._calls.waiting:
            self.unanswered = self._unanswered()
        self._calls.clear()  # no message is kept longer than its run
        self._seen.clear()
        self._counted.clear()
        if self.kept is not None:
            self.kept.close()

    def _unanswered(self) -> list[tuple[str, str | None]]:
        """Return name and id of the calls that were to be answered; a tool that ran with other arguments may be one."""
        ran = {step.name for step in self.steps}
        loose = Counter(step.name for step in self.steps if step.call is None)
        unanswered: list[tuple[str, str | None]] = []
        for call in self._calls.waiting:
            if loose[call.name] > 0:
                loose[call.name] -= 1
            elif call.is_expected and (call.name in ran or not self._is_read_by_its_node(call)):
                unanswered.append((call.name, call.call_id))
        return unanswered

    @staticmethod
    def _is_read_by_its_node(call: AskedCall) -> bool:
        """Return whether the code that asked the model took the arguments for its own use, as those of a schema.

        It is named as a class is, and no other model and no state was shown it.
        """
        return call.is_told and not call.is_met and not call.is_shown and is_class_name(call.name)


def unfinished_text(error: str | None) -> str:
    """Return the error of what had not ended when its run did."""
    return error or "Unfinished: the run ended before this call did"
