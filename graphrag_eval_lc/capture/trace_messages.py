"""What only a run's messages tell, and no callback: tool calls, their answers, and model calls."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graphrag_eval_lc.capture.answer_problems import answer_problems
from graphrag_eval_lc.capture.calls_without_tools import (
    is_from_agent,
    provider_calls,
    says_unparsed,
    schema_names,
    structured_response,
)
from graphrag_eval_lc.capture.kept_messages import KeptMessages
from graphrag_eval_lc.capture.llm_calls import OpenModelCall, finish_reason, is_generated, message_result
from graphrag_eval_lc.capture.messages import is_handoff_message, message_lists, tool_calls_in, unanswered_calls
from graphrag_eval_lc.capture.outputs import Outcome, message_outcome
from graphrag_eval_lc.capture.redaction import CaptureOptions, kept_outcome
from graphrag_eval_lc.capture.seen_messages import CountedMessages, NewMessage, Reading, SeenMessages
from graphrag_eval_lc.capture.steps import AskedCall, CallsOfMessage, Step, Steps


class TraceMessages:
    """Reads each message in the prompts, inputs and outputs of one run once.

    Steps, model calls and warnings that only messages tell are added to those of the run. In its methods ``scope`` is
    the graph run around a node, and ``parent`` the step inside which that runs.

    Attributes:
        seen: The messages that were read.
    """

    def __init__(
        self,
        steps: Steps,
        model_calls: list[OpenModelCall],
        warnings: dict[str, None],
        options: CaptureOptions,
        kept: KeptMessages | None,
        told_ids: set[str],
        ends: set[str],
    ) -> None:
        self._steps = steps
        self._calls = steps.calls
        self._model_calls = model_calls
        self._warnings = warnings
        self._options = options
        self._kept = kept
        self._told_ids = told_ids
        self._counted = CountedMessages()
        self._schemas: set[str] = set()
        self.seen = SeenMessages(ends)

    def model_started(self, prompt: Sequence[BaseMessage], parent: Step | None) -> None:
        """Read a model's prompt for answers to tool calls.

        A hand-written loop calls plain functions, whose results may stand nowhere else. What stands before the user's
        last message in the first prompt is older than the run.
        """
        if self._calls.waiting:
            for asked, message in self._calls.answers_in(prompt):
                self._answer(asked, message, parent)
        elif not self._model_calls:
            self.seen.add_prompt(prompt)

    def model_answered(
        self, call: OpenModelCall, message: AIMessage, scope: UUID, parent: Step | None, node_id: UUID
    ) -> None:
        """Note the message of a model call; a call that hands on another model's message is not counted."""
        if message.id in self._told_ids and call.passes_on(message, self._model_calls):
            self._model_calls.remove(call)
            return
        call.message_id = message.id
        self.seen.add_told(message)
        self._counted.add(message, node_id, is_told=True)
        if message.id is not None:
            self._told_ids.add(message.id)
        self._add_provider_steps(message, parent)
        if message.tool_calls:
            asked = self._calls.ask(message.id, message.tool_calls, scope, parent, is_told=True, is_expected=True)
            for each in asked.values():
                each.is_expected = call.unanswered_tool not in ("", each.name)

    def node_started(self, inputs: Any, scope: UUID, parent: Step | None, node_id: UUID, question: str | None) -> None:
        """Read the input of the root or a node: older messages, calls that wait for its tools, and what is new.

        The input of a nested graph is not taken for older than the run: a node may have made it just now.
        """
        root_id = self._steps.root_id
        if node_id == root_id and not self.seen.has_own:
            passed_over = self.seen.add_input(inputs, question)
        else:
            readings = self.seen.read(inputs, unknown="old" if scope == root_id else "elsewhere")
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
        """Read a node's output for calls without a callback: they never ran, or ran out of sight."""
        readings = self.seen.read(output)
        is_unparsed = False
        if readings and max([len(reading.new) for reading in readings]) > 1:  # a schema's call stands beside its answer
            response = structured_response(output)
            is_of_model_node = is_of_model_node and is_from_agent(output)
            is_unparsed = is_of_model_node and response is None
            for reading in readings:
                messages = [each.message for each in reading.new]
                self._schemas |= set(schema_names(messages, response, is_of_model_node=is_of_model_node))
        self._take_in(readings, scope, parent, node_id, is_unparsed=is_unparsed)

    def graph_goes_on(self, state: Any, inputs: Any, *, is_start: bool = False) -> None:
        """Note as old what a graph inside this run finds on its own thread; ``state`` is at its start or its end."""
        self.seen.add_history(state, list(message_lists(inputs)), is_start=is_start)

    def chain_ended(self, output: Any, scope: UUID, parent: Step | None) -> None:
        """Read the tool messages that a function which is no node returns, such as a ``@task``, where calls wait."""
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
        """Take calls, answers and model calls from new messages; ``is_unparsed``: no structured output parsed."""
        for reading in readings:
            asking = reading.before if isinstance(reading.before, AIMessage) else None
            calls: CallsOfMessage = {} if asking is None else self._calls.meet(asking)
            if asking is not None and asking.tool_calls and not calls and self.seen.is_old(asking):
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
        """Note the calls of an earlier run's message that this run answers out of sight, as a deployed graph does."""
        answers = takewhile(lambda message: isinstance(message, ToolMessage), (each.message for each in new))
        answered = {message.tool_call_id for message in answers if isinstance(message, ToolMessage)}
        left = [call for call in asking.tool_calls if call["id"] in answered]
        left = [call for call in left if not self._calls.is_known(call["id"], scope, parent)]
        return self._calls.ask(asking.id, left, scope, parent) if left else {}

    def _unheard(self, message: AIMessage, scope: UUID, parent: Step | None, node_id: UUID) -> CallsOfMessage:
        """Note a model's message that no callback told of in this form, and return its calls."""
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
        """Note a model call of which only its message tells."""
        result = message_result(message)
        call = OpenModelCall(None, None, finish_reason=finish_reason(result), parent=parent)
        call.end(result)
        call.is_from_elsewhere = message.id is not None
        warnings: list[str] = []
        call.problems = answer_problems(result, call.finish_reason, self._options, warnings)
        if self._kept is not None:
            call.output_message = self._kept.place(message, warnings)
        self._warnings.update(dict.fromkeys(warnings))
        self._model_calls.append(call)

    def _add_provider_steps(self, message: AIMessage, parent: Step | None) -> None:
        """Note the calls of the provider's own tools in a model's message; they have ended already."""
        steps = self._steps
        for place, call in enumerate(provider_calls(message)):
            order = self._calls.next_order(place)
            args = steps.kept_args(call.name, call.args)
            step = Step(call.name, args, steps.root_id, parent, order, call_id=call.call_id, started=None)
            steps.settle(step, kept_outcome(Outcome(call.status, call.text), self._options, call.name))
            steps.add(step)

    def _answer(
        self, call: AskedCall | None, message: ToolMessage, parent: Step | None, *, is_unparsed: bool = False
    ) -> None:
        """Settle a call with the tool message that answers it; a schema's call is no step."""
        if call is None:
            return
        steps = self._steps
        if call.name in self._schemas:
            if not call.is_settled and (is_unparsed or says_unparsed(message)):
                steps.unparsed.append((call.name, call.call_id))
            self._calls.settle(call)
            return
        outcome = message_outcome(message)
        if call.is_settled:
            if call.step is not None and call.step.is_from_message:  # of several that answer a call the last counts
                steps.settle(call.step, kept_outcome(outcome, self._options, call.name))
            return
        step = self._step_without_call(message, hash(outcome.text), parent)
        if step is not None:
            steps.link(step, call)
        else:
            args = steps.kept_args(call.name, call.args)
            step = Step(call.name, args, steps.root_id, call.parent, call.order, started=None, is_from_message=True)
            step.started_at = call.asked_at
            steps.settle(step, kept_outcome(outcome, self._options, call.name))
            steps.add(step, call)

    def _step_without_call(self, message: ToolMessage, text_hash: int, parent: Step | None) -> Step | None:
        """Return the step of a tool that a node ran by hand with other arguments than the model asked for."""
        for step in reversed(self._steps.taken):
            is_loose = step.call is None and step.call_id is None and step.status != "open"
            if is_loose and step.parent is parent and step.text_hash == text_hash and message.name in (None, step.name):
                return step
        return None


def _without_superseded(messages: Sequence[NewMessage]) -> Sequence[NewMessage]:
    """Leave out tool messages whose call, of the same model's message, is answered once more later."""
    if len(messages) < 2:
        return messages
    kept: list[NewMessage] = []
    answered: set[str] = set()
    for each in reversed(messages):
        if isinstance(each.message, AIMessage):
            answered.clear()
        elif each.message.tool_call_id in answered:
            continue
        else:
            answered.add(each.message.tool_call_id)
        kept.append(each)
    kept.reverse()
    return kept
