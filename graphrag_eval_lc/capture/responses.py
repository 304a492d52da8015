"""The steps and model calls of runs, and the response that the runs for one question make."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, compress
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

from graphrag_eval_lc.capture.kept import CaptureOptions, Table, ranges, shown_config
from graphrag_eval_lc.capture.record import ModelRun, Tree
from graphrag_eval_lc.capture.values import Outcome, to_plain
from graphrag_eval_lc.errors import CaptureError
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import ActualStep, KeptMessage, ModelCall, Response
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, TOKENS
from graphrag_eval_lc.texts import counted, error_text, listed, plural

_ASK_FOR_A_KNOWN_ID = 'Ask for one of these, or put the id into the run: config={"metadata": {"question_id": ...}}.'
_ASK_WITHOUT_ID = (
    'Put the id into the run: config={"metadata": {"question_id": ...}}, or into capture_run(question_id=...); '
    "without ids, use response()."
)
_MOST_LISTED = 5
PAUSED = "the run is paused (interrupted): it waits to be resumed"
_NOT_ENDED = "Unfinished: the run had not ended when its response was read"


UNKNOWN_ERROR = "unknown error"  # if an option leaves nothing of it


class WaitingCall(NamedTuple):
    """A call that a paused run left open, for the run that resumes it; its arguments are the kept ones."""

    message_id: str
    call_id: str | None
    name: str
    args: dict[str, Any]
    place: int
    asked_at: float


@dataclass(slots=True, eq=False, repr=False)
class Step:
    """One step of a run."""

    name: str
    args: dict[str, Any]
    run_id: UUID  # the id of the tool's run, the last one if there were several attempts
    parent: "Step | None"  # the step inside which this one runs
    order: tuple[Any, ...]  # its place among the steps with the same parent
    call_id: str | None = None
    message_id: str | None = None  # the id of the message that asked for it
    # what it is known by when a paused run is resumed: message, call, place and number of the run
    key: tuple[Any, ...] | None = None
    has_call: bool = False  # whether a call of a model is known that it carries out
    # open while it runs, pending while the run is paused inside it
    status: Literal["open", "pending", "success", "error"] = "open"
    text: str = ""  # the output, or the error
    artifact: Any = None
    attempts: int = 1
    started_at: float = 0.0
    elapsed_sec: float | None = None
    full_length: int | None = None  # the characters of the text, if it was cut
    own: Outcome | None = None  # the tool's own outcome, if the model saw another one
    is_from_message: bool = False  # whether no callback reported it, only a message
    is_from_cache: bool = False  # whether it is from langgraph's cache of nodes
    is_forced: bool = False  # whether it had not ended when its run did

    @property
    def id(self) -> str:
        """The id of the tool call, else that of the run."""
        return self.call_id or str(self.run_id)

    def end(self, kept: Outcome) -> None:
        """Take the outcome."""
        self.status, self.text, self.artifact = kept.status, kept.text, kept.artifact
        self.full_length = kept.full_length
        if kept.k is not None:
            self.args["k"] = kept.k if self.args.get("k") is None else self.args["k"]


@dataclass(slots=True, eq=False, repr=False)
class CountedCall:
    """A model call as a response has it."""

    call: ModelCall
    run: ModelRun | None = None  # what was recorded of it; None if only its message shows it
    problems: Sequence[str] = ()
    parent: Step | None = None  # the step inside which it runs
    is_cache_hit: bool = False
    # whether only a message shows it, one with an id, unlike those of a node's own code
    is_from_elsewhere: bool = False
    # the digests of its kept messages and tools
    given: Sequence[bytes] | None = None
    gave: Sequence[bytes] = ()
    tools: Sequence[bytes] = ()


@dataclass(slots=True, eq=False, repr=False)
class Part:
    """What one run, or one block of code, adds to a response."""

    tree: Tree
    elapsed_sec: float
    error: str | None = None  # as it is kept
    warnings: list[str] = field(default_factory=list)  # those of the interpretation
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
    messages: Table = field(default_factory=dict)  # the messages and tools of its model calls, if they are kept
    tools: Table = field(default_factory=dict)

    def warn_of(self, error: Exception) -> None:
        """Warn of a part of the run that could not be interpreted."""
        text = self.kept_error(error_text(error), list[str]())
        self.warnings.append(f"capture could not interpret a part of the run: {text}")

    def kept_error(self, error: str, warnings: list[str] | None = None) -> str:
        """Return an error as it is kept."""
        warnings = self.warnings if warnings is None else warnings
        return self.tree.options.kept_text(error, "error", warnings) or UNKNOWN_ERROR


def unfinished_text(error: str | None) -> str:
    """Return the error of a step or model call that had not ended when its run did."""
    return error or "Unfinished: the run ended before this call did"


def runs_of_responses(trees: Iterable[Tree]) -> list[list[Tree]]:
    """Return the trees by response, in start order: a paused run is grouped with those that resumed it."""
    responses: list[list[Tree]] = []
    paused: dict[Tree, list[Tree]] = {}
    for tree in trees:
        runs = paused.pop(tree.resumes, None) if tree.resumes is not None else None
        if runs is None:
            runs = []
            responses.append(runs)
        runs.append(tree)
        if tree.is_paused:
            paused[tree] = runs
    return responses


def question_id_of(runs: Sequence[Tree]) -> str | None:
    """Return the question id of a response's runs, None without one."""
    return next((tree.question_id for tree in runs if tree.question_id is not None), None)


