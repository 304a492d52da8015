"""A chat model of judges: how the form of its answers is requested, how long they may be, and how they are read."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, Unpack

from pydantic import BaseModel

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.answer_forms import WrongFormError, answer_in, closed_schema, form_in_words, form_name
from graphrag_eval_lc.judges.endpoint import (
    EndpointAbilities,
    Mode,
    form_parameters,
    leaves_no_room,
    messages_with_form,
)
from graphrag_eval_lc.judges.model import AskedModel, AskingOptions
from graphrag_eval_lc.judges.model_interface import Answer, Asked, BrokenAnswerError, CutAnswerError, Usage
from graphrag_eval_lc.judges.request_plan import RequestPlan, example_of, size_of
from graphrag_eval_lc.masking import masked_text

Outcome = TypeVar("Outcome")
Messages = list[dict[str, str]]

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
        name: Its name in messages and in the cache.
        model: Its name at the provider.
        provider: Who runs it.
        settings: All else that its answers depend on.
        temperature: The temperature to send; None for none.
        max_tokens: The longest answer; None: open.
        abilities: What is known of the endpoint.
        **options: How it is asked.
    """

    def __init__(
        self,
        name: str,
        model: str,
        provider: str | None,
        settings: Mapping[str, Any],
        *,
        temperature: float | None,
        max_tokens: int | None,
        abilities: EndpointAbilities,
        **options: Unpack[AskingOptions],
    ) -> None:
        super().__init__(name, model, provider, settings, **options)
        first = _FIRST_REASONING_TOKENS if _REASONING.match(model) else _FIRST_TOKENS
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
                plan.add(self._model, self._provider, [size_of(body)] * (n // at_once), at_once)
            return (schema.model_validate(example_of(closed_schema(schema))),) * n

        return await self._through_cache(asked, read, request, planned)

    def _request(
        self,
        abilities: EndpointAbilities,
        messages: Messages,
        form: type[BaseModel],
        n: int,
        tokens: int,
        temperature: float | None,
    ) -> dict[str, Any]:
        """Return the body of a request."""
        schema = closed_schema(form)
        if abilities.is_in_words:
            messages = messages_with_form(messages, schema)
        request: dict[str, Any] = {"model": self._model, "messages": messages}
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

    def _learn(self, known: EndpointAbilities, learned: EndpointAbilities) -> None:
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
