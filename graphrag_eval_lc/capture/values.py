"""A tool's arguments and outputs as plain JSON values and as text, and the outcome of its call."""

import base64
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Literal, NamedTuple, cast

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.types import Command
from pydantic import BaseModel

from graphrag_eval_lc.json_values import json_number, json_text, parse_json
from graphrag_eval_lc.texts import text_of

_MAX_DEPTH = 60
_MAX_MESSAGE_DEPTH = 6  # of lists and Commands, in which tool messages are searched
_INVENTED_ID = re.compile(r"lc_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CLEAR_TYPES = frozenset({str, bool, type(None)})


def to_plain(value: Any) -> Any:
    """Return a deep copy of any value as plain JSON values. Never raises.

    Floats without a JSON form become "NaN", "Infinity" and "-Infinity", bytes their UTF-8 text, otherwise base64, sets
    lists, documents ``{"id", "text"}``, objects with fields dicts, and everything else its text.

    Example:
        >>> to_plain({"ids": (1, 2), 3: b"x"})
        {'ids': [1, 2], '3': 'x'}
    """
    return _to_plain(value, ())


def _to_plain(value: Any, path: tuple[int, ...]) -> Any:
    if type(value) in _CLEAR_TYPES:
        return value
    if isinstance(value, (str, int, float)) and not isinstance(value, Enum):
        return str.__str__(value) if isinstance(value, str) else json_number(_number(value))
    if id(value) in path or len(path) > _MAX_DEPTH:
        return f"<{type(value).__name__} inside itself>" if id(value) in path else text_of(value)
    inside = (*path, id(value))
    try:
        if isinstance(value, (dict, Mapping)):  # dict first, as it is found faster
            return {
                key if type(key) is str else _json_key(key): (
                    item if type(item) in _CLEAR_TYPES else _to_plain(item, inside)
                )
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [item if type(item) in _CLEAR_TYPES else _to_plain(item, inside) for item in value]
        return _to_plain(_plain_parts(value), inside)
    except Exception:
        return text_of(value)


def _number(value: float) -> float:
    """Return a number of a subclass, such as numpy's, as Python's own."""
    return int(value) if isinstance(value, int) else float(value)


def _json_key(key: Any) -> str:
    plain = to_plain(key)
    return plain if isinstance(plain, str) else json_text(plain)


def _plain_parts(value: Any) -> Any:
    """Return an object as a dict or list of its parts, or as its text."""
    if isinstance(value, Document):
        return document_value(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            return base64.b64encode(value).decode("ascii")
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


def args_snapshot(inputs: Any, input_text: str) -> dict[str, Any]:
    """Return a deep copy of a tool's arguments; a tool that was called with a bare string has it as ``input``."""
    if not isinstance(inputs, (dict, Mapping)):
        return {"input": input_text}
    args = {key: value for key, value in inputs.items() if type(value).__name__ != "ToolRuntime"}
    return cast("dict[str, Any]", _to_plain(args, ()))


def document_value(document: Document) -> dict[str, Any]:
    """Return a retrieved document as ``{"id", "text"}``, without an id if the document has none."""
    identifier = document.id if document.id is not None else document.metadata.get("id")
    text = {"text": document.page_content}
    return text if identifier is None else {"id": to_plain(identifier), **text}


def documents_in(artifact: Any) -> list[dict[str, Any]] | None:
    """Return the documents of an artifact that is a list of some; None for any other artifact."""
    if isinstance(artifact, list) and artifact and all(isinstance(item, Document) for item in artifact):
        return [document_value(document) for document in artifact]
    return None


def utc_timestamp(seconds: float) -> str:
    """Return seconds since 1970 in ISO 8601, as ``2026-01-31T12:00:00.000000Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


# --- texts ---


def block_text(block: Any) -> str | None:
    """Return the text of a text or a text block; None for other content blocks."""
    if isinstance(block, Mapping):
        block = block.get("text") if block.get("type") == "text" else None
    return block if isinstance(block, str) else None


def message_text(message: BaseMessage) -> str:
    """Return a message's content as one string: text blocks joined, JSON if there are other blocks."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    texts = _texts(content)
    return json_text(_without_invented_ids(content), to_plain=to_plain) if texts is None else "".join(texts)


def _texts(content: Iterable[Any]) -> list[str] | None:
    """Return the texts of text blocks; None if there are other blocks."""
    texts = [block_text(block) for block in content]
    known = [text for text in texts if text is not None]
    return known if len(known) == len(texts) else None


def _without_invented_ids(value: Any) -> Any:
    """Return content blocks without the ids that LangChain adds, which differ each time."""
    if isinstance(value, (list, tuple)):
        return [_without_invented_ids(item) for item in value]
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return value
    identifier = value.get("id")
    is_invented = isinstance(identifier, str) and _INVENTED_ID.fullmatch(identifier) is not None
    return {key: _without_invented_ids(item) for key, item in value.items() if key != "id" or not is_invented}


def output_text(value: Any) -> str:
    """Return a tool's return value as the string of a step's ``output``.

    A string stays as it is, a message becomes its content, everything else JSON (None is ``null``): a Command its
    update, or the name of the agent to which it hands over.
    """
    if isinstance(value, (str, bytes, bytearray, BaseMessage)) and not isinstance(value, Enum):
        return str(to_plain(value))
    plain = _command_value(value) if isinstance(value, Command) else value
    return json_text(_without_invented_ids(plain) if type(plain) is list else plain, to_plain=to_plain)


def _command_value(command: Command[Any]) -> Any:
    """Return a Command's update; if it hands over its target, as the update is then the whole state."""
    names = [getattr(target, "node", target) for target in _targets(command)]
    hands_over = command.graph is not None and names != ["__end__"]
    if names and (hands_over or command.update is None):
        return {"goto": names[0] if len(names) == 1 else names}
    return command if command.update is None else command.update


def _targets(command: Command[Any]) -> Sequence[Any]:
    """Return the nodes to which a Command goes, as names or ``Send`` objects."""
    return command.goto if isinstance(command.goto, (list, tuple)) else (command.goto,)


# --- results of MCP tools ---

_NOT_JSON: Any = object()
_WRAPPED = "result"  # FastMCP wraps values that are not objects: {"result": value}


def mcp_text(content: Any, artifact: Any = None) -> str | None:
    """Return the text of a tool's result from ``langchain-mcp-adapters``; None for any other result.

    One block for each element of a list becomes the JSON of the list: from the structured content next to the blocks,
    else if each block is JSON. A single block stays as it is, unless it is in place of a list of one. Blocks with
    images or files are another result.

    Example:
        >>> blocks = [{"type": "text", "text": text, "id": f"lc_{text}"} for text in ("a", "b")]
        >>> mcp_text(blocks, {"structured_content": {"result": ["a", "b"]}})
        '["a", "b"]'
    """
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        return None
    texts = _texts(content)
    structured = artifact.get("structured_content") if isinstance(artifact, Mapping) else None
    if texts is None:
        return None
    parsed = [_parsed(text) for text in texts]
    if isinstance(structured, Mapping):
        value: Any = structured
        wrapped = structured[_WRAPPED] if set(structured) == {_WRAPPED} else structured
        if _count_blocks(wrapped) == len(texts) and parsed != [structured]:
            value = wrapped
        is_text = len(texts) == 1 and (not isinstance(value, list) or parsed == [value])
        return texts[0] if is_text else json_text(value, to_plain=to_plain)
    if not texts or not all(str(block.get("id")).startswith("lc_") for block in content):
        return None  # the blocks are a tool's own: the adapters' have ids made by LangChain
    if len(texts) > 1 and _NOT_JSON not in parsed:
        return f"[{', '.join(text.strip() for text in texts)}]"
    return "".join(texts)


def _count_blocks(value: Any) -> int:
    """Return how many blocks FastMCP makes of a value: lists are flattened, and None has no block."""
    return sum(map(_count_blocks, value)) if isinstance(value, list) else int(value is not None)


def _parsed(text: str) -> Any:
    try:
        return parse_json(text, allow_nan=False)
    except (ValueError, RecursionError):
        return _NOT_JSON


# --- outcomes ---


class Outcome(NamedTuple):
    """How a call ended."""

    status: Literal["pending", "success", "error"]  # pending if the run is paused in the tool
    text: str  # the output, or the error
    artifact: Any = None
    full_length: int | None = None  # the characters of the text, if the handler's options cut it
    k: int | None = None  # the number of documents that the tool's retriever was asked for, if it is known


def message_outcome(message: ToolMessage) -> Outcome:
    """Return the outcome in a tool message."""
    if message.status == "error":
        return Outcome("error", message_text(message).strip() or "error without a message", message.artifact)
    text = mcp_text(message.content, message.artifact)
    return Outcome("success", message_text(message) if text is None else text, message.artifact)


def output_outcome(output: Any, message: ToolMessage | None) -> Outcome:
    """Return the outcome of a tool by its return value, and by the tool message in it that answers the call."""
    if message is not None:
        return message_outcome(message)
    text = mcp_text(output) if type(output) is list else None
    return Outcome("success", output_text(output) if text is None else text)


def tool_message_of(output: Any, call_id: str | None) -> ToolMessage | None:
    """Return the tool message that answers a call, or None if a tool returned something else.

    It is the output itself, in the update of a Command, in what it sends to nodes, or in a list of these. The last one
    with the id of the call counts, or of all if it is None: a Command that hands over carries the history.
    """
    if isinstance(output, ToolMessage):
        return output
    if not isinstance(output, (Command, list, tuple)):
        return None
    messages = _tool_messages(output, _MAX_MESSAGE_DEPTH)
    return next((message for message in messages if call_id in (None, message.tool_call_id)), None)


def _tool_messages(value: Any, depth: int) -> Iterator[ToolMessage]:
    """Yield the tool messages in a value, the last one first; dicts in lists are rows of data."""
    parts: Iterable[Any] = ()
    if isinstance(value, ToolMessage):
        yield value
    elif isinstance(value, (list, tuple)):
        parts = (item for item in reversed(value) if not isinstance(item, (str, dict)))
    elif isinstance(value, dict):
        parts = (item for item in reversed(value.values()) if isinstance(item, (list, tuple)))
    elif isinstance(value, Command):
        parts = (*(getattr(target, "arg", None) for target in reversed(_targets(value))), value.update)
    for part in parts if depth else ():
        yield from _tool_messages(part, depth - 1)
