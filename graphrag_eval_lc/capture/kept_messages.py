"""The prompts, outputs and tools of model calls: a table of messages and one of tool definitions, each kept once."""

import json
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage

from graphrag_eval_lc.capture.outputs import to_plain
from graphrag_eval_lc.capture.redaction import CaptureOptions, kept_text, redacted

Ranges = list[list[int]]

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
_MORE_OF_MODELS = ("refusal", "reasoning_content")  # texts that providers send next to the content
_PLAIN_BLOCK = {"type", "text", "id", "index", "cache_control"}  # the keys of a block of plain text
_LONGEST_BINARY = 256
_BASE64 = re.compile(r"(?P<head>data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)?(?P<body>[A-Za-z0-9+/_=\r\n-]*)")
_DATA_URL = re.compile(r"(?P<head>data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)(?P<body>[A-Za-z0-9+/_=-]{256,})")


_ADDING = threading.Lock()  # one for all tables, as these are copied and pickled


class KeptTable:
    """Entries, each of which is in the table once, however often its item is added.

    A known object costs one look-up; a copy is found by its digest. A closed table keeps only the entries. Several
    threads may add items: entries are made without a lock, as ``redact`` is the user's code.
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []  # plain JSON values
        self.digests: list[bytes] = []  # one for each entry
        self._by_digest: dict[bytes, list[int]] = {}
        self._by_object: dict[int, tuple[Any, tuple[Any, ...], int]] = {}

    def find(self, item: Any) -> int | None:
        """Return the index of an object that was added before; None if it has changed meanwhile."""
        known = self._by_object.get(id(item))
        return None if known is None or known[1] != _changing_parts(item) else known[2]

    def find_copy(self, digest: bytes, name: str | None = None) -> int | None:
        """Return the index of the item with this digest; without a name it may be that of any agent."""
        found = self._by_digest.get(digest, ())
        return next((index for index in found if name in (None, self.entries[index].get("name", name))), None)

    def add(self, item: Any, digest: bytes, entry: dict[str, Any] | None, name: str | None = None) -> int:
        """Return the index of an item, and add it if it is new.

        ``name`` is that of the agent that wrote a message. Agents put it into their messages after the model's call, so
        an entry without one gets the first that is added.
        """
        with _ADDING:
            index = self.find_copy(digest, name)
            if index is None:
                index = len(self.entries)
                self.entries.append(entry or {})
                self.digests.append(digest)
                self._by_digest.setdefault(digest, []).append(index)
            if name is not None and "name" not in self.entries[index]:
                self.entries[index] = {**self.entries[index], "name": name}
        if item is not None:
            # The object itself is kept, as otherwise another one may get its id.
            self._by_object[id(item)] = item, _changing_parts(item), index
        return index

    def close(self) -> None:
        """Drop the objects; take the agents' names that models' messages may have got meanwhile."""
        for item, _, index in self._by_object.values():
            name = getattr(item, "name", None)
            if isinstance(item, AIMessage) and isinstance(name, str):
                self.entries[index].setdefault("name", name)
        self._by_object.clear()


def _changing_parts(item: Any) -> tuple[Any, ...]:
    return getattr(item, "content", None), getattr(item, "tool_calls", None), getattr(item, "name", None)


class KeptMessages:
    """The messages and tools of one run's model calls. Items are read without the handler's lock."""

    def __init__(self, options: CaptureOptions) -> None:
        self._options = options
        self.messages = KeptTable()
        self.tools = KeptTable()

    def indices(self, messages: Iterable[BaseMessage | str], warnings: list[str]) -> list[int]:
        """Return the indices of messages, or of a plain language model's prompts; new ones are redacted and cut."""
        find = self.messages.find
        return [self._index(each, warnings) if (index := find(each)) is None else index for each in messages]

    def _index(self, message: BaseMessage | str, warnings: list[str]) -> int:
        plain = _plain_message(message)
        name = plain.pop("name", None) if plain["role"] == "assistant" else None
        digest, entry = _digest(plain), None
        if self.messages.find_copy(digest, name) is None:
            entry = _kept_message(plain, self._options, warnings)
        return self.messages.add(message, digest, entry, name)

    def tool_indices(self, params: Any, warnings: list[str]) -> list[int]:
        """Return the indices of the tool definitions in a model call's invocation parameters."""
        tools = params.get("tools") if isinstance(params, Mapping) else None
        if not isinstance(tools, (list, tuple)):
            return []
        find = self.tools.find
        return [self._tool_index(each, warnings) if (index := find(each)) is None else index for each in tools]

    def _tool_index(self, tool: Any, warnings: list[str]) -> int:
        plain = to_plain(tool)
        definition = plain if isinstance(plain, dict) else {"definition": plain}
        digest, entry = _digest(definition), None
        if self.tools.find_copy(digest) is None:
            entry = _as_dict(redacted(definition, self._options, "definition of a tool", warnings))
        return self.tools.add(tool, digest, entry)

    def snapshot(self) -> "KeptMessages":
        """Return a copy for a copy of the handler, to which nothing is added."""
        copied = KeptMessages(self._options)
        for kept, own in ((copied.messages, self.messages), (copied.tools, self.tools)):
            kept.entries, kept.digests = list(own.entries), list(own.digests)
        return copied

    def close(self) -> None:
        """Let go of all objects."""
        self.messages.close()
        self.tools.close()


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


