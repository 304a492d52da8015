"""What the records of a run mean: its steps, model calls, answer and warnings, found in named passes."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter

from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.calls import UNKNOWN_ERROR, AskedCall, Part, Step
from graphrag_eval_lc.capture.calls_without_tools import is_class_name
from graphrag_eval_lc.capture.llm_calls import answer_problems, generated_message, model_call
from graphrag_eval_lc.capture.messages import answer_in, answer_text, whole_answer
from graphrag_eval_lc.capture.outputs import Outcome
from graphrag_eval_lc.capture.reading import ReadMessages
from graphrag_eval_lc.capture.record import Record, Tree, WaitingCall
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.texts import listed


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
    part = Part(tree, perf_counter() - tree.started if tree.elapsed_sec is None else tree.elapsed_sec)
    of_error = list[str]()
    part.error = None if tree.error is None else part.kept_error(tree.error, of_error)
    is_plain = tree.resumes is None and all(_is_plain(record) for record, _, _ in tree.events)
    passes = (partial(_find_plain_answer, part),) if is_plain else _passes(part, reported_ids, ends)
    for each in passes:
        try:
            each()
        except Exception as error:
            part.warn_of(error)
    part.warnings = [*(() if tree.kept is None else tree.kept.warnings), *part.warnings, *of_error]
    return part


def _is_plain(record: Record) -> bool:
    """Return whether a run is a function's or another chain's, without any message, call or state of a graph."""
    return (
        record.kind == "chain"
        and not (record.is_node or record.is_graph)
        and not (record.input_messages or record.output_messages or record.loose_calls)
        and not isinstance(record.output, LLMResult)
    )


def _find_plain_answer(part: Part) -> None:
    """Find the answer where no run is more than a chain."""
    for record, is_end, _ in part.tree.events:
        if is_end and record.is_top:
            answer = answer_in(record.output)
            if answer is None:
                answer = whole_answer(record.output)
            if part.tree.is_paused:
                part.draft = answer
            elif answer is not None:
                part.answer = answer


def _passes(part: Part, reported_ids: set[str], ends: set[str]) -> Sequence[Callable[[], None]]:
    """Return what is done, one after the other, to interpret a tree."""
    messages = ReadMessages(part, reported_ids, ends)
    interpretation = _Interpretation(part, messages)
    return (
        messages.take_over_waiting,
        messages.read,
        messages.steps.compare_answers,
        interpretation.find_model_calls,
        interpretation.finish_steps,
        interpretation.find_answer,
        interpretation.find_what_is_left,
    )


class _Interpretation:
    """The passes after the messages and the steps: provider's tools, model calls, the answer, and what is left."""

    def __init__(self, part: Part, messages: ReadMessages) -> None:
        self._tree = part.tree
        self._part = part
        self._read = messages
        self._steps = messages.steps

    def find_model_calls(self) -> None:
        """Complete the model calls with what was recorded of them; those under way do not count yet."""
        tree, part = self._tree, self._part
        for counted in self._read.models:
            run = counted.run
            if run is None:
                part.model_calls.append(counted)
                continue
            if run.call is None and not tree.has_ended:
                continue
            call = model_call(None, run.asked_name) if run.call is None else run.call.copy()
            if run.call is None:
                call[ELAPSED_SEC] = tree.started + part.elapsed_sec - run.started
                call["error"] = unfinished_text(part.error)
            elif run.error is not None:
                call["error"] = part.kept_error(run.error)
            elif run.result is not None:
                counted.problems = answer_problems(run.result, call.get("finish_reason"), tree.options, part.warnings)
            counted.call, counted.is_cache_hit, counted.output_message = call, run.is_cache_hit, run.output_message
            part.model_calls.append(counted)

    def finish_steps(self) -> None:
        """Put the steps in order, each with the step inside which it ran, and close those that had not ended."""
        step_of = self._steps.step_of
        for model, around in self._read.outer_of:
            model.parent = None if around is None else step_of.get(around)
        for each, outer in self._steps.outer_of.items():
            each.parent = None if outer is None else step_of.get(outer)
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

    def find_answer(self) -> None:
        """Find the answer in the outputs of the root, or of the runs of a block: the last one counts."""
        for record in self._read.tops:
            output = record.output
            if not isinstance(output, LLMResult):
                if record.kind == "chain":
                    self._read_answer(record)
                continue
            message = generated_message(output)
            if message is not None:
                self._part.answer = None if message.tool_calls else answer_text(message)
            elif output.generations and output.generations[0]:
                self._part.answer = output.generations[0][0].text

    def _read_answer(self, record: Record) -> None:
        part, output = self._part, record.output
        may_be_older = record.continues_thread and record.is_graph
        fields = self._read.given_fields
        answer = answer_in(output, self._read.is_old, is_given=lambda name: not may_be_older or name in fields)
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
        if isinstance(message, AIMessage) and message.tool_calls:
            self._leave_to_the_caller()
        for call in self._read.calls.waiting:
            if call.scope is not None and call.scope.is_top and call.message_id is not None:
                args = self._steps.kept_args(call)
                part.waiting.append(
                    WaitingCall(call.message_id, call.call_id, call.name, args, call.place, call.asked_at)
                )
        if tree.has_ended and tree.error is None:
            part.unanswered = self._unanswered()
        if self._steps.at_provider and not tree.is_paused:
            lost = [f"{tree.options.step_name(step.name)} ({step.id})" for step in self._steps.at_provider.values()]
            part.warnings.append(f"requested from the provider's tools, without a result: {listed(lost)}")

    def _leave_to_the_caller(self) -> None:
        """Note that the run returns a message with calls, which its caller is to answer."""
        left = [call for call in self._read.calls.waiting if call.is_expected]
        for call in left:
            call.is_expected = False
        if left:
            names = listed([f"{call.name} ({call.call_id})" for call in left])
            self._part.warnings.append(
                f"the run returns a message with tool calls to its caller: {names}; to record a loop around such calls "
                'as one response, wrap it in: with capture_run(question_id="...")'
            )

    def _unanswered(self) -> list[tuple[str, str | None]]:
        """Return name and id of the calls that nobody answered; a tool may have run one with other arguments."""
        ran = {step.name for step in self._steps.all}
        loose = Counter(step.name for step in self._steps.all if not step.has_call)
        unanswered: list[tuple[str, str | None]] = []
        for call in self._read.calls.waiting:
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
