"""Messages to and from models, in any tracer's form, go in; their roles, texts and requested tool calls come out."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.traces.values import parsed
from graphrag_eval_lc.traces.whole_traces import AskedCall

_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "AIMessageChunk": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "tool-response": "tool",
    "tool-call": "assistant",
    "function": "tool",
}
_CLASSES = {"HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool"}
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_DEEPEST = 5
_MOST_PARTS = 1000


class Message(NamedTuple):
    """One message.

    Attributes:
        role: user, assistant, system or tool.
        text: Its text; None if it has none.
        asked: The tool calls that it requests.
        answers: The id of the call that it answers.
        is_error: Whether it says that the call failed.
        artifact: What LangChain's tool returned next to its text.
        content: The content, unchanged.
    """

    role: str
    text: str | None
    asked: Sequence[AskedCall] = ()
    answers: str | None = None
    is_error: bool = False
    artifact: Any = None
    content: Any = None


def messages_in(value: Any, depth: int = _DEEPEST) -> list[Message]:
    """Return the messages of a list, a state or a text of JSON, in their order.

    Example:
        >>> [(message.role, message.text) for message in messages_in('{"messages": [["user", "why?"]]}')]
        [('user', 'why?')]
    """
    value = parsed(value)
    message = message_of(value)
    if message is not None:
        return [message]
    if depth == 0:
        return []
    if isinstance(value, Mapping):
        parts = ("inputs", "outputs", "update", "messages", "message", "generations", "input", "output", "choices")
        found = (messages_in(value[part], depth - 1) for part in parts if isinstance(value.get(part), Mapping | list))
        return next((messages for messages in found if messages), [])
    if not isinstance(value, list):
        return []
    return [message for item in value[-_MOST_PARTS:] for message in messages_in(item, depth - 1)]


def message_of(value: Any) -> Message | None:
    """Return a message; None for anything else.

    Example:
        >>> message_of({"role": "assistant", "content": "42"}).text
        '42'
    """
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value):
        return Message(_ROLES[value[0]], value[1], content=value[1]) if value[0] in _ROLES else None
    if not isinstance(value, Mapping):
        return None
    fields = _langchain_fields(value)
    role = _role_of(fields)
    if role is None:
        return _openai_item(fields)
    content = fields.get("content")
    if content is None:
        content = next((fields[key] for key in ("parts", "blocks", "contents") if fields.get(key)), None)
    blocks = [_block(block) for block in content[:_MOST_PARTS]] if isinstance(content, list) else ()
    asked = [*_asked(fields.get("tool_calls")), *(call for block in blocks for call in _asked_in(block))]
    if isinstance(fields.get("function_call"), Mapping):
        asked.extend(_asked([fields["function_call"]]))
    answers = fields.get("tool_call_id") or next(filter(None, map(_answered_id, blocks)), None)
    return Message(
        "tool" if role == "user" and answers else role,
        content if isinstance(content, str) else _text_of(blocks),
        asked,
        str(answers) if answers else None,
        fields.get("status") == "error",
        fields.get("artifact"),
        content,
    )


def _langchain_fields(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message; LangChain serialises its messages in several forms."""
    if isinstance(value.get("kwargs"), Mapping) and isinstance(value.get("id"), list) and value["id"]:
        kwargs: Mapping[str, Any] = value["kwargs"]
        role = _CLASSES.get(str(value["id"][-1]).removesuffix("Chunk"))
        return {**kwargs, "role": role} if role is not None else kwargs
    data = value.get("data")
    if isinstance(data, Mapping) and "content" in data and isinstance(value.get("type"), str):
        return {**data, "type": value["type"]}
    message = value.get("message")
    if isinstance(message, Mapping) and "content" not in value and "parts" not in value:
        return message  # OpenInference's, or a choice
    return value


def _role_of(fields: Mapping[str, Any]) -> str | None:
    if not {"content", "parts", "blocks", "contents", "tool_calls"} & fields.keys():
        return None
    for key in ("role", "type"):
        role = fields.get(key)
        if isinstance(role, Mapping):  # an enum that was written with its parts
            role = role.get("value")
        if isinstance(role, str) and role.rpartition(".")[2].lower() in _ROLES:
            return _ROLES[role.rpartition(".")[2].lower()]
        if isinstance(role, str) and role in _ROLES:
            return _ROLES[role]
    return None


