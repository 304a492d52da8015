"""The messages in what graph nodes take and give, and which of them is the answer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from itertools import islice
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage, convert_to_messages
from pydantic import BaseModel

from graphrag_eval_lc.capture.outputs import is_command, json_text, message_text

_MAX_DEPTH = 4
_MAX_BREADTH = 32  # states are small at the top; rows of data need not be searched for messages
_TYPES = frozenset({"ai", "tool", "human", "system", "AIMessageChunk"})
_ROLES = frozenset({"assistant", "tool", "user", "human", "ai", "system", "developer"})
_CLASSES: dict[Any, type[BaseMessage]] = {"ai": AIMessage, "AIMessageChunk": AIMessage, "tool": ToolMessage}
_COSTS = ("usage_metadata", "response_metadata")
_ANSWER_KEYS = ("answer", "output")
_STRUCTURED_KEY = "structured_response"
_HANDOFF_KEYS = ("__is_handoff_back", "__handoff_destination")
_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})


def _is_message(value: object) -> bool:
    if isinstance(value, BaseMessage):
        return True
    if not isinstance(value, dict) or "content" not in value:
        return False
    return value.get("type") in _TYPES or value.get("role") in _ROLES


def _is_pair(value: object) -> bool:
    """Tell whether an item of a list is a message as ``("user", "Hello")``."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES


def message_lists(value: Any, depth: int = _MAX_DEPTH) -> Iterator[Sequence[Any]]:
    """Give each list of messages in a node's input or output: a state, a Command, a message, or lists of these."""
    if _is_message(value):
        yield (value,)
    elif depth == 0 or type(value) in _SCALARS:
        return
    elif isinstance(value, (list, tuple)):
        if value and any(_is_message(end) or _is_pair(end) for end in (value[0], value[-1])):
            yield value
        else:
            for item in value[:_MAX_BREADTH]:
                if type(item) not in _SCALARS:
                    yield from message_lists(item, depth - 1)
    else:
        for part in islice(_parts(value), _MAX_BREADTH):
            if type(part) not in _SCALARS:
                yield from message_lists(part, depth - 1)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif is_command(value):
        yield value.update
    elif isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
        yield from (getattr(value, name, None) for name in _field_names(value))


def _field_names(value: Any) -> Iterator[str]:
    yield from getattr(type(value), "model_fields", None) or getattr(value, "__dataclass_fields__", {})


def as_message(value: Any) -> BaseMessage | None:
    """Give a message that may be a dict, as in the state of a remote graph, or a pair; None for anything else."""
    if isinstance(value, BaseMessage):
        return value
    if not _is_message(value) and not _is_pair(value):
        return None
    message_class = _CLASSES.get(value.get("type")) if isinstance(value, Mapping) else None
    try:
        if message_class is not None:  # convert_to_messages loses what such a dict says of tokens
            return message_class(**{key: item for key, item in value.items() if key != "type"})
    except Exception:
        pass  # its keys are not those of LangChain's own messages
    try:
        message = convert_to_messages([value])[0]
        told = {key: value[key] for key in _COSTS if value.get(key)} if isinstance(value, dict) else {}
        if told and isinstance(message, AIMessage):
            return AIMessage(**{**message.model_dump(exclude={"type"}), **told})
    except Exception:
        return None
    return message


def unanswered_calls(messages: Sequence[Any]) -> tuple[AIMessage, list[ToolCall]] | None:
    """Give the last model's message of a list, with those of its calls that nobody answered.

    Tool messages may follow it: some of its calls were answered before the run was paused.
    """
    answered: set[str] = set()
    for message in map(as_message, reversed(messages)):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            waiting = [call for call in message.tool_calls if call["id"] not in answered]
            return (message, waiting) if waiting else None
    return None


def tool_calls_in(value: Any) -> list[ToolCall]:
    """Give the tool calls that a node gets as its input without the message around them."""
    if isinstance(value, Mapping):
        value = [value.get("tool_call")]
    if not isinstance(value, (list, tuple)):
        return []
    return [
        cast("ToolCall", call)
        for call in value[:_MAX_BREADTH]
        if isinstance(call, dict) and call.get("type") == "tool_call"
    ]


def is_interrupted(output: Any) -> bool:
    """Tell whether a graph's output says that it waits for somebody."""
    return isinstance(output, Mapping) and bool(output.get("__interrupt__"))


