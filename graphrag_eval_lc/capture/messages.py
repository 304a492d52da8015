"""Reads messages in any form that LangChain accepts, and finds the question, answer and tool calls in them."""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from itertools import islice
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue
from langgraph.types import Command
from pydantic import BaseModel

from graphrag_eval_lc.capture.values import block_text, message_text, to_plain
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.texts import text_of

_MAX_DEPTH = 4
_MAX_BREADTH = 32  # a state has few fields; longer lists are rows of data, which hold no messages
_TYPES = frozenset({"ai", "tool", "human", "system", "AIMessageChunk"})
_ROLES = frozenset({"assistant", "tool", "user", "human", "ai", "system", "developer"})
USER = "human"
_SAME_ROLES = {"user": USER, "assistant": "ai", "AIMessageChunk": "ai"}
_QUESTION_KEYS = ("messages", "question", "input", "query")
_ANSWER_KEYS = ("answer", "final_answer", "output", "result", "response", "generation")
_NUMBERS = frozenset({int, float, bool})
_VALUES = (list, tuple, set, frozenset, bytes, bytearray, Decimal, date, Enum, int, float, BaseModel)
_UNREAD = ("usage_metadata", "response_metadata", "invalid_tool_calls")  # keys that convert_to_messages ignores
_STRUCTURED_KEY = "structured_response"
_HANDOFF_KEYS = frozenset({"__is_handoff_back", "__handoff_destination"})
_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})


def _is_message(value: object) -> bool:
    """Return whether a value is a message: an object, a dict, or a pair such as ``("user", "Hello")``."""
    if isinstance(value, BaseMessage):
        return True
    if isinstance(value, tuple):
        return len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES
    if not isinstance(value, dict) or "content" not in value:
        return False
    kind, role = value.get("type"), value.get("role")
    return (isinstance(kind, str) and kind in _TYPES) or (isinstance(role, str) and role in _ROLES)


def message_lists(value: Any, depth: int = _MAX_DEPTH) -> list[Sequence[Any]]:
    """Return each list of messages in a node's input or output: a state, a Command, a message, or lists of these."""
    kind = type(value)
    if kind in _SCALARS or depth == 0:
        return []
    if kind is dict and not ("content" in value and _is_message(value)):
        said = value.get("type")  # of any type in a state
        parts = () if isinstance(said, str) and said == "tool_call" and "args" in value else value.values()
    elif isinstance(value, Command):
        parts = (value.update,)
    elif isinstance(value, (list, tuple)):
        first = value[0] if value else None
        if isinstance(first, BaseMessage) or (value and (_is_message(first) or _is_message(value[-1]))):
            return [value]
        parts = value
    elif _is_message(value):
        return [(value,)]
    elif isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
        names = getattr(kind, "model_fields", None) or getattr(value, "__dataclass_fields__", {})
        parts = [getattr(value, name, None) for name in names]
    else:
        return []
    found: list[Sequence[Any]] = []
    for part in islice(parts, _MAX_BREADTH) if depth > 1 else ():
        kind = type(part)
        if kind is list and part and isinstance(part[0], BaseMessage):
            found.append(part)  # as in most states
        elif kind not in _SCALARS:
            found += message_lists(part, depth - 1)
    return found


def as_message(value: Any) -> BaseMessage | None:
    """Return a message object for a message, a dict (as in a remote graph's state) or a pair; else None."""
    if isinstance(value, BaseMessage):
        return value
    try:
        message = convert_to_messages([value])[0] if _is_message(value) else None
        unread = {key: value[key] for key in _UNREAD if value.get(key)} if isinstance(value, dict) else {}
        if unread and isinstance(message, AIMessage):
            return AIMessage(**{**message.model_dump(exclude={"type"}), **unread})
    except Exception:
        return None
    return message


def id_of(item: Any) -> str | None:
    """Return a message's id, in any form of a message."""
    if isinstance(item, BaseMessage):
        return item.id
    identifier = item.get("id") if isinstance(item, Mapping) else None
    return identifier if isinstance(identifier, str) else None


def role_and_content(item: Any) -> tuple[Any, Any]:
    """Return role and content of a message in any form of LangChain: object, dict, pair, bare text.

    They are the same for all copies of a message.
    """
    role: Any = None
    content: Any = None
    if isinstance(item, str):
        role, content = USER, item
    elif isinstance(item, BaseMessage):
        role, content = item.type, item.content
    elif isinstance(item, Mapping):
        role, content = item.get("role", item.get("type")), item.get("content")
    elif isinstance(item, (list, tuple)) and len(item) == 2:
        role, content = item
    return (_SAME_ROLES.get(role, role) if isinstance(role, str) else role), content


