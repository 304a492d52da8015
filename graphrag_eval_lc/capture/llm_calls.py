"""Reads model calls: tokens, finish reasons, problems of answers, calls of the provider's tools, and kept messages."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult

from graphrag_eval_lc.capture.messages import answer_text
from graphrag_eval_lc.capture.values import CaptureOptions, Outcome, output_text, texts_of, to_plain
from graphrag_eval_lc.records import ModelCall
from graphrag_eval_lc.registry.metrics import INPUT_TOKENS, OUTPUT_TOKENS, TOTAL_TOKENS
from graphrag_eval_lc.texts import shortened, text_of

_USAGE_KEYS = ("token_usage", "usage", "usage_metadata")
_FINISH_KEYS = ("finish_reason", "stop_reason", "stopReason", "finishReason", "done_reason")
_REPEATED = re.compile(r"(.+?)\1+")  # joined chunks of a stream: STOPSTOP
_MODEL_KEYS = ("model_name", "model", "model_id", "ls_model_name")
_METADATA_KEYS = frozenset({*_MODEL_KEYS, *_USAGE_KEYS, *_FINISH_KEYS, "model_provider", "system_fingerprint"})
# The ids that LangChain and providers assign to models' messages.
_CLOCK_SKEW_SEC = 60.0
_TIMED_ID = re.compile(r"lc_run--([0-9a-f]{8})-([0-9a-f]{4})-7")
_RUN_ID = re.compile(r"(?:lc_)?run-.|chatcmpl-.|(?:msg|resp)_[0-9A-Za-z]{16}")

_ANTHROPIC_READ, _ANTHROPIC_WRITTEN = "cache_read_input_tokens", "cache_creation_input_tokens"  # as it sends them
_CACHED, _WRITTEN, _WRITTEN_1H = "cached_input_tokens", "cache_write_input_tokens", "cache_write_1h_input_tokens"
_WRITTEN_5M = "ephemeral_5m_input_tokens"
# The providers' names of each count, in the usage or in details of it.
_COUNTS = {
    INPUT_TOKENS: (INPUT_TOKENS, "prompt_tokens", "prompt_token_count"),
    OUTPUT_TOKENS: (OUTPUT_TOKENS, "completion_tokens", "candidates_token_count"),
    TOTAL_TOKENS: (TOTAL_TOKENS, "total_token_count"),
    _CACHED: ("cache_read", "cached_tokens", "priority_cache_read", "flex_cache_read", _ANTHROPIC_READ),
    _WRITTEN: (
        *("cache_creation", "cache_write_tokens", "priority_cache_creation", "flex_cache_creation"),
        _ANTHROPIC_WRITTEN,
    ),
    _WRITTEN_1H: ("ephemeral_1h_input_tokens",),
    "reasoning_tokens": ("reasoning", "reasoning_tokens", "priority_reasoning", "flex_reasoning"),
    _WRITTEN_5M: (_WRITTEN_5M,),
}
_NAMES = {key: name for name, keys in _COUNTS.items() for key in keys}


def generated(result: object) -> tuple[Generation | None, AIMessage | None]:
    """Return the first generation of a model's result, and a chat model's message; None for anything missing."""
    lists = result.generations if isinstance(result, LLMResult) else ()
    first = next((each for generations in lists for each in generations if isinstance(each, Generation)), None)
    message = first.message if isinstance(first, ChatGeneration) else None
    return first, message if isinstance(message, AIMessage) else None


def message_result(message: AIMessage) -> LLMResult:
    """Return a message as the result of its model call."""
    return LLMResult(generations=[[ChatGeneration(message=message)]])


def has_run_id(message: AIMessage) -> bool:
    """Return whether a message's id shows that a model wrote it."""
    return message.id is not None and _RUN_ID.match(message.id) is not None


