"""The calls of a trace go in; the response to its question comes out, as capture would have recorded it."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, cast

from graphrag_eval_lc.capture.messages import is_class_name
from graphrag_eval_lc.capture.values import output_text, shown_config, to_plain, utc_timestamp
from graphrag_eval_lc.dataset.loading import questions_of
from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.records import ActualStep, ModelCall, Response, Template
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, TOKENS
from graphrag_eval_lc.texts import counted, listed, shortened
from graphrag_eval_lc.traces.langsmith import SOURCE as LANGSMITH
from graphrag_eval_lc.traces.whole_traces import TracedCall

_UNFINISHED = "Unfinished: the trace does not say how the call ended"
_STEPS = ("tool", "retriever")


def responses_of(calls: Sequence[TracedCall]) -> Iterator[Response]:
    """Yield the responses in a trace: one, or one for each call with a question id if these differ.

    Example:
        >>> calls = [
        ...     TracedCall(trace_id="t", id="1", parent_id=None, kind="agent", name="a", started=0, question="1 + 1?"),
        ...     TracedCall(trace_id="t", id="2", parent_id="1", kind="tool", name="add", started=1, args={"a": 1}),
        ... ]
        >>> (response,) = responses_of(calls)
        >>> response["question_text"], [step["name"] for step in response["actual_steps"]]
        ('1 + 1?', ['add'])
    """
    tree = _Tree(calls)
    heads = tree.heads()
    if len({head.question_id for head in heads}) > 1:
        for head in heads:
            yield _Trace(head, _Tree([head, *tree.inside(head)])).response()
    elif calls:
        yield _Trace(heads[0] if heads else tree.first, tree).response()


class _Tree:
    """The calls of a trace as a tree, by parent, in the order of their starts."""

    def __init__(self, calls: Iterable[TracedCall]) -> None:
        self.calls = sorted(calls, key=lambda call: call.started)
        self.by_id = {call.id: call for call in self.calls}
        self._children: dict[str | None, list[TracedCall]] = {}
        for call in self.calls:
            self._children.setdefault(self._parent_id(call), []).append(call)

    @property
    def first(self) -> TracedCall:
        """The first call without a parent; the first of all if parents form a cycle."""
        return self._children.get(None, self.calls)[0]

    def _parent_id(self, call: TracedCall) -> str | None:
        # A parent may be in a trace that was not exported, as that of a web server.
        return call.parent_id if call.parent_id in self.by_id and call.parent_id != call.id else None

    def outer(self, call: TracedCall) -> Iterator[TracedCall]:
        """Yield the calls in which a call happened, the nearest first."""
        seen = {call.id}
        while (parent := self._parent_id(call)) is not None and parent not in seen:
            seen.add(parent)
            call = self.by_id[parent]
            yield call

    def inside(self, call: TracedCall) -> Iterator[TracedCall]:
        """Yield the calls that happened in a call."""
        pending = list(self._children.get(call.id, ()))
        seen = {call.id}
        while pending:
            each = pending.pop()
            if each.id not in seen:
                seen.add(each.id)
                yield each
                pending += self._children.get(each.id, ())

    def heads(self) -> list[TracedCall]:
        """Return the outermost calls with a question id."""
        named = [call for call in self.calls if call.question_id is not None]
        return [call for call in named if not any(each.question_id is not None for each in self.outer(call))]


class _Asked(NamedTuple):
    """A call that a model requested: the index of the model call, and of the request in it."""

    number: int
    position: int


class _Trace:
    """The calls of one question.

    Args:
        head: The call that has its question.
        tree: All its calls.
    """

    def __init__(self, head: TracedCall, tree: _Tree) -> None:
        self._head = head
        self._tree = tree
        self._models = [call for call in tree.calls if call.kind == "model" and not self._is_in(call, ("model",))]
        self._steps = [
            call
            for call in tree.calls
            if call.kind == "tool" or (call.kind == "retriever" and not self._is_in(call, _STEPS))
        ]
        self._model_starts = [model.started for model in self._models]
        self._calls_by_id: dict[str, list[_Asked]] = {}
        for number, model in enumerate(self._models):
            for position, asked in enumerate(model.asked):
                if asked.id is not None:
                    self._calls_by_id.setdefault(asked.id, []).append(_Asked(number, position))
        steps = {call.id for call in self._steps}
        self._around = {
            call.id: next((each.id for each in tree.outer(call) if each.id in steps), None) for call in self._steps
        }

    def response(self) -> Response:
        """Return the response."""
        head, outermost = self._head, self._outermost()
        response: Response = {} if head.question_id is None else {"question_id": head.question_id}
        if (question := self._question()) is not None:
            response["question_text"] = question
        error = next((call.error for call in (head, *outermost) if call.error is not None), None)
        response["status"] = "success" if error is None else "error"
        if error is not None:
            response["error"] = error
        elif (answer := self._answer()) is not None:
            response["actual_answer"] = answer
        response["actual_steps"] = [self._actual_step(attempts) for attempts in self._attempts()]
        warnings = [*self._unfinished(), *self._unanswered(), *self._add_tokens(response)]
        ends = [call.ended for call in self._tree.calls if call.ended is not None]
        ended = head.ended if head.ended is not None else max(ends, default=None)
        if ended is not None:
            response[ELAPSED_SEC] = max(0.0, ended - head.started)
        response["started_at"] = utc_timestamp(head.started)
        response["run_id"] = head.trace_id
        response["trace_ids"] = _trace_ids(head)
        self._add_config(response, outermost)
        response["llm_calls"] = [_model_call(call) for call in self._models]
        if warnings:
            response["capture_warnings"] = warnings
        return response

    def _outermost(self) -> list[TracedCall]:
        """Return the calls around the head, the outermost first."""
        return list(reversed(list(self._tree.outer(self._head))))

    def _is_in(self, call: TracedCall, kinds: Sequence[str]) -> bool:
        return any(each.kind in kinds for each in self._tree.outer(call))

    def _question(self) -> str | None:
        calls = (self._head, *self._outermost(), *self._tree.calls)
        return next((call.question for call in calls if call.question is not None), None)

    def _answer(self) -> str | None:
        """Return the answer of the head, of the agent, or of the last model that requested no tool."""
        for call in (self._head, *self._outermost()):
            if call.answer is not None:
                return call.answer
        agents = [call for call in self._tree.calls if call.kind == "agent" and not self._is_in(call, _STEPS)]
        outer = [call for call in agents if not self._is_in(call, ("agent",))]
        for call in (*reversed(outer), *reversed(agents)):
            if call.answer is not None:
                return call.answer
        models = [call for call in self._models if not call.asked and not self._is_in(call, _STEPS)]
        return next((call.answer for call in reversed(models) if call.answer is not None), None)

    # --- steps ---

    def _ordered(self) -> list[TracedCall]:
        """Return the steps in the order in which models requested them, each followed by its nested steps."""
        inner: dict[str | None, list[TracedCall]] = {}
        for step in self._steps:
            inner.setdefault(self._around[step.id], []).append(step)
        ordered: list[TracedCall] = []
        pending = sorted(inner.get(None, ()), key=self._place, reverse=True)
        while pending:
            step = pending.pop()
            ordered.append(step)
            pending += sorted(inner.get(step.id, ()), key=self._place, reverse=True)
        return ordered

    def _place(self, step: TracedCall) -> tuple[float, float, float]:
        """Return the sort key of a step: after which model call, as which of its requests, and when."""
        before = bisect_right(self._model_starts, step.started)
        known = self._calls_by_id.get(step.tool_call_id, ()) if step.tool_call_id is not None else ()
        if (asked := _last_before(known, before)) is not None:
            return asked.number, asked.position, step.started
        return before - 1, inf, step.started

    def _attempts(self) -> list[list[TracedCall]]:
        """Return the attempts at each step: after a failure, the same request of a model ran again."""
        found: list[list[TracedCall]] = []
        of_request: dict[tuple[Any, ...], list[TracedCall]] = {}
        for call in self._ordered():
            # Some servers use the same ids after each message.
            request = (call.tool_call_id or call.id, *self._place(call)[:2], call.name, json_text(call.args))
            attempts = of_request.get(request, ())
            if attempts and attempts[-1].error is not None and (attempts[-1].ended or inf) <= call.started:
                of_request[request].append(call)
            else:
                of_request[request] = [call]
                found.append(of_request[request])
        return found

    def _actual_step(self, attempts: Sequence[TracedCall]) -> ActualStep:
        first, call = attempts[0], attempts[-1]
        args = to_plain(call.args)
        step: dict[str, Any] = {
            "name": call.name,
            "args": args if isinstance(args, dict) else {} if args is None else {"input": args},
            "id": call.tool_call_id or call.id,
            "status": "success",
        }
        if call.error is not None or (call.ended is None and call.output is None):
            step |= {"status": "error", "error": _UNFINISHED if call.error is None else call.error}
        else:
            step["output"] = output_text(call.output)
        step["execution_timestamp"] = utc_timestamp(first.started)
        if call.ended is not None:
            step[ELAPSED_SEC] = max(0.0, call.ended - first.started)
        if len(attempts) > 1:
            step["attempts"] = len(attempts)
        if (around := self._around[call.id]) is not None:
            outer = self._tree.by_id[around]
            step["parent_id"] = outer.tool_call_id or outer.id
        return cast("ActualStep", step)

    # --- tokens, tags, warnings ---

    def _add_tokens(self, response: Response) -> Iterator[str]:
        """Add the sums of tokens, if every model call reports them."""
        reporting = [call for call in self._models if call.error is None or any(map(call.tokens.get, TOKENS))]
        number, failed = counted(len(self._models), "model call"), len(self._models) - len(reporting)
        for key in TOKENS:
            if reporting and all(key in call.tokens for call in reporting):
                response[key] = sum(call.tokens[key] for call in reporting)
        unknown = sum(any(key not in call.tokens for key in TOKENS) for call in reporting)
        if unknown:
            yield f"{unknown} of {number} did not report all token counts, so the sums are left out"
        if failed:
            yield f"{failed} of {number} failed; what tokens they used is not known and not counted"

    def _add_config(self, response: Response, outermost: Iterable[TracedCall]) -> None:
        metadata: dict[str, Any] = {}
        for call in (*outermost, self._head):
            metadata |= call.metadata
        tags = metadata.pop("tags", None)
        names = [str(tag) for tag in tags] if isinstance(tags, Sequence) and not isinstance(tags, str) else []
        response["tags"], response["metadata"] = shown_config(names, metadata)

    def _unfinished(self) -> Iterator[str]:
        open_steps = [step for step in self._steps if step.ended is None and step.error is None and step.output is None]
        if open_steps:
            names = listed([step.name for step in open_steps])
            yield f"the trace does not say how these ended, and they count as errors: {names}"

    def _unanswered(self) -> Iterator[str]:
        """Yield warnings about calls that models requested and that the trace lacks.

        A call of a schema, named like a class, is structured output, which its node reads.
        """
        taken = {step.tool_call_id for step in self._steps} - {None}
        ran = {step.name for step in self._steps}
        missing = [
            asked
            for model in self._models
            for asked in model.asked
            if asked.id is not None and asked.id not in taken and (asked.name in ran or not is_class_name(asked.name))
        ]
        if missing and taken:
            names = listed([f"{asked.name} ({asked.id})" for asked in missing])
            yield f"requested by a model and never answered, so their outputs are not known: {names}"
        elif missing and not self._steps:
            yield (
                f"models asked for {counted(len(missing), 'tool call')} and the trace has none: "
                "is the tracer set to leave tools out?"
            )


def _trace_ids(head: TracedCall) -> dict[str, str]:
    if head.source == LANGSMITH:
        return {"langsmith": head.id}
    return {"opentelemetry": head.trace_id, "opentelemetry_span": head.id}


def _last_before(asked: Sequence[_Asked], before: int) -> _Asked | None:
    """Return the first of the calls that the last model call before the one numbered ``before`` requested."""
    at = bisect_left(asked, before, key=lambda each: each.number)
    if not at:
        return None
    return asked[bisect_left(asked, asked[at - 1].number, key=lambda each: each.number)]


def _model_call(call: TracedCall) -> ModelCall:
    record: dict[str, Any] = {} if call.model is None else {"model": call.model}
    record |= _tokens(call.tokens)
    if call.ended is not None:
        record[ELAPSED_SEC] = max(0.0, call.ended - call.started)
    if call.error is not None:
        record["error"] = call.error
    record["started_at"] = utc_timestamp(call.started)
    return cast("ModelCall", record)


def _tokens(tokens: Mapping[str, int]) -> dict[str, int]:
    known = ModelCall.__annotations__
    return {key: count for key, count in tokens.items() if key in known}


_BLANKS = re.compile(r"\s+")
_SHOWN = 60
_MOST_SHOWN = 3


class QuestionIds:
    """Assigns to responses the ids of the questions that they answer.

    If several traces answer the same question, each becomes one repeat, in the order given.

    Args:
        templates: The dataset; None: only the ids in the traces are known.

    Attributes:
        unknown: The questions in the traces that are not in the dataset; None for a trace without a question.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "How many lines?"}]}]
        >>> response = QuestionIds(dataset).named({"question_text": " how many  lines? "})
        >>> response["question_id"]
        'q1'
    """

    def __init__(self, templates: Iterable[Template] | None) -> None:
        self.unknown: list[str | None] = []
        self._ids: set[str] | None = None if templates is None else set()
        self._by_text: dict[str, dict[str, None]] = {}
        self._by_folded: dict[str, dict[str, None]] = {}
        self._repeats: dict[str, int] = {}
        for _, question in questions_of(list(templates or ())):
            identifier, text = str(question["id"]), str(question["question_text"])
            assert self._ids is not None
            self._ids.add(identifier)
            self._by_text.setdefault(text, {})[identifier] = None
            self._by_folded.setdefault(_folded(text), {})[identifier] = None

    def named(self, response: Response) -> Response | None:
        """Return a response with its question's id, and its repeat from the second on; None if none has it.

        Raises:
            ResponsesError: Several questions have its text.
        """
        identifier = self._id_of(response)
        if identifier is None:
            self.unknown.append(response.get("question_text"))
            return None
        repeat = self._repeats[identifier] = self._repeats.get(identifier, 0) + 1
        named: dict[str, Any] = {"question_id": identifier}
        if repeat > 1:
            named["repeat"] = repeat
        rest: Any = {key: value for key, value in response.items() if key not in named}
        return {**named, **rest}  # type: ignore[return-value]

    def warnings(self) -> Iterator[str]:
        """Say which traces were left out."""
        if not self.unknown:
            return
        number = len(self.unknown)
        texts = list(dict.fromkeys(text for text in self.unknown if text is not None))
        shown = "; ".join(f"“{shortened(text, _SHOWN)}”" for text in texts[:_MOST_SHOWN])
        more = f" and {len(texts) - _MOST_SHOWN:,} more" if len(texts) > _MOST_SHOWN else ""
        if self._ids is None:
            yield (
                f"{counted(number, 'trace tells', 'traces tell')} no question id and {'is' if number == 1 else 'are'} "
                "left out; a dataset (--dataset) finds the ids by the questions' texts"
            )
            return
        shown_texts = f": {shown}{more}" if shown else ", and they name no question"
        yield f"{counted(number, 'trace is', 'traces are')} of no question of the dataset and left out{shown_texts}"

    def _id_of(self, response: Response) -> str | None:
        given = response.get("question_id")
        if self._ids is None or given in self._ids:
            return given
        text = response.get("question_text")
        if text is None:
            return given
        found = self._by_text.get(text) or self._by_folded.get(_folded(text)) or {}
        if len(found) > 1:
            raise ResponsesError(
                f"{len(found)} questions have the text of a trace, “{shortened(text, _SHOWN)}”: {listed(list(found))}",
                hint='Name the right one when you ask the agent: {"metadata": {"question_id": …}}.',
            )
        return next(iter(found), given)


def _folded(text: str) -> str:
    """Return a text for comparison, with normalised white space, case and Unicode form."""
    return _BLANKS.sub(" ", unicodedata.normalize("NFKC", text)).strip().casefold()
