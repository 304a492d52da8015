"""Asks models for judges: chat models for an answer of a given form, in a way the endpoint accepts; or for vectors."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, Self, Unpack

from pydantic import BaseModel

from graphrag_eval_lc.error_bodies import words_of
from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.answer_forms import WrongFormError, answer_in, closed_schema, form_in_words, form_name
from graphrag_eval_lc.judges.model import (
    SCHEMA_WORDS,
    AskedModel,
    AskingOptions,
    ModelDescription,
    is_failed_generation,
    refuses_part,
)
from graphrag_eval_lc.judges.model_interface import Answer, Asked, BrokenAnswerError, CutAnswerError, Usage, Vectors
from graphrag_eval_lc.judges.request_plan import RequestPlan, example_of, size_of
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.retrying import is_too_long, status_of

Messages = list[dict[str, str]]
Mode = Literal["json_schema", "tools", "json_object", "text"]

# --- what an endpoint accepts ---


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_TOKENS_KEY: Final = _words(r"max_(?:completion_)?tokens")
# A mode or a parameter of a request, the words with which endpoints refuse it, and what is learned. First match wins.
_LADDER: Final[tuple[tuple[str, re.Pattern[str], dict[str, Any]], ...]] = (
    ("max_tokens", _TOKENS_KEY, {"tokens_key": "max_completion_tokens"}),
    ("max_completion_tokens", _TOKENS_KEY, {"tokens_key": None}),
    ("temperature", _words("temperature"), {"takes_temperature": False}),
    ("json_schema", _words(rf"{SCHEMA_WORDS}|json"), {"mode": "tools"}),
    ("tools", _words("tool|function"), {"mode": "json_object"}),
    ("json_object", _words(rf"{SCHEMA_WORDS}|json"), {"mode": "text"}),
)
_ANSWERS_ROOM = _words(r"completion|max_(?:output_|new_|completion_)?tokens")
_TOO_MUCH_ROOM = _words(r"too (?:large|high|big)|at most|at least|range|exceed|maximum|must be|<=|less than")


@dataclass(frozen=True, slots=True)
class EndpointAbilities:
    """What an endpoint accepts, as learned from its refusals.

    Attributes:
        mode: How the form is requested: by a strict JSON schema, a function to call, JSON mode or only in the prompt.
        takes_temperature: Whether a request may set the temperature.
        tokens_key: The parameter that limits the answer's tokens; None if the endpoint accepts none.
        tells_form: Whether the prompt describes the form too, because an answer showed that the schema is ignored.
    """

    mode: Mode = "json_schema"
    takes_temperature: bool = True
    tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    tells_form: bool = False

    def learned_from(self, error: BaseException, request: Mapping[str, Any]) -> Self | None:
        """Return the abilities known after an endpoint refused a request; None if the error says nothing new."""
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


def leaves_no_room(error: BaseException) -> bool:
    """Return whether an endpoint refused a request because prompt and answer together would be too long."""
    text = words_of(error)
    if is_too_long(error):
        return _ANSWERS_ROOM.search(text) is not None
    is_too_much = _TOKENS_KEY.search(text) is not None and _TOO_MUCH_ROOM.search(text) is not None
    return status_of(error) in {400, 422} and is_too_much


# --- chat ---

_FIRST_TOKENS = 4096  # of an answer; the oldest models in use support so many
_FIRST_REASONING_TOKENS = 16_384  # more, as thoughts count too
_GROWTH = 4  # applied once: an answer that is still cut off then may never end
_LEAST_TOKENS = 256
_REASONING = re.compile(r"(?:.*[/:])?(?:o[1-9]\b|gpt-[5-9]|deepseek-r|.*(?:reason|think))", re.IGNORECASE)


class ChatJudgeModel(AskedModel, ABC):
    """A chat model that judges ask.

    What the endpoint refuses (a JSON schema, a temperature) is left out of later requests. If the settings have no
    limit for the answer, it is 4,096 tokens at first (16,384 for reasoning models). It is raised to four times that
    when an answer is cut off, and lowered if prompt and answer together are too long.
    """

    def __init__(
        self,
        described: ModelDescription,
        *,
        temperature: float | None,
        max_tokens: int | None,
        abilities: EndpointAbilities,
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
    async def _answered(self, request: dict[str, Any], mode: Mode, form: type[BaseModel], paid: list[Usage]) -> str:
        """Send a request once, and return the text of its answer; add its usage to ``paid``."""

    async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
        """Ask for an answer of the form ``schema``; if it breaks the form, ask once more and say what is wrong.

        Raises:
            UnusableAnswerError: The model returned no usable answer; the error has the cost.
        """
        asked = {"system": system, "user": user, "schema": [schema.__name__, closed_schema(schema)]}
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]

        async def request(paid: list[Usage]) -> tuple[dict[str, Any], Answer]:
            text, value = await self._usable(messages, schema, paid)
            return {"answer": text}, value

        def planned(plan: RequestPlan, digest: str) -> Answer:
            body = self._request(self._abilities, messages, schema, self._tokens)
            plan.add(digest, self.described.model, self.described.provider, size_of(body))
            return schema.model_validate(example_of(closed_schema(schema)))

        return await self._through_cache(asked, lambda record: answer_in(record["answer"], schema), request, planned)

    def _request(
        self, abilities: EndpointAbilities, messages: Messages, form: type[BaseModel], tokens: int
    ) -> dict[str, Any]:
        """Return the body of a request."""
        schema = closed_schema(form)
        if abilities.tells_form or abilities.mode in {"json_object", "text"}:
            # At the end of the user message too: the last words weigh most, and the message may ask for another form.
            words = form_in_words(schema)
            in_words = [{**message, "content": f"{message['content']}\n\n{words}"} for message in messages[:2]]
            messages = [*in_words, *messages[2:]]
        request: dict[str, Any] = {"model": self.described.model, "messages": messages}
        request |= form_parameters(abilities.mode, form_name(form), schema)
        if self._temperature is not None and abilities.takes_temperature:
            request["temperature"] = self._temperature
        if abilities.tokens_key is not None:
            request[abilities.tokens_key] = tokens
        return request

    async def _complete(self, messages: Messages, form: type[BaseModel], paid: list[Usage]) -> str:
        """Return the text of an answer, and learn what the endpoint does not accept.

        If a long prompt leaves less room for its answer, the limit is lowered for this request only. If the answer is
        then cut off, the texts are too long for the model.
        """
        tokens, most, cut = self._tokens, self._most_tokens, 0
        no_room: Exception | None = None
        while True:
            abilities = self._abilities
            request = self._request(abilities, messages, form, tokens)
            try:
                text = await self._sent(request, partial(self._answered, request, abilities.mode, form), paid)
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
                if self._abilities == abilities:  # otherwise a concurrent request has already learned something
                    self._abilities = learned
            else:
                if most < self._tokens and tokens > self._longest_cut:
                    self._tokens = tokens  # the model's room may be small
                return text

    async def _usable(self, messages: Messages, form: type[Answer], paid: list[Usage]) -> tuple[str, Answer]:
        """Return an answer as its text and its value; ask once more if it breaks the form."""
        text = await self._complete(messages, form, paid)
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            complaint = f"That answer cannot be used: {problem}. {form_in_words(closed_schema(form))}"
            is_ignored = problem.breaks_schema and bool(text.strip())
        again = [{"role": "assistant", "content": text}, {"role": "user", "content": complaint}]
        text = await self._complete([*messages, *again], form, paid)
        if is_ignored:
            self._abilities = replace(self._abilities, tells_form=True)
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            raise JudgeError(f"{self.name} twice returned an answer without the requested form: {problem}") from None


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


def refused(name: str, text: object) -> JudgeError:
    """Return the error for a model that refused to answer."""
    return JudgeError(f"{name} refused to answer: {masked_text(str(text))[:_LONGEST_REFUSAL]}")


def check_finish_reason(name: str, reason: str | None) -> None:
    """Raise an error if a finish reason says that the provider failed, a filter stopped it, or the answer was cut."""
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


# --- embeddings ---


class EmbeddingJudgeModel(AskedModel, ABC):
    """An embedding model that judges ask."""

    @abstractmethod
    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Sequence[Sequence[float]]:
        """Return the vectors of one request, and add its usage to ``paid``."""

    async def aembed(self, texts: Sequence[str]) -> Asked[Vectors]:
        """Return the vectors of texts in one request.

        Raises:
            UnusableAnswerError: The model returned no usable vectors; the error has the cost.
        """
        if not texts:
            return Asked((), 0.0)
        body = {"input": list(texts)}

        async def send(usages: list[Usage]) -> Vectors:
            return checked_vectors(await self._vectors(list(texts), usages), len(texts))

        async def request(paid: list[Usage]) -> tuple[dict[str, Any], Vectors]:
            vectors = await self._sent(body, send, paid)
            return {"vectors": vectors}, vectors

        def planned(plan: RequestPlan, digest: str) -> Vectors:
            plan.add(digest, self.described.model, self.described.provider, size_of(body))
            return ((1.0,),) * len(texts)

        def read(record: Mapping[str, Any]) -> Vectors:
            return checked_vectors(record["vectors"], len(texts))

        return await self._through_cache({"texts": list(texts)}, read, request, planned)


def checked_vectors(vectors: Sequence[Sequence[float]], count: int) -> Vectors:
    """Return the vectors if there are ``count`` of one length with finite numbers; else raise a BrokenAnswerError.

    Example:
        >>> checked_vectors([[1, 0.5]], 1)
        ((1.0, 0.5),)
    """
    try:
        found = tuple(tuple(map(float, vector)) for vector in vectors)
    except (TypeError, ValueError) as problem:
        raise BrokenAnswerError(f"the endpoint returned embeddings that cannot be read: {problem}") from None
    if len(found) != count:
        raise BrokenAnswerError(f"the endpoint returned {len(found)} embeddings for {count} texts")
    lengths = {len(vector) for vector in found}
    if len(lengths) != 1 or 0 in lengths:
        raise BrokenAnswerError(f"the endpoint returned embeddings of {sorted(lengths)} numbers")
    if not all(math.isfinite(number) for vector in found for number in vector):
        raise BrokenAnswerError("the endpoint returned an embedding with a number that is not finite")
    return found
