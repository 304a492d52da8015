"""Builds a question's response from the steps, model calls, answers and warnings of its runs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Literal, cast
from uuid import UUID

from graphrag_eval_lc.capture.llm_calls import Table, ranges
from graphrag_eval_lc.capture.record import NOTHING_LEFT, Thread, Tree
from graphrag_eval_lc.capture.values import CaptureOptions, Outcome, shown_config, to_plain, utc_timestamp
from graphrag_eval_lc.errors import CaptureError
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import PAUSED, ActualStep, ModelCall, Response
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, TOKENS
from graphrag_eval_lc.texts import counted, error_text, listed, plural

_MOST_LISTED = 5
_NOT_ENDED = "Unfinished: the run had not ended when its response was read"
_UNKNOWN_ERROR = "unknown error"  # if redact returns an empty text


@dataclass(slots=True, eq=False, repr=False)
class Step:
    """One step of a run."""

    name: str
    args: dict[str, Any]
    run_id: UUID  # the id of the tool's run, the last one if there were several attempts
    parent: "Step | None"  # the step inside which this one runs
    order: tuple[Any, ...]  # sorts it among the steps with the same parent
    call_id: str | None = None
    has_call: bool = False  # whether a known tool call of a model caused it
    has_message: bool = False  # whether the message with that call is known too
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
        """The id of the tool call or, if it has none, of the run."""
        return self.call_id or str(self.run_id)

    def end(self, kept: Outcome) -> None:
        """Set the outcome, as the handler's options keep it."""
        self.status, self.text, self.artifact, self.full_length, k = kept
        if k is not None and self.args.get("k") is None:
            self.args["k"] = k


@dataclass(slots=True, eq=False, repr=False)
class CountedCall:
    """A model call, completed for the response."""

    call: ModelCall
    parent: Step | None = None  # the step inside which it runs
    problems: Sequence[str] = ()
    is_cache_hit: bool = False
    is_from_elsewhere: bool = False  # whether only a message shows it, one that had an id from the start
    # the digests of its prompt, output and tools, if messages are kept
    given: Sequence[bytes] | None = None
    gave: Sequence[bytes] = ()
    tools: Sequence[bytes] = ()


@dataclass(slots=True, eq=False, repr=False)
class Part:
    """What one run, or one block of code, adds to a response."""

    tree: Tree
    elapsed_sec: float
    error: str | None = None  # redacted
    warnings: list[str] = field(default_factory=list)  # from the interpretation, not from recording
    steps: list[Step] = field(default_factory=list)
    model_calls: list[CountedCall] = field(default_factory=list)
    answer: str | None = None  # the answer; None while the run is paused
    draft: str | None = None  # what the answer of a paused run would be if it ended here
    standing: str | None = None  # the answer in a thread's state, which an earlier run may have written
    # name and id of the calls without an answer, and of structured output that did not parse
    unanswered: list[tuple[str, str | None]] = field(default_factory=list)
    unparsed: list[tuple[str, str | None]] = field(default_factory=list)
    cached_models: int = 0  # how many model calls langgraph's cache of nodes answered
    thread: Thread = NOTHING_LEFT  # what it leaves to the next run
    messages: Table = field(default_factory=dict)  # the messages and tools of its model calls, if they are kept
    tools: Table = field(default_factory=dict)

    def warn_of(self, error: Exception) -> None:
        """Add a warning that a part of the run could not be interpreted."""
        self.warnings.append(f"capture could not interpret a part of the run: {self.kept_error(error_text(error))}")

    def kept_error(self, error: str) -> str:
        """Return an error after redaction."""
        return self.tree.options.kept_text(error, "error", self.warnings) or _UNKNOWN_ERROR


def unfinished_text(error: str | None) -> str:
    """Return the error for a step or model call that was still open when its run ended; ``error`` is the run's."""
    return error or "Unfinished: the run ended before this call did"


def runs_of_responses(trees: Iterable[Tree]) -> list[list[Tree]]:
    """Group trees into responses, in start order: a paused run belongs with the runs that resumed it."""
    responses: list[list[Tree]] = []
    paused: dict[Tree | None, list[Tree]] = {}
    for tree in trees:
        runs = paused.pop(tree.resumes, None)
        if runs is None:
            responses.append(runs := [])
        runs.append(tree)
        if tree.is_paused:
            paused[tree] = runs
    return responses