def end_of(messages: Sequence[Any], is_last: Callable[[Any], Any]) -> int | None:
    """Return the index after the last message for which ``is_last`` is true, or None."""
    return next((end for end in range(len(messages), 0, -1) if is_last(messages[end - 1])), None)


def field_of(value: Any, key: str) -> Any:
    """Return a value by key from a mapping, or by field name from a model or dataclass; None if it is missing."""
    if isinstance(value, (dict, Mapping)):
        return value.get(key)
    return getattr(value, key, None) if isinstance(value, BaseModel) or is_dataclass(value) else None


def loose_calls(value: Any) -> Sequence[ToolCall]:
    """Return the tool calls that a node's input holds on their own, outside a message."""
    is_mapping = isinstance(value, (dict, Mapping))
    calls: Any = [value["tool_call"]] if is_mapping and "tool_call" in value else value
    if not isinstance(calls, (list, tuple)):
        return ()
    found = (call for call in calls[:_MAX_BREADTH] if isinstance(call, dict) and call.get("type") == "tool_call")
    return [cast("ToolCall", call) for call in found]


def is_interrupted(output: Any) -> bool:
    """Return whether a graph's output says that it is paused."""
    return isinstance(output, Mapping) and bool(output.get("__interrupt__"))


def is_handoff_message(message: AIMessage | ToolMessage) -> bool:
    """Return whether langgraph-supervisor wrote this message to announce a handoff between agents."""
    return not _HANDOFF_KEYS.isdisjoint(message.response_metadata)


def question_in(inputs: Any) -> str | None:
    """Return a root run's question: its input if that is a text, otherwise the user's last message.

    Without messages it is the value of ``question``, ``input`` or ``query``. Only the texts of content blocks count.
    """
    if inputs is None or isinstance(inputs, str):
        return inputs
    if isinstance(inputs, PromptValue):
        inputs = inputs.to_messages()
    if not isinstance(inputs, (list, tuple)) and not _is_message(inputs):
        asked = (question_in(field_of(inputs, key)) for key in _QUESTION_KEYS)
        return next((question for question in asked if question is not None), None)
    messages = [inputs] if _is_message(inputs) else inputs
    if all(isinstance(item, Mapping) and "type" in item and "content" not in item for item in messages):
        return _content_text(messages)  # content blocks without the message around them
    contents = (content for role, content in map(role_and_content, reversed(messages)) if role == USER)
    return next(map(_content_text, contents), None)


def _content_text(content: Any) -> str | None:
    """Return a message's content as text, with each text block on its own line; None if it has no text."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, (list, tuple)) else ()
    return "\n".join(text for text in map(block_text, blocks) if text) or None


def answer_in(
    output: Any,
    is_old: Callable[[Any], bool] = lambda message: False,
    *,
    is_given: Callable[[str], bool] = lambda field: True,
    left_out: Container[str | None] = (),
) -> str | None:
    """Return the answer in a root run's output: this run's last model message that has no tool calls.

    A plain string, number or boolean is the answer itself. If the messages end with tool outputs, as after a tool with
    ``return_direct``, the successful outputs are the answer, joined by line breaks. Without such messages the answer is
    ``structured_response`` as JSON, then the value of ``answer`` or a similar key: texts unchanged, other values as
    JSON. Returns None if nothing matches.

    ``is_old`` returns whether a message, and so every message before it, is older than the run. ``is_given`` returns
    whether this run set a field, as the state of a thread may hold values from earlier runs. Messages with an id in
    ``left_out`` do not count.
    """
    if isinstance(output, str) or type(output) in _NUMBERS:
        return text_of(output)
    structured = field_of(output, _STRUCTURED_KEY) if is_given(_STRUCTURED_KEY) else None
    text = _last_text(output, is_old, has_tools=structured is None, left_out=left_out)
    if structured is not None and not text:
        return structured if isinstance(structured, str) else json_text(structured, to_plain=to_plain)
    keys = ("parsed",) if field_of(output, "raw") is not None else _ANSWER_KEYS
    for key in keys if text is None else ():
        if is_given(key) and (value := field_of(output, key)) is not None:
            text = _last_text(value, is_old, has_tools=True) if isinstance(value, BaseMessage) else value_text(value)
            if text is not None:
                break
    return text


def _last_text(
    output: Any, is_old: Callable[[Any], bool], *, has_tools: bool, left_out: Container[str | None] = ()
) -> str | None:
    """Return the text of the last model message without tool calls, or the tool outputs that end the messages."""
    for messages in message_lists(output):
        given: list[str] = []
        is_end = has_tools
        for item in reversed(messages):
            if left_out and id_of(item) in left_out:
                continue
            message = as_message(item)
            if isinstance(message, AIMessage) and message.tool_calls and is_end and given:
                return "\n".join(reversed(given))
            if is_old(item):
                break
            if isinstance(message, AIMessage) and not message.tool_calls:
                return answer_text(message)
            if not isinstance(message, ToolMessage):
                is_end = False
            elif is_end and message.status != "error" and not is_handoff_message(message):
                given.append(message_text(message))
    return None


def answer_text(message: AIMessage) -> str:
    """Return the text of a model's message, without reasoning and other blocks."""
    content = message.content
    return content if isinstance(content, str) else "".join(block_text(block) or "" for block in content)