def is_from_before(message: AIMessage, started_at: float) -> bool:
    """Return whether a message's id shows that its model call began more than a minute before a time.

    The time is in seconds since 1970. LangChain's ids have the id of the call, a UUID of version 7, which begins with
    its time in milliseconds, by the clock of the machine that called the model: a server's may be wrong by seconds.
    """
    found = None if message.id is None else _TIMED_ID.match(message.id)
    return found is not None and int(found[1] + found[2], 16) < (started_at - _CLOCK_SKEW_SEC) * 1000


def is_generated(message: AIMessage) -> bool:
    """Return whether a model seems to have written a message, by its usage, id or metadata."""
    return (
        bool(message.usage_metadata) or has_run_id(message) or not _METADATA_KEYS.isdisjoint(message.response_metadata)
    )


def is_cache_hit(message: AIMessage | None) -> bool:
    """Return whether LangChain's cache answered in place of a model: it sets a cost of 0 in the message."""
    usage: Mapping[str, Any] = (message.usage_metadata if message is not None else None) or {}
    return usage.get("total_cost") == 0


def model_call(result: LLMResult | None, *, has_ended: bool = True) -> ModelCall:
    """Return the model, tokens and (once it has ended) finish reason of a call, leaving out what is unknown."""
    if result is None:
        return {}
    generation, message = generated(result)
    of_message = () if message is None else ({"usage_metadata": message.usage_metadata}, message.response_metadata)
    given = (*of_message, None if generation is None else generation.generation_info, result.llm_output)
    sources = [source for source in given if source and isinstance(source, (dict, Mapping))]
    call = ModelCall()
    for usage in (source.get(key) for source in sources for key in _USAGE_KEYS):
        tokens = _tokens(usage) if usage and isinstance(usage, (dict, Mapping)) else {}
        if INPUT_TOKENS in tokens or OUTPUT_TOKENS in tokens:
            call = cast("ModelCall", tokens)
            break
    if (name := model_name(*sources)) is not None:
        call["model"] = name
    if has_ended and (reason := _finish_reason(sources)) is not None:
        call["finish_reason"] = reason
    return call


def _tokens(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return the token counts in a provider's usage; cached tokens are counted as part of the prompt's tokens."""
    flat = dict(usage)
    for details in usage.values():
        if type(details) is not int and isinstance(details, (dict, Mapping)):
            flat = {**details, **flat}
    counts: dict[str, int] = {}
    for key, name in _NAMES.items():  # the first whole number from 0 counts
        value = flat.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 and value % 1 == 0:
            counts.setdefault(name, int(value))
    by_time = counts.pop(_WRITTEN_5M, 0) + counts.get(_WRITTEN_1H, 0)
    if by_time:  # LangChain's sum is then 0
        counts[_WRITTEN] = max(counts.get(_WRITTEN, 0), by_time)
    if not counts.get(_WRITTEN_1H):
        counts.pop(_WRITTEN_1H, None)
    if INPUT_TOKENS in usage and INPUT_TOKENS in counts and (_ANTHROPIC_READ in usage or _ANTHROPIC_WRITTEN in usage):
        counts[INPUT_TOKENS] += counts.get(_CACHED, 0) + counts.get(_WRITTEN, 0)  # Anthropic excludes these
    if INPUT_TOKENS in counts and OUTPUT_TOKENS in counts:
        counts.setdefault(TOTAL_TOKENS, counts[INPUT_TOKENS] + counts[OUTPUT_TOKENS])
    return counts


def model_name(*places: Any) -> str | None:
    """Return the first model name in mappings such as response metadata and invocation parameters."""
    for place in places:
        for name in map(place.get, _MODEL_KEYS) if isinstance(place, (dict, Mapping)) else ():
            if isinstance(name, str) and name:
                return name
    return None


def _finish_reason(sources: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the provider's finish reason; OpenAI's Responses API has ``incomplete_details`` or ``status`` instead."""
    for source in sources:
        details = source.get("incomplete_details")
        reasons = [source.get(key) for key in _FINISH_KEYS]
        reasons.append(details.get("reason") if isinstance(details, Mapping) else None)
        reasons.append(source.get("status") if source.get("object") == "response" else None)
        for reason in reasons:
            if isinstance(reason, str) and reason:
                repeated = _REPEATED.fullmatch(reason)
                return reason if repeated is None else repeated[1]
    return None


# --- problems of answers that arrived without an error ---

_MOST_SHOWN = 200
_CUT_OFF = "was cut off at the limit of tokens"
_FILTERED = "was stopped by the provider's filter"
_MALFORMED = "asked for a tool in a way that the provider could not read"
_PROBLEMS = {  # by finish reason
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), _CUT_OFF),
    "model_context_window_exceeded": _CUT_OFF,
    **dict.fromkeys(("content_filter", "content_filtered", "guardrail_intervened", "safety", "recitation"), _FILTERED),
    **dict.fromkeys(("blocklist", "prohibited_content", "spii", "image_safety"), _FILTERED),
    **dict.fromkeys(("malformed_function_call", "malformed_tool_use", "malformed_model_output"), _MALFORMED),
    "refusal": "refused",
}
_THOUGHTS = frozenset({"text", "reasoning", "thinking", "redacted_thinking", "refusal"})