def runs_of(responses: Sequence[Sequence[Tree]], question_id: object) -> Sequence[Tree]:
    """Return the runs of one question's last response.

    Raises:
        CaptureError: There is no such response, or several may be meant.
    """
    if not responses:
        raise CaptureError(
            "No run was recorded",
            question_id=None if question_id is None else str(question_id),
            hint='Pass the handler to the agent: config={"callbacks": [handler]}. RemoteGraph.invoke calls no handler: '
            "after it, say handler.add_run(inputs, output).",
        )
    if question_id is None:
        known = set(map(question_id_of, responses))
        if len(known) > 1 or (known == {None} and len(responses) > 1):
            raise CaptureError(
                f"{len(responses)} runs were recorded, so it is not clear which one is asked for",
                hint='Give each run config={"metadata": {"question_id": ...}}, or use responses().',
            )
        return responses[-1]
    found = [runs for runs in responses if question_id_of(runs) == str(question_id)]
    if not found:
        known_ids = dict.fromkeys(map(question_id_of, responses))
        ids = [identifier for identifier in known_ids if identifier is not None]
        raise CaptureError(
            f"No recorded run has this question id (recorded ids: {', '.join(ids)[:500] or 'none'})",
            question_id=str(question_id),
            hint=_ASK_FOR_A_KNOWN_ID if ids else _ASK_WITHOUT_ID,
        )
    return found[-1]


def response_from(parts: Sequence[Part], options: CaptureOptions) -> Response:
    """Return one response.

    Args:
        parts: Its runs in start order: one, or a paused run and those that resumed it. Steps, tokens and time add
            up; the last answer and the last run's status count.
        options: The handler's options, which name the steps.

    Returns:
        A new dict of plain JSON values; none of it is shared with the parts.
    """
    trees = [part.tree for part in parts]
    last = trees[-1]
    error = parts[-1].error if last.has_ended else _NOT_ENDED
    question_id = question_id_of(trees)
    response: Response = {} if question_id is None else {"question_id": question_id}
    question = next((tree.question for tree in trees if tree.question is not None), None)
    if question is not None:
        response["question_text"] = question
    response["status"] = "success" if error is None else "error"
    if error is not None:
        response["error"] = error
    answer = _answer(parts)
    if answer is not None:
        response["actual_answer"] = masked_text(answer) if options.redacts_answers else answer
    unfinished = unfinished_text(error)
    steps = [step for step in steps_of(parts) if step.status != "pending"]
    response["actual_steps"] = [actual_step(step, unfinished, options.step_name(step.name)) for step in steps]
    warnings = dict.fromkeys(chain(*(chain(part.tree.warnings, part.warnings) for part in parts)))
    if steps or any(part.model_calls or part.cached_models or part.unanswered or part.unparsed for part in parts):
        found = _step_warnings(parts, steps, options), _answer_warnings(parts)
        warnings.update(dict.fromkeys(chain(*found, _add_tokens(response, parts))))
    if last.is_paused and last.has_ended:
        warnings[PAUSED] = None
    response[ELAPSED_SEC] = sum(part.elapsed_sec for part in parts)
    response["started_at"] = utc_timestamp(trees[0].started_at)
    run_ids = [str(run_id) for tree in trees for run_id in tree.run_ids]
    if run_ids:
        response["run_id"] = run_ids[0]
    if len(run_ids) > 1:
        response["run_ids"] = run_ids
    # Those of the first run, by which LangSmith and others know it.
    response["tags"], response["metadata"] = shown_config(trees[0].tags, trees[0].metadata)
    _add_model_calls(response, parts)
    messages = response.get("llm_messages", ())
    if cut := sum("full_length" in message for message in messages):
        warnings[f"{cut} of {len(messages)} messages were cut to {options.max_output_chars} characters"] = None
    if warnings:
        response["capture_warnings"] = list(warnings)
    return response


