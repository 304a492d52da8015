"""A span of OpenTelemetry goes in, a call comes out, read by the tables of the conventions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_eval_lc.capture.messages import answer_in, question_in, value_text
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.metrics import INPUT_TOKENS, OUTPUT_TOKENS, TOTAL_TOKENS
from graphrag_eval_lc.texts import text_of
from graphrag_eval_lc.traces.conventions import ANSWER_TOOLS, CONVENTIONS, Keys
from graphrag_eval_lc.traces.messages import Message, last_answer, last_question, messages_in, nested
from graphrag_eval_lc.traces.tool_values import ToolOutput, tool_args, tool_output
from graphrag_eval_lc.traces.values import QUESTION_ID, document, only_text, parsed, text_or_none, user_metadata
from graphrag_eval_lc.traces.whole_traces import CallKind, TracedCall

_VERBS = ("execute_tool ", "running tool: ", "invoke_agent ", "agent run: ", "chat ")
_KINDS_BEHIND = (".tool", ".workflow", ".task", ".agent", ".chat")
# Exceptions that LangGraph uses for hand-overs and interrupts; nothing failed.
_CONTROL_FLOW = frozenset({"GraphBubbleUp", "GraphInterrupt", "NodeInterrupt", "ParentCommand"})
_SHOWN_EVENTS = ("StopEvent(", "AgentOutput(")  # with which LlamaIndex's workflows end
_NO_MODEL = "._prepare_chat_with_tools"  # which OpenInference mistakes for a model call of LlamaIndex
_WORKFLOW = "init_state"  # of LlamaIndex's, whose question is in none of its attributes
_TASK = "task"  # of smolagents, whose attribute smolagents.task has the task before this one
_UNKNOWN = "unknown"  # what Traceloop writes for a model without a name


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a span says, in plain values.

    Attributes:
        trace_id: The trace, in hexadecimal digits.
        id: Its id, likewise.
        parent_id: The span in which it happened.
        name: Its name.
        started: In seconds since 1970.
        ended: Likewise; None if that was not recorded.
        attributes: Its attributes.
        scope: The instrumentation that recorded it.
        has_failed: Whether its status says so; None if it has none.
        message: What its status says.
        exceptions: Type and message of the exceptions among its events.
    """

    trace_id: str
    id: str
    parent_id: str | None
    name: str
    started: float
    ended: float | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    scope: str = ""
    has_failed: bool | None = None
    message: str | None = None
    exceptions: Sequence[tuple[str, str]] = ()


def call_of(span: Span) -> TracedCall:
    """Return a span as a call; one that no convention knows is of the kind ``other``."""
    reader = _SpanReader(span)
    kind = reader.kind()
    if kind == "other" and span.parent_id is None and reader.first("asked") is not None:
        kind = "agent"  # the root of a trace answers, whatever it is called: a graph, a function
    metadata = reader.metadata()
    question_id = metadata.get(QUESTION_ID, span.attributes.get(QUESTION_ID))
    asked = reader.asked() if kind in ("agent", "model") else []
    answered = reader.answered() if kind == "model" else []
    source = span.scope or reader.source()
    name = reader.name(kind)
    answer = reader.answer(kind, answered)
    output = reader.output(kind) if kind in ("tool", "retriever") else ToolOutput(None)
    error = reader.error(output)
    if kind == "tool" and _is_answer(name, source):
        kind, answer, output = "other", None if output.value is None else value_text(output.value), ToolOutput(None)
    is_step = kind in ("tool", "retriever")
    return TracedCall(
        trace_id=span.trace_id,
        id=span.id,
        parent_id=span.parent_id,
        kind=kind,
        name=name,
        started=span.started,
        ended=span.ended,
        error=error,
        args=tool_args(reader.first("args"), reader.parameters()) if is_step else None,
        output=output.value if error is None else None,
        tool_call_id=text_or_none(_unquoted(reader.first("call_id"))) or output.call_id or _call_id_in(span.attributes),
        model=reader.model() if kind == "model" else None,
        tokens=reader.tokens() if kind == "model" else {},
        asked=[call for message in answered for call in message.asked if not _is_answer(call.name, source)],
        question=reader.question(kind, asked),
        answer=answer,
        question_id=None if question_id is None else text_of(question_id),
        metadata=user_metadata(metadata),
        source=source,
    )


def _is_answer(name: str, source: str) -> bool:
    """Return whether a tool is one by which an agent answers."""
    return name.startswith(ANSWER_TOOLS.get(source, ("\0",)))


