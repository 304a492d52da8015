"""What all chat models of judges share: n answers of a form, asked again where one breaks it, cached and priced."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable
from dataclasses import asdict, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.answer_schema import closed_schema
from graphrag_eval_lc.judges.answer_text import WrongFormError, answer_in
from graphrag_eval_lc.judges.asked_model import AskedModel
from graphrag_eval_lc.judges.model import Answer, Asked, Usage
from graphrag_eval_lc.judges.structured_modes import form_in_words

Outcome = TypeVar("Outcome")
Messages = list[dict[str, str]]


class StructuredJudgeModel(AskedModel, ABC):
    """A chat model of judges."""

    @property
    @abstractmethod
    def _takes_n(self) -> bool:
        """Whether one request may give several answers."""

    @abstractmethod
    async def _complete(self, messages: Messages, form: type[BaseModel], n: int, paid: list[Usage]) -> list[str]:
        """Give the texts of one request's answers, ``n`` or fewer, and add what it reported to ``paid``."""

    async def aask(self, system: str, user: str, schema: type[Answer], *, n: int = 1) -> Asked[Answer]:
        """Ask for ``n`` answers of the form ``schema``.

        An answer that breaks it is asked again once, with the complaint. Requests that failed or broke off count
        nothing in the cost, as nobody knows what they cost.

        Raises:
            UnusableAnswerError: There is no answer that can be used; it has the cost.
        """
        asked = {"system": system, "user": user, "schema": [schema.__name__, closed_schema(schema)], "n": n}
        digest = self._digest(asked)
        known = self._known(digest, schema, n)
        if known is not None:
            return known
        asked_now, is_shared = await self._shared(digest, lambda: self._asked(digest, system, user, schema, n))
        return replace(asked_now, cost=0.0, is_cached=True) if is_shared else asked_now

    async def _asked(self, digest: str, system: str, user: str, schema: type[Answer], n: int) -> Asked[Answer]:
        paid: list[Usage] = []
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        answers = await self._outcome(self._answers(messages, schema, n, paid), paid)
        usages = [asdict(usage) for usage in paid]
        self._keep(digest, {"answers": [text for text, _ in answers], "usages": usages})
        return Asked(tuple(value for _, value in answers), self._cost(paid), tuple(paid))

    def _known(self, digest: str, schema: type[Answer], n: int) -> Asked[Answer] | None:
        record = self._record(digest)
        if record is None:
            return None
        try:
            values = tuple(answer_in(text, schema) for text in record["answers"])
            usages = tuple(Usage(**usage) for usage in record["usages"])
        except (WrongFormError, KeyError, TypeError):  # of another version, or changed by hand
            return None
        if len(values) != n:
            return None
        return Asked(values, self._known_cost(usages, digest), usages, is_cached=True)

    async def _answers(
        self, messages: Messages, form: type[Answer], n: int, paid: list[Usage]
    ) -> list[tuple[str, Answer]]:
        texts = await self._texts(messages, form, n, paid)
        return await _all_of(self._usable(messages, text, form, paid) for text in texts)

    async def _texts(self, messages: Messages, form: type[BaseModel], n: int, paid: list[Usage]) -> list[str]:
        texts = (await self._complete(messages, form, n, paid))[:n] if n == 1 or self._takes_n else []
        missing = n - len(texts)
        singles = await _all_of(self._complete(messages, form, 1, paid) for _ in range(missing))
        return [*texts, *(single[0] for single in singles)]

    async def _usable(self, messages: Messages, text: str, form: type[Answer], paid: list[Usage]) -> tuple[str, Answer]:
        """Give an answer as text and value; it is asked again once where it breaks the form."""
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            complaint = f"That answer cannot be used: {problem}. {form_in_words(closed_schema(form))}"
        again = [{"role": "assistant", "content": text}, {"role": "user", "content": complaint}]
        text = (await self._complete([*messages, *again], form, 1, paid))[0]
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            raise JudgeError(f"{self.name} gave no answer of the form that was asked for, twice: {problem}") from None


async def _all_of(coroutines: Iterable[Coroutine[Any, Any, Outcome]]) -> list[Outcome]:
    """Give all outcomes; where one fails the others come to their end nevertheless, since they are paid for."""
    outcomes = await asyncio.gather(*coroutines, return_exceptions=True)
    good = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return good