def _answer(parts: Sequence[Part]) -> str | None:
    """Return the last answer; a paused run's draft counts if the resumed run left it in the state."""
    last = parts[-1]
    if last.tree.is_paused:
        return None
    drafts = [part.draft for part in parts if part.tree.is_paused]
    if last.answer is None and last.standing is not None and last.standing in drafts:
        return last.standing
    return next((part.answer for part in reversed(parts) if part.answer is not None), None)


def _step_warnings(parts: Sequence[Part], steps: Sequence[Step], options: CaptureOptions) -> Iterable[str]:
    """Warn of steps that are not whole, and of calls that nobody answered; a paused run may still get answers."""
    for step in steps:
        if step.full_length is not None:
            kind = "output" if step.status == "success" else "error"
            name, length = options.step_name(step.name), options.max_output_chars
            yield f"the {kind} of {name} ({step.id}) had {step.full_length} characters and was cut to {length}"
    for text, found in (
        ("had not ended when the run did, and were closed as errors", [step.is_forced for step in steps]),
        ("taken from LangGraph's node cache, so that no tool ran", [step.is_from_cache for step in steps]),
        (
            "taken from messages only, as no callback reported them (they never ran, or ran out of sight)",
            [step.is_from_message and not step.is_from_cache for step in steps],
        ),
    ):
        if any(found):
            yield f"{text}: {_listed([(options.step_name(step.name), step.id) for step in compress(steps, found)])}"
    taken = {(step.name, step.id) for step in steps}
    calls = [call for part in parts if not part.tree.is_paused for call in part.unanswered if call not in taken]
    if calls:
        yield f"requested by a model and never answered, so their outputs are not known: {_listed(calls)}"


def _listed(calls: Sequence[tuple[str, str | None]]) -> str:
    return listed([name if identifier is None else f"{name} ({identifier})" for name, identifier in calls])


def _answer_warnings(parts: Sequence[Part]) -> Iterable[str]:
    """Warn of problems in models' answers; calls count from 1, as in ``llm_calls``."""
    unparsed = [call for part in parts for call in part.unparsed]
    if unparsed:
        yield f"structured output of a model that did not parse: {_listed(unparsed)}"
    numbers: dict[tuple[str, str], list[int]] = {}
    counted = (each for part in parts for each in _counted_calls(part))
    for number, call in enumerate(counted, 1):
        for problem in call.problems:
            numbers.setdefault((call.call.get("model", ""), problem), []).append(number)
    for (model, problem), found in numbers.items():
        named = f" ({model})" if model else ""
        yield from (f"model call {number}{named} {problem}" for number in found[:_MOST_LISTED])
        if len(found) > _MOST_LISTED:
            yield f"{len(found) - _MOST_LISTED} more model calls{named}: each {problem}"


def _counted_calls(part: Part) -> Iterable[CountedCall]:
    """Return the model calls of a run that cost something."""
    return (call for call in part.model_calls if not call.is_cache_hit)


def _add_model_calls(response: Response, parts: Sequence[Part]) -> None:
    """Add the model calls with their times, nodes, prompts and outputs."""
    response["llm_calls"] = list[ModelCall]()
    messages, tools = dict[bytes, int](), dict[bytes, int]()  # the places of the kept ones
    kept_messages, kept_tools = list[Any](), list[Any]()
    for part in parts:
        for table, places, entries in (
            (part.messages, messages, kept_messages),
            (part.tools, tools, kept_tools),
        ):
            for digest, entry in table.items():
                if places.setdefault(digest, len(entries)) == len(entries):
                    entries.append(entry)
        response["llm_calls"] += [_placed(call, messages, tools) for call in _counted_calls(part)]
    if parts[0].tree.options.keep_messages:
        response["llm_messages"] = cast("list[KeptMessage]", to_plain(kept_messages))
    if kept_tools:
        response["llm_tools"] = to_plain(kept_tools)


def _placed(call: CountedCall, messages: Mapping[bytes, int], tools: Mapping[bytes, int]) -> ModelCall:
    """Return a model call with its times and node, and the places of its messages and tools."""
    placed, run = call.call.copy(), call.run
    if run is not None:
        placed["started_at"] = utc_timestamp(run.started_at)
        if run.first_token is not None:
            placed["first_token_sec"] = run.first_token - run.started
        if run.node is not None:
            placed["node"] = run.node
        nodes = [part.rpartition(":")[0] or part for part in (run.namespace or "").split("|") if not part.isdigit()]
        if len(nodes) > 1:
            placed["node_path"] = nodes
        if run.agent is not None:
            placed["agent"] = run.agent
    if call.given is not None:
        placed["input_messages"] = ranges(messages[digest] for digest in call.given)
    if call.tools:
        placed["tools"] = ranges(tools[digest] for digest in call.tools)
    if call.gave:
        placed["output_message"] = messages[call.gave[0]]
    if call.parent is not None:
        placed["parent_id"] = call.parent.id
    return placed


