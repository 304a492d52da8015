"""What one model call cost, read from the result that the model hands to ``on_llm_end``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult

from graphrag_eval_lc.records import ModelCall

_INPUT_KEYS = ("input_tokens", "prompt_tokens", "prompt_token_count")
_OUTPUT_KEYS = ("output_tokens", "completion_tokens", "candidates_token_count")
_TOTAL_KEYS = ("total_tokens", "total_token_count")
_USAGE_KEYS = ("token_usage", "usage", "usage_metadata")
_RUN_IDS = ("lc_run-", "run-")  # LangChain's ids of messages that came from a model
_MODEL_KEYS = ("model_name", "model", "model_id", "ls_model_name")


def first_generation(result: LLMResult) -> Generation | None:
    """Give the first generation of a result, or None where there is none."""
    for generations in result.generations:
        for generation in generations:
            if isinstance(generation, Generation):
                return generation
    return None


def generated_message(result: LLMResult) -> AIMessage | None:
    """Give the message that a chat model answered with; None for plain language models."""
    generation = first_generation(result)
    message = generation.message if isinstance(generation, ChatGeneration) else None
    return message if isinstance(message, AIMessage) else None


def has_content(chunk: object) -> bool:
    """Tell whether a chunk of a stream holds anything of the answer: text, reasoning or a part of a tool call."""
    message = getattr(chunk, "message", None)
    calls = getattr(message, "tool_call_chunks", None)
    return bool(message is not None and (message.content or calls or message.additional_kwargs))


def message_result(message: AIMessage) -> LLMResult:
    """Give the result of the model call that a message alone tells of."""
    return LLMResult(generations=[[ChatGeneration(message=message)]])


def is_generated(message: AIMessage) -> bool:
    """Tell whether a model wrote a message, and not a node's own code: it says what it cost, or how it was made."""
    return bool(message.usage_metadata or message.response_metadata or (message.id or "").startswith(_RUN_IDS))


def is_cache_hit(result: LLMResult) -> bool:
    """Tell whether LangChain's cache of model calls answered; core marks such messages with a cost of 0."""
    message = generated_message(result)
    usage: Mapping[str, Any] = (message.usage_metadata if message is not None else None) or {}
    cost = usage.get("total_cost")
    return cost is not None and cost == 0


def model_usage(result: LLMResult) -> ModelCall:
    """Give the tokens of one model call; what the provider did not report is absent.

    Looks at the message's ``usage_metadata``, the result's ``llm_output``, the message's ``response_metadata`` and
    the ``generation_info``, and takes the first that has a count.
    """
    for source in _usage_sources(result):
        usage = _tokens(source)
        if "input_tokens" in usage or "output_tokens" in usage:
            return usage
    return {}


def _usage_sources(result: LLMResult) -> Iterable[Mapping[str, Any]]:
    message = generated_message(result)
    generation = first_generation(result)
    if message is not None and message.usage_metadata:
        yield message.usage_metadata
    places = (
        result.llm_output,
        message.response_metadata if message is not None else None,
        generation.generation_info if generation is not None else None,
    )
    for place in places:
        if isinstance(place, Mapping):
            yield from (place[key] for key in _USAGE_KEYS if isinstance(place.get(key), Mapping))


def _tokens(usage: Mapping[str, Any]) -> ModelCall:
    call: ModelCall = {}
    if (input_tokens := _count(usage, _INPUT_KEYS)) is not None:
        call["input_tokens"] = input_tokens
    if (output_tokens := _count(usage, _OUTPUT_KEYS)) is not None:
        call["output_tokens"] = output_tokens
    total = _count(usage, _TOTAL_KEYS)
    if total is None and input_tokens is not None and output_tokens is not None:
        total = input_tokens + output_tokens
    if total is not None:
        call["total_tokens"] = total
    cached = _detail(usage, ("input_token_details", "prompt_tokens_details"), ("cache_read", "cached_tokens"))
    if cached is not None:
        call["cached_input_tokens"] = cached
    reasoning = _detail(usage, ("output_token_details", "completion_tokens_details"), ("reasoning", "reasoning_tokens"))
    if reasoning is not None:
        call["reasoning_tokens"] = reasoning
    return call


def _count(usage: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        value = usage.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if value >= 0 and float(value).is_integer():
            return int(value)
    return None


def _detail(usage: Mapping[str, Any], places: tuple[str, ...], keys: tuple[str, ...]) -> int | None:
    for place in places:
        details = usage.get(place)
        if isinstance(details, Mapping) and (count := _count(details, keys)) is not None:
            return count
    return None


def model_name(*places: Any) -> str | None:
    """Give the first model name in mappings such as response metadata and invocation parameters."""
    for place in places:
        if isinstance(place, Mapping):
            for key in _MODEL_KEYS:
                name = place.get(key)
                if isinstance(name, str) and name:
                    return name
    return None


def result_model_name(result: LLMResult) -> str | None:
    """Give the model's name as the provider's answer states it."""
    message = generated_message(result)
    return model_name(message.response_metadata if message is not None else None, result.llm_output)


_ANY_TOOL = ("any", "required")


def unanswered_tool(params: Any, options: Any) -> str | None:
    """Give the tool that a model is made to call for its arguments, as a schema of the answer, so that nobody runs it.

    Args:
        params: The invocation parameters of a model call.
        options: Its options, which say where it is to give structured output.

    Returns:
        The tool's name, an empty text where it may be any tool, and None where calls are to be answered.

    Example:
        >>> unanswered_tool({"tool_choice": {"type": "function", "function": {"name": "Route"}}}, {})
        'Route'
    """
    if isinstance(options, Mapping) and options.get("ls_structured_output_format"):
        return ""
    choice = params.get("tool_choice") if isinstance(params, Mapping) else None
    if isinstance(choice, Mapping):
        function = choice.get("function")
        choice = function.get("name") if isinstance(function, Mapping) else choice.get("name") or choice.get("type")
    if choice in _ANY_TOOL:
        tools = params.get("tools")
        return "" if isinstance(tools, Sequence) and len(tools) == 1 else None
    return choice if isinstance(choice, str) and choice not in ("auto", "none") else None