def _openai_item(fields: Mapping[str, Any]) -> Message | None:
    """Return an item of OpenAI's Responses API that is a call, or what a call returned, and not a message."""
    kind = fields.get("type")
    if kind == "function_call" and isinstance(fields.get("name"), str):
        return Message("assistant", None, [_call(fields.get("call_id"), fields["name"], fields.get("arguments"))])
    if kind == "function_call_output":
        output = fields.get("output")
        return Message("tool", output if isinstance(output, str) else json_text(output), (), fields.get("call_id"))
    return None


def _block(block: Any) -> Any:
    """Return a content block; OpenInference wraps it in ``message_content``."""
    inner = block.get("message_content") if isinstance(block, Mapping) else None
    return inner if isinstance(inner, Mapping) else block


def _text_of(blocks: Sequence[Any]) -> str | None:
    texts = [text for block in blocks if (text := _block_text(block)) is not None]
    return "".join(texts) if texts else None


def _block_text(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        return None
    kind = block.get("type", block.get("block_type", block.get("kind", "text")))
    if not isinstance(kind, str) or kind not in _TEXT_TYPES:
        return None
    text = block.get("text", block.get("content"))
    return text if isinstance(text, str) else None


def _asked(calls: Any) -> Iterator[AskedCall]:
    """Yield the calls in a message's list of them."""
    for call in islice(calls, _MOST_PARTS) if isinstance(calls, list) else ():
        inner = call.get("tool_call", call) if isinstance(call, Mapping) else None
        if not isinstance(inner, Mapping):
            continue
        function = inner.get("function")
        named = function if isinstance(function, Mapping) else inner
        if isinstance(named.get("name"), str):
            args = next((named[key] for key in ("args", "arguments", "input") if named.get(key) is not None), None)
            yield _call(inner.get("id", inner.get("call_id")), named["name"], args)


def _asked_in(block: Any) -> Iterator[AskedCall]:
    """Yield the tool call that a content block requests."""
    if not isinstance(block, Mapping):
        return
    if block.get("type") in ("tool_call", "tool_use") and "name" in block:
        yield from _asked([block])
    elif isinstance(block.get("tool_name"), str) and "tool_kwargs" in block:  # LlamaIndex's
        yield _call(block.get("tool_call_id"), block["tool_name"], block["tool_kwargs"])


def _answered_id(block: Any) -> Any:
    is_answer = isinstance(block, Mapping) and block.get("type") in ("tool_call_response", "tool_result")
    return block.get("id", block.get("tool_use_id")) if is_answer else None


def _call(identifier: Any, name: str, args: Any) -> AskedCall:
    args = parsed(args)
    return AskedCall(
        id=str(identifier) if identifier else None, name=name, args={} if args is None or args == "" else args
    )


def last_question(messages: Sequence[Message]) -> str | None:
    """Return the text of a user's last message; None without one."""
    texts = (message.text for message in reversed(messages) if message.role == "user" and message.text)
    return next(texts, None)


def last_answer(messages: Sequence[Message]) -> str | None:
    """Return the text of a model's last message without a tool call, or None."""
    texts = (message.text for message in reversed(messages) if message.role == "assistant" and not message.asked)
    return next(texts, None)


def nested(attributes: Mapping[str, Any], beginning: str) -> list[Any]:
    """Return a list that is flattened in attributes: ``beginning.0.role`` is the role of its first element.

    Example:
        >>> nested({"m.0.role": "user", "m.0.calls.0.id": "a", "m.1.role": "tool"}, "m")
        [{'role': 'user', 'calls': [{'id': 'a'}]}, {'role': 'tool'}]
    """
    tree: dict[str, Any] = {}
    start = beginning + "."
    for key, value in attributes.items():
        if not key.startswith(start):
            continue
        at = tree
        *above, last = key[len(start) :].split(".")
        for part in above:
            inner = at.setdefault(part, {})
            if not isinstance(inner, dict):
                break
            at = inner
        else:
            at.setdefault(last, value)
    value = _lists(tree)
    return value if isinstance(value, list) else []


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdecimal() for key in value):
        return [_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _lists(item) for key, item in value.items()}
