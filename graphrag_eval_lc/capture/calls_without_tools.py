"""Tool calls that no tool of the agent carries out: of schemas for structured output, and of the provider's tools."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, ToolCall, ToolMessage

from graphrag_eval_lc.capture.outputs import block_text, is_command, message_text, output_text, to_plain
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


def schema_names(
    messages: Sequence[AIMessage | ToolMessage], response: Any = None, *, is_of_model_node: bool = False
) -> Iterator[str]:
    """Yield the names of the schemas whose calls a list of new messages answers.

    LangChain answers such a call with a tool message, as if a tool had run: to close it, or to have it made again.

    Args:
        messages: The new messages of models and tools, in order.
        response: The ``structured_response`` beside them.
        is_of_model_node: Whether ``create_agent`` made the list in the node that asks its model.
    """
    if not any(isinstance(message, AIMessage) for message in messages):
        return
    if is_of_model_node and isinstance(messages[0], AIMessage):
        answered = {message.tool_call_id for message in messages[1:] if isinstance(message, ToolMessage)}
        yield from (call["name"] for call in messages[0].tool_calls if call["id"] in answered)
    for message in messages:
        if isinstance(message, ToolMessage):
            text = message_text(message)
            if text.startswith(_RETURNED) and message.name is not None:
                yield message.name
            elif (found := _UNPARSED.match(text) or _SEVERAL.match(text)) is not None:
                yield from found[1].split(", ")
    if response is not None and (call := _last_answered(messages)) is not None:
        fields = to_plain(response)
        if call["args"] and isinstance(fields, dict) and call["args"].keys() <= fields.keys():
            yield call["name"]


def _last_answered(messages: Sequence[AIMessage | ToolMessage]) -> ToolCall | None:
    """Return the call of the last model's message that is answered first: a schema's, before tools run."""
    answer: ToolMessage | None = None
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            answered_id = None if answer is None else answer.tool_call_id
            return next((call for call in message.tool_calls if call["id"] == answered_id), None)
        answer = message
    return None


# Blocks that are no calls of a provider's tools. A message with no others is not translated.
_ORDINARY_BLOCKS = frozenset(
    {"text", "text-plain", "reasoning", "thinking", "redacted_thinking", "tool_use", "tool_call", "function_call"}
    | {"input_json_delta", "image", "image_url", "audio", "video", "file", "refusal"}
)


@dataclass(slots=True, eq=False)
class ProviderCall:
    """One call of a provider's tool; without a result it has no status.

    ``is_approved``: it is but the request of a call that a later message has.
    """

    call_id: str | None
    name: str
    args: Any
    status: Literal["success", "error"] | None = None
    text: str = ""
    is_approved: bool = False


class ProviderTools:
    """The calls of a provider's own tools, in LangChain's standard blocks, read from one message after the other.

    A result may be in a later message than its call: where the provider paused its turn, or where its code calls tools
    of the agent.
    """

    def __init__(self) -> None:
        self.calls: list[ProviderCall] = []
        self._open: dict[Any, ProviderCall] = {}

    def read(self, message: AIMessage) -> int:
        """Read a model's message, and return how many calls are new."""
        number, content = len(self.calls), message.content if isinstance(message.content, list) else []
        own = [block for block in content if isinstance(block, dict) and block.get("type") not in _ORDINARY_BLOCKS]
        executed = message.additional_kwargs.get("executed_tools")  # Groq's
        if isinstance(executed, list):
            tools = [_translatable(tool) for tool in executed if isinstance(tool, Mapping)]
            extra = {**message.additional_kwargs, "executed_tools": tools}
            message = message.model_copy(update={"additional_kwargs": extra})
        elif not own:
            return 0
        for translated in message.content_blocks:
            block: Any = translated.get("value") if translated["type"] == "non_standard" else translated
            kind = block.get("type") if isinstance(block, dict) else None
            if kind in ("server_tool_call", "mcp_approval_request"):
                self._add(block)
            elif kind == "server_tool_result":
                _take_result(self._open.pop(block.get("tool_call_id"), None), block)
        for block in own:
            if block["type"] == "image_generation_call":  # which LangChain translates to the image alone
                args = {"prompt": block["revised_prompt"]} if block.get("revised_prompt") else {}
                call = ProviderCall(block.get("id"), "image_generation", args)
                self.calls.append(call)
                _take_result(call, {"status": "error" if block.get("status") == "failed" else "success"})
            elif (asked_id := block.get("approval_request_id")) in self._open:
                self._open.pop(asked_id).is_approved = True
        return len(self.calls) - number

    def _add(self, block: Mapping[str, Any]) -> None:
        name = (block.get("extras") or {}).get("tool_name") or block.get("name") or "server_tool"
        call = ProviderCall(block.get("id"), name, block.get("args") or {})
        self._open[call.call_id] = call
        if name != "mcp_list_tools":
            self.calls.append(call)


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


def _take_result(call: ProviderCall | None, result: Mapping[str, Any]) -> None:
    if call is None:
        return
    output = result.get("output", (result.get("extras") or {}).get("error"))
    if isinstance(output, Mapping) and isinstance(output.get("content"), list) and result.get("status") == "error":
        output = output["content"]
    texts = [block_text(block) for block in output] if isinstance(output, list) else [None]
    text = "" if output is None else output_text(output)
    if texts and None not in texts:
        text = "".join(map(str, texts))
    call.status = "error" if result.get("status") == "error" else "success"
    call.text = (text or "error without a message") if call.status == "error" else text
