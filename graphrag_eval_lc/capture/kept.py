"""What a handler keeps: its options, and what they leave of arguments, outcomes, messages, tags and metadata."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Literal, NamedTuple, TypedDict, Unpack

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage
from pydantic import ValidationError

from graphrag_eval_lc.capture.values import Outcome, output_text, to_plain
from graphrag_eval_lc.config import CaptureConfig
from graphrag_eval_lc.errors import CaptureError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import masked_secrets, masked_values
from graphrag_eval_lc.texts import shortened, text_of

SECRETS: Final = "secrets"
"""In place of a function: masks the secrets that the package knows, see ``masking``."""

REDACTION_FAILED = "[redaction failed]"

# --- the options ---


class CaptureKeywords(TypedDict, total=False):
    """The keywords of ``GraphRAGEvalCallbackHandler``, whose docstring explains them."""

    step_names: Mapping[str, str] | None
    retrieval_documents: bool | Collection[str]
    max_output_chars: int | None
    redact: Callable[[Any], Any] | Literal["secrets"] | None
    keep_artifacts: bool
    keep_messages: bool


class CaptureOptions:
    """The options of one handler, which later changes of the given ones leave as they are.

    Raises:
        CaptureError: An option has a wrong value.
    """

    def __init__(self, **given: Unpack[CaptureKeywords]) -> None:
        redact = given.pop("redact", None)
        if redact is not None and redact != SECRETS and not callable(redact):
            hint = 'Give "secrets", or a function that returns what is kept in place of its argument.'
            raise CaptureError(f"{redact!r:.80} is not a value of the option", key="redact", hint=hint)
        tools = given.get("retrieval_documents")
        options = {**given, "step_names": given.get("step_names") or {}}
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
        self.step_names = dict(checked.step_names)
        self.max_output_chars = checked.max_output_chars
        self.keep_artifacts, self.keep_messages = checked.keep_artifacts, checked.keep_messages
        self._retrieval_documents = checked.retrieval_documents

    @property
    def redacts_answers(self) -> bool:
        """Whether the answer is redacted too: ``"secrets"`` masks it, a function of the user does not get it."""
        return self.redact is masked_secrets

    def step_name(self, tool_name: str) -> str:
        """Return the name of a tool's steps."""
        return self.step_names.get(tool_name, tool_name)

    def redacted(self, value: Any, what: str, warnings: list[str]) -> Any:
        """Return what ``redact`` makes of a plain JSON value, as one; a fixed text if it raises.

        The warning names only the type of the exception, as its message may have what was to be redacted.
        """
        if self.redact is None:
            return value
        try:
            return to_plain(self.redact(to_plain(value)))
        except Exception as error:
            warnings.append(f"redact raised {type(error).__name__} on the {what}, which is left out")
            return REDACTION_FAILED

    def kept_text(self, text: str, what: str, warnings: list[str]) -> str:
        """Return an error or another text as it is kept."""
        return text if self.redact is None else output_text(self.redacted(text, what, warnings))

    def kept_args(self, args: dict[str, Any], tool_name: str, warnings: list[str]) -> dict[str, Any]:
        """Return the arguments, a plain JSON dict, as they are kept."""
        kept = self.redacted(args, f"args of {self.step_name(tool_name)}", warnings)
        return kept if isinstance(kept, dict) else {"args": kept}

    def kept_outcome(
        self,
        outcome: Outcome,
        tool_name: str,
        warnings: list[str],
        retrieved: tuple[list[dict[str, Any]] | None, int | None] = (None, None),
    ) -> Outcome:
        """Return what is kept of an outcome; ``retrieved`` are the tool's documents, and how many were asked for."""
        status, text, artifact = outcome[:3]
        if status == "pending":
            return outcome
        name, full_length, k = self.step_name(tool_name), None, None
        tools = self._retrieval_documents
        if status == "success" and (tools if isinstance(tools, bool) else tool_name in tools):
            documents, k = retrieved
            text = text if documents is None else json_text(documents)
        text = self.kept_text(text, f"{'output' if status == 'success' else 'error'} of {name}", warnings)
        if self.max_output_chars is not None and len(text) > self.max_output_chars:
            text, full_length = text[: self.max_output_chars], len(text)
        if not self.keep_artifacts or artifact is None:
            return Outcome(status, text, None, full_length, k)
        kept = self.redacted(to_plain(artifact), f"artifact of {name}", warnings)
        return Outcome(status, text, kept, full_length, k)