def question_in(inputs: Any) -> str | None:
    """Give what a root run is asked: its input where that is a text, else the last message of the user."""
    if isinstance(inputs, str):
        return inputs
    messages = inputs.get("messages") if isinstance(inputs, Mapping) else inputs
    if not isinstance(messages, (list, tuple)):
        return None
    for item in reversed(messages):
        role, content = role_and_content(item)
        if role in ("human", "user"):
            return content if isinstance(content, str) else None
    return None


def role_and_content(item: Any) -> tuple[Any, Any]:
    """Give role and content of a message in any of the forms that LangChain takes: object, dict, pair, bare text."""
    if isinstance(item, BaseMessage):
        return item.type, item.content
    if isinstance(item, Mapping):
        return item.get("role", item.get("type")), item.get("content")
    if isinstance(item, (list, tuple)) and len(item) == 2:
        return item[0], item[1]
    return ("user", item) if isinstance(item, str) else (None, None)


def answer_in(
    output: Any,
    is_old: Callable[[Any], bool] = lambda message: False,
    *,
    is_given: Callable[[str], bool] = lambda field: True,
) -> str | None:
    """Give the answer in a root run's output: the last model message of this run that asks for no tool.

    A plain string is the answer itself. Where the messages end with what tools gave, as after a tool with
    ``return_direct``, that is the answer, but for their errors; several are joined by line breaks. Without such
    messages it is ``structured_response`` as JSON, or the string under ``answer`` or ``output``; None where there is
    none of these.

    Args:
        output: The output.
        is_old: Tells which messages stood before the run; what stands before one of these does too.
        is_given: Tells whether this run has set a field; the state of a thread may have it from before.
    """
    if isinstance(output, str):
        return output
    structured = _field(output, _STRUCTURED_KEY) if is_given(_STRUCTURED_KEY) else None
    text = _last_text(output, is_old, has_tools=structured is None)
    if text:
        return text
    if structured is not None:
        return structured if isinstance(structured, str) else json_text(structured)
    if text is not None:
        return text
    fields = (_field(output, key) for key in _ANSWER_KEYS if is_given(key))
    return next((value for value in fields if isinstance(value, str)), None)


def answer_fields(output: Any) -> Iterator[str]:
    """Give the names of the fields for answers that a node sets."""
    if isinstance(output, (list, tuple)):
        for item in output[:_MAX_BREADTH]:
            yield from answer_fields(item)
    elif is_command(output):
        yield from answer_fields(output.update)
    else:
        yield from (key for key in (_STRUCTURED_KEY, *_ANSWER_KEYS) if _field(output, key) is not None)


def is_handoff_message(message: AIMessage | ToolMessage) -> bool:
    """Tell whether langgraph-supervisor wrote a message about who goes on: no model and no tool did."""
    return any(key in message.response_metadata for key in _HANDOFF_KEYS)


def _last_text(output: Any, is_old: Callable[[Any], bool], *, has_tools: bool) -> str | None:
    for messages in message_lists(output):
        text = _given_by_tools(messages, is_old) if has_tools else None
        if text is not None:
            return text
        for item in reversed(messages):
            if is_old(item):
                break
            message = as_message(item)
            if isinstance(message, AIMessage) and not message.tool_calls:
                return answer_text(message)
    return None


def _given_by_tools(messages: Sequence[Any], is_old: Callable[[Any], bool]) -> str | None:
    """Give what tools gave where messages end with what a model asked them for."""
    texts: list[str] = []
    for item in reversed(messages):
        message = as_message(item)
        if not isinstance(message, ToolMessage):
            is_asking = isinstance(message, AIMessage) and bool(message.tool_calls)
            return "\n".join(reversed(texts)) if texts and is_asking else None
        if is_old(item):
            return None
        if message.status != "error" and not is_handoff_message(message):
            texts.append(message_text(message))
    return None


def answer_text(message: AIMessage) -> str:
    """Give the text of a model's message, without reasoning and other blocks."""
    if isinstance(message.content, str):
        return message.content
    return "".join(_text_in(block) for block in message.content)


def _text_in(block: Any) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _field(output: Any, key: str) -> Any:
    if isinstance(output, Mapping):
        return output.get(key)
    return getattr(output, key, None) if isinstance(output, BaseModel) or is_dataclass(output) else None
