"""What an endpoint accepts, learned from what it refuses: how the form is requested, the temperature, the room."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

from graphrag_eval_lc.error_bodies import words_of
from graphrag_eval_lc.retrying import is_too_long, status_of

Mode = Literal["json_schema", "tools", "json_object", "text"]


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_SCHEMA: Final = r"schema|structured|grammar|samplers|guided|constrained|response.?format"
_TOKENS_KEY: Final = _words(r"max_(?:completion_)?tokens")
# A mode or a parameter of the request, the words that refuse it, and what is known then. The first that fits counts.
_LADDER: Final[tuple[tuple[str, re.Pattern[str], dict[str, Any]], ...]] = (
    ("max_tokens", _TOKENS_KEY, {"tokens_key": "max_completion_tokens"}),
    ("max_completion_tokens", _TOKENS_KEY, {"tokens_key": None}),
    ("temperature", _words("temperature"), {"takes_temperature": False}),
    ("json_schema", _words(rf"{_SCHEMA}|json"), {"mode": "tools"}),
    ("tools", _words("tool|function"), {"mode": "json_object"}),
    ("json_object", _words(rf"{_SCHEMA}|json"), {"mode": "text"}),
)


@dataclass(frozen=True, slots=True)
class EndpointAbilities:
    """What an endpoint accepts, as far as is known.

    Attributes:
        mode: How the form is requested: by a strict JSON schema, a function to call, JSON mode or the prompt alone.
        takes_temperature: Whether a request may set the temperature.
        tokens_key: The parameter that bounds the answer's tokens; None if it accepts none.
        tells_form: Whether the prompt has the form too, since an answer broke the schema: the endpoint ignores it.
    """

    mode: Mode = "json_schema"
    takes_temperature: bool = True
    tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    tells_form: bool = False

    @property
    def is_in_words(self) -> bool:
        """Whether the prompt must have the form."""
        return self.tells_form or self.mode in {"json_object", "text"}

    def learned_from(self, error: BaseException, request: Mapping[str, Any]) -> Self | None:
        """Return what is known after an endpoint refused a request; None if the error says nothing new."""
        is_of_form = is_failed_generation(error)  # also after a retry: the model cannot write the form in this mode
        if not is_of_form and (not refuses_part(error) or leaves_no_room(error)):
            return None
        is_of_form = is_of_form or status_of(error) == 501
        text = words_of(error)
        for part, refusal, learned in _LADDER:
            is_mode = part == self.mode
            if (is_mode and is_of_form) or ((is_mode or part in request) and refusal.search(text)):
                return replace(self, **learned)
        return None


_REFUSING_STATUSES = frozenset({400, 404, 415, 422, 501})
_REFUSED_IN_500 = _words(_SCHEMA)
_FAILED_GENERATION = re.compile(r"json_validate_failed|tool_use_failed")
_ANSWERS_ROOM = _words(r"completion|max_(?:output_|new_|completion_)?tokens")
_TOO_MUCH_ROOM = _words(r"too (?:large|high|big)|at most|at least|range|exceed|maximum|must be|<=|less than")


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
