"""The prompts, outputs and tools of model calls: a table of messages and one of tool definitions, each kept once."""

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from graphrag_eval_lc.capture.llm_calls import first_generation
from graphrag_eval_lc.capture.outputs import to_plain
from graphrag_eval_lc.capture.redaction import CaptureOptions, kept_args, kept_text, redacted

Ranges = list[list[int]]

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
_MORE_OF_MODELS = ("refusal", "reasoning_content")  # texts that providers send next to the content
_TEXT_KEYS = ("text", "reasoning", "thinking")  # of blocks with text for people
_TEXT_BLOCKS = (*_TEXT_KEYS, "output_text", "input_text")
_PLAIN_BLOCK = {"type", "text", "id", "index", "cache_control"}  # the keys of a block of plain text
_LONGEST_BINARY = 256
_BASE64 = re.compile(r"(?P<head>data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)?(?P<body>[A-Za-z0-9+/_=\r\n-]*)")
_DATA_URL = re.compile(r"(?P<head>data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)(?P<body>[A-Za-z0-9+/_=-]{256,})")

_ADDING = threading.Lock()  # one for all tables, as these are copied and pickled


class _Table:
    """Entries, each of which is in the table once, however often its item is added.

    A known object costs one look-up; a copy is found by its digest. Several threads may add items: entries are made
    without a lock, as ``redact`` is the user's code.
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []  # plain JSON values
        self._by_digest: dict[bytes, int] = {}
        # The object itself is kept, as otherwise another one may get its id.
        self._by_object: dict[int, tuple[Any, tuple[Any, ...], int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the table for a copy of the handler, without the objects."""
        return {**self.__dict__, "_by_object": {}}

    def index(self, item: Any, plain: Callable[[Any], dict[str, Any]], kept: Callable[[Any], dict[str, Any]]) -> int:
        """Return the index of an item, and add it if it is new; one that has changed meanwhile is new.

        ``plain`` returns the item as a plain JSON dict, and ``kept`` what is kept of that.
        """
        parts = getattr(item, "content", None), getattr(item, "tool_calls", None)
        known = self._by_object.get(id(item))
        if known is not None and known[1] == parts:
            return known[2]
        value = plain(item)
        text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True, default=repr)
        digest = blake2b(text.encode("ascii"), digest_size=16).digest()
        index = self._by_digest.get(digest)
        if index is None:
            entry = kept(value)
            with _ADDING:
                index = self._by_digest.setdefault(digest, len(self.entries))
                if index == len(self.entries):
                    self.entries.append(entry)
        self._by_object[id(item)] = item, parts, index
        return index

    def close(self) -> None:
        """Let go of all objects."""
        self._by_object.clear()


class KeptMessages:
    """The messages and tools of one run's model calls. Items are read without the handler's lock."""

    def __init__(self, options: CaptureOptions) -> None:
        self._options = options
        self.messages = _Table()
        self.tools = _Table()
        self.warnings: list[str] = []  # of redact

    def index(self, message: BaseMessage | str, name: str | None = None) -> int:
        """Return the index of a message, or of a plain language model's prompt; a new one is redacted and cut.

        ``name`` is that of the agent, which puts it into the model's message only after the call.
        """
        return self.messages.index(message, partial(_plain_message, name=name), self._kept_message)

    def prompt(self, messages: Iterable[BaseMessage | str]) -> Ranges:
        """Return the indices of a prompt's messages."""
        return ranges(map(self.index, messages))

    def output(self, result: LLMResult | None, name: str | None) -> int | None:
        """Return the index of a model call's output: its first message, or a plain language model's text."""
        generation = None if result is None else first_generation(result)
        if generation is None:
            return None
        message = generation.message if isinstance(generation, ChatGeneration) else AIMessage(generation.text)
        return self.index(message, name)

    def definitions(self, params: Any) -> Ranges:
        """Return the indices of the tool definitions in a model call's invocation parameters."""
        tools = params.get("tools") if isinstance(params, Mapping) else None
        if not isinstance(tools, (list, tuple)):
            return []
        return ranges(self.tools.index(tool, _definition, self._kept_definition) for tool in tools)

    def close(self) -> None:
        """Let go of all objects."""
        self.messages.close()
        self.tools.close()

    def _kept_definition(self, definition: dict[str, Any]) -> dict[str, Any]:
        kept = redacted(definition, self._options, "definition of a tool", self.warnings)
        return kept if isinstance(kept, dict) else {"definition": kept}

    def _kept_message(self, plain: dict[str, Any]) -> dict[str, Any]:
        """Return a message as it is kept: texts and arguments redacted, the content cut."""
        options, what = self._options, f"content of a message ({plain['role']})"
        kept = dict(plain)
        if options.redact is not None:
            kept["content"] = self._redacted(plain["content"], what)
            for key in _MORE_OF_MODELS:
                if key in plain:
                    kept[key] = kept_text(plain[key], options, what, self.warnings)
            for key in ("tool_calls", "invalid_tool_calls"):
                if key in plain:
                    kept[key] = [self._redacted_call(call) for call in plain[key]]
        if options.max_output_chars is not None:
            content, length = _cut(kept["content"], options.max_output_chars)
            if length > options.max_output_chars:
                kept["content"], kept["full_length"] = content, length
        return kept

    def _redacted(self, content: Any, what: str) -> Any:
        if isinstance(content, str):
            return kept_text(content, self._options, what, self.warnings)
        if isinstance(content, list):
            return [self._redacted(block, what) for block in content]
        if isinstance(content, dict) and content.keys() <= _PLAIN_BLOCK and isinstance(content.get("text"), str):
            return {**content, "text": kept_text(content["text"], self._options, what, self.warnings)}
        kept = redacted(content, self._options, what, self.warnings)
        return kept if isinstance(kept, dict) else {"type": "text", "text": str(kept)}

    def _redacted_call(self, call: dict[str, Any]) -> dict[str, Any]:
        name, args = str(call["name"]), call["args"]
        if isinstance(args, dict):
            kept = {**call, "args": kept_args(args, self._options, name, self.warnings)}
        else:
            what = f"args of {self._options.step_name(name)}"
            kept = {**call, "args": redacted(args, self._options, what, self.warnings)}
        if isinstance(call.get("error"), str):
            kept["error"] = kept_text(call["error"], self._options, "error of an invalid tool call", self.warnings)
        return kept


