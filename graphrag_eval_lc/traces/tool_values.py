"""The arguments and outputs of tools, unwrapped from what instrumentations put around them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage

from graphrag_eval_lc.capture.values import message_outcome
from graphrag_eval_lc.traces.messages import Message, message_of
from graphrag_eval_lc.traces.values import as_mapping, parsed

# What decorators and LangChain's callbacks add to the arguments.
_ADDED = frozenset(
    {"args", "kwargs", "input_str", "inputs", "tags", "metadata", "sanitize_inputs_outputs", "context", "ctx"}
)

_WRAPPED = ("tool_call_id", '"output"', '"raw_output"')  # in what wraps an output


class ToolOutput(NamedTuple):
    """What a tool returned.

    Attributes:
        value: Its output; None if it failed.
        error: Why it failed.
        call_id: The id of the call that it answers, if the output has it.
    """

    value: Any
    error: str | None = None
    call_id: str | None = None


def tool_args(value: Any, parameters: Sequence[str] = ()) -> Any:
    """Return a tool's arguments: a mapping, or the text of one. Positional arguments get the names of the parameters.

    Example:
        >>> tool_args('{"args": ["a"], "kwargs": {"k": 2}}', ["query", "k"])
        {'query': 'a', 'k': 2}
        >>> tool_args("{'query': 'a'}")
        {'query': 'a'}
    """
    value = as_mapping(value)
    if not isinstance(value, Mapping) or not value.keys() <= _ADDED or not {"kwargs", "input_str"} & value.keys():
        return value
    if "input_str" in value:  # LangChain's callbacks, where kwargs are those of the callback
        inputs = value.get("inputs")
        given = inputs if isinstance(inputs, Mapping) else as_mapping(value["input_str"])
        return given if isinstance(given, Mapping) else {"input": given}
    by_place = value.get("args") or []
    named = value.get("kwargs") or {}
    if not isinstance(by_place, list) or not isinstance(named, Mapping):
        return value
    if len(by_place) == 1 and isinstance(by_place[0], Mapping) and not named and len(parameters) != 1:
        return by_place[0]
    taken = dict(zip(parameters, by_place, strict=False))
    left = by_place[len(taken) :]
    return {**taken, **named, **({"args": left} if left else {})}


def tool_output(value: Any) -> ToolOutput:
    """Return a tool's output without the message or the record around it.

    Example:
        >>> tool_output('{"output": {"type": "tool", "content": "12 lines", "tool_call_id": "a", "status": "success"}}')
        ToolOutput(value='12 lines', error=None, call_id='a')
    """
    if isinstance(value, str) and not any(mark in value for mark in _WRAPPED):
        return ToolOutput(value)  # a plain output, which may be long and need not be parsed
    inner = parsed(value)
    if isinstance(inner, Mapping) and inner.keys() <= {"output", "kwargs"} and "output" in inner:
        inner = inner["output"]
        if isinstance(inner, str):
            return ToolOutput(inner)
        value = inner
    message = _tool_message(inner)
    if message is not None:
        return _of_message(message)
    if isinstance(inner, Mapping) and isinstance(inner.get("blocks"), list) and "raw_output" in inner:
        return _of_blocks(inner)
    return ToolOutput(value)


def _tool_message(value: Any) -> Message | None:
    """Return the message of a tool in an output: the output itself, or the last one in the update of a Command."""
    for item in reversed(value) if isinstance(value, list) else (value,):
        if not isinstance(item, Mapping):
            continue
        update = item.get("update")
        inner = update.get("messages") if isinstance(update, Mapping) else None
        message = _tool_message(inner) if isinstance(inner, list) else message_of(item)
        if message is not None and message.role == "tool" and message.answers:
            return message
    return None


def _of_message(message: Message) -> ToolOutput:
    """Return what LangChain's message of a tool says, as its handler would have it."""
    if not isinstance(message.content, str | list):
        return ToolOutput(message.content, None, message.answers)
    outcome = message_outcome(
        ToolMessage(
            content=message.content,
            tool_call_id=message.answers or "",
            status="error" if message.is_error else "success",
            artifact=message.artifact,
        )
    )
    if outcome.status == "error":
        return ToolOutput(None, outcome.text, message.answers)
    return ToolOutput(outcome.text, None, message.answers)


def _of_blocks(value: Mapping[str, Any]) -> ToolOutput:
    """Return what LlamaIndex's output says, which has the text in blocks, as Python shows it, and the value."""
    texts = [block["text"] for block in value["blocks"] if isinstance(block, Mapping) and "text" in block]
    text = "".join(map(str, texts))
    if value.get("is_error"):
        return ToolOutput(None, text or str(value.get("exception") or "error without a message"))
    raw = value.get("raw_output")
    return ToolOutput(text if raw is None or isinstance(raw, str) else raw)
