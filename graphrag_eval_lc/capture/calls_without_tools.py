"""Tool calls that no tool of the agent carries out: of schemas for structured output, and of the provider's tools."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, ToolMessage

from graphrag_eval_lc.capture.outputs import Outcome, block_text, is_command, message_text, output_text, to_plain
from graphrag_eval_lc.capture.record import Record

_MAX_BREADTH = 32
_RETURNED = "Returning structured response: "
_UNPARSED = re.compile(r"Error: Failed to parse structured output for tool '([^']+)'")
_SEVERAL = re.compile(r"Error: Model incorrectly returned multiple structured responses \(([^)]+)\)")
_CLASS_NAME = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")


def is_from_agent(record: Record) -> bool:
    """Return whether a record is the node of ``create_agent`` that asks the model and returns a list of Commands.

    Hardly anybody else writes such a node. The agent's metadata do not tell with every version of langgraph.
    """
    output = record.output
    return record.is_model_node and isinstance(output, list) and bool(output) and is_command(output[0])


def is_class_name(name: str) -> bool:
    """Return whether a tool has the name of a class, as a schema has.

    Example:
        >>> is_class_name("GradeDocuments"), is_class_name("search_docs")
        (True, False)
    """
    return _CLASS_NAME.fullmatch(name) is not None


def structured_response(output: Any) -> Any:
    """Return the ``structured_response`` in a node's output or an update in it; None without one."""
    if isinstance(output, (list, tuple)):
        found = (structured_response(item) for item in output[:_MAX_BREADTH])
        return next((response for response in found if response is not None), None)
    if is_command(output):
        return structured_response(output.update)
    return output.get("structured_response") if isinstance(output, Mapping) else None


def says_unparsed(message: ToolMessage) -> bool:
    """Return whether a tool message says, in LangChain's words, that structured output did not parse."""
    text = message_text(message)
    return _UNPARSED.match(text) is not None or _SEVERAL.match(text) is not None


def schema_names(messages: Sequence[AIMessage | ToolMessage], record: Record) -> Iterator[str]:
    """Yield the names of the schemas whose calls new messages answer, which are in a record's output.

    LangChain answers such a call with a tool message, as if a tool had run: to close it, or to have it made again.
    """
    asked = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    if not asked or not answers:
        return
    if is_from_agent(record):
        answered = {answer.tool_call_id for answer in answers}
        yield from (call["name"] for call in asked if call["id"] in answered)
    for answer in answers:
        text = message_text(answer)
        if text.startswith(_RETURNED) and answer.name is not None:
            yield answer.name
        elif (found := _UNPARSED.match(text) or _SEVERAL.match(text)) is not None:
            yield from found[1].split(", ")
    if (response := structured_response(record.output)) is not None:
        fields = to_plain(response)
        alike = (call for call in asked if is_class_name(call["name"]) and call["args"])
        yield from (call["name"] for call in alike if isinstance(fields, dict) and call["args"].keys() <= fields.keys())


# Blocks that are no calls of a provider's tools. A message with no others is not translated.
_ORDINARY_BLOCKS = frozenset(
    {"text", "text-plain", "reasoning", "thinking", "redacted_thinking", "tool_use", "tool_call", "function_call"}
    | {"input_json_delta", "image", "image_url", "audio", "video", "file", "refusal"}
)


class ProviderCall(NamedTuple):
    """A call of one of a provider's own tools."""

    call_id: str | None
    name: str
    args: Any


class ProviderResult(NamedTuple):
    """The result of such a call; None if the call was but a request for approval, and a later message has it."""

    call_id: str | None
    outcome: Outcome | None


def provider_events(message: AIMessage) -> Iterator[ProviderCall | ProviderResult]:
    """Yield the calls of a provider's own tools in a model's message, and their results, by LangChain's blocks.

    A result may be in a later message than its call: if the provider paused its turn, or if its code calls tools of the
    agent.
    """
    content = message.content if isinstance(message.content, list) else []
    own = [block for block in content if isinstance(block, dict) and block.get("type") not in _ORDINARY_BLOCKS]
    executed = message.additional_kwargs.get("executed_tools")  # Groq's
    if isinstance(executed, list):
        tools = [_translatable(tool) for tool in executed if isinstance(tool, Mapping)]
        extra = {**message.additional_kwargs, "executed_tools": tools}
        message = message.model_copy(update={"additional_kwargs": extra})
    elif not own:
        return
    for translated in message.content_blocks:
        block: Any = translated.get("value") if translated["type"] == "non_standard" else translated
        kind = block.get("type") if isinstance(block, dict) else None
        name = (block.get("extras") or {}).get("tool_name") or block.get("name") if kind else None
        if kind in ("server_tool_call", "mcp_approval_request") and name != "mcp_list_tools":
            yield ProviderCall(block.get("id"), name or "server_tool", block.get("args") or {})
        elif kind == "server_tool_result":
            yield ProviderResult(block.get("tool_call_id"), _outcome(block))
    for block in own:
        if block["type"] == "image_generation_call":  # which LangChain translates to the image alone
            args = {"prompt": block["revised_prompt"]} if block.get("revised_prompt") else {}
            yield ProviderCall(block.get("id"), "image_generation", args)
            yield ProviderResult(block.get("id"), _outcome({"status": block.get("status")}))
        elif "approval_request_id" in block:
            yield ProviderResult(block["approval_request_id"], None)


def _translatable(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return one of Groq's executed tools without what LangChain's translation loses.

    That is a call whose arguments are not a JSON object, and search results without an output.
    """
    arguments, output = tool.get("arguments"), tool.get("output") or tool.get("search_results")
    is_code = "python" in (tool.get("type"), tool.get("name"))
    if isinstance(arguments, str) and arguments and not (is_code and arguments.lstrip().startswith("{")):
        try:
            is_object = isinstance(json.loads(arguments), dict)
        except ValueError:
            is_object = False
        if not is_object:
            arguments = json.dumps({"code" if is_code else "input": arguments})
    return {**tool, "arguments": arguments, "output": output}


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
