"""What a model's result says: its message, tokens, model name, why it ended, what is wrong, and provider's tools."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult

from graphrag_eval_lc.capture.kept import CaptureOptions
from graphrag_eval_lc.capture.messages import answer_text
from graphrag_eval_lc.capture.values import Outcome, block_text, output_text
from graphrag_eval_lc.records import ModelCall
from graphrag_eval_lc.registry.metrics import INPUT_TOKENS, OUTPUT_TOKENS, TOTAL_TOKENS
from graphrag_eval_lc.texts import shortened, text_of

_USAGE_KEYS = ("token_usage", "usage", "usage_metadata")
_FINISH_KEYS = ("finish_reason", "stop_reason", "stopReason", "finishReason", "done_reason")
_USUAL_REASONS = frozenset({"stop", "tool_calls", "length", "end_turn", "tool_use", "max_tokens", "STOP"})
_REPEATED = re.compile(r"(.+?)\1+")  # joined chunks of a stream: STOPSTOP
_MODEL_KEYS = ("model_name", "model", "model_id", "ls_model_name")
_METADATA_KEYS = frozenset({*_MODEL_KEYS, *_USAGE_KEYS, *_FINISH_KEYS, "model_provider", "system_fingerprint"})
# Ids of models' messages by LangChain or a provider.
_RUN_ID = re.compile(r"(?:lc_)?run-.|chatcmpl-.|(?:msg|resp)_[0-9A-Za-z]{16}")

_ANTHROPIC_READ, _ANTHROPIC_WRITTEN = "cache_read_input_tokens", "cache_creation_input_tokens"  # as it sends them
_CACHED, _WRITTEN, _WRITTEN_1H = "cached_input_tokens", "cache_write_input_tokens", "cache_write_1h_input_tokens"
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
}
_WRITTEN_5M = ("ephemeral_5m_input_tokens",)


def first_generation(result: LLMResult) -> Generation | None:
    """Return the first generation of a result, or None if there is none."""
    for generations in result.generations:
        for generation in generations:
            if isinstance(generation, Generation):
                return generation
    return None


def generated_message(result: object) -> AIMessage | None:
    """Return a chat model's message; None for plain language models, and for anything else."""
    generation = first_generation(result) if isinstance(result, LLMResult) else None
    message = generation.message if isinstance(generation, ChatGeneration) else None
    return message if isinstance(message, AIMessage) else None


def has_content(chunk: object) -> bool:
    """Return whether a chunk of a stream holds text, reasoning or a part of a tool call."""
    message = getattr(chunk, "message", None)
    calls = getattr(message, "tool_call_chunks", None)
    return bool(message is not None and (message.content or calls or message.additional_kwargs))


def message_result(message: AIMessage) -> LLMResult:
    """Return a message as the result of its model call."""
    return LLMResult(generations=[[ChatGeneration(message=message)]])


def has_run_id(message: AIMessage) -> bool:
    """Return whether a message's id shows that a model wrote it."""
    return message.id is not None and _RUN_ID.match(message.id) is not None


def is_generated(message: AIMessage) -> bool:
    """Return whether a model wrote a message, by its usage, id or metadata.

    Ids and metadata alone are not a proof: nodes write messages with them too, such as langgraph-supervisor's.
    """
    metadata = message.response_metadata
    return bool(message.usage_metadata) or has_run_id(message) or any(key in metadata for key in _METADATA_KEYS)


def is_cache_hit(message: AIMessage | None) -> bool:
    """Return whether LangChain's cache of model calls answered: such messages have a cost of 0."""
    usage: Mapping[str, Any] = (message.usage_metadata if message is not None else None) or {}
    cost = usage.get("total_cost")
    return cost is not None and cost == 0


def model_call(result: LLMResult | None, *, has_ended: bool = True) -> ModelCall:
    """Return what a model's result says of its call: model, tokens, and if it has ended why.

    What the provider did not report is absent. The message itself is read first, then what is next to it.
    """
    if result is None:
        return {}
    generation, message = first_generation(result), generated_message(result)
    of_message = () if message is None else ({"usage_metadata": message.usage_metadata}, message.response_metadata)
    given = (*of_message, None if generation is None else generation.generation_info, result.llm_output)
    sources = [source for source in given if isinstance(source, (dict, Mapping))]
    usages = (source.get(key) for source in sources for key in _USAGE_KEYS)
    found = (_tokens(usage) for usage in usages if isinstance(usage, (dict, Mapping)))
    call = next((tokens for tokens in found if INPUT_TOKENS in tokens or OUTPUT_TOKENS in tokens), ModelCall())
    if (name := model_name(*sources)) is not None:
        call["model"] = name
    if has_ended and (reason := _finish_reason(sources)) is not None:
        call["finish_reason"] = reason
    return call


def _tokens(usage: Mapping[str, Any]) -> ModelCall:
    """Return the counts of a provider's usage; those of the cache are a part of the prompt's tokens."""
    flat = dict(usage)
    for details in usage.values():
        if isinstance(details, (dict, Mapping)):
            flat = {**details, **flat}
    counts = {name: count for name, keys in _COUNTS.items() if (count := _count(flat, keys)) is not None}
    by_time = (_count(flat, _WRITTEN_5M) or 0) + counts.get(_WRITTEN_1H, 0)
    if by_time:  # LangChain's sum is then 0
        counts[_WRITTEN] = max(counts.get(_WRITTEN, 0), by_time)
    if not counts.get(_WRITTEN_1H):
        counts.pop(_WRITTEN_1H, None)
    if INPUT_TOKENS in usage and INPUT_TOKENS in counts and (_ANTHROPIC_READ in usage or _ANTHROPIC_WRITTEN in usage):
        counts[INPUT_TOKENS] += counts.get(_CACHED, 0) + counts.get(_WRITTEN, 0)  # which Anthropic does not count in
    if INPUT_TOKENS in counts and OUTPUT_TOKENS in counts:
        counts.setdefault(TOTAL_TOKENS, counts[INPUT_TOKENS] + counts[OUTPUT_TOKENS])
    return cast("ModelCall", counts)