def answer_problems(
    result: LLMResult, reason: str | None, options: CaptureOptions, warnings: list[str]
) -> tuple[str, ...]:
    """Return the problems of an answer, each as the end of a sentence: ``was cut off at the limit of tokens``."""

    def shown(text: str, what: str) -> str:
        return shortened(options.kept_text(text, what, warnings), _MOST_SHOWN)

    first, message = generated(result)
    problem = _PROBLEMS.get((reason or "").lower().replace("-", "_"))
    stated = "" if reason is None else f" (finish_reason {reason})"
    if message is None:
        return (f"{problem}{stated}",) if problem and first is not None else ()
    invalid: list[str] = []
    for call in message.invalid_tool_calls:
        name, args = options.step_name(text_of(call.get("name") or "a tool")), text_of(call.get("args") or "")
        error = text_of(call.get("error") or "").partition("\nFor troubleshooting")[0]
        args_text = shown(args, f"args of {name}")
        why = shown(error.replace(args, "…") if args else error, f"error of {name}")
        identifier = f" ({call['id']})" if call.get("id") else ""
        text = f"asked for {name}{identifier} with arguments that could not be read, so that it did not run"
        invalid.append(f"{text}{f': {args_text}' * bool(args_text)}{f' ({why})' * bool(why)}")
    if (refusal := _refusal(message)) is not None:
        words = shown(refusal, "refusal")
        return (f"refused: {words}" if words else "refused", *invalid)
    is_empty = not invalid and _is_empty(message)
    if is_empty and problem == _CUT_OFF:
        problem = f"{problem} before it returned any text"
    elif is_empty and problem is None:
        problem = "returned no text and no tool call"
    return (*([f"{problem}{stated}"] if problem else ()), *invalid)


def _refusal(message: AIMessage) -> str | None:
    """Return the words of a refusal, which OpenAI puts next to the content or into a block of it."""
    refusal = message.additional_kwargs.get("refusal")
    if isinstance(refusal, str) and refusal:
        return refusal
    for block in message.content if isinstance(message.content, list) else ():
        value = block.get("value", block) if isinstance(block, Mapping) else None
        if isinstance(value, Mapping) and value.get("type") == "refusal":
            return text_of(value.get("refusal") or "")
    return None


def _is_empty(message: AIMessage) -> bool:
    """Return whether a message has no text, tool call, image or call of a provider's tool."""
    extra = message.additional_kwargs
    if message.tool_calls or any(extra.get(key) for key in ("function_call", "audio", "tool_calls", "parsed")):
        return False
    blocks = message.content if isinstance(message.content, list) else ()
    kinds = {block.get("type") for block in blocks if isinstance(block, Mapping)}
    return kinds <= _THOUGHTS and not answer_text(message).strip()