def value_text(value: Any) -> str:
    """Return a value as the text of an answer: texts, numbers and dates as they are, anything else as JSON."""
    if type(value) in _NUMBERS:
        return text_of(value)
    plain = to_plain(value)
    return plain if isinstance(plain, str) else json_text(plain)


def whole_answer(output: Any) -> str | None:
    """Return a whole output as the answer, such as a parser's; None for messages, documents and unknown objects."""
    first = output[0] if isinstance(output, (list, tuple)) and output else output
    if isinstance(first, (BaseMessage, PromptValue, Document, Command)) or is_interrupted(output):
        return None
    if isinstance(output, Mapping):
        return None if "messages" in output else value_text(output)
    is_value = isinstance(output, _VALUES) or (is_dataclass(output) and not isinstance(output, type))
    return value_text(output) if is_value else None


def answer_of(output: Any) -> str | None:
    """Return the answer that ``answer_in`` finds, otherwise the whole output as JSON; None only for None."""
    answer = answer_in(output)
    return value_text(output) if answer is None and output is not None else answer


def updates_in(output: Any) -> Iterator[Any]:
    """Yield the state updates in a node's output: the output itself, or the update of each Command in it."""
    for item in output[:_MAX_BREADTH] if isinstance(output, (list, tuple)) else (output,):
        yield item.update if isinstance(item, Command) else item


# --- schemas for structured output: models call them like tools, but no tool runs ---

_RETURNED = "Returning structured response: "
_UNPARSED = re.compile(
    "Error: (?:Failed to parse structured output for tool '|"
    r"Model incorrectly returned multiple structured responses \()([^')]+)"
)
_CLASS_NAME = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")


def is_class_name(name: str) -> bool:
    """Return whether a tool is named like a class, as schemas for structured output are."""
    return _CLASS_NAME.fullmatch(name) is not None


def says_unparsed(message: ToolMessage) -> bool:
    """Return whether a tool message says, in LangChain's words, that structured output did not parse."""
    return _UNPARSED.match(message_text(message)) is not None


def schema_names(messages: Sequence[AIMessage | ToolMessage], output: Any) -> Iterator[str]:
    """Yield the names of the schemas for structured output whose calls are answered by new messages of a node's output.

    LangChain answers such a call with a tool message, as if a tool had run, to close the call or to have the model
    retry it. The model node of ``create_agent`` is recognised by its output, a list of Commands, which other nodes
    with a model hardly ever return.
    """
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    asked = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    if not asked or not answers:
        return
    if isinstance(output, list) and isinstance(output[0], Command):
        answered = {answer.tool_call_id for answer in answers}
        yield from (call["name"] for call in asked if call["id"] in answered)
    for answer in answers:
        text = message_text(answer)
        if text.startswith(_RETURNED) and answer.name is not None:
            yield answer.name
        elif (found := _UNPARSED.match(text)) is not None:
            yield from found[1].split(", ")
    for response in (field_of(update, _STRUCTURED_KEY) for update in updates_in(output)):
        fields = to_plain(response)
        alike = (call for call in asked if is_class_name(call["name"]) and call["args"])
        yield from (call["name"] for call in alike if isinstance(fields, dict) and call["args"].keys() <= fields.keys())
