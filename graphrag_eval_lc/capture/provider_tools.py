"""Tools that the provider runs itself, such as a web search: read from the blocks of the model's message."""

from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage

from graphrag_eval_lc.capture.outputs import output_text, to_plain

# Blocks of other types are nothing that a provider ran; most messages have no others, and are not translated.
_ORDINARY_BLOCKS = frozenset(
    {"text", "text-plain", "reasoning", "thinking", "redacted_thinking", "tool_use", "tool_call", "function_call"}
    | {"input_json_delta", "image", "image_url", "audio", "video", "file", "refusal"}
)


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One call of a provider's tool, with its result as a string."""

    call_id: str
    name: str
    args: dict[str, Any]
    status: Literal["success", "error"]
    text: str


def provider_calls(message: AIMessage) -> list[ProviderCall]:
    """Give the calls of provider-side tools in a message that have a result in it."""
    content = message.content
    if isinstance(content, str) or all(_is_ordinary(block) for block in content):
        return []
    blocks: list[Any] = list(message.content_blocks)
    results = {block.get("tool_call_id"): block for block in blocks if block.get("type") == "server_tool_result"}
    return [
        _provider_call(block, results[block["id"]])
        for block in blocks
        if block.get("type") == "server_tool_call" and block.get("id") in results
    ]


def _is_ordinary(block: Any) -> bool:
    return isinstance(block, str) or block.get("type") in _ORDINARY_BLOCKS


def _provider_call(call: dict[str, Any], result: dict[str, Any]) -> ProviderCall:
    failed = result.get("status") == "error"
    text = output_text(result["output"]) if "output" in result else ""
    return ProviderCall(
        call_id=call["id"],
        name=call.get("name") or "server_tool",
        args=to_plain(call.get("args") or {}),
        status="error" if failed else "success",
        text=(text or "error without a message") if failed else text,
    )