def runs_of(trees: Iterable[Tree], question_id: object) -> Sequence[Tree]:
    """Return the runs of a question's last response; ``CaptureError`` if none matches or the choice is unclear."""
    responses = runs_of_responses(trees)
    wanted = None if question_id is None else str(question_id)
    ids = [_question_id(runs) for runs in responses]
    found = [runs for runs, each in zip(responses, ids, strict=True) if wanted in (None, each)]
    known = [each for each in dict.fromkeys(ids) if each is not None]
    if found and (wanted is not None or len(found) == 1 or {*ids} == {*known[:1]}):
        return found[-1]
    in_run = 'config={"metadata": {"question_id": ...}}'
    if not responses:
        text = "No run was recorded"
        hint = 'Pass the handler to the agent: config={"callbacks": [handler]}. RemoteGraph.invoke calls no handler: '
        hint += "after it, call handler.add_run(inputs, output)."
    elif wanted is None:
        text = f"{len(responses)} runs were recorded, so it is not clear which one you want"
        hint = f"Give each run {in_run}, or use responses()."
    else:
        text = f"No recorded run has this question id (recorded ids: {', '.join(known)[:500] or 'none'})"
        hint = f"Put the id into the run: {in_run}, or into capture_run(question_id=...); without ids, use response()."
        hint = f"Ask for one of these, or put the id into the run: {in_run}." if known else hint
    raise CaptureError(text, question_id=wanted, hint=hint)


def _question_id(runs: Sequence[Tree]) -> str | None:
    return next((tree.question_id for tree in runs if tree.question_id is not None), None)


def response_from(parts: Sequence[Part], options: CaptureOptions) -> Response:
    """Return the response of one run, or of a paused run and those that resumed it, in start order.

    Steps, tokens and time are added up. The last answer and the last run's status count. The response shares no
    objects with the parts.
    """
    trees, last = [part.tree for part in parts], parts[-1]
    error = last.error if last.tree.has_ended else _NOT_ENDED
    answer = _answer(parts)
    if answer is not None and options.redacts_answers:
        answer = masked_text(answer)
    steps = [step for step in _steps_of(parts) if step.status != "pending"]
    calls = [call for part in parts for call in part.model_calls if not call.is_cache_hit]
    tokens, token_warnings = _tokens(parts, calls)
    run_ids = [str(run_id) for tree in trees for run_id in tree.run_ids]
    tags, metadata = shown_config(trees[0].tags, trees[0].metadata)
    response: dict[str, Any] = {
        "question_id": _question_id(trees),
        "question_text": next((tree.question for tree in trees if tree.question is not None), None),
        "status": "success" if error is None else "error",
        "error": error,
        "actual_answer": answer,
        "actual_steps": [actual_step(step, unfinished_text(error), options.step_name(step.name)) for step in steps],
        **tokens,
        ELAPSED_SEC: sum(part.elapsed_sec for part in parts),
        "started_at": utc_timestamp(trees[0].started_at),
        "run_id": run_ids[0] if run_ids else None,
        "run_ids": run_ids if len(run_ids) > 1 else None,
        "trace_ids": next((tree.trace_ids for tree in trees if tree.trace_ids), None),
        "tags": tags,
        "metadata": metadata,
        "llm_calls": [],
    }
    _add_model_calls(response, parts, calls, options)
    warnings = [warning for part in parts for warning in (*part.tree.warnings, *part.warnings)]
    warnings += [*_step_warnings(parts, steps, options), *_answer_warnings(parts, calls), *token_warnings]
    if last.tree.is_paused and last.tree.has_ended:
        warnings.append(PAUSED)
    messages = response.get("llm_messages", ())
    if cut := sum("full_length" in message for message in messages):
        warnings.append(f"{cut} of {len(messages)} messages were cut to {options.max_output_chars} characters")
    response["capture_warnings"] = list(dict.fromkeys(warnings)) or None
    return cast("Response", {key: value for key, value in response.items() if value is not None})


def _answer(parts: Sequence[Part]) -> str | None:
    """Return the last answer; a paused run's draft counts if the resumed run left it unchanged in the state."""
    last = parts[-1]
    if last.tree.is_paused:
        return None
    drafts = [part.draft for part in parts if part.tree.is_paused]
    if last.answer is None and last.standing is not None and last.standing in drafts:
        return last.standing
    return next((part.answer for part in reversed(parts) if part.answer is not None), None)


def _add_model_calls(
    response: dict[str, Any], parts: Sequence[Part], calls: Sequence[CountedCall], options: CaptureOptions
) -> None:
    """Add the model calls, which refer to kept messages and tools by index."""
    messages: Table = {}
    tools: Table = {}
    for part in parts:
        messages |= part.messages
        tools |= part.tools
    places = {digest: place for table in (messages, tools) for place, digest in enumerate(table)}
    for each in calls:
        call = each.call.copy()
        if each.given is not None:
            call["input_messages"] = ranges(places[digest] for digest in each.given)
        if each.tools:
            call["tools"] = ranges(places[digest] for digest in each.tools)
        if each.gave:
            call["output_message"] = places[each.gave[0]]
        if each.parent is not None:
            call["parent_id"] = each.parent.id
        response["llm_calls"].append(call)
    if options.keep_messages:
        response["llm_messages"] = to_plain(list(messages.values()))
    if tools:
        response["llm_tools"] = to_plain(list(tools.values()))


