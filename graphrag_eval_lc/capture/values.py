"""Turns arguments, outputs, tags and metadata into the plain JSON values and texts that the handler's options keep."""

import base64
import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, TypedDict, Unpack, cast

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from graphrag_eval_lc.config import CaptureConfig, NodeConfig
from graphrag_eval_lc.errors import CaptureError
from graphrag_eval_lc.json_values import json_number, json_text, parse_json
from graphrag_eval_lc.masking import masked_secrets, masked_values
from graphrag_eval_lc.texts import shortened, text_of

SECRETS: Final = "secrets"
"""The value of ``redact`` that masks the secrets that the package knows (see ``masking``)."""

REDACTION_FAILED = "[redaction failed]"

_MAX_DEPTH = 60
_MAX_MESSAGE_DEPTH = 6  # of lists and Commands, in which tool messages are searched
_INVENTED_ID = re.compile(r"lc_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CLEAR_TYPES = frozenset({str, bool, type(None)})


def to_plain(value: Any) -> Any:
    """Return a deep copy of any value as plain JSON values. Never raises.

    Floats that JSON lacks become "NaN", "Infinity" or "-Infinity". Bytes become their UTF-8 text, otherwise base64.
    Sets become lists, documents ``{"id", "text"}``, and objects with fields dicts. Everything else becomes its text.
    """
    return _to_plain(value, ())


def _to_plain(value: Any, path: tuple[int, ...]) -> Any:
    if type(value) in _CLEAR_TYPES:
        return value
    if isinstance(value, (str, int, float)) and not isinstance(value, Enum):  # perhaps of a subclass, such as numpy's
        kind = int if isinstance(value, int) else float
        return str.__str__(value) if isinstance(value, str) else json_number(kind(value))
    if id(value) in path or len(path) > _MAX_DEPTH:
        return f"<{type(value).__name__} inside itself>" if id(value) in path else text_of(value)
    inside = (*path, id(value))
    try:
        if isinstance(value, (dict, Mapping)):  # dict first, as it is found faster
            plain: dict[str, Any] = {}
            for key, item in value.items():
                if type(key) is not str:
                    name = _to_plain(key, ())
                    key = name if isinstance(name, str) else json_text(name)
                plain[key] = item if type(item) in _CLEAR_TYPES else _to_plain(item, inside)
            return plain
        if isinstance(value, (list, tuple)):
            return [item if type(item) in _CLEAR_TYPES else _to_plain(item, inside) for item in value]
        return _to_plain(_plain_parts(value), inside)
    except Exception:
        return text_of(value)


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
    """Return a deep copy of a tool's arguments; if it was called with a bare string, ``{"input": ...}``."""
    if not isinstance(inputs, (dict, Mapping)):
        return {"input": input_text}
    return {key: to_plain(value) for key, value in inputs.items() if type(value).__name__ != "ToolRuntime"}


def document_value(document: Document) -> dict[str, Any]:
    """Return a retrieved document as ``{"id", "text"}``, without an id if the document has none."""
    identifier = document.id if document.id is not None else document.metadata.get("id")
    return {**({} if identifier is None else {"id": to_plain(identifier)}), "text": document.page_content}


def documents_in(artifact: Any) -> list[dict[str, Any]] | None:
    """Return the documents of an artifact that is a non-empty list of documents; None for any other artifact."""
    if isinstance(artifact, list) and artifact and all(isinstance(item, Document) for item in artifact):
        return list(map(document_value, artifact))
    return None


def utc_timestamp(seconds: float) -> str:
    """Return seconds since 1970 in ISO 8601, such as ``2026-01-31T12:00:00.000000Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def block_text(block: Any) -> str | None:
    """Return the text of a string or text block; None for other content blocks."""
    if isinstance(block, Mapping):
        block = block.get("text") if block.get("type") == "text" else None
    return block if isinstance(block, str) else None


def texts_of(content: Iterable[Any]) -> list[str] | None:
    """Return the texts of text blocks; None if there are other blocks."""
    texts = [block_text(block) for block in content]
    return None if None in texts else cast("list[str]", texts)


def message_text(message: BaseMessage) -> str:
    """Return a message's content as one string: its joined text blocks, or JSON if it has other blocks."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    texts = texts_of(content)
    return json_text(_without_invented_ids(content), to_plain=to_plain) if texts is None else "".join(texts)


def _without_invented_ids(value: Any) -> Any:
    """Return content blocks without the random ids that LangChain adds."""
    if isinstance(value, (list, tuple)):
        return [_without_invented_ids(item) for item in value]
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return value
    is_invented = _INVENTED_ID.fullmatch(str(value.get("id"))) is not None
    return {key: _without_invented_ids(item) for key, item in value.items() if key != "id" or not is_invented}


def output_text(value: Any) -> str:
    """Return a tool's return value as a step's ``output``: a string unchanged, a message's content, otherwise JSON.

    For a Command it is the update. If the Command hands over to another agent, it is the target, as the update is then
    the whole state.
    """
    if isinstance(value, (str, bytes, bytearray, BaseMessage)) and not isinstance(value, Enum):
        return str(to_plain(value))
    if isinstance(value, Command):
        names = [getattr(target, "node", target) for target in _targets(value)]
        hands_over = value.graph is not None and names != ["__end__"]
        if names and (hands_over or value.update is None):
            value = {"goto": names[0] if len(names) == 1 else names}
        elif value.update is not None:
            value = value.update
    return json_text(_without_invented_ids(value) if type(value) is list else value, to_plain=to_plain)


def _targets(command: Command[Any]) -> Sequence[Any]:
    """Return the nodes to which a Command goes, as names or ``Send`` objects."""
    return command.goto if isinstance(command.goto, (list, tuple)) else (command.goto,)


_NOT_JSON: Any = object()


def mcp_text(content: Any, artifact: Any = None) -> str | None:
    """Return the text of a tool's result from ``langchain-mcp-adapters``; None for any other result.

    MCP servers send a list as one block for each element. Such blocks become the JSON of the list, which is taken from
    the structured content next to them, otherwise built from blocks that are all JSON. A single block stays unchanged,
    unless the structured content shows that it is a list of one. Results with images or files return None. FastMCP
    wraps values that are not objects: ``{"result": value}``.
    """
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        return None
    texts = texts_of(content)
    structured = artifact.get("structured_content") if isinstance(artifact, Mapping) else None
    if texts is None:
        return None
    parsed = list(map(_parsed, texts))
    if isinstance(structured, Mapping):
        value: Any = structured
        wrapped = structured["result"] if set(structured) == {"result"} else structured
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
    """Return how many blocks FastMCP makes of a value: it flattens lists and omits None."""
    return sum(map(_count_blocks, value)) if isinstance(value, list) else int(value is not None)


def _parsed(text: str) -> Any:
    try:
        return parse_json(text, allow_nan=False)
    except (ValueError, RecursionError):
        return _NOT_JSON


class Outcome(NamedTuple):
    """How a call ended."""

    status: Literal["pending", "success", "error"]  # pending if the run is paused in the tool
    text: str  # the output, or the error
    artifact: Any = None
    full_length: int | None = None  # the characters of the text, if the handler's options cut it
    k: int | None = None  # the number of documents requested from the tool's retriever, if it is known


def message_outcome(message: ToolMessage) -> Outcome:
    """Return the outcome in a tool message."""
    if message.status == "error":
        return Outcome("error", message_text(message).strip() or "error without a message", message.artifact)
    text = mcp_text(message.content, message.artifact)
    return Outcome("success", message_text(message) if text is None else text, message.artifact)


def tool_message_of(output: Any, call_id: str | None) -> ToolMessage | None:
    """Return the last tool message in a tool's output that has the call's id, or any id if ``call_id`` is None.

    The output may be the message itself, a Command with the message in its update or its ``Send`` objects, or a list of
    these.
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


# --- steps of nodes ---


def node_args(node: NodeConfig, inputs: Any) -> dict[str, Any]:
    """Return the arguments of a node's step, without those that its input lacks."""
    found = {name: part_at(inputs, path) for name, path in node.args.items()}
    return {name: value for name, value in found.items() if value is not None}


def node_output(node: NodeConfig, returned: Any) -> Any:
    """Return what a node's step returns; of a Command, its update."""
    return part_at(returned.update if isinstance(returned, Command) else returned, node.output)


def part_at(value: Any, path: str | None) -> Any:
    """Return the part of a state or another value at a path of keys, attributes and indices; None if it is missing."""
    for key in path.split(".") if path is not None else ():
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list | tuple) and key.isdigit():
            value = value[int(key)] if int(key) < len(value) else None
        else:
            value = getattr(value, key, None)
    return value


