"""What is known of one root run: its steps, model calls, answer and end."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.calls import AskedCalls
from graphrag_eval_lc.capture.keeping import Ending, KeptEnding, kept_args, kept_ending, message_ending
from graphrag_eval_lc.capture.messages import (
    SeenMessages,
    answer_in,
    answer_text,
    has_structured_response,
    tool_calls_in,
    unanswered_calls,
)
from graphrag_eval_lc.capture.options import CaptureOptions
from graphrag_eval_lc.capture.outputs import json_value
from graphrag_eval_lc.capture.provider_tools import provider_calls
from graphrag_eval_lc.capture.steps import AskedCall, Step
from graphrag_eval_lc.capture.usage import generated_message, is_cache_hit, model_usage, result_model_name
from graphrag_eval_lc.records import ModelCall


@dataclass(slots=True, eq=False)
class OpenModelCall:
    """A model call, from its start on; ``record`` is None while it runs."""

    model: str | None
    started: float
    is_cache_hit: bool = False
    record: ModelCall | None = None


class RunRecord:
    """The state of one root run. It is changed under its handler's lock, and no more once it has ended.

    Args:
        root_id: The run id of the root.
        question_id: The metadata ``question_id`` of the root.
        options: What is kept of its steps.
    """

    def __init__(self, root_id: UUID, question_id: str | None, options: CaptureOptions) -> None:
        self._options = options
        self.root_id = root_id
        self.question_id = question_id
        self.steps: list[Step] = []
        self.model_calls: list[OpenModelCall] = []
        self.warnings: dict[str, None] = {}
        self.question: str | None = None
        self.answer: str | None = None
        self.error: str | None = None
        self.is_paused = False
        self.has_ended = False
        self.is_forgotten = False
        self._started = perf_counter()
        self._elapsed_sec: float | None = None
        self._calls = AskedCalls()
        self._seen = SeenMessages()

    @property
    def elapsed_sec(self) -> float:
        """Seconds from the start to the end, or to now."""
        return perf_counter() - self._started if self._elapsed_sec is None else self._elapsed_sec

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
        """Give the step of a tool that starts: a new one, or that of an earlier attempt.

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
            self._calls.call_to_run(call_id, args, scope)
            if call_id is not None
            else self._calls.call_like(name, args, scope)
        )
        if call is None and call_id is not None:
            self._calls.ask(None, [{"name": name, "args": args, "id": call_id, "type": "tool_call"}], scope, parent)
            call = self._calls.call_to_run(call_id, args, scope)
        if call is not None and call.step is not None:
            call.step.start_again(run_id, kept)
            return call.step
        return self._new_step(Step(name, kept, run_id, parent, (self._calls.next_rank(), 0), call_id=call_id), call)

    def retriever_started(self, run_id: UUID, name: str, args: dict[str, Any], parent: Step | None) -> Step:
        """Give the step of a retriever that runs outside of tools."""
        return self._new_step(Step(name, args, run_id, parent, (self._calls.next_rank(), 0)), None)

    def _new_step(self, step: Step, call: AskedCall | None) -> Step:
        if call is not None:
            self._link(step, call)
        self.steps.append(step)
        return step

    @staticmethod
    def _link(step: Step, call: AskedCall) -> None:
        step.call, step.order = call, call.order
        call.step, call.is_settled = step, True

    def step_ended(self, step: Step, run_id: UUID, kept: KeptEnding, call_id: str | None, scope: UUID) -> None:
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

    def _settle(self, step: Step, kept: KeptEnding) -> None:
        step.end(kept)
        if kept.warnings:
            self.warn(*kept.warnings)

    def _kept_args(self, name: str, args: Any) -> dict[str, Any]:
        warnings: list[str] = []
        kept = kept_args(json_value(args), self._options, name, warnings)
        self.warn(*warnings)
        return kept

    def model_started(self, model: str | None) -> OpenModelCall:
        """Give the record of a model call that starts."""
        call = OpenModelCall(model, perf_counter())
        self.model_calls.append(call)
        return call

    def model_ended(self, call: OpenModelCall, result: LLMResult, scope: UUID, parent: Step | None) -> None:
        """Note what a model call cost and which tools its message asks for."""
        call.is_cache_hit = is_cache_hit(result)
        call.record = self._model_record(call, result)
        message = generated_message(result)
        if message is not None:
            self._seen.add(message, is_history=False)
            self._asked_by(message, scope, parent)

    def model_failed(self, call: OpenModelCall, error: str, result: Any) -> None:
        """Note a model call that failed, with the tokens that were reported until then."""
        call.record = self._model_record(call, result if isinstance(result, LLMResult) else LLMResult(generations=[]))
        call.record["error"] = error

    @staticmethod
    def _model_record(call: OpenModelCall, result: LLMResult) -> ModelCall:
        model = result_model_name(result) or call.model
        record: ModelCall = {"model": model} if model else {}
        record.update(model_usage(result))
        record["elapsed_sec"] = perf_counter() - call.started
        return record

    def node_started(self, inputs: Any, scope: UUID, parent: Step | None) -> None:
        """Note what a node is given: older messages, and calls that wait for its tools.

        What only a nested graph is given is not taken for older than the run: a node may have made it just now.
        """
        old = self._seen.new_in(inputs, is_history=scope == self.root_id)
        if old and (waiting := unanswered_calls(old)) is not None:
            self._calls.ask(waiting[0].id, waiting[1], scope, parent)
        loose_calls = [call for call in tool_calls_in(inputs) if not self._calls.is_known(call["id"])]
        if loose_calls:
            self._calls.ask(None, loose_calls, scope, parent)

    def node_ended(self, output: Any, scope: UUID, parent: Step | None, *, is_root: bool = False) -> None:
        """Read a node's output for calls that no callback told of: they never ran, or ran out of sight."""
        new = self._seen.new_in(output)
        is_structured = bool(new) and has_structured_response(output)
        for message in new:
            if isinstance(message, AIMessage):
                self._asked_by(message, scope, parent, only_unlike=is_root)
            else:
                self._answered(message, scope, parent, needs_step=not is_structured)

    def _asked_by(self, message: AIMessage, scope: UUID, parent: Step | None, *, only_unlike: bool = False) -> None:
        """Note the calls of a model's message; those of the provider's own tools have ended already."""
        for place, call in enumerate(provider_calls(message)):
            order = (self._calls.next_rank(), place)
            args = self._kept_args(call.name, call.args)
            step = Step(call.name, args, self.root_id, parent, order, call_id=call.call_id, started=None)
            self._settle(step, kept_ending(Ending(call.status, call.text), self._options, call.name))
            self.steps.append(step)
        self._calls.ask_message(message, scope, parent, only_unlike=only_unlike)

    def _answered(self, message: ToolMessage, scope: UUID, parent: Step | None, *, needs_step: bool) -> None:
        call = self._calls.call_answered(message.tool_call_id, scope)
        if call is None or call.is_settled:
            return
        ending = message_ending(message)
        step = self._step_without_call(message, hash(ending.text), parent)
        if step is not None:
            self._link(step, call)
        elif needs_step:
            args = self._kept_args(call.name, call.args)
            step = Step(call.name, args, self.root_id, call.parent, call.order, started=None, is_from_message=True)
            step.started_at = call.asked_at
            self._settle(step, kept_ending(ending, self._options, call.name))
            self._new_step(step, call)
        call.is_settled = True

    def _step_without_call(self, message: ToolMessage, text_hash: int, parent: Step | None) -> Step | None:
        """Give the step of a tool that a node ran by hand with other arguments than the model asked for."""
        for step in reversed(self.steps):
            is_loose = step.call is None and step.call_id is None and step.status != "open"
            if is_loose and step.parent is parent and step.text_hash == text_hash and message.name in (None, step.name):
                return step
        return None

    def root_ended(self, output: Any) -> None:
        """Close the record with the root's output."""
        if isinstance(output, LLMResult):
            message = generated_message(output)
            if message is not None and not message.tool_calls:
                self.answer = answer_text(message)
            elif message is None and output.generations and output.generations[0]:
                self.answer = output.generations[0][0].text
        else:
            self.node_ended(output, self.root_id, None, is_root=True)
            self.answer = answer_in(output, self._seen)
        self.close()

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
                step.end(KeptEnding("error", unfinished))
                step.is_forced = True
            if step.call is not None:
                step.call.args = None  # only what was kept of them stays
        for call in self.model_calls:
            if call.record is None:
                self.model_failed(call, unfinished, None)
        self.has_ended = True
        self._calls.clear()  # no message is kept longer than its run
        self._seen.clear()


def unfinished_text(error: str | None) -> str:
    """Give the error of what had not ended when its run did."""
    return error or "Unfinished: the run ended before this call did"
