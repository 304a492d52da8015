"""What an endpoint accepts: how the form of an answer is requested, and how long the answer may be."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from graphrag_eval_lc.error_bodies import words_of
from graphrag_eval_lc.judges.answer_forms import form_in_words
from graphrag_eval_lc.retrying import is_too_long, status_of

Mode = Literal["json_schema", "tools", "json_object", "text"]

TokensKey = Literal["max_tokens", "max_completion_tokens"]

_NEXT_KEY: dict[str, TokensKey] = {"max_tokens": "max_completion_tokens"}
_TOKENS_KEY = re.compile(r"max_(?:completion_)?tokens")
_NEXT_MODE: dict[Mode, Mode] = {"json_schema": "tools", "tools": "json_object", "json_object": "text"}
_SCHEMA = r"schema|structured|grammar|samplers|guided|constrained|response.?format"
_REFUSED_MODE: dict[Mode, re.Pattern[str]] = {
    "json_schema": re.compile(rf"{_SCHEMA}|json", re.IGNORECASE),
    "tools": re.compile(r"tool|function", re.IGNORECASE),
    "json_object": re.compile(rf"{_SCHEMA}|json", re.IGNORECASE),
}
_REFUSED_IN_500 = re.compile(_SCHEMA, re.IGNORECASE)
_REFUSING_STATUSES = frozenset({400, 404, 415, 422, 501})
_FAILED_GENERATION = re.compile(r"json_validate_failed|tool_use_failed")
_ANSWERS_ROOM = re.compile(r"completion|max_(?:output_|new_|completion_)?tokens", re.IGNORECASE)
_TOO_MUCH_ROOM = re.compile(
    r"too (?:large|high|big)|at most|at least|range|exceed|maximum|must be|<=|less than", re.IGNORECASE
)
_REFUSED_N = re.compile(r"(?<![\w\\])n(?!\w)")


@dataclass(frozen=True, slots=True)
class EndpointAbilities:
    """What an endpoint accepts, as far as is known.

    Attributes:
        mode: How it is asked for the form: by a strict JSON schema, a function to call, JSON mode or the prompt alone.
        takes_n: Whether one request may ask for several answers.
        takes_temperature: Whether a request may set the temperature.
        tokens_key: The parameter that bounds the answer's tokens; None if it accepts none.
        tells_form: Whether the prompt has the form too, since an answer broke the schema: the endpoint ignores it.
    """

    mode: Mode = "json_schema"
    takes_n: bool = True
    takes_temperature: bool = True
    tokens_key: TokensKey | None = "max_tokens"
    tells_form: bool = False

    @property
    def is_in_words(self) -> bool:
        """Whether the prompt must have the form."""
        return self.tells_form or self.mode in {"json_object", "text"}

    def learned_from(self, error: BaseException, request: Mapping[str, Any]) -> Self | None:
        """Return what is known after an endpoint refused a request; None if the error says nothing new."""
        if not refuses_part(error) or leaves_no_room(error):
            return None
        text = words_of(error)
        if self.tokens_key in request and _TOKENS_KEY.search(text):
            return replace(self, tokens_key=_NEXT_KEY.get(self.tokens_key or ""))
        if "temperature" in request and "temperature" in text:
            return replace(self, takes_temperature=False)
        if self.mode in _NEXT_MODE and (status_of(error) == 501 or _REFUSED_MODE[self.mode].search(text)):
            return replace(self, mode=_NEXT_MODE[self.mode])
        if request.get("n", 1) > 1 and _REFUSED_N.search(text):
            return replace(self, takes_n=False)
        return None


def refuses_part(error: BaseException) -> bool:
    """Return whether an endpoint may have refused a part of the request, which could be left out.

    Not if a text was too long, whatever else the message names. Some local servers say with 500 that they cannot make
    a grammar of the schema, which a retry does not change.
    """
    if is_too_long(error) or is_failed_generation(error):
        return False
    status = status_of(error)
    return status in _REFUSING_STATUSES or (status == 500 and _REFUSED_IN_500.search(words_of(error)) is not None)


def is_failed_generation(error: BaseException) -> bool:
    """Return whether an endpoint refused what the model wrote, not the request: another answer may fit."""
    return status_of(error) == 400 and _FAILED_GENERATION.search(words_of(error)) is not None


def leaves_no_room(error: BaseException) -> bool:
    """Return whether an endpoint refused a request as too long with the room for its answer."""
    text = words_of(error)
    if is_too_long(error):
        return _ANSWERS_ROOM.search(text) is not None
    is_too_much = _TOKENS_KEY.search(text) is not None and _TOO_MUCH_ROOM.search(text) is not None
    return status_of(error) in {400, 422} and is_too_much


def form_parameters(mode: Mode, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a chat request that asks for the form of the answer."""
    if mode == "json_schema":
        form = {"name": name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    if mode == "tools":
        function = {"name": name, "description": "Give the answer.", "parameters": schema}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": name}},
        }
    return {"response_format": {"type": "json_object"}} if mode == "json_object" else {}


def messages_with_form(messages: list[dict[str, str]], schema: dict[str, Any]) -> list[dict[str, str]]:
    """Return messages that ask for the form in words, at the end of the system's and of the user's.

    The user's may ask for another form, and the last word weighs most.
    """
    words = form_in_words(schema)
    told = [{**message, "content": f"{message['content']}\n\n{words}"} for message in messages[:2]]
    return [*told, *messages[2:]]