# --- the options of a handler ---


class CaptureKeywords(TypedDict, total=False):
    """The keywords of ``GraphRAGEvalCallbackHandler``, whose docstring explains them."""

    step_names: Mapping[str, str] | None
    retrieval_documents: bool | Collection[str]
    nodes: Mapping[str, Mapping[str, Any] | NodeConfig] | None
    max_output_chars: int | None
    redact: Callable[[Any], Any] | Literal["secrets"] | None
    keep_artifacts: bool
    keep_messages: bool


class CaptureOptions:
    """The checked options of one handler, copied, so that later changes to the caller's objects have no effect."""

    def __init__(self, **given: Unpack[CaptureKeywords]) -> None:
        redact = given.pop("redact", None)
        if redact is not None and redact != SECRETS and not callable(redact):
            hint = 'Give "secrets", or a function that returns what is kept in place of its argument.'
            raise CaptureError(f"{redact!r:.80} is not a value of the option", key="redact", hint=hint)
        tools = given.get("retrieval_documents")
        options = {**given, "step_names": given.get("step_names") or {}, "nodes": given.get("nodes") or {}}
        if isinstance(tools, tuple | set | frozenset):
            options["retrieval_documents"] = list(tools)
        try:
            checked = CaptureConfig.model_validate(options)
        except ValidationError as error:
            found = error.errors()[0]
            name = str(found["loc"][0])
            text = f"{options.get(name)!r:.80} is not a value of the option"
            raise CaptureError(text, key=name, hint=f"{found['msg']}.") from error
        self.redact: Callable[[Any], Any] | None = redact if callable(redact) else redact and masked_secrets
        self.redacts_answers = self.redact is masked_secrets  # a function of the user does not get the answer
        self.step_names, self.nodes = dict(checked.step_names), dict(checked.nodes)
        self.max_output_chars = checked.max_output_chars
        self.keep_artifacts, self.keep_messages = checked.keep_artifacts, checked.keep_messages
        self._retrieval_documents = checked.retrieval_documents

    def step_name(self, tool_name: str) -> str:
        """Return the name of a tool's steps."""
        return self.step_names.get(tool_name, tool_name)

    def redacted(self, value: Any, what: str, warnings: list[str]) -> Any:
        """Return the result of ``redact`` as a plain JSON value, or ``[redaction failed]`` if it raises.

        ``what`` names the value in the warning. The warning shows only the type of the exception, as its message may
        contain the value.
        """
        if self.redact is None:
            return value
        try:
            return to_plain(self.redact(to_plain(value)))
        except Exception as error:
            warnings.append(f"redact raised {type(error).__name__} on the {what}, which is left out")
            return REDACTION_FAILED

    def kept_text(self, text: str, what: str, warnings: list[str]) -> str:
        """Return an error or another text after redaction; ``what`` names it in warnings."""
        return text if self.redact is None else output_text(self.redacted(text, what, warnings))

    def kept_args(self, args: dict[str, Any], tool_name: str, warnings: list[str]) -> dict[str, Any]:
        """Return a tool's arguments (a plain JSON dict) after redaction, always as a dict."""
        if self.redact is None:
            return args
        kept = self.redacted(args, f"args of {self.step_name(tool_name)}", warnings)
        return kept if isinstance(kept, dict) else {"args": kept}

    def kept_outcome(
        self,
        outcome: Outcome,
        tool_name: str,
        warnings: list[str],
        retrieved: tuple[list[dict[str, Any]] | None, int | None] = (None, None),
    ) -> Outcome:
        """Return an outcome, redacted and cut; ``retrieved`` is the tool's documents and their requested number."""
        status, text, artifact = outcome[:3]
        if status == "pending":
            return outcome
        full_length = k = None
        tools = self._retrieval_documents
        if status == "success" and (tools if isinstance(tools, bool) else tool_name in tools):
            documents, k = retrieved
            text = text if documents is None else json_text(documents)
        if self.redact is not None:
            what = f"{'output' if status == 'success' else 'error'} of {self.step_name(tool_name)}"
            text = self.kept_text(text, what, warnings)
        if self.max_output_chars is not None and len(text) > self.max_output_chars:
            text, full_length = text[: self.max_output_chars], len(text)
        artifact = to_plain(artifact) if self.keep_artifacts else None
        if artifact is not None:
            artifact = self.redacted(artifact, f"artifact of {self.step_name(tool_name)}", warnings)
        return Outcome(status, text, artifact, full_length, k)