# --- tags and metadata of a root run ---

_LONGEST_TEXT = 1_000
_OWN_TAGS = ("graph:step:", "seq:step:")  # LangChain's and langgraph's, as the prefixes below
_OWN_PREFIXES = ("ls_", "lc_", "langgraph_", "__pregel")
_OWN_KEYS = frozenset({"question_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"})


def kept_tags(tags: list[str] | None) -> list[str]:
    """Return the tags of a root run without LangChain's and langgraph's own."""
    return [tag for tag in map(text_of, tags) if not tag.startswith(_OWN_TAGS)] if tags else []


def kept_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metadata of a root run, without the question's id and LangChain's and langgraph's own keys.

    It is a deep copy of plain JSON values; values that are longer than 1,000 characters as JSON are cut.
    """
    given = {name: value for name, value in (metadata or {}).items() if name not in _OWN_KEYS}
    kept: dict[str, Any] = {}
    for name, value in to_plain(given).items() if given else ():
        if not name.startswith(_OWN_PREFIXES):
            text = value if isinstance(value, str) else json_text(value)
            kept[name] = value if len(text) <= _LONGEST_TEXT else shortened(text, _LONGEST_TEXT, keeps_lines=True)
    return kept


def shown_config(tags: list[str], metadata: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return copies of tags and metadata in which secrets are masked.

    Example:
        >>> shown_config(["nightly"], {"api_key": "abc"})
        (['nightly'], {'api_key': '***'})
    """
    return masked_values(tags) if tags else [], masked_values(metadata) if metadata else {}


# --- prompts, outputs and tools of model calls: a table of messages and one of tool definitions, each kept once ---

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
_MORE_OF_MODELS = ("refusal", "reasoning_content")  # texts that providers send next to the content
_TEXT_KEYS = ("text", "reasoning", "thinking")  # of blocks with text for people
_TEXT_BLOCKS = (*_TEXT_KEYS, "output_text", "input_text")
_PLAIN_BLOCK = {"type", "text", "id", "index", "cache_control"}  # the keys of a block of plain text
_LONGEST_BINARY = 256
_BASE64 = re.compile(r"(?P<head>data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)?(?P<body>[A-Za-z0-9+/_=\r\n-]*)")
_DATA_URL = re.compile(r"(?P<head>data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)(?P<body>[A-Za-z0-9+/_=-]{256,})")

Table = dict[bytes, dict[str, Any]]  # entries by the digest of the whole, which an equal one has too


class GivenMessage(NamedTuple):
    """A message as a model call had it; an agent may change the object later."""

    message: BaseMessage | str
    content: Any
    tool_calls: Any


def given_messages(messages: Iterable[BaseMessage | str]) -> list[GivenMessage]:
    """Return messages as they are now."""
    return [GivenMessage(each, getattr(each, "content", each), getattr(each, "tool_calls", None)) for each in messages]