def ranges(of: Iterable[int]) -> Ranges:
    """Return indices as ranges, each from its first index to the one after its last.

    Example:
        >>> ranges([0, 1, 2, 5, 4])
        [[0, 3], [5, 6], [4, 5]]
    """
    found: Ranges = []
    for index in of:
        if found and found[-1][1] == index:
            found[-1][1] += 1
        else:
            found.append([index, index + 1])
    return found


def _definition(tool: Any) -> dict[str, Any]:
    plain = to_plain(tool)
    return plain if isinstance(plain, dict) else {"definition": plain}


def _plain_message(message: BaseMessage | str, name: str | None) -> dict[str, Any]:
    """Return a message as a plain JSON dict for ``convert_to_messages``, without large binary contents."""
    if isinstance(message, str):
        return {"role": "user", "content": message}
    role = message.role if isinstance(message, ChatMessage) else _ROLES.get(message.type, message.type)
    plain: dict[str, Any] = {"role": role, "content": _without_binaries(message.content, is_text=True)}
    if (name := message.name or name) is not None:
        plain["name"] = name
    if isinstance(message, AIMessage):
        for key, calls in (("tool_calls", message.tool_calls), ("invalid_tool_calls", message.invalid_tool_calls)):
            if calls:
                plain[key] = [_plain_call(call) for call in calls]
        for key in _MORE_OF_MODELS:
            if isinstance(text := message.additional_kwargs.get(key), str) and text:
                plain[key] = text
    if isinstance(message, ToolMessage):
        plain["tool_call_id"] = message.tool_call_id
        if message.status == "error":
            plain["status"] = message.status
    return plain


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    plain = {"name": call.get("name"), "args": _without_binaries(call.get("args")), "id": call.get("id")}
    return {**plain, "error": call["error"]} if call.get("error") else plain


def _without_binaries(value: Any, *, is_text: bool = False) -> Any:
    """Return a message's content as plain JSON, with only the lengths of images and other binary contents.

    ``is_text``: it is text for people, which may contain binary contents but is not itself one.
    """
    if isinstance(value, str):
        text = to_plain(value)
        if len(text) < _LONGEST_BINARY:
            return text
        if not is_text and (whole := _BASE64.fullmatch(text)) is not None:
            return _length(whole)
        return _DATA_URL.sub(_length, text) if ";base64," in text else text
    if isinstance(value, bytes | bytearray):
        return f"<{len(value):,} bytes, blake2b {blake2b(value, digest_size=4).hexdigest()}>"
    if isinstance(value, (list, tuple)):
        return [_without_binaries(item, is_text=is_text) for item in value]
    if isinstance(value, Mapping):
        texts = _TEXT_KEYS if value.get("type") in _TEXT_BLOCKS else ()
        return {str(key): _without_binaries(item, is_text=key in texts) for key, item in value.items()}
    return to_plain(value)


def _length(match: re.Match[str]) -> str:
    """Return what stands for a binary content; the hash tells two of one length apart."""
    body = match["body"]
    digest = blake2b(body.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{match['head'] or ''}<{len(body):,} characters, blake2b {digest}>"


def _cut(content: Any, limit: int) -> tuple[Any, int]:
    """Return a content with texts of at most ``limit`` characters in all, and their characters before that."""
    if isinstance(content, str):
        return content[:limit], len(content)
    cut: list[Any] = []
    length = 0
    for block in content:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str):
            kept = text[: max(0, limit - length)]
            cut.append({**block, "text": kept} if isinstance(block, dict) else kept)
            length += len(text)
        else:
            cut.append(block)
    return cut, length