def _tokens(parts: Sequence[Part], calls: Sequence[CountedCall]) -> tuple[dict[str, int], list[str]]:
    """Return the token sums and warnings; a sum is left out unless every model call reported its count."""
    caches = {
        "LangChain's cache": sum(call.is_cache_hit for part in parts for call in part.model_calls),
        "LangGraph's node cache": sum(part.cached_models for part in parts),
    }
    failed = [each for each in calls if "error" in each.call and not any(key in each.call for key in TOKENS)]
    counted_calls: list[dict[str, Any]] = [dict(each.call) for each in calls if each not in failed]
    sums: dict[str, int] = {}
    for key in TOKENS if counted_calls or any(caches.values()) else ():
        if all(key in call for call in counted_calls):
            sums[key] = sum(call[key] for call in counted_calls)
    warnings: list[str] = []
    number = counted(len(calls), "model call")
    if unknown := sum(any(key not in call for key in TOKENS) for call in counted_calls):
        warnings.append(f"{unknown} of {number} did not report all token counts, so the sums are left out")
    if unseen := sum(call.is_from_elsewhere for call in calls):
        are, them = plural(unseen, "is", "are"), plural(unseen, "it: its", "them: their")
        warnings.append(
            f"{unseen} of {number} {are} taken from messages only, as no callback reported {them} times are not known"
        )
    if failed:
        warnings.append(f"{len(failed)} of {number} failed; what tokens they used is not known and not counted")
    for cache, hits in caches.items():
        if hits:
            cost = plural(hits, "costs nothing and is", "cost nothing and are")
            warnings.append(f"{cache} answered {counted(hits, 'model call')}, which {cost} not counted")
    return sums, warnings


def _step_warnings(parts: Sequence[Part], steps: Sequence[Step], options: CaptureOptions) -> Iterator[str]:
    """Yield warnings about incomplete steps and unanswered calls; calls of a paused run may still be answered."""
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


def _answer_warnings(parts: Sequence[Part], calls: Sequence[CountedCall]) -> Iterator[str]:
    """Yield warnings about problems in models' answers; the warnings number the entries of ``llm_calls`` from 1."""
    if unparsed := [call for part in parts for call in part.unparsed]:
        yield f"structured output of a model that did not parse: {_listed(unparsed)}"
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, call in enumerate(calls, 1):
        for problem in call.problems:
            numbers.setdefault((call.call.get("model", ""), problem), []).append(number)
    for (model, problem), found in numbers.items():
        named = f" ({model})" if model else ""
        yield from (f"model call {number}{named} {problem}" for number in found[:_MOST_LISTED])
        if len(found) > _MOST_LISTED:
            yield f"{len(found) - _MOST_LISTED} more model calls{named}: each {problem}"


def _steps_of(parts: Sequence[Part]) -> list[Step]:
    """Return the steps of all parts in order; a step that a resumed run continues is listed once, in its last version.

    Such a step has the same tool and id. If several match, the one with the same arguments is meant. Two steps whose
    messages are both known belong to different calls.
    """
    merged: list[Step] = []
    for part in parts:
        earlier = list(merged)
        for step in part.steps:
            alike = [
                other
                for other in reversed(earlier)
                if step.has_call and other.has_call and (other.id, other.name) == (step.id, step.name)
                if not (step.has_message and other.has_message)
            ]
            if not alike:
                merged.append(step)
                continue
            same = next((other for other in alike if other.args == step.args), alike[0])
            earlier.remove(same)
            # After the pause the message of a finished step is seen again, but its callbacks had reported more.
            if not step.is_from_message or same.status == "pending" or same.is_forced:
                merged[merged.index(same)] = step
    return merged


def actual_step(step: Step, unfinished: str, name: str) -> ActualStep:
    """Return a step in the response's format, renamed to ``name``; a step still open gets the error ``unfinished``."""
    is_success = step.status == "success"
    error = (step.text if step.status == "error" else unfinished) or _UNKNOWN_ERROR
    own = None if step.own is None else step.own.status
    actual: dict[str, Any] = {
        "name": name,
        "args": to_plain(step.args),
        "id": step.id,
        "status": "success" if is_success else "error",
        "output": step.text if is_success else None,
        "full_length": step.full_length if is_success else None,
        "error": None if is_success else error,
        "execution_timestamp": utc_timestamp(step.started_at),
        ELAPSED_SEC: step.elapsed_sec,
        "parent_id": None if step.parent is None else step.parent.id,
        "attempts": step.attempts if step.attempts > 1 else None,
        "cached": step.is_from_cache or None,
        "tool_output": step.own.text if step.own is not None and own == "success" else None,
        "tool_error": step.own.text if step.own is not None and own != "success" else None,
        "artifact": to_plain(step.artifact),
    }
    return cast("ActualStep", {key: value for key, value in actual.items() if value is not None})
