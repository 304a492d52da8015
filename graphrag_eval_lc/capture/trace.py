"""What is known of one root run: its steps, model calls, answer and end."""

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from time import perf_counter, time
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.calls_without_tools import is_class_name
from graphrag_eval_lc.capture.kept_messages import KeptMessages, Noted, places
from graphrag_eval_lc.capture.llm_calls import OpenModelCall, generated_message
from graphrag_eval_lc.capture.messages import answer_fields, answer_in, answer_text, is_interrupted, whole_answer
from graphrag_eval_lc.capture.outputs import is_command
from graphrag_eval_lc.capture.redaction import CaptureOptions, KeptOutcome
from graphrag_eval_lc.capture.steps import AskedCall, Step, Steps
from graphrag_eval_lc.capture.trace_messages import TraceMessages
from graphrag_eval_lc.texts import listed


@dataclass(slots=True, eq=False, repr=False)
class Trace:
    """The state of one root run. It changes under its handler's lock, and not after its end.

    Args:
        root_id: The run id of the root.
        question_id: The metadata ``question_id`` of the root.
        options: What is kept.
        told_ids: The ids of all messages in the callbacks of models, of all runs of the handler.
        ends: The ids of the last messages of all runs of the handler.

    Attributes:
        answer: The answer; None while the run is paused.
        draft: The answer of a paused run, were it the end.
        standing: The answer in the state of a thread, perhaps from before the run.
        goes_on: Whether it goes on with a thread.
        is_graph: Whether it is a graph, so that each node's output is read.
        unanswered: Name and id of the calls that nobody answered, once it has ended.
        resumes: The paused run that it resumes.
        run_ids: The LangChain ids of the root, or of the runs of a block.
    """

    root_id: UUID
    question_id: str | None
    options: CaptureOptions
    told_ids: set[str]
    ends: set[str]
    steps: Steps = field(init=False)
    model_calls: list[OpenModelCall] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    question: str | None = None
    answer: str | None = None
    draft: str | None = None
    standing: str | None = None
    goes_on: bool = False
    is_graph: bool = False
    error: str | None = None
    unanswered: Sequence[tuple[str, str | None]] = ()
    is_paused: bool = False
    has_ended: bool = False
    is_forgotten: bool = False
    has_begun: bool = True  # a block only once something runs in it
    thread_ids: frozenset[str] = frozenset()
    resumes: "Trace | None" = None
    run_ids: list[UUID] = field(default_factory=list)
    started_at: float = field(default_factory=time)
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    kept: KeptMessages | None = None
    _started: float = field(default_factory=perf_counter)
    _elapsed_sec: float | None = None
    _messages: TraceMessages | None = None
    _given_fields: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.steps = Steps(self.root_id, self.options, self.warnings)
        if self.options.keep_messages:
            self.kept = KeptMessages(self.options)

    @property
    def elapsed_sec(self) -> float:
        """Seconds from the start to the end, or to now."""
        return perf_counter() - self._started if self._elapsed_sec is None else self._elapsed_sec

    @property
    def messages(self) -> TraceMessages:
        """What the run's messages tell; made when the first is read, as many runs have none."""
        if self._messages is None:
            self._messages = TraceMessages(
                self.steps, self.model_calls, self.warnings, self.options, self.kept, self.told_ids, self.ends
            )
        return self._messages

    def snapshot(self) -> "Trace":
        """Return a copy for a copy of the handler, which no event reaches."""
        copied = copy(self)
        copied._elapsed_sec = self.elapsed_sec
        copied._messages, copied.told_ids, copied.ends = None, set(), set()
        copied.warnings = dict(self.warnings)
        copied.steps, copies = self.steps.snapshot(copied.warnings)
        copied.run_ids = list(self.run_ids)
        copied.kept = None if self.kept is None else self.kept.snapshot()
        copied.model_calls = [copy(call) for call in self.model_calls]
        for call in copied.model_calls:
            call.parent = copies.get(call.parent)
        return copied

    def is_resumed_by(self, other: "Trace") -> bool:
        """Return whether another run can be the one that resumes this one, by threads and question."""
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
        """Add warnings, each text once."""
        self.warnings.update(dict.fromkeys(warnings))

    def step_ended(self, step: Step, run_id: UUID, kept: KeptOutcome, call_id: str | None, scope: UUID) -> None:
        """Settle a step, unless a later attempt has taken the place of the run that ended."""
        if self.has_ended or step.run_id != run_id:
            return
        self.steps.ended(step, kept, call_id, scope)
        self.is_paused = self.is_paused or kept.status == "pending"

    def model_started(
        self, model: str | None, prompt: Sequence[BaseMessage], parent: Step | None, *, unanswered_tool: str | None
    ) -> OpenModelCall:
        """Return a model call that starts, and read its prompt."""
        self.messages.model_started(prompt, parent)
        call = OpenModelCall(model, perf_counter(), unanswered_tool, started_at=time(), parent=parent)
        self.model_calls.append(call)
        return call

    def model_ended(
        self, call: OpenModelCall, result: LLMResult, scope: UUID, parent: Step | None, node_id: UUID
    ) -> None:
        """End a model call, and read its message."""
        call.end(result)
        if (message := generated_message(result)) is not None:
            self.messages.model_answered(call, message, scope, parent, node_id)

    def keep_output(self, call: OpenModelCall, output: Iterable[int | Noted]) -> None:
        """Keep a model call's output, where that is wanted."""
        if self.kept is not None:
            call.output_message = next(iter(places(self.kept.messages, output)), None)

    def node_started(self, inputs: Any, scope: UUID, parent: Step | None, node_id: UUID) -> None:
        """Read the input of the root or a node."""
        if node_id == self.root_id:
            self.goes_on, self.is_graph = inputs is None or is_command(inputs), False
        self.messages.node_started(inputs, scope, parent, node_id, self.question)

    def node_ended(
        self, output: Any, scope: UUID, parent: Step | None, node_id: UUID, *, is_of_model_node: bool = False
    ) -> None:
        """Read the output of a node."""
        self.node_gave(output, scope)
        self.messages.node_ended(output, scope, parent, node_id, is_of_model_node=is_of_model_node)

    def node_gave(self, output: Any, scope: UUID) -> None:
        """Note which answer fields a node of the root sets; the thread may have them from before."""
        if self.goes_on and scope == self.root_id:
            self._given_fields |= set(answer_fields(output))

    def root_ended(self, output: Any, *, is_state: bool | None = None) -> None:
        """Read the root's output; the run is closed next."""
        self.top_ended(output, is_state=is_state)
        message = generated_message(output) if isinstance(output, LLMResult) else output
        if isinstance(message, AIMessage) and message.tool_calls:
            self._leave_to_the_caller()

    def top_ended(self, output: Any, *, is_state: bool | None = None) -> None:
        """Take the answer from the output of the root, or of a run that a block calls: the last one counts.

        ``is_state`` tells whether it is the state of a graph, which is no answer as a whole; None where it may be.
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
                self.messages.seen.add_history(output, None, is_graph=self.is_graph)
            self.messages.node_ended(output, self.root_id, None, self.root_id)
            self._find_answer(output, is_state=is_state)
            self.messages.seen.add_end(output)

    def _leave_to_the_caller(self) -> None:
        """Note that the run returns a message with calls, which its caller is to answer."""
        left = [call for call in self.steps.calls.waiting if call.is_expected]
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
            output, self.messages.seen.is_old, is_given=lambda field: not may_be_older or field in self._given_fields
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
        """End the run, with its error as it is kept; steps and model calls that are still open become errors."""
        if self.has_ended:
            return
        self.error = error
        self._elapsed_sec = perf_counter() - self._started
        unfinished = unfinished_text(error)
        self.steps.close(unfinished)
        for call in self.model_calls:
            if call.record is None:
                call.fail(unfinished)
        self.has_ended = True
        if error is None and self.steps.calls.waiting:
            self.unanswered = self._unanswered()
        self.steps.calls.clear()  # no message is kept longer than its run
        self._messages = None
        if self.kept is not None:
            self.kept.close()

    def _unanswered(self) -> list[tuple[str, str | None]]:
        """Return name and id of the calls that nobody answered; a tool may have run one with other arguments."""
        ran = {step.name for step in self.steps.taken}
        loose = Counter(step.name for step in self.steps.taken if step.call is None)
        unanswered: list[tuple[str, str | None]] = []
        for call in self.steps.calls.waiting:
            if loose[call.name] > 0:
                loose[call.name] -= 1
            elif call.is_expected and (call.name in ran or not self._is_read_by_its_node(call)):
                unanswered.append((call.name, call.call_id))
        return unanswered

    @staticmethod
    def _is_read_by_its_node(call: AskedCall) -> bool:
        """Return whether a call is probably a schema's, whose arguments the code around the model read itself.

        Its name is that of a class, and no other model and no state got to see it.
        """
        return call.is_told and not call.is_met and not call.is_shown and is_class_name(call.name)


def unfinished_text(error: str | None) -> str:
    """Return the error of a step or model call that had not ended when its run did."""
    return error or "Unfinished: the run ended before this call did"