def _count(usage: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    """Return the first count that is a whole number from 0."""
    for value in map(usage.get, keys):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 and value % 1 == 0:
            return int(value)
    return None


def model_name(*places: Any) -> str | None:
    """Return the first model name in mappings such as response metadata and invocation parameters."""
    for place in places:
        for key in _MODEL_KEYS if isinstance(place, (dict, Mapping)) else ():
            name = place.get(key)
            if isinstance(name, str) and name:
                return name
    return None


def _finish_reason(sources: Sequence[Mapping[str, Any]]) -> str | None:
    """Return why a model's answer ended, in the provider's own word; None if it does not say.

    For OpenAI's Responses API it is why the answer is incomplete, else its status.
    """
    for source in sources:
        details = source.get("incomplete_details")
        reasons = [source.get(key) for key in _FINISH_KEYS]
        reasons.append(details.get("reason") if isinstance(details, Mapping) else None)
        reasons.append(source.get("status") if source.get("object") == "response" else None)
        for reason in reasons:
            if isinstance(reason, str) and reason:
                repeated = None if reason in _USUAL_REASONS else _REPEATED.fullmatch(reason)
                return reason if repeated is None else repeated[1]
    return None


# --- what is wrong with an answer that came without an error ---

_MOST_SHOWN = 200
_CUT_OFF = "was cut off at the limit of tokens"
_FILTERED = "was stopped by the provider's filter"
_MALFORMED = "asked for a tool in a way that the provider could not read"
_PROBLEMS = {  # by the reason why an answer ended
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
    """Return the problems of a model's answer, each as the end of a sentence about the call.

    ``reason`` is why the answer ended; parts of the answer are redacted before they are shortened.
    """

    def shown(text: str, what: str) -> str:
        return shortened(options.kept_text(text, what, warnings), _MOST_SHOWN)

    message = generated_message(result)
    problem = _PROBLEMS.get((reason or "").lower().replace("-", "_"))
    stated = "" if reason is None else f" (finish_reason {reason})"
    if message is None:
        return (f"{problem}{stated}",) if problem and first_generation(result) is not None else ()
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
    extra = message.additional_kwargs
    if message.tool_calls or any(extra.get(key) for key in ("function_call", "audio", "tool_calls", "parsed")):
        return False
    blocks = message.content if isinstance(message.content, list) else ()
    if any(isinstance(block, Mapping) and block.get("type") not in _THOUGHTS for block in blocks):
        return False  # an image or a provider's own tool is an answer
    return not answer_text(message).strip()


# --- calls of the provider's own tools ---

# A message with only these blocks is not translated: they are not calls of a provider's tools.
_ORDINARY_BLOCKS = frozenset(
    {"text", "text-plain", "reasoning", "thinking", "redacted_thinking", "tool_use", "tool_call", "function_call"}
    | {"input_json_delta", "image", "image_url", "audio", "video", "file", "refusal"}
)
# The blocks of LangChain with a call or a result of such a tool, and the key of the call's id.
_CALLS = {"server_tool_call": "id", "mcp_approval_request": "id"}
_RESULTS = {"server_tool_result": "tool_call_id"}


class ProviderCall(NamedTuple):
    """A call of one of a provider's own tools."""

    call_id: str | None
    name: str
    args: Any


class ProviderResult(NamedTuple):
    """The result of such a call; None if the call was only a request for approval, and a later message has it."""

    call_id: str | None
    outcome: Outcome | None


def provider_events(message: AIMessage) -> Iterator[ProviderCall | ProviderResult]:
    """Yield the calls of a provider's own tools in a model's message, and their results, by LangChain's blocks.

    A result may be in a later message than its call: if the provider paused its turn, or if its code calls tools of the
    agent.
    """
    content = message.content if isinstance(message.content, list) else []
    own = [block for block in content if isinstance(block, dict) and block.get("type") not in _ORDINARY_BLOCKS]
    if not own and not message.additional_kwargs.get("executed_tools"):  # Groq's
        return
    for translated in message.content_blocks:
        block: Any = translated.get("value") if translated["type"] == "non_standard" else translated
        kind = block.get("type") if isinstance(block, dict) else None
        name = (block.get("extras") or {}).get("tool_name") or block.get("name") if kind else None
        if kind in _CALLS and name != "mcp_list_tools":
            yield ProviderCall(block.get(_CALLS[kind]), name or "server_tool", block.get("args") or {})
        elif kind in _RESULTS:
            yield ProviderResult(block.get(_RESULTS[kind]), _outcome(block))
    for block in own:
        if "approval_request_id" in block:
            yield ProviderResult(block["approval_request_id"], None)


def _outcome(result: Mapping[str, Any]) -> Outcome:
    output = result.get("output", (result.get("extras") or {}).get("error"))
    is_error = result.get("status") in ("error", "failed")
    if isinstance(output, Mapping) and isinstance(output.get("content"), list) and is_error:
        output = output["content"]
    texts = [block_text(block) for block in output] if isinstance(output, list) else [None]
    text = "" if output is None else output_text(output)
    if None not in texts:
        text = "".join(map(str, texts))
    return Outcome("error", text or "error without a message") if is_error else Outcome("success", text)
