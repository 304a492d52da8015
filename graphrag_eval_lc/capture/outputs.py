"""What a tool takes and gives, as plain JSON values and as text, and how its call ended."""

import base64
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import Any, Literal, NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage
from pydantic import BaseModel

from graphrag_eval_lc.json_values import json_number, json_text, parse_json
from graphrag_eval_lc.texts import text_of

_MAX_DEPTH = 60
_MAX_BREADTH = 1000  # of a list, from its end, in which tool messages are looked for
_CLEAR_TYPES = frozenset({str, bool, type(None)})


def to_plain(value: Any) -> Any:
    """Return a deep copy of any value that holds nothing but what JSON has.

    Floats that JSON does not have become "NaN", "Infinity" and "-Infinity", bytes their UTF-8 text or else base64, sets
    lists, documents ``{"id", "text"}``, objects with fields dicts, and everything else its text. Never raises.

    Example:
        >>> to_plain({"ids": (1, 2), 3: b"x"})
        {'ids': [1, 2], '3': 'x'}
    """
    return _to_plain(value, ())


def _to_plain(value: Any, path: tuple[int, ...]) -> Any:
    if type(value) in _CLEAR_TYPES:
        return value
    if isinstance(value, (str, int, float)) and not isinstance(value, Enum):
        return _json_scalar(value)
    if id(value) in path or len(path) > _MAX_DEPTH:
        return f"<{type(value).__name__} inside itself>" if id(value) in path else text_of(value)
    inside = (*path, id(value))
    try:
        if isinstance(value, Mapping):
            return {_json_key(key): _to_plain(item, inside) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [_to_plain(item, inside) for item in value]
        return _to_plain(_plain_parts(value), inside)
    except Exception:
        return text_of(value)


def _json_scalar(value: str | float) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return value
    return json_number(int(value) if isinstance(value, int) else float(value))


def _json_key(key: Any) -> str:
    if isinstance(key, str) and not isinstance(key, Enum):
        return str.__str__(key)
    plain = to_plain(key)
    return plain if isinstance(plain, str) else json_text(plain)


def _plain_parts(value: Any) -> Any:
    """Return one level of what an object is made of: a dict, a list, or its text."""
    if isinstance(value, Document):
        return document_value(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes_text(bytes(value))
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, BaseMessage):
        return message_text(value)
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in (*type(value).model_fields, *(value.model_extra or {}))}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    for method in ("isoformat", "tolist", "to_dict"):  # dates and times, numpy, pandas
        if callable(getattr(value, method, None)) and not isinstance(value, type):
            return getattr(value, method)()
    return text_of(value)


def _bytes_text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii")


def document_value(document: Document) -> dict[str, Any]:
    """Return a retrieved document as ``{"id", "text"}``; the id is absent where the document has none."""
    identifier = document.id if document.id is not None else document.metadata.get("id")
    text = {"text": document.page_content}
    return text if identifier is None else {"id": to_plain(identifier), **text}


def message_text(message: BaseMessage) -> str:
    """Return a message's content as one string: text blocks joined, and JSON where other blocks are among them."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    texts = [block if isinstance(block, str) else _block_text(block) for block in content]
    if all(text is not None for text in texts):
        return "".join(text for text in texts if text is not None)
    return json_text(content, to_plain=to_plain)


def _block_text(block: Any) -> str | None:
    if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    return None


def output_text(value: Any) -> str:
    """Return what a tool returned as the string that a step's ``output`` holds.

    A string stays as it is, a message gives its content, everything else is written as JSON (None as ``null``): of a
    Command its update, or the name of the agent to which it hands over.
    """
    if isinstance(value, str) and not isinstance(value, Enum):
        return str.__str__(value)
    if isinstance(value, BaseMessage):
        return message_text(value)
    if isinstance(value, (bytes, bytearray)):
        return _bytes_text(bytes(value))
    return json_text(_command_value(value) if is_command(value) else value, to_plain=to_plain)


def _command_value(command: Any) -> Any:
    """Return what a Command tells: its update, or where it hands over to; then its update is the state as a whole."""
    names = [getattr(target, "node", target) for target in _targets(command)]
    hands_over = command.graph is not None and names != ["__end__"]
    if names and (hands_over or command.update is None):
        return {"goto": names[0] if len(names) == 1 else names}
    return command if command.update is None else command.update


def _targets(command: Any) -> Sequence[Any]:
    """Return the nodes to which a Command goes, by name or with what it sends them."""
    return command.goto if isinstance(command.goto, (list, tuple)) else (command.goto,)


def is_command(value: object) -> bool:
    """Return whether a value is a langgraph ``Command``, without importing langgraph."""
    return any(base.__name__ == "Command" and base.__module__.startswith("langgraph") for base in type(value).__mro__)


def tool_messages_in(value: Any) -> Iterator[ToolMessage]:
    """Yield the tool messages that a tool returned, the last one first.

    They are the value itself, in the updates of its Commands, in what these send to nodes, or in a list of these.
    """
    if isinstance(value, ToolMessage):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in islice(reversed(value), _MAX_BREADTH):
            if not isinstance(item, (str, dict)):
                yield from tool_messages_in(item)
    elif isinstance(value, dict):
        for item in reversed(value.values()):
            if isinstance(item, (list, tuple)):
                yield from tool_messages_in(item)
    elif is_command(value):
        for target in reversed(_targets(value)):
            yield from tool_messages_in(getattr(target, "arg", None))
        yield from tool_messages_in(value.update)


def tool_message_of(output: Any, call_id: str | None) -> ToolMessage | None:
    """Return the tool message that answers a call, or None where a tool returned something else.

    Args:
        output: What ``on_tool_end`` hands over: a message, a Command, a list of these, or a raw value.
        call_id: The id of the call, of which the last message is taken: a Command that hands over to another agent
            carries the history, where ids may come twice. Without an id it is the last message of all.
    """
    if isinstance(output, ToolMessage):
        return output
    if not (is_command(output) or isinstance(output, (list, tuple))):
        return None
    messages = tool_messages_in(output)
    return next((message for message in messages if call_id is None or message.tool_call_id == call_id), None)


def args_snapshot(inputs: Any, input_text: str) -> dict[str, Any]:
    """Return a deep copy of a tool's arguments; a tool that was called with a bare string has it as ``input``."""
    if not isinstance(inputs, Mapping):
        return {"input": input_text}
    return {_json_key(key): to_plain(value) for key, value in inputs.items() if type(value).__name__ != "ToolRuntime"}