class _SpanReader:
    """Looks attributes up in the conventions that a span follows."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._attributes = span.attributes
        self._conventions = [
            convention
            for convention in CONVENTIONS
            if any(key.startswith(convention.marks) or key in convention.kinds for key in span.attributes)
        ]

    def first(self, row: str) -> Any:
        """Return the value of the first key in a row of the tables that the span has."""
        return next(self._values(row), None)

    def _values(self, row: str) -> Iterator[Any]:
        for convention in self._conventions:
            keys: Keys = getattr(convention, row)
            yield from (self._attributes[key] for key in keys if self._attributes.get(key) not in (None, ""))

    def source(self) -> str:
        return self._conventions[0].name if self._conventions else ""

    def kind(self) -> CallKind:
        if self._span.name.endswith(_NO_MODEL):
            return "other"
        for convention in self._conventions:
            for key, kinds in convention.kinds.items():
                kind = kinds.get(str(self._attributes.get(key)))
                if kind is not None:
                    return kind
        return self._kind_without_a_name()

    def _kind_without_a_name(self) -> CallKind:
        """Return the kind by what a span has, if no attribute names it."""
        if "gen_ai.tool.name" in self._attributes or "tool_arguments" in self._attributes:
            return "tool"
        if "pydantic_ai.all_messages" in self._attributes or "all_messages_events" in self._attributes:
            return "agent"
        if "gen_ai.request.model" in self._attributes and self.tokens():
            return "model"
        return "other"

    def name(self, kind: CallKind) -> str:
        rows = {"tool": "tool", "agent": "agent", "model": "model"}
        named = self.first(rows[kind]) if kind in rows else None
        if kind == "model":
            named = self.model()
        if isinstance(named, str):
            return named
        name = self._span.name
        for verb in _VERBS:
            name = name.removeprefix(verb)
        for ending in _KINDS_BEHIND:
            name = name.removesuffix(ending)
        return name or self._span.name

    def model(self) -> str | None:
        models = (text_of(model) for model in self._values("model"))
        return next((model for model in models if model != _UNKNOWN), None) or text_or_none(
            self.metadata().get("ls_model_name")
        )

    def parameters(self) -> list[str]:
        """Return the names of a tool's parameters, of a JSON schema those of its properties."""
        found = parsed(self.first("parameters"))
        if not isinstance(found, Mapping):
            return []
        properties = found.get("properties")
        return list(properties if isinstance(properties, Mapping) else found)

    def output(self, kind: CallKind) -> ToolOutput:
        value = self.first("output")
        if kind == "tool":
            return tool_output(value)
        documents = [document(item) for key in self._keys("documents") for item in nested(self._attributes, key)]
        if documents:
            return ToolOutput(documents)
        value = parsed(value)
        if isinstance(value, Mapping) and isinstance(value.get("documents"), list):
            value = value["documents"]
        return ToolOutput([document(item) for item in value] if isinstance(value, list) else value)

    def error(self, output: ToolOutput) -> str | None:
        """Return why the span failed; None if it did not."""
        stated = self.first("error")
        if stated is not None:
            return _error_text(stated)
        exception = next(
            ((kind, text) for kind, text in self._span.exceptions if kind.rpartition(".")[2] not in _CONTROL_FLOW), None
        )
        if self._span.exceptions and exception is None:
            return None
        if output.error is not None:
            return output.error
        cause = self.first("failed")
        if cause is not None:
            return text_of(cause) if output.value is None else value_text(output.value)
        has_failed = self._span.has_failed
        if has_failed is None and output.value is None:
            has_failed = exception is not None or "error.type" in self._attributes
        if not has_failed:
            return None
        if exception is not None:
            kind, text = exception
            if not text and isinstance(output.value, str):
                return output.value  # older versions of pydantic-ai say there what the model is shown
            kind = kind.rpartition(".")[2]
            return f"{kind}: {text}" if kind and text else kind or text
        return self._span.message or text_or_none(self._attributes.get("error.type")) or "error without a message"

    def tokens(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for convention in self._conventions:
            for name, keys in convention.tokens.items():
                counts = (_count(self._attributes.get(key)) for key in keys)
                count = next((count for count in counts if count is not None), None)
                if count is not None:
                    found.setdefault(name, count)
            for key, rows in convention.token_details.items():
                details = parsed(self._attributes.get(key))
                if isinstance(details, Mapping):
                    found = {**_summed(details, rows), **found}
        if TOTAL_TOKENS not in found and {INPUT_TOKENS, OUTPUT_TOKENS} <= found.keys():
            found[TOTAL_TOKENS] = found[INPUT_TOKENS] + found[OUTPUT_TOKENS]
        return found

    def asked(self) -> list[Message]:
        return self._messages("asked_messages", "asked")

    def answered(self) -> list[Message]:
        """Return what a model returned: the last messages, if the request's messages are before them."""
        messages = self._messages("answered_messages", "answered")
        given = next((place for place in range(len(messages), 0, -1) if messages[place - 1].role != "assistant"), 0)
        return messages[given:]

    def _messages(self, flattened: str, whole: str) -> list[Message]:
        for key in self._keys(flattened):
            messages = messages_in(nested(self._attributes, key))
            if messages:
                return messages
        for value in self._values(whole):
            messages = messages_in(value)
            if messages:
                return messages
        return []

    def _keys(self, row: str) -> Iterator[str]:
        for convention in self._conventions:
            yield from getattr(convention, row)

    def question(self, kind: CallKind, asked: Sequence[Message]) -> str | None:
        if kind not in ("agent", "model"):
            return None
        question = last_question(asked)
        if question is not None or kind == "model":
            return question
        return _question_in(self.first("asked"))

    def answer(self, kind: CallKind, answered: Sequence[Message]) -> str | None:
        if kind == "model":
            return last_answer(answered)
        if kind != "agent":
            return None
        for value in self._values("answered"):
            messages = messages_in(value)
            if messages:
                return last_answer(messages)
            value = parsed(value)
            is_shown_none = value == "None" and "smolagents.max_steps" in self._attributes
            if is_shown_none or (isinstance(value, str) and value.startswith(_SHOWN_EVENTS)):
                return None  # the repr of a Python object that is not an answer
            if isinstance(value, Mapping) and value.keys() <= {"outputs", "kwargs"} and "outputs" in value:
                value = value["outputs"]
            answer = answer_in(value)
            return value_text(value) if answer is None else answer
        return last_answer(self.asked())  # pydantic-ai's spans of agents have all messages in one list

    def metadata(self) -> dict[str, Any]:
        """Return what the user put into the trace, and the tags."""
        found: dict[str, Any] = {}
        for value in self._values("metadata"):
            value = parsed(value)
            if isinstance(value, Mapping):
                found = {**value, **found}
        for beginning in self._keys("metadata_parts"):
            for key, value in self._attributes.items():
                if key.startswith(beginning):
                    found.setdefault(key[len(beginning) :], _unquoted(value))
        for tags in (*self._values("tags"), _callback_tags(self._attributes)):
            tags = parsed(tags)
            if isinstance(tags, list):
                found["tags"] = tags
        return found


def _question_in(value: Any) -> str | None:
    """Return the question in the input of an agent that is not a list of messages."""
    value = parsed(value)
    if isinstance(value, Mapping) and _WORKFLOW in value:
        return None
    if isinstance(value, Mapping) and isinstance(value.get("inputs"), Mapping | str):
        value = parsed(value["inputs"])
    if isinstance(value, Mapping) and {"args", "kwargs"} <= value.keys():
        value = tool_args(value)
    if isinstance(value, Mapping) and isinstance(value.get("args"), list) and value["args"]:
        value = {**value, "input": value["args"][0]}
    if isinstance(value, Mapping) and isinstance(value.get(_TASK), str):
        return str(value[_TASK])
    question = question_in(value) if isinstance(value, str | Mapping) else None
    return only_text(value) if question is None and isinstance(value, Mapping) else question


def _callback_tags(attributes: Mapping[str, Any]) -> Any:
    """Return the tags in what Traceloop writes of the callbacks' arguments, of the first call of a trace."""
    if attributes.get("traceloop.span.kind") != "workflow":
        return None
    value = parsed(attributes.get("traceloop.entity.input"))
    return value.get("tags") if isinstance(value, Mapping) else None


def _call_id_in(attributes: Mapping[str, Any]) -> str | None:
    """Return the id of the call in what Traceloop writes of the callbacks' keywords."""
    value = parsed(attributes.get("traceloop.entity.input"))
    kwargs = value.get("kwargs") if isinstance(value, Mapping) else None
    return text_or_none(kwargs.get("tool_call_id")) if isinstance(kwargs, Mapping) else None


def _summed(details: Mapping[str, Any], rows: Mapping[str, Keys]) -> dict[str, int]:
    """Return counts as rows of the tables say, in which a key that ends in ``*`` matches all that begin so."""
    sums: dict[str, int] = {}
    for name, keys in rows.items():
        beginnings = tuple(key[:-1] for key in keys if key.endswith("*"))
        counts = [
            count
            for key, value in details.items()
            if key in keys or (beginnings and key.startswith(beginnings) and "priority" not in key)
            if (count := _count(value)) is not None
        ]
        if counts:
            sums[name] = sum(counts)
    return sums


_MOST_DIGITS = 15


def _count(value: Any) -> int | None:
    """Return a number of tokens; None if it is not a number, or larger than any model has."""
    if isinstance(value, str) and len(value) <= _MOST_DIGITS and value.isdecimal():
        return int(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 10**_MOST_DIGITS else None


def _error_text(value: Any) -> str:
    """Return an error as a text, of OpenAI's Agents SDK with its details next to the message."""
    value = parsed(value)
    if not isinstance(value, Mapping) or not isinstance(value.get("message"), str):
        return text_of(value) if isinstance(value, str) else json_text(value)
    data = value.get("data")
    detail = data.get("error") if isinstance(data, Mapping) else data
    return value["message"] if not detail else f"{value['message']}: {text_of(detail)}"


def _unquoted(value: Any) -> Any:
    """Return the value of a text that Langfuse may have written as JSON."""
    if isinstance(value, str) and value[:1] == '"' == value[-1:] and len(value) > 1:
        inner = parsed(f"[{value}]")
        return inner[0] if isinstance(inner, list) else value
    return parsed(value)