def _add_tokens(response: Response, parts: Sequence[Part]) -> Iterable[str]:
    """Add the sums of tokens, if every model call reported them, and yield warnings."""
    calls = [call.call for part in parts for call in _counted_calls(part)]
    failed = [call for call in calls if "error" in call and not any(key in call for key in TOKENS)]
    counted_calls = [call for call in calls if call not in failed]
    cached = sum(call.is_cache_hit for part in parts for call in part.model_calls)
    from_nodes = sum(part.cached_models for part in parts)
    for key in TOKENS:
        if (counted_calls or cached or from_nodes) and all(key in call for call in counted_calls):
            response[key] = sum(call[key] for call in counted_calls)
    unknown = sum(any(key not in call for key in TOKENS) for call in counted_calls)
    number = counted(len(calls), "model call")
    if unknown:
        yield f"{unknown} of {number} did not report all token counts, so the sums are left out"
    unseen = sum(call.is_from_elsewhere for part in parts for call in part.model_calls)
    if unseen:
        are, them = plural(unseen, "is", "are"), plural(unseen, "it: its", "them: their")
        yield f"{unseen} of {number} {are} taken from messages only, as no callback reported {them} times are not known"
    if failed:
        yield f"{len(failed)} of {number} failed; what tokens they used is not known and not counted"
    if cached:
        cost = plural(cached, "costs nothing and is", "cost nothing and are")
        yield f"LangChain's cache answered {counted(cached, 'model call')}, which {cost} not counted"
    if from_nodes:
        cost = plural(from_nodes, "costs nothing and is", "cost nothing and are")
        yield f"LangGraph's node cache answered {counted(from_nodes, 'model call')}, which {cost} not counted"


def steps_of(parts: Sequence[Part]) -> list[Step]:
    """Return the steps of all parts in order; a step that a resumed run continues is listed once, as it ended last."""
    merged: list[Step] = []
    for part in parts:
        earlier = list(merged)
        for step in part.steps:
            same = _same_step(step, earlier)
            if same is None:
                merged.append(step)
                continue
            earlier.remove(same)
            # If a step had ended before the pause, its callbacks reported more than its message, which is seen again.
            if not step.is_from_message or same.status == "pending" or same.is_forced:
                merged[merged.index(same)] = step
    return merged


def _same_step(step: Step, earlier: Sequence[Step]) -> Step | None:
    """Return the step of the paused run that carried out the same call of the same message.

    Without a message it is a call of the same tool with the same id; if there are several, the one with the same
    arguments.
    """
    alike: list[Step] = []
    for other in reversed(earlier) if step.has_call else ():
        if other.has_call and other.id == step.id:
            if other.key is not None and other.key == step.key:
                return other
            if None in (other.key, step.key) and other.name == step.name:
                alike.append(other)
    return next((other for other in alike if other.args == step.args), alike[0] if alike else None)


def actual_step(step: Step, unfinished: str, name: str) -> ActualStep:
    """Return a step that is not pending as the response holds it; ``unfinished`` is the error of an open one."""
    is_success = step.status == "success"
    actual: ActualStep = {
        "name": name,
        "args": to_plain(step.args),
        "id": step.id,
        "status": "success" if is_success else "error",
    }
    if is_success:
        actual["output"] = step.text
        if step.full_length is not None:
            actual["full_length"] = step.full_length
    else:
        actual["error"] = (step.text if step.status == "error" else unfinished) or "unknown error"
    actual["execution_timestamp"] = utc_timestamp(step.started_at)
    if step.elapsed_sec is not None:
        actual[ELAPSED_SEC] = step.elapsed_sec
    if step.parent is not None:
        actual["parent_id"] = step.parent.id
    if step.attempts > 1:
        actual["attempts"] = step.attempts
    if step.is_from_cache:
        actual["cached"] = True
    if step.own is not None and step.own.status == "success":
        actual["tool_output"] = step.own.text
    elif step.own is not None:
        actual["tool_error"] = step.own.text
    if step.artifact is not None:
        actual["artifact"] = to_plain(step.artifact)
    return actual


def utc_timestamp(seconds: float) -> str:
    """Return seconds since 1970 in ISO 8601, as ``2026-01-31T12:00:00.000000Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