# --- calls of the provider's own tools ---

# Blocks that are not calls of a provider's tools; a message with only these is not translated, which takes time.
_ORDINARY_BLOCKS = frozenset(
    {"text", "text-plain", "reasoning", "thinking", "redacted_thinking", "tool_use", "tool_call", "function_call"}
    | {"input_json_delta", "image", "image_url", "audio", "video", "file", "refusal"}
)


class ProviderEvent(NamedTuple):
    """A call of one of a provider's own tools, or its result.

    An event without ``name`` and ``outcome`` withdraws a call, as a later message has the call and its result.
    """

    call_id: str | None
    name: str | None = None  # None for a result
    args: Any = None
    outcome: Outcome | None = None


def provider_events(message: AIMessage) -> Iterator[ProviderEvent]:
    """Yield the calls of a provider's own tools in a model's message, and results, which may be of an earlier call."""
    content = message.content if isinstance(message.content, list) else ()
    own = [block for block in content if isinstance(block, dict) and block.get("type") not in _ORDINARY_BLOCKS]
    if not own and not message.additional_kwargs.get("executed_tools"):  # Groq's
        return
    for translated in message.content_blocks:
        block: Any = translated.get("value") if translated["type"] == "non_standard" else translated
        if not isinstance(block, dict):
            continue
        kind, extras = block.get("type"), block.get("extras") or {}
        if kind == "server_tool_result":
            output = block.get("output", extras.get("error"))
            is_error = block.get("status") in ("error", "failed")
            if isinstance(output, Mapping) and isinstance(output.get("content"), list) and is_error:
                output = output["content"]
            texts = texts_of(output) if isinstance(output, list) else [output_text(output)] * (output is not None)
            text = output_text(output) if texts is None else "".join(texts)
            outcome = Outcome("error", text or "error without a message") if is_error else Outcome("success", text)
            yield ProviderEvent(block.get("tool_call_id"), outcome=outcome)
        elif kind in ("server_tool_call", "mcp_approval_request"):
            name = extras.get("tool_name") or block.get("name") or "server_tool"
            if name != "mcp_list_tools":
                yield ProviderEvent(block.get("id"), name, block.get("args") or {})
    for block in own:
        if "approval_request_id" in block:
            yield ProviderEvent(block["approval_request_id"])


# --- kept messages: a table of prompts and outputs of model calls, and one of tool definitions, without duplicates ---

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
_MORE_OF_MODELS = ("refusal", "reasoning_content")  # texts that providers send next to the content
_TEXT_KEYS = ("text", "reasoning", "thinking")  # the keys of readable text in blocks
_TEXT_BLOCKS = (*_TEXT_KEYS, "output_text", "input_text")
_PLAIN_BLOCK = {"type", "text", "id", "index", "cache_control"}  # the keys of a block of plain text
_LONGEST_BINARY = 256
_BASE64 = re.compile(r"(?P<head>data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)?(?P<body>[A-Za-z0-9+/_=\r\n-]*)")
_DATA_URL = re.compile(r"(?P<head>data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)(?P<body>[A-Za-z0-9+/_=-]{256,})")

Table = dict[bytes, dict[str, Any]]  # entries by the digest of their full content, before redaction and cutting


