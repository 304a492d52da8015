"""Problems of a model's answer that came without an error: empty, cut off, refused, or with unreadable calls."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.llm_calls import first_generation, generated_message
from graphrag_eval_lc.capture.messages import answer_text
from graphrag_eval_lc.capture.redaction import CaptureOptions, kept_text
from graphrag_eval_lc.texts import shortened, text_of

_MOST_SHOWN = 200
_IN_ORDER = frozenset({"stop", "tool_calls", "end_turn", "tool_use", "STOP", "completed", "stop_sequence"})
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
_FILTERED = frozenset(
    {"content_filter", "content_filtered", "guardrail_intervened", "safety", "recitation", "blocklist"}
    | {"prohibited_content", "spii", "image_safety"}
)
_MALFORMED = frozenset({"malformed_function_call", "malformed_tool_use", "malformed_model_output"})
_THOUGHTS = frozenset({"text", "reasoning", "thinking", "redacted_thinking", "refusal"})


def answer_problems(
    result: LLMResult, reason: str | None, options: CaptureOptions, warnings: list[str]
) -> tuple[str, ...]:
    """Return the problems of a model's answer, each as the end of a sentence about the call.

    Args:
        result: The model's result.
        reason: Why its answer ended, from ``finish_reason``.
        options: The handler's options; ``redact`` is applied to shown parts of the answer before they are shortened.
        warnings: Warnings of ``redact`` are added here.

    Example:
        >>> from graphrag_eval_lc.capture.llm_calls import message_result
        >>> message = AIMessage("The lines are")
        >>> answer_problems(message_result(message), "length", CaptureOptions(), [])
        ('was cut off at the limit of tokens (finish_reason length)',)
    """
    message = generated_message(result)
    if message is None:
        return _finish_problem(reason, is_empty=False) if first_generation(result) is not None else ()
    if _is_in_order(message, reason):
        return ()
    invalid = [_invalid_call(call, options, warnings) for call in message.invalid_tool_calls]
    refusal = _refusal(message)
    if refusal is not None:
        shown = _shown(refusal, options, "refusal", warnings)
        return (f"refused: {shown}" if shown else "refused", *invalid)
    is_empty = not invalid and _is_empty(message)
    return (*_finish_problem(reason, is_empty=is_empty), *invalid)


def _is_in_order(message: AIMessage, reason: str | None) -> bool:
    """Return at little cost that nothing is wrong, which holds for most answers."""
    if message.invalid_tool_calls or message.additional_kwargs.get("refusal"):
        return False
    if isinstance(message.content, str):
        return (reason is None or reason in _IN_ORDER) and bool(message.tool_calls or message.content.strip())
    return reason in _IN_ORDER and bool(message.tool_calls)


def _finish_problem(reason: str | None, *, is_empty: bool) -> tuple[str, ...]:
    stated = "" if reason is None else f" (finish_reason {reason})"
    kind = "" if reason is None else reason.lower().replace("-", "_")
    if kind in _CUT:
        return (f"was cut off at the limit of tokens{' before it gave any text' * is_empty}{stated}",)
    if kind in _FILTERED:
        return (f"was stopped by the provider's filter{stated}",)
    if kind == "refusal":
        return (f"refused{stated}",)
    if kind in _MALFORMED:
        return (f"asked for a tool in a way that the provider could not read{stated}",)
    return (f"gave neither text nor a tool call{stated}",) if is_empty else ()


def _refusal(message: AIMessage) -> str | None:
    """Return the words of a refusal, which OpenAI puts beside the content or into a block of it."""
    refusal = message.additional_kwargs.get("refusal")
    if isinstance(refusal, str) and refusal:
        return refusal
    for block in message.content if isinstance(message.content, list) else ():
        if isinstance(block, Mapping):
            value = block.get("value") if block.get("type") == "non_standard" else block
            if isinstance(value, Mapping) and value.get("type") == "refusal":
                return text_of(value.get("refusal") or "")
    return None


def _is_empty(message: AIMessage) -> bool:
    extra = message.additional_kwargs
    if message.tool_calls or any(extra.get(key) for key in ("function_call", "audio", "tool_calls", "parsed")):
        return False
    if isinstance(message.content, list) and any(_is_content(block) for block in message.content):
        return False
    return not answer_text(message).strip()


def _is_content(block: Any) -> bool:
    """Return whether a block is neither text nor reasoning, such as an image or a provider's own tool."""
    return isinstance(block, Mapping) and block.get("type") not in _THOUGHTS


def _invalid_call(call: Mapping[str, Any], options: CaptureOptions, warnings: list[str]) -> str:
    name = options.step_name(text_of(call.get("name") or "a tool"))
    args = text_of(call.get("args") or "")
    error = text_of(call.get("error") or "").partition("\nFor troubleshooting")[0]
    if args:
        error = error.replace(args, "…")
    shown = _shown(args, options, f"args of {name}", warnings)
    why = _shown(error, options, f"error of {name}", warnings)
    identifier = f" ({call['id']})" if call.get("id") else ""
    text = f"asked for {name}{identifier} with arguments that could not be read, so that it did not run"
    return f"{text}{f': {shown}' * bool(shown)}{f' ({why})' * bool(why)}"


def _shown(text: str, options: CaptureOptions, what: str, warnings: list[str]) -> str:
    """Return a text as it is kept, on one line and short."""
    return shortened(kept_text(text, options, what, warnings), _MOST_SHOWN)
