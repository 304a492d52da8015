"""What the records of a run mean: its steps, model calls, answer and warnings, found in named passes."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.calls import AskedCall, CountedCall, Step
from graphrag_eval_lc.capture.calls_without_tools import is_class_name
from graphrag_eval_lc.capture.kept_messages import KeptMessages
from graphrag_eval_lc.capture.llm_calls import answer_problems, generated_message, model_call
from graphrag_eval_lc.capture.outputs import Outcome
from graphrag_eval_lc.capture.reading import ReadMessages
from graphrag_eval_lc.capture.record import Tree, WaitingCall
from graphrag_eval_lc.capture.redaction import kept_text
from graphrag_eval_lc.capture.steps import Steps
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.texts import error_text, listed


@dataclass(slots=True, eq=False, repr=False)
class Part:
    """What one run, or one block of code, adds to a response."""

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
    answer: str | None = None  # the answer; None while the run is paused
    draft: str | None = None  # the answer of a paused run, were it the end
    standing: str | None = None  # the answer in the state of a thread, perhaps from before the run
    # name and id of the calls that nobody answered
    unanswered: list[tuple[str, str | None]] = field(default_factory=list)
    # those of the calls for structured output that did not parse
    unparsed: list[tuple[str, str | None]] = field(default_factory=list)
    cached_models: int = 0  # how many model calls langgraph's cache of nodes answered
    waiting: list[WaitingCall] = field(default_factory=list)  # the calls that wait, for the run that resumes this one
    ends: list[str] = field(default_factory=list)  # the ids of the last messages of its outputs


UNKNOWN_ERROR = "unknown error"  # if an option leaves nothing of it


def unfinished_text(error: str | None) -> str:
    """Return the error of a step or model call that had not ended when its run did."""
    return error or "Unfinished: the run ended before this call did"


def interpreted(tree: Tree, reported_ids: set[str], ends: set[str]) -> Part:
    """Return what a tree means, which stays as it is. Never raises: what cannot be interpreted is warned of.

    Args:
        tree: The records of one root run or block.
        reported_ids: The ids of all messages in the callbacks of models, of all runs of the handler.
        ends: The ids of the last messages of its earlier runs.
    """
    return _Interpretation(tree, reported_ids, ends).part()


class _Interpretation:
    """The passes over one tree: messages, executions, answers, provider's tools, model calls, what is left."""

    def __init__(self, tree: Tree, reported_ids: set[str], ends: set[str]) -> None:
        elapsed = perf_counter() - tree.started if tree.elapsed_sec is None else tree.elapsed_sec
        self._tree = tree
        self._warnings: list[str] = []  # of redact
        error = None if tree.error is None else self._kept_error(tree.error)
        self._part = Part(
            tree.question_id, tree.question, list(tree.run_ids), tree.tags, tree.metadata, tree.started_at, elapsed,
            tree.is_paused, tree.has_ended, error, tree.kept, dict(tree.warnings),
        )  # fmt: skip
        self._read = ReadMessages(tree, reported_ids, ends, tree.kept)
        self._steps = Steps(tree, self._read)

    def part(self) -> Part:
        """Return the result of all passes."""
        passes = (
            self._read.take_over_waiting, self._read_messages, self._steps.find_executions, self._steps.find_answers,
            self._find_provider_steps, self._find_model_calls, self._finish_steps, self._find_what_is_left,
        )  # fmt: skip
        for each in passes:
            try:
                each()
            except Exception as error:
                self._warn_of(error)
        read, part = self._read, self._part
        part.answer, part.draft, part.standing, part.ends = read.answer, read.draft, read.standing, read.ends
        part.cached_models, part.unparsed = read.cached_models, self._steps.unparsed
        of_kept = () if part.kept is None else part.kept.warnings
        part.warnings.update(dict.fromkeys([*of_kept, *read.warnings, *self._steps.warnings, *self._warnings]))
        return part

    def _kept_error(self, error: str) -> str:
        return kept_text(error, self._tree.options, "error", self._warnings) or UNKNOWN_ERROR

    def _warn_of(self, error: Exception) -> None:
        text = kept_text(error_text(error), self._tree.options, "error", list[str]())
        self._part.warnings[f"capture could not interpret a part of the run: {text}"] = None

    def _read_messages(self) -> None:
        for error in self._read.read():
            self._warn_of(error)

    def _find_provider_steps(self) -> None:
        """Note the calls of the provider's own tools in models' messages; they have ended already."""
        places = iter(self._read.provider_places)
        lost: list[tuple[str, str | None]] = []
        for call in self._read.provider.calls:
            record, order, at = next(places)
            if call.status is None:
                if not call.is_approved:
                    lost.append((self._tree.options.step_name(call.name), call.call_id))
                continue
            args = self._steps.kept(call.name, call.args)
            step = Step(call.name, args, self._tree.root_id, None, order, call_id=call.call_id)
            step.started_at = at
            self._steps.settle(step, Outcome(call.status, call.text))
            self._steps.all.append(step)
            self._steps.outer_of.append((step, record.outer))
        if lost and not self._tree.is_paused:
            names = listed([f"{name} ({call_id})" for name, call_id in lost])
            self._part.warnings[f"asked of the provider's tools, and no result came: {names}"] = None

    def _find_model_calls(self) -> None:
        tree = self._tree
        for model in self._read.models:
            if isinstance(model, CountedCall):
                self._part.model_calls.append(model)
                continue
            run = model.model
            if run is None or (run.call is None and not tree.has_ended):
                continue
            call = model_call(None, run.asked_name) if run.call is None else run.call.copy()
            if run.call is None:
                call[ELAPSED_SEC] = tree.started + self._part.elapsed_sec - run.started
                call["error"] = unfinished_text(self._part.error)
            counted = CountedCall(call, run, is_cache_hit=run.is_cache_hit)
            if run.error is not None:
                call["error"] = self._kept_error(run.error)
            elif run.result is not None:
                counted.problems = answer_problems(run.result, call.get("finish_reason"), tree.options, self._warnings)
            counted.output_message = run.output_message
            self._read.outer_of.append((counted, model.outer))
            self._part.model_calls.append(counted)

    def _finish_steps(self) -> None:
        step_of = self._steps.step_of
        for step, outer in self._steps.outer_of:
            step.parent = None if outer is None else step_of.get(outer)
        for call, outer in self._read.outer_of:
            call.parent = None if outer is None else step_of.get(outer)
        if self._tree.has_ended:
            ended = self._tree.started + self._part.elapsed_sec
            for record, step in step_of.items():
                if step.status == "open" and record.tool is not None:
                    step.end(Outcome("error", unfinished_text(self._part.error)))
                    step.elapsed_sec, step.is_forced = ended - record.tool.started, True
            root = step_of.get(self._tree.events[0][0]) if self._tree.events else None
            if root is not None and self._part.error is not None:
                self._part.error = root.text or UNKNOWN_ERROR  # cut as that of a step
        self._part.steps = in_order(self._steps.all)

    def _find_what_is_left(self) -> None:
        """Warn of calls that nobody answered, or leave them to the caller or to the run that resumes this one."""
        tree, result = self._tree, self._part
        last = self._tree.events[-1][0] if self._tree.events else None
        output = None if last is None or not last.is_root else last.output
        message = generated_message(output) if isinstance(output, LLMResult) else output
        if isinstance(message, AIMessage) and message.tool_calls:
            self._leave_to_the_caller()
        for call in self._steps.waiting:
            if call.scope.is_top and isinstance(call.key, str):
                args = self._steps.kept_args(call)
                result.waiting.append(WaitingCall(call.key, call.call_id, call.name, args, call.place, call.asked_at))
        if tree.has_ended and tree.error is None:
            result.unanswered = self._unanswered()

    def _leave_to_the_caller(self) -> None:
        """Note that the run returns a message with calls, which its caller is to answer."""
        left = [call for call in self._steps.waiting if call.is_expected]
        for call in left:
            call.is_expected = False
        if left:
            names = listed([f"{call.name} ({call.call_id})" for call in left])
            self._part.warnings[
                f"the run gives its caller a message that asks for tools: {names}; to record a loop around such calls "
                'as one response, put it into: with capture_run(question_id="...")'
            ] = None

    def _unanswered(self) -> list[tuple[str, str | None]]:
        """Return name and id of the calls that nobody answered; a tool may have run one with other arguments."""
        ran = {step.name for step in self._steps.all}
        loose = Counter(step.name for step in self._steps.all if not step.has_call)
        unanswered: list[tuple[str, str | None]] = []
        for call in self._steps.waiting:
            if loose[call.name] > 0:
                loose[call.name] -= 1
            elif call.is_expected and (call.name in ran or not _is_read_by_its_node(call)):
                unanswered.append((call.name, call.call_id))
        return unanswered


def _is_read_by_its_node(call: AskedCall) -> bool:
    """Return whether a call is probably a schema's, whose arguments the code around the model read itself.

    Its name is that of a class, and no other model and no state got to see it.
    """
    return call.is_reported and not call.is_seen and not call.is_shown and is_class_name(call.name)


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