class GivenMessage(NamedTuple):
    """A message as it was during a model call; the agent may change the object later."""

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
        self._redacted = partial(options.redacted, warnings=warnings)
        self._warnings = warnings
        self._known: dict[tuple[int, int, int], bytes] = {}  # the digest of each message, by its objects

    def add(self, given: Iterable[GivenMessage]) -> list[bytes]:
        """Add messages, and return their digests."""
        found: list[bytes] = []
        for each in given:
            key = id(each.message), id(each.content), id(each.tool_calls)
            if key not in self._known:
                plain = _plain_message(each)
                digest = self._known[key] = _digest(plain)
                if digest not in self.messages:
                    self.messages[digest] = self._kept_message(plain)
            found.append(self._known[key])
        return found

    def add_tools(self, definitions: Sequence[Any]) -> list[bytes]:
        """Add definitions of tools, and return their digests."""
        found: list[bytes] = []
        for each in definitions:
            plain = to_plain(each)
            plain = plain if isinstance(plain, dict) else {"definition": plain}
            found.append(digest := _digest(plain))
            if digest not in self.tools:
                kept = self._redacted(plain, "definition of a tool")
                self.tools[digest] = kept if isinstance(kept, dict) else {"definition": kept}
        return found

    def _kept_message(self, plain: dict[str, Any]) -> dict[str, Any]:
        """Return a message with texts and arguments redacted and the content cut."""
        options, what, kept = self._options, f"content of a message ({plain['role']})", dict(plain)
        if options.redact is not None:
            kept["content"] = self._kept_content(plain["content"], what)
            for key in plain.keys() & {*_MORE_OF_MODELS}:
                kept[key] = options.kept_text(plain[key], what, self._warnings)
            for key in plain.keys() & {"tool_calls", "invalid_tool_calls"}:
                kept[key] = [self._kept_call(call) for call in plain[key]]
        if options.max_output_chars is not None:
            content, length = _cut(kept["content"], options.max_output_chars)
            if length > options.max_output_chars:
                kept["content"], kept["full_length"] = content, length
        return kept

    def _kept_content(self, content: Any, what: str) -> Any:
        if isinstance(content, str):
            return self._options.kept_text(content, what, self._warnings)
        if isinstance(content, list):
            return [self._kept_content(block, what) for block in content]
        if isinstance(content, dict) and content.keys() <= _PLAIN_BLOCK and isinstance(content.get("text"), str):
            return {**content, "text": self._kept_content(content["text"], what)}
        kept = self._redacted(content, what)
        return kept if isinstance(kept, dict) else {"type": "text", "text": str(kept)}

    def _kept_call(self, call: dict[str, Any]) -> dict[str, Any]:
        name, args = str(call["name"]), call["args"]
        kept = self._redacted(args, f"args of {self._options.step_name(name)}")
        kept_call = {**call, "args": kept if isinstance(kept, dict) or not isinstance(args, dict) else {"args": kept}}
        if isinstance(call.get("error"), str):
            kept_call["error"] = self._options.kept_text(call["error"], "error of an invalid tool call", self._warnings)
        return kept_call


def _digest(plain: Any) -> bytes:
    return blake2b(json.dumps(plain, sort_keys=True, default=repr).encode("ascii"), digest_size=16).digest()


def ranges(of: Iterable[int]) -> list[list[int]]:
    """Return indices as half-open ranges: ``0, 1, 5`` become ``[[0, 2], [5, 6]]``."""
    found: list[list[int]] = []
    for index in of:
        if found and found[-1][1] == index:
            found[-1][1] += 1
        else:
            found.append([index, index + 1])
    return found


def _plain_message(given: GivenMessage) -> dict[str, Any]:
    """Return a message as a plain JSON dict that ``convert_to_messages`` accepts, without large binary contents."""
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
    """Return content as plain JSON, with binary data replaced by its length and hash.

    Readable text (``is_text``) is never treated as base64 as a whole; only data URLs in it are replaced.
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
    """Return the length and hash that replace binary data; the hash distinguishes data of the same length."""
    body = match["body"]
    digest = blake2b(body.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{match['head'] or ''}<{len(body):,} characters, blake2b {digest}>"


def _cut(content: Any, limit: int) -> tuple[Any, int]:
    """Return content cut to ``limit`` characters over all its texts, and the number of characters before the cut."""
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
