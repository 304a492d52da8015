"""LangSmith's runs read as calls: exported runs, one by one, and trees of runs with ``child_runs``."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult
from pydantic import BaseModel

from graphrag_eval_lc.capture.llm_calls import generated, model_call
from graphrag_eval_lc.capture.messages import answer_in, answer_text, as_message, question_in
from graphrag_eval_lc.capture.values import message_text, output_text, to_plain
from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.registry.metrics import TOKENS, TOTAL_TOKENS
from graphrag_eval_lc.traces.values import QUESTION_ID, as_mapping, document, only_text, user_metadata
from graphrag_eval_lc.traces.whole_traces import LATEST, AskedCall, CallKind, TracedCall

SOURCE = "langsmith"
_KINDS: Mapping[str, CallKind] = {"llm": "model", "tool": "tool", "retriever": "retriever"}
# Older exports have the counts of a run next to its outputs.
_RUN_TOKENS = dict(zip(("prompt_tokens", "completion_tokens", TOTAL_TOKENS), TOKENS, strict=True))
_CONSTRUCTED = {"lc", "type", "id", "kwargs"}
_OUTPUT = "output"
_DEEPEST = 30  # lists and objects around a message
_EXCEPTION = re.compile(r"(?P<name>[A-Za-z_][\w.]*)\((?P<text>.*)\)", re.DOTALL)


def is_run(record: object) -> bool:
    """Return whether a record is a run of LangSmith."""
    return isinstance(record, Mapping) and "run_type" in record and "id" in record


def langsmith_calls(run: object) -> Iterator[TracedCall]:
    """Yield the calls of a run of LangSmith's client, or the dict of its JSON: itself, and the runs inside it.

    Raises:
        ResponsesError: It is not a run, or lacks its start.

    Example:
        >>> run = {"id": "r", "run_type": "tool", "name": "now", "start_time": "2026-01-31T12:00:00", "inputs": {}}
        >>> [(call.kind, call.name) for call in langsmith_calls(run)]
        [('tool', 'now')]
    """
    pending: list[tuple[object, str | None, str | None]] = [(run, None, None)]
    while pending:
        each, parent, trace = pending.pop()
        record = _record(each)
        call = _call(record, parent, trace)
        yield call
        inner = record.get("child_runs")
        children = inner if isinstance(inner, Sequence) and not isinstance(inner, str) else ()
        pending += [(child, call.id, call.trace_id) for child in reversed(children)]


def _record(run: object) -> Mapping[str, Any]:
    """Return a run's fields; those of a LangSmith client object without its private ones."""
    if isinstance(run, BaseModel):
        return {name: getattr(run, name, None) for name in (*type(run).model_fields, "child_runs")}
    if not is_run(run):
        what = f"a run of LangSmith is an object with id and run_type, not {to_plain(run)!r:.80}"
        raise ResponsesError(what, hint="Give the runs as LangSmith exports them.")
    assert isinstance(run, Mapping)
    return run


def _call(record: Mapping[str, Any], parent: str | None, trace: str | None) -> TracedCall:
    identifier = str(record["id"])
    parent_id = parent or _text(record.get("parent_run_id"))
    kind: CallKind = _KINDS.get(str(record.get("run_type")), "other")
    extra = _mapping(record.get("extra"))
    metadata = _mapping(extra.get("metadata"))
    started = _seconds(record.get("start_time"))
    if started is None:
        raise ResponsesError(
            f"the run {identifier} of LangSmith has no start_time", hint="Export runs with all their fields."
        )
    inputs, outputs = record.get("inputs"), _loaded(record.get("outputs"))
    error = _error_text(record.get("error"))
    known: dict[str, Any] = {}
    if kind == "model":
        known = _model(record, outputs, metadata, extra)
    elif kind == "tool":
        known = _tool(inputs, outputs, extra, error)
    elif kind == "retriever":
        known = {"args": _arguments(inputs), _OUTPUT: None if outputs is None else _documents(outputs)}
    if parent_id is None:
        known |= _first(record, kind, inputs, outputs, metadata)
    return TracedCall(
        **{
            "trace_id": trace or _text(record.get("trace_id")) or identifier,
            "id": identifier,
            "parent_id": parent_id,
            "kind": kind,
            "name": str(record.get("name") or kind),
            "started": started,
            "ended": _seconds(record.get("end_time")),
            "error": error,
            "question_id": _text(metadata.get(QUESTION_ID)),
            "source": SOURCE,
            **known,
        }
    )


