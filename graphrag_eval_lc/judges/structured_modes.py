"""How an endpoint is told the form of an answer, and what it turns out not to take."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

Mode = Literal["json_schema", "tools", "json_object"]

_NEXT_MODE: dict[Mode, Mode] = {"json_schema": "tools", "tools": "json_object"}
_REFUSED_MODE = {
    "json_schema": re.compile(r"response.?format|json.?schema|structured.?output", re.IGNORECASE),
    "tools": re.compile(r"tool|function", re.IGNORECASE),
}
_TOO_LONG_CODES = {"context_length_exceeded", "string_above_max_length"}
_TOO_LONG = re.compile(r"maximum context length|context_length|too long|reduce the length", re.IGNORECASE)
_REFUSED_N = re.compile(r"(?<![\w\\])n(?!\w)")


@dataclass(frozen=True, slots=True)
class EndpointAbilities:
    """What an endpoint takes, as far as it is known.

    Attributes:
        mode: How it is told the form: by a strict JSON schema, by a function to call, or in the prompt.
        takes_n: Whether it gives several answers to one request.
        takes_temperature: Whether the temperature can be set.
        tokens_key: What the bound of the answer's tokens is called.
    """

    mode: Mode = "json_schema"
    takes_n: bool = True
    takes_temperature: bool = True
    tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"

    def learned_from(self, error: BaseException, request: Mapping[str, Any]) -> Self | None:
        """Give what is known after a request was refused; None where the error says nothing about it.

        Args:
            error: The exception, with ``status_code`` and, where the endpoint names it, ``param``.
            request: The body of the request.
        """
        if not refuses_part(error):
            return None
        text = f"{error} ({getattr(error, 'param', None)})"
        if "max_tokens" in request and "max_completion_tokens" in text:
            return replace(self, tokens_key="max_completion_tokens")
        if "temperature" in request and "temperature" in text:
            return replace(self, takes_temperature=False)
        if self.mode in _NEXT_MODE and _REFUSED_MODE[self.mode].search(text):
            return replace(self, mode=_NEXT_MODE[self.mode])
        if request.get("n", 1) > 1 and _REFUSED_N.search(text):
            return replace(self, takes_n=False)
        return None


def refuses_part(error: BaseException) -> bool:
    """Tell whether an endpoint may have refused a part of the request, which can then be left out.

    A text that is too long says nothing of what the endpoint takes, whatever else its message names.
    """
    if getattr(error, "status_code", None) not in {400, 422}:
        return False
    return getattr(error, "code", None) not in _TOO_LONG_CODES and not _TOO_LONG.search(str(error))


def form_parameters(mode: Mode, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Give the part of a chat request that tells the form of the answer."""
    if mode == "json_schema":
        form = {"name": name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    if mode == "tools":
        function = {"name": name, "description": "Give the answer.", "parameters": schema}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": name}},
        }
    return {"response_format": {"type": "json_object"}}


def form_in_words(schema: dict[str, Any]) -> str:
    """Give the sentence that tells a model the form of its answer.

    Example:
        >>> form_in_words({"type": "object"})
        'Answer with nothing but one JSON object of this JSON schema: {"type": "object"}'
    """
    return f"Answer with nothing but one JSON object of this JSON schema: {json.dumps(schema, ensure_ascii=False)}"


def messages_with_form(messages: list[dict[str, str]], schema: dict[str, Any]) -> list[dict[str, str]]:
    """Give messages that tell the form in words, after the system's and after the user's.

    The user's may ask for another form, and what stands last weighs most.

    Args:
        messages: The system's, the user's, and any that follow.
        schema: The JSON schema of the form.
    """
    words = form_in_words(schema)
    told = [{**message, "content": f"{message['content']}\n\n{words}"} for message in messages[:2]]
    return [*told, *messages[2:]]