class JoinedTable:
    """The tables of one response's runs, as one."""

    def __init__(self, tables: Iterable[KeptTable]) -> None:
        self._joined = KeptTable()
        self._indices: list[list[int]] = []  # by table: the joined index of each entry
        for table in tables:
            entries = list(table.entries)  # copied first: a run under way may add more
            self._indices.append(list(map(self._add, table.digests, entries)))

    def _add(self, digest: bytes, entry: dict[str, Any]) -> int:
        return self._joined.add(None, digest, entry, entry.get("name"))

    def entries(self) -> list[dict[str, Any]]:
        """Return copies of all entries."""
        return [to_plain(entry) for entry in self._joined.entries]

    def index(self, table: int, index: int) -> int:
        """Return the joined index of a table's entry."""
        return self._indices[table][index]

    def ranges(self, table: int, of: Ranges) -> Ranges:
        """Return the joined ranges of a table's ranges."""
        indices = self._indices[table]
        return ranges(index for start, stop in of for index in indices[start:stop])


# --- what is kept of a message ---


def _plain_message(message: BaseMessage | str) -> dict[str, Any]:
    """Return a message as a plain JSON dict for ``convert_to_messages``, without large binary contents."""
    if isinstance(message, str):
        return {"role": "user", "content": message}
    role = message.role if isinstance(message, ChatMessage) else _ROLES.get(message.type, message.type)
    plain: dict[str, Any] = {"role": role, "content": _without_binaries(message.content, is_text=True)}
    if message.name is not None:
        plain["name"] = message.name
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
    plain = {key: call.get(key) for key in ("name", "args", "id", "error") if key != "error" or call.get(key)}
    return {**plain, "args": _without_binaries(plain["args"])}


def _without_binaries(value: Any, *, is_text: bool = False) -> Any:
    """Return a message's content as plain JSON, with only the lengths of images and other binary contents.

    ``is_text``: it is text for people, which may contain binary contents but is not itself one.
    """
    if isinstance(value, str):
        text = to_plain(value)
        if len(text) < _LONGEST_BINARY:
            return text
        whole = None if is_text else _BASE64.fullmatch(text)
        if whole is not None:
            return _binary(whole)
        return _DATA_URL.sub(_binary, text) if ";base64," in text else text
    if isinstance(value, bytes | bytearray):
        return f"<{len(value):,} bytes, blake2b {blake2b(value, digest_size=4).hexdigest()}>"
    if isinstance(value, (list, tuple)):
        return [_without_binaries(item, is_text=is_text) for item in value]
    if isinstance(value, Mapping):
        is_text_block = value.get("type") in ("text", "reasoning", "thinking", "output_text", "input_text")
        return {
            str(key): _without_binaries(item, is_text=is_text_block and key in ("text", "reasoning", "thinking"))
            for key, item in value.items()
        }
    return to_plain(value)


def _binary(match: re.Match[str]) -> str:
    body = match["body"]
    digest = blake2b(body.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{match['head'] or ''}<{len(body):,} characters, blake2b {digest}>"


def _digest(plain: Any) -> bytes:
    text = json.dumps(plain, ensure_ascii=True, separators=(",", ":"), sort_keys=True, default=repr)
    return blake2b(text.encode("ascii"), digest_size=16).digest()


def _kept_message(plain: dict[str, Any], options: CaptureOptions, warnings: list[str]) -> dict[str, Any]:
    """Return a message as it is kept: texts and arguments redacted, the content cut."""
    what = f"content of a message ({plain['role']})"
    full = _full_length(plain["content"])
    entry = {**plain, "content": _kept_content(plain["content"], options, what, warnings)}
    if options.max_output_chars is not None and _full_length(entry["content"]) > options.max_output_chars:
        entry["content"] = _cut(entry["content"], options.max_output_chars)
        entry["full_length"] = full
    if options.redact is not None:
        for key in ("tool_calls", "invalid_tool_calls"):
            if key in entry:
                entry[key] = [_kept_call(call, options, warnings) for call in entry[key]]
        for key in _MORE_OF_MODELS:
            if key in entry:
                entry[key] = kept_text(entry[key], options, what, warnings)
    return entry


def _kept_content(content: Any, options: CaptureOptions, what: str, warnings: list[str]) -> Any:
    if options.redact is None:
        return content
    if isinstance(content, str):
        return kept_text(content, options, what, warnings)
    if isinstance(content, dict) and content.keys() <= _PLAIN_BLOCK and isinstance(content.get("text"), str):
        return {**content, "text": kept_text(content["text"], options, what, warnings)}
    if isinstance(content, list):
        return [_kept_content(block, options, what, warnings) for block in content]
    return _as_dict(redacted(content, options, what, warnings))


def _kept_call(call: dict[str, Any], options: CaptureOptions, warnings: list[str]) -> dict[str, Any]:
    args = redacted(call["args"], options, f"args of {options.step_name(str(call['name']))}", warnings)
    kept = {**call, "args": args if not isinstance(call["args"], dict) or isinstance(args, dict) else {"args": args}}
    if isinstance(call.get("error"), str):
        kept["error"] = kept_text(call["error"], options, "error of an invalid tool call", warnings)
    return kept


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"type": "text", "text": str(value)}


def _full_length(content: Any) -> int:
    return sum(map(len, _texts(content)))


def _texts(content: Any) -> Iterable[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Sequence):
        for block in content:
            yield from _texts(block.get("text", "") if isinstance(block, dict) else block)


def _cut(content: Any, limit: int) -> Any:
    """Cut the texts of a content to ``limit`` characters in all."""
    if isinstance(content, str):
        return content[:limit]
    cut: list[Any] = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) else block
        if not isinstance(text, str):
            cut.append(block)
            continue
        cut.append(text[:limit] if isinstance(block, str) else {**block, "text": text[:limit]})
        limit = max(0, limit - len(text))
    return cut