_NOT_JSON: Any = object()
_WRAPPED = "result"  # FastMCP gives values that are no objects as {"result": value}


def mcp_text(content: Any, artifact: Any = None) -> str | None:
    """Return the text of what ``langchain-mcp-adapters`` makes of a tool's result; None where it is to be read as ever.

    The blocks of a list, one for each element, are the JSON of the list: from the structured content beside them, and
    without it where each of them is JSON. A single block stays as it is, unless it stands for a list of one. Images
    and files stay among their blocks.

    Args:
        content: The content of the tool's message, or what the tool returned where it was called by hand.
        artifact: That of the message.

    Example:
        >>> blocks = [{"type": "text", "text": text, "id": f"lc_{text}"} for text in ("a", "b")]
        >>> mcp_text(blocks, {"structured_content": {"result": ["a", "b"]}})
        '["a", "b"]'
    """
    texts = _texts(content)
    if texts is None:
        return None
    structured = artifact.get("structured_content") if isinstance(artifact, Mapping) else None
    if isinstance(structured, Mapping):
        return _of_structured(structured, texts)
    if not texts or not all(_is_made_by_langchain(block) for block in content):
        return None
    if len(texts) > 1 and all(_parsed(text) is not _NOT_JSON for text in texts):
        return f"[{', '.join(text.strip() for text in texts)}]"
    return "".join(texts)


def _texts(content: Any) -> list[str] | None:
    """Return the texts of blocks that are nothing else; None for other content."""
    if not isinstance(content, list):
        return None
    texts = [block.get("text") if _is_text_block(block) else None for block in content]
    return [text for text in texts if isinstance(text, str)] if None not in texts else None


def _is_text_block(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _is_made_by_langchain(block: Mapping[str, Any]) -> bool:
    """Return whether a block has an id of LangChain's own making, as the adapters' have, and no tool's own."""
    return str(block.get("id")).startswith("lc_")


def _of_structured(structured: Mapping[str, Any], texts: Sequence[str]) -> str:
    value = _unwrapped(structured, texts)
    if len(texts) == 1 and (not isinstance(value, list) or _parsed(texts[0]) == value):
        return texts[0]
    return json_text(value, to_plain=to_plain)


def _unwrapped(structured: Mapping[str, Any], texts: Sequence[str]) -> Any:
    """Return the value in ``{"result": value}`` where the server put it there, which shows in the blocks beside it.

    They are those of the value, and not the one of the whole object.
    """
    if set(structured) != {_WRAPPED}:
        return structured
    value = structured[_WRAPPED]
    if len(texts) != 1:
        return value if len(_leaves(value)) == len(texts) else structured
    parsed = _parsed(texts[0])
    if parsed == structured:
        return structured
    leaves = _leaves(value)
    is_of_value = parsed == value or (len(leaves) == 1 and _is_text_of(leaves[0], texts[0], parsed))
    return value if is_of_value else structured


def _leaves(value: Any) -> list[Any]:
    """Return the values for which FastMCP makes a block each: lists are flattened, and None has no block."""
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [] if value is None else [value]


def _is_text_of(leaf: Any, text: str, parsed: Any) -> bool:
    return text == leaf or parsed == leaf or (isinstance(leaf, Mapping) and isinstance(parsed, Mapping))


def _parsed(text: str) -> Any:
    try:
        return parse_json(text, allow_nan=False)
    except (ValueError, RecursionError):
        return _NOT_JSON


class _NoArtifact:
    """Stands for no artifact, also in a copy of a handler."""

    def __reduce__(self) -> str:
        return "NO_ARTIFACT"


NO_ARTIFACT: Any = _NoArtifact()


class Outcome(NamedTuple):
    """How a call ended: its status, its output or error, and the artifact as the tool gave it."""

    status: Literal["pending", "success", "error"]
    text: str
    artifact: Any = NO_ARTIFACT


def message_outcome(message: ToolMessage) -> Outcome:
    """Return how a tool message says that its call ended."""
    artifact = NO_ARTIFACT if message.artifact is None else message.artifact
    if message.status == "error":
        return Outcome("error", message_text(message).strip() or "error without a message", artifact)
    text = mcp_text(message.content, message.artifact)
    return Outcome("success", message_text(message) if text is None else text, artifact)


def output_outcome(output: Any, message: ToolMessage | None) -> Outcome:
    """Return how a tool's own end says that its call ended.

    Args:
        output: What the tool returned.
        message: The tool message in it that answers the call, where there is one.
    """
    if message is not None:
        return message_outcome(message)
    text = mcp_text(output) if type(output) is list else None
    return Outcome("success", output_text(output) if text is None else text)
