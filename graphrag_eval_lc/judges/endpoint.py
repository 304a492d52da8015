"""What an endpoint accepts: how the form of an answer is requested, and how long the answer may be."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from graphrag_eval_lc.error_bodies import words_of
from graphrag_eval_lc.judges.answer_forms import form_in_words
from graphrag_eval_lc.retrying import is_too_long, status_of

_FIRST_BOUND = 4096  # tokens, which the oldest models in use can give
_FIRST_REASONING_BOUND = 16_384  # thoughts count too
_GROWTH = 4  # once, as what does not end then may never end
_LEAST_BOUND = 256
_REASONING = re.compile(r"(?:.*[/:])?(?:o[1-9]\b|gpt-[5-9]|deepseek-r|.*(?:reason|think))", re.IGNORECASE)


class AnswerBound:
    """The longest answer that a model is asked for, so that a request's cost has a bound.

    Where the config leaves it open, it begins at 4,096 tokens (16,384 for models that think), and is four times that
    once an answer was cut off.

    Args:
        given: Tokens, by the user's word; None: open.
        model: The model's name.

    Attributes:
        tokens: Where a request begins now.
        is_open: Whether the config leaves it open.
        largest: The most that is asked for.
        longest_cut: The most at which an answer was cut off.
    """

    def __init__(self, given: int | None, model: str) -> None:
        first = _FIRST_REASONING_BOUND if _REASONING.match(model) else _FIRST_BOUND
        self.tokens = first if given is None else given
        self.is_open = given is None
        self.largest = _GROWTH * first
        self.longest_cut = 0


class RequestBound:
    """The longest answer that one request asks for: it grows after an answer that was cut off, and shrinks to fit.

    How much room a prompt leaves for its answer is its own matter: a long one does not cut off the answers to others.

    Args:
        shared: The bound of the model.

    Attributes:
        tokens: The bound now.
        no_room: The last refusal as too long; None while there was none. An answer that is cut off in the room that is
            left is no answer to texts that fit.

    Example:
        >>> bound = RequestBound(AnswerBound(None, "gpt-4o-mini"))
        >>> bound.tokens, bound.has_grown(), bound.tokens, bound.has_shrunk(ValueError("too long")), bound.tokens
        (4096, True, 16384, True, 8192)
    """

    def __init__(self, shared: AnswerBound) -> None:
        self.tokens = shared.tokens
        self.no_room: Exception | None = None
        self._shared = shared
        self._cut = 0  # tokens at which its answer was cut off
        self._room = shared.largest if shared.is_open else shared.tokens

    def has_grown(self) -> bool:
        """Return whether a longer answer can be asked for than the one that was cut off."""
        self._cut = self.tokens
        self._shared.longest_cut = max(self._shared.longest_cut, self._cut)
        if not self._shared.is_open:
            return False
        self.tokens = max(self.tokens, min(max(_GROWTH * self._cut, self._shared.tokens), self._room))
        self._shared.tokens = max(self._shared.tokens, self.tokens)
        return self.tokens > self._cut

    def has_shrunk(self, refusal: Exception) -> bool:
        """Return whether a shorter answer can be asked for than the one for which there was no room."""
        self.no_room = refusal
        shorter = max(self.tokens // 2, _LEAST_BOUND)
        if not self._shared.is_open or not self._cut < shorter < self.tokens:
            return False
        self.tokens = self._room = shorter
        return True

    def fits(self) -> None:
        """Note that the request was answered: the next ones begin with as much, as the model's room may be small."""
        if self._room < self._shared.tokens and self.tokens > self._shared.longest_cut:
            self._shared.tokens = self.tokens


Mode = Literal["json_schema", "tools", "json_object", "text"]

_NEXT_MODE: dict[Mode, Mode] = {"json_schema": "tools", "tools": "json_object", "json_object": "text"}
_SCHEMA = r"schema|structured|grammar|guided|constrained|response.?format"
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
        tokens_key: The parameter that bounds the answer's tokens.
    """

    mode: Mode = "json_schema"
    takes_n: bool = True
    takes_temperature: bool = True
    tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"

    def learned_from(self, error: BaseException, request: Mapping[str, Any]) -> Self | None:
        """Return what is known after an endpoint refused a request; None if the error says nothing new."""
        if not refuses_part(error):
            return None
        text = words_of(error)
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
    if _ANSWERS_ROOM.search(text) is None:
        return False
    return is_too_long(error) or (status_of(error) in {400, 422} and _TOO_MUCH_ROOM.search(text) is not None)


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