class KeptMessages:
    """The messages and tools of one run's model calls: each is kept once."""

    def __init__(self, options: CaptureOptions, warnings: list[str]) -> None:
        self.messages: Table = {}
        self.tools: Table = {}
        self._options = options
        self._warnings = warnings
        self._known: dict[tuple[int, int, int], bytes] = {}  # the digest of each message, by its objects

    def add(self, given: Iterable[GivenMessage]) -> list[bytes]:
        """Add messages, and return their digests."""
        found: list[bytes] = []
        for each in given:
            key = id(each.message), id(each.content), id(each.tool_calls)
            if key not in self._known:
                self._known[key] = _added(self.messages, _plain_message(each), self._kept_message)
            found.append(self._known[key])
        return found

    def add_tools(self, definitions: Sequence[Any]) -> list[bytes]:
        """Add definitions of tools, and return their digests."""
        kept = partial(self._options.redacted, what="definition of a tool", warnings=self._warnings)
        return [_added(self.tools, _definition(each), lambda plain: _definition(kept(plain))) for each in definitions]

    def _kept_message(self, plain: dict[str, Any]) -> dict[str, Any]:
        """Return a message as it is kept: texts and arguments redacted, the content cut."""
        options, what = self._options, f"content of a message ({plain['role']})"
        kept = dict(plain)
        if options.redact is not None:
            kept["content"] = self._redacted(plain["content"], what)
            for key in plain.keys() & {*_MORE_OF_MODELS}:
                kept[key] = options.kept_text(plain[key], what, self._warnings)
            for key in plain.keys() & {"tool_calls", "invalid_tool_calls"}:
                kept[key] = [self._redacted_call(call) for call in plain[key]]
        if options.max_output_chars is not None:
            content, length = _cut(kept["content"], options.max_output_chars)
            if length > options.max_output_chars:
                kept["content"], kept["full_length"] = content, length
        return kept

    def _redacted(self, content: Any, what: str) -> Any:
        if isinstance(content, str):
            return self._options.kept_text(content, what, self._warnings)
        if isinstance(content, list):
            return [self._redacted(block, what) for block in content]
        if isinstance(content, dict) and content.keys() <= _PLAIN_BLOCK and isinstance(content.get("text"), str):
            return {**content, "text": self._redacted(content["text"], what)}
        kept = self._options.redacted(content, what, self._warnings)
        return kept if isinstance(kept, dict) else {"type": "text", "text": str(kept)}

    def _redacted_call(self, call: dict[str, Any]) -> dict[str, Any]:
        name, args, options = str(call["name"]), call["args"], self._options
        if isinstance(args, dict):
            kept = {**call, "args": options.kept_args(args, name, self._warnings)}
        else:
            kept = {**call, "args": options.redacted(args, f"args of {options.step_name(name)}", self._warnings)}
        if isinstance(call.get("error"), str):
            kept["error"] = options.kept_text(call["error"], "error of an invalid tool call", self._warnings)
        return kept


def _added(table: Table, plain: dict[str, Any], kept: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """Add to a table what is kept of a plain value, if it is new, and return its digest."""
    digest = blake2b(json.dumps(plain, sort_keys=True, default=repr).encode("ascii"), digest_size=16).digest()
    if digest not in table:
        table[digest] = kept(plain)
    return digest


def ranges(of: Iterable[int]) -> list[list[int]]:
    """Return indices as ranges, each from its first index to the one after its last.

    Example:
        >>> ranges([0, 1, 2, 5, 4])
        [[0, 3], [5, 6], [4, 5]]
    """
    found: list[list[int]] = []
    for index in of:
        if found and found[-1][1] == index:
            found[-1][1] += 1
        else:
            found.append([index, index + 1])
    return found


def _definition(tool: Any) -> dict[str, Any]:
    plain = to_plain(tool)
    return plain if isinstance(plain, dict) else {"definition": plain}


def _plain_message(given: GivenMessage) -> dict[str, Any]:
    """Return a message as a plain JSON dict for ``convert_to_messages``, without large binary contents."""
    message = given.message
    if isinstance(message, str):
        return {"role": "user", "content": message}
    role = message.role if isinstance(message, ChatMessage) else _ROLES.get(message.type, message.type)
    plain: dict[str, Any] = {"role": role, "content": _without_binaries(given.content, is_text=True)}
    if message.name is not None:
        plain["name"] = message.name
    if isinstance(message, AIMessage):
        for key, calls in (("tool_calls", given.tool_calls), ("invalid_tool_calls", message.invalid_tool_calls)):
            if calls:
                plain[key] = [
                    {"name": call.get("name"), "args": _without_binaries(call.get("args")), "id": call.get("id")}
                    | ({"error": call["error"]} if call.get("error") else {})
                    for call in calls
                ]
        for key in _MORE_OF_MODELS:
            if isinstance(text := message.additional_kwargs.get(key), str) and text:
                plain[key] = text
    if isinstance(message, ToolMessage):
        plain["tool_call_id"] = message.tool_call_id
        if message.status == "error":
            plain["status"] = message.status
    return plain


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
    """Return what is kept of a binary content; the hash distinguishes two of one length."""
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
        kept = text[: max(0, limit - length)] if isinstance(text, str) else ""
        cut.append(kept if isinstance(block, str) else {**block, "text": kept} if isinstance(text, str) else block)
        length += len(text) if isinstance(text, str) else 0
    return cut, length