# --- tags and metadata of a root run ---

_LONGEST_TEXT = 1_000
# Tags, prefixes of metadata keys, and metadata keys that LangChain and langgraph set.
_OWN_TAGS = ("graph:step:", "seq:step:")
_OWN_PREFIXES = ("ls_", "lc_", "langgraph_", "__pregel")
_OWN_KEYS = frozenset({"question_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"})


def kept_config(tags: Sequence[str], metadata: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return the tags and metadata of a root run, without the question's id and what LangChain and langgraph set.

    The metadata are a deep copy in plain JSON values. A value whose JSON is longer than 1,000 characters is cut.
    """
    given = {name: value for name, value in metadata.items() if name not in _OWN_KEYS}
    kept: dict[str, Any] = {}
    for name, value in to_plain(given).items() if given else ():
        if not name.startswith(_OWN_PREFIXES):
            text = value if isinstance(value, str) else json_text(value)
            kept[name] = value if len(text) <= _LONGEST_TEXT else shortened(text, _LONGEST_TEXT, keeps_lines=True)
    return [tag for tag in map(text_of, tags) if not tag.startswith(_OWN_TAGS)], kept


def shown_config(tags: list[str], metadata: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return copies of tags and metadata in which secrets are masked."""
    return masked_values(tags) if tags else [], masked_values(metadata) if metadata else {}