def _first(
    record: Mapping[str, Any], kind: CallKind, inputs: object, outputs: object, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """Return question and answer, metadata and tags of the first run of a trace."""
    tags = record.get("tags")
    own = user_metadata(metadata)
    if isinstance(tags, Sequence) and not isinstance(tags, str):
        own["tags"] = [str(tag) for tag in tags]
    return {
        "kind": "agent" if kind == "other" else kind,
        "question": question_in(_question_parts(inputs)),
        "answer": None if outputs is None else _answer(outputs),
        "metadata": own,
    }


def _question_parts(inputs: object) -> object:
    """Return the inputs of a run with LangChain's messages; if no key holds the question, the only text among them."""
    loaded = _loaded(inputs)
    if isinstance(loaded, Mapping) and question_in(loaded) is None:
        return only_text(loaded) or loaded
    return loaded


def _answer(outputs: object) -> str | None:
    answer = answer_in(outputs)
    if answer is None and isinstance(outputs, Mapping) and len(outputs) == 1:
        answer = answer_in(next(iter(outputs.values())))
    return answer


# --- models ---


def _model(
    record: Mapping[str, Any], outputs: object, metadata: Mapping[str, Any], extra: Mapping[str, Any]
) -> dict[str, Any]:
    result = _result(outputs)
    _, message = generated(result)
    call = model_call(result, has_ended=False)
    tokens = {key: value for key, value in call.items() if isinstance(value, int)}
    if not tokens:
        known = {name: record.get(key) for key, name in _RUN_TOKENS.items()}
        tokens = {name: count for name, count in known.items() if isinstance(count, int) and count}
    parameters = _mapping(extra.get("invocation_params"))
    named = parameters.get("model") or parameters.get("model_name")
    model = call.get("model") or metadata.get("ls_model_name") or named
    return {
        "model": _text(model),
        "tokens": tokens,
        "asked": () if message is None else [_asked(call) for call in message.tool_calls],
        "answer": None if message is None else answer_text(message),
        "question": question_in(_question_parts(record.get("inputs"))),
    }


def _asked(call: Mapping[str, Any]) -> AskedCall:
    return AskedCall(id=call.get("id"), name=str(call.get("name")), args=call.get("args"))


def _result(outputs: object) -> LLMResult:
    """Return a model's outputs as LangChain has them, those of OpenAI's own client too."""
    given = _mapping(outputs)
    generation = next(iter(_nested(given.get("generations"))), None)
    usage = next((given[key] for key in ("usage", "usage_metadata") if isinstance(given.get(key), Mapping)), None)
    stated = {str(key): each for key, each in _mapping(given.get("llm_output")).items()}
    llm_output = {**stated, **({} if usage is None else {"usage": usage})}
    if isinstance(given.get("model"), str):
        llm_output["model_name"] = given["model"]
    made: Generation | None = None
    if isinstance(generation, Mapping):
        message, text = as_message(generation.get("message")), generation.get("text")
        info = dict(_mapping(generation.get("generation_info")))
        if isinstance(message, AIMessage):
            made = ChatGeneration(message=message, generation_info=info)
        else:
            made = Generation(text=text if isinstance(text, str) else "", generation_info=info)
    else:
        messages = (as_message(place) for place in (outputs, *_messages(given)))
        message = next((message for message in messages if isinstance(message, AIMessage)), None)
        made = None if message is None else ChatGeneration(message=message)
    return LLMResult(generations=[] if made is None else [[made]], llm_output=llm_output)


def _messages(outputs: Mapping[str, Any]) -> Iterator[object]:
    """Yield the parts of outputs that may be a model's message: a choice of OpenAI's, or a separate key."""
    choices = outputs.get("choices")
    if isinstance(choices, Sequence) and choices:
        yield _mapping(choices[0]).get("message")
    yield outputs.get("message")
    yield outputs.get(_OUTPUT)


def _nested(generations: object) -> Iterator[object]:
    if isinstance(generations, Sequence) and not isinstance(generations, str):
        for each in generations:
            if isinstance(each, Sequence) and not isinstance(each, str):
                yield from each
            else:
                yield each


# --- tools and retrievers ---


def _tool(inputs: object, outputs: object, extra: Mapping[str, Any], error: str | None) -> dict[str, Any]:
    given = outputs
    if isinstance(outputs, Mapping) and outputs.keys() == {_OUTPUT}:
        given = outputs[_OUTPUT]
    message = given if isinstance(given, BaseMessage) else None
    is_error = isinstance(message, ToolMessage) and message.status == "error"
    text = None if given is None else output_text(given)
    return {
        "args": _arguments(inputs),
        "tool_call_id": _text(extra.get("tool_call_id")) or _text(getattr(message, "tool_call_id", None)),
        **({"error": message_text(message)} if is_error and message is not None and not error else {_OUTPUT: text}),
    }


def _arguments(inputs: object) -> object:
    """Return the arguments of a call; older tracers have them as the text of a dict of Python under ``input``."""
    given = _mapping(inputs)
    if given.keys() == {"input"}:
        read = as_mapping(given["input"])
        given = read if isinstance(read, Mapping) else given
    return to_plain(given)


def _documents(outputs: object) -> str:
    """Return a retriever's documents as the capture handler has them: a JSON array of ``{id, text}``."""
    documents = outputs.get("documents") if isinstance(outputs, Mapping) else outputs
    if not isinstance(documents, Sequence) or isinstance(documents, str):
        return output_text(outputs)
    return output_text([document(each) for each in documents])


# --- values ---


def _error_text(value: object) -> str | None:
    """Return an error as the capture handler writes it: ``ValueError: no`` of ``ValueError('no')Traceback (…``."""
    text = str(value).partition("Traceback (most recent call last)")[0].strip() if value else ""
    if not text:
        return str(value) if value else None
    if found := _EXCEPTION.fullmatch(text):
        message = _literal_text(found["text"])
        return f"{found['name']}: {message}" if message else found["name"]
    return text


def _literal_text(text: str) -> str:
    """Return the value of a Python string literal (of several, the first); the text itself if it is not one."""
    try:
        value = ast.literal_eval(f"({text},)" if text else "('',)")[0]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def _loaded(value: Any, depth: int = _DEEPEST) -> Any:
    """Return a value with its messages as LangChain's, also those that were written as constructors.

    Values that are nested more deeply than messages are left unchanged.
    """
    if depth == 0:
        return value
    if isinstance(value, Mapping):
        if value.keys() >= _CONSTRUCTED and isinstance(value["kwargs"], Mapping):
            return _constructed(value, depth)
        if "content" in value and (message := as_message(dict(value))) is not None:
            return message
        return {key: _loaded(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_loaded(each, depth - 1) for each in value]
    return value


def _constructed(value: Mapping[str, Any], depth: int) -> Any:
    """Return what LangChain serialised as a constructor: a message, else its arguments. Nothing is imported."""
    arguments = {key: _loaded(each, depth - 1) for key, each in value["kwargs"].items()}
    if "content" in arguments and "type" not in arguments:
        names = value["id"] if isinstance(value["id"], list) else []
        kind = str(names[-1] if names else "").removesuffix("Chunk").removesuffix("Message").lower()
        arguments["type"] = {"chat": "human", "function": "tool"}.get(kind, kind)
    if "content" in arguments and (message := as_message(arguments)) is not None:
        return message
    return arguments


def _seconds(value: object) -> float | None:
    """Return a time in seconds since 1970; one without a zone is UTC."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value < LATEST * 1000:
            return None
        seconds = value / 1000 if value > 1e11 else float(value)  # milliseconds, as some exports have
        return seconds if seconds < LATEST else None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    seconds = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return seconds if 0 <= seconds < LATEST else None  # near the years 1 and 9999 the time may not exist in UTC


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
