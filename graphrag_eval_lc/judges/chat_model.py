"""A chat model of judges: how the form of its answers is requested, how long they may be, and how they are read."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self, TypeVar, Unpack

from pydantic import BaseModel

from graphrag_eval_lc.error_bodies import words_of
from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.answer_forms import WrongFormError, answer_in, closed_schema, form_in_words, form_name
from graphrag_eval_lc.judges.model import (
    AskedModel,
    AskingOptions,
    ModelDescription,
    is_failed_generation,
    refuses_part,
)
from graphrag_eval_lc.judges.model_interface import Answer, Asked, BrokenAnswerError, CutAnswerError, Usage
from graphrag_eval_lc.judges.request_plan import RequestPlan, example_of, size_of
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.retrying import is_too_long, status_of

Outcome = TypeVar("Outcome")
Messages = list[dict[str, str]]
Mode = Literal["json_schema", "tools", "json_object", "text"]

_FIRST_TOKENS = 4096  # of an answer, which the oldest models in use can give
_FIRST_REASONING_TOKENS = 16_384  # thoughts count too
_GROWTH = 4  # once, as what does not end then may never end
_LEAST_TOKENS = 256
_REASONING = re.compile(r"(?:.*[/:])?(?:o[1-9]\b|gpt-[5-9]|deepseek-r|.*(?:reason|think))", re.IGNORECASE)


class ChatJudgeModel(AskedModel, ABC):
    """A chat model of judges.

    What the endpoint refuses (a JSON schema, several answers at once, a temperature) is left out from then on. If the
    settings leave the longest answer open, it begins at 4,096 tokens (16,384 for models that think), is four times
    that once an answer was cut off, and shrinks if prompt and answer are too long together.

    Args:
        described: Its names and settings.
        temperature: The temperature to send; None for none.
        max_tokens: The longest answer; None: open.
        abilities: What is known of the endpoint.
        **options: How it is asked.
    """

    def __init__(
        self,
        described: ModelDescription,
        *,
        temperature: float | None,
        max_tokens: int | None,
        abilities: "EndpointAbilities",
        **options: Unpack[AskingOptions],
    ) -> None:
        super().__init__(described, **options)
        first = _FIRST_REASONING_TOKENS if _REASONING.match(described.model) else _FIRST_TOKENS
        self._temperature = temperature
        self._abilities = abilities
        self._tokens = first if max_tokens is None else max_tokens  # with which requests begin now
        self._most_tokens = _GROWTH * first if max_tokens is None else max_tokens
        self._is_open = max_tokens is None
        self._longest_cut = 0

    @abstractmethod
    async def _answered(
        self, request: dict[str, Any], mode: Mode, form: type[BaseModel], paid: list[Usage]
    ) -> list[str]:
        """Send a request once, and return the texts of its answers; add its usage to ``paid``."""

    async def aask(
        self, system: str, user: str, schema: type[Answer], *, n: int = 1, temperature: float | None = None
    ) -> Asked[Answer]:
        """Ask for ``n`` answers of the form ``schema``; see ``JudgeModel``.

        An answer that breaks the form is asked for once more, with the complaint. Failed requests add nothing to the
        cost, as nobody knows theirs.

        Raises:
            UnusableAnswerError: There is no usable answer; it has the cost.
        """
        asked: dict[str, Any] = {"system": system, "user": user, "n": n}
        asked["schema"] = [schema.__name__, closed_schema(schema)]
        if temperature is not None:
            asked["temperature"] = temperature
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]

        def read(record: Mapping[str, Any]) -> tuple[Answer, ...]:
            values = tuple(answer_in(text, schema) for text in record["answers"])
            if len(values) != n:
                raise ValueError("another number of answers")
            return values

        async def request(paid: list[Usage]) -> tuple[dict[str, Any], tuple[Answer, ...]]:
            texts: list[str] = []
            if n == 1 or self._abilities.takes_n:
                texts = (await self._complete(messages, schema, n, temperature, paid))[:n]
            singles = (self._complete(messages, schema, 1, temperature, paid) for _ in range(n - len(texts)))
            texts += [single[0] for single in await _all_of(singles)]
            answers = await _all_of(self._usable(messages, text, schema, paid) for text in texts)
            return {"answers": [text for text, _ in answers]}, tuple(value for _, value in answers)

        def planned(plan: RequestPlan, digest: str) -> tuple[Answer, ...]:
            if not plan.is_known(digest):
                at_once = n if self._abilities.takes_n else 1
                body = self._request(self._abilities, messages, schema, at_once, self._tokens, temperature)
                plan.add(self.described.model, self.described.provider, [size_of(body)] * (n // at_once), at_once)
            return (schema.model_validate(example_of(closed_schema(schema))),) * n

        return await self._through_cache(asked, read, request, planned)

    def _request(
        self,
        abilities: "EndpointAbilities",
        messages: Messages,
        form: type[BaseModel],
        n: int,
        tokens: int,
        temperature: float | None,
    ) -> dict[str, Any]:
        """Return the body of a request."""
        schema = closed_schema(form)
        if abilities.is_in_words:
            # At the end of the user's message too, as the last word weighs most and it may ask for another form.
            words = form_in_words(schema)
            in_words = [{**message, "content": f"{message['content']}\n\n{words}"} for message in messages[:2]]
            messages = [*in_words, *messages[2:]]
        request: dict[str, Any] = {"model": self.described.model, "messages": messages}
        request |= form_parameters(abilities.mode, form_name(form), schema)
        if n > 1 and abilities.takes_n:
            request["n"] = n
        if self._temperature is not None and abilities.takes_temperature:
            request["temperature"] = max(self._temperature, temperature or 0.0)
        if abilities.tokens_key is not None:
            request[abilities.tokens_key] = tokens
        return request

    async def _complete(
        self, messages: Messages, form: type[BaseModel], n: int, temperature: float | None, paid: list[Usage]
    ) -> list[str]:
        """Return the texts of one request's answers, ``n`` or fewer; learn what the endpoint does not accept.

        How much room a prompt leaves for its answer is its own matter: a long one does not cut off the answers to
        others. An answer that is cut off in the room that is left is not an answer to texts that fit.
        """
        tokens, most, cut = self._tokens, self._most_tokens, 0
        no_room: Exception | None = None
        while True:
            abilities = self._abilities
            request = self._request(abilities, messages, form, n, tokens, temperature)
            try:
                texts = await self._sent(request, partial(self._answered, request, abilities.mode, form), paid)
            except CutAnswerError as problem:
                cut = tokens
                self._longest_cut = max(self._longest_cut, cut)
                tokens = min(max(_GROWTH * cut, self._tokens), most)
                if abilities.tokens_key is None or tokens <= cut:
                    raise (no_room or problem) from None
                self._tokens = max(self._tokens, tokens)
            except JudgeError:
                raise
            except Exception as refusal:
                check_finish_reason(self.name, getattr(refusal, "code", None))
                if leaves_no_room(refusal):
                    no_room = refusal
                    shorter = max(tokens // 2, _LEAST_TOKENS)
                    if self._is_open and cut < shorter < tokens:
                        tokens = most = shorter
                        continue
                learned = abilities.learned_from(refusal, request)
                if learned is None:
                    raise
                self._learn(abilities, learned)
            else:
                if most < self._tokens and tokens > self._longest_cut:
                    self._tokens = tokens  # the model's room may be small
                if len(texts) < request.get("n", 1):
                    self._learn(self._abilities, replace(self._abilities, takes_n=False))
                return texts

    def _learn(self, known: "EndpointAbilities", learned: "EndpointAbilities") -> None:
        if self._abilities == known:  # else another request has learned meanwhile
            self._abilities = learned

    async def _usable(self, messages: Messages, text: str, form: type[Answer], paid: list[Usage]) -> tuple[str, Answer]:
        """Return an answer as text and value; ask once more if it breaks the form."""
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            complaint = f"That answer cannot be used: {problem}. {form_in_words(closed_schema(form))}"
            is_ignored = problem.breaks_schema and bool(text.strip())
        again = [{"role": "assistant", "content": text}, {"role": "user", "content": complaint}]
        text = (await self._complete([*messages, *again], form, 1, None, paid))[0]
        if is_ignored:
            self._abilities = replace(self._abilities, tells_form=True)
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            raise JudgeError(f"{self.name} gave no answer of the form that was asked for, twice: {problem}") from None


async def _all_of(coroutines: Iterable[Coroutine[Any, Any, Outcome]]) -> list[Outcome]:
    """Return all outcomes, or raise the first error once all have ended: each request is paid for."""
    outcomes = await asyncio.gather(*coroutines, return_exceptions=True)
    good = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return good


# --- what an endpoint accepts ---

_NEXT_MODE: dict[Mode, Mode] = {"json_schema": "tools", "tools": "json_object", "json_object": "text"}
_SCHEMA = r"schema|structured|grammar|samplers|guided|constrained|response.?format"
_REFUSED_MODE: dict[Mode, re.Pattern[str]] = {
    "json_schema": re.compile(rf"{_SCHEMA}|json", re.IGNORECASE),
    "tools": re.compile(r"tool|function", re.IGNORECASE),
    "json_object": re.compile(rf"{_SCHEMA}|json", re.IGNORECASE),
}
_TOKENS_KEY = re.compile(r"max_(?:completion_)?tokens")
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
    tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    tells_form: bool = False

    @property
    def is_in_words(self) -> bool:
        """Whether the prompt must have the form."""
        return self.tells_form or self.mode in {"json_object", "text"}

    def learned_from(self, error: BaseException, request: Mapping[str, Any]) -> Self | None:
        """Return what is known after an endpoint refused a request; None if the error says nothing new."""
        next_mode = _NEXT_MODE.get(self.mode)
        if is_failed_generation(error):
            # A retry broke the form too: the model cannot write it in this mode.
            return None if next_mode is None else replace(self, mode=next_mode)
        if not refuses_part(error) or leaves_no_room(error):
            return None
        text = words_of(error)
        if self.tokens_key in request and _TOKENS_KEY.search(text):
            return replace(self, tokens_key="max_completion_tokens" if self.tokens_key == "max_tokens" else None)
        if "temperature" in request and "temperature" in text:
            return replace(self, takes_temperature=False)
        if next_mode is not None and (status_of(error) == 501 or _REFUSED_MODE[self.mode].search(text)):
            return replace(self, mode=next_mode)
        if request.get("n", 1) > 1 and _REFUSED_N.search(text):
            return replace(self, takes_n=False)
        return None


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


_LONGEST_REFUSAL = 300
# The providers' finish reasons, in lower case.
_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
_FILTER = frozenset({"content_filter", "content_filtered", "safety", "guardrail_intervened", "prohibited_content"})


def refused(name: str, text: str) -> JudgeError:
    """Return the error for a model that refused to answer."""
    return JudgeError(f"{name} refused to answer: {masked_text(text)[:_LONGEST_REFUSAL]}")


def check_finish_reason(name: str, reason: str | None) -> None:
    """Check that an answer of the model ``name`` was not cut off.

    Raises:
        BrokenAnswerError: The provider failed.
        CutAnswerError: It reached its most tokens.
        JudgeError: A filter stopped it.
    """
    word = reason.lower() if isinstance(reason, str) else ""
    if word == "error":
        raise BrokenAnswerError("the provider failed while the model answered (finish_reason error)")
    if word in _LENGTH:
        raise CutAnswerError(
            f"{name} did not come to the end of its answer within the tokens it has ({reason})",
            hint="Set a higher max_tokens under llm.generation.",
        )
    if word in _FILTER:
        raise JudgeError(f"the answer of {name} was stopped by the provider's content filter ({reason})")
