"""The base of all chat models of judges: how the form of the answer is asked for, and how answers are read."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable
from dataclasses import asdict
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.answer_forms import WrongFormError, answer_in, closed_schema, form_in_words
from graphrag_eval_lc.judges.asked_model import AskedModel
from graphrag_eval_lc.judges.model_calls import RequestSize
from graphrag_eval_lc.judges.model_interface import Answer, Asked, BrokenAnswerError, CutAnswerError, Usage
from graphrag_eval_lc.judges.request_plan import RequestPlan, example_of
from graphrag_eval_lc.masking import masked_text

Outcome = TypeVar("Outcome")
Messages = list[dict[str, str]]


class StructuredJudgeModel(AskedModel, ABC):
    """A chat model of judges.

    After an answer that breaks the schema, every request has the form in words too: the endpoint ignores the schema.
    """

    _tells_form = False

    @property
    @abstractmethod
    def _takes_n(self) -> bool:
        """Whether one request may give several answers."""

    @abstractmethod
    async def _complete(
        self, messages: Messages, form: type[BaseModel], n: int, paid: list[Usage], temperature: float | None
    ) -> list[str]:
        """Return the texts of one request's answers, ``n`` or fewer, and add its usages to ``paid``."""

    async def aask(
        self, system: str, user: str, schema: type[Answer], *, n: int = 1, temperature: float | None = None
    ) -> Asked[Answer]:
        """Ask for ``n`` answers of the form ``schema``; see ``JudgeModel``.

        An answer that breaks the form is asked for once more, with the complaint. Failed requests add nothing to the
        cost, as nobody knows theirs.

        Raises:
            UnusableAnswerError: There is no usable answer; it has the cost.
        """
        asked = {"system": system, "user": user, "schema": [schema.__name__, closed_schema(schema)], "n": n}
        digest = self._digest(asked if temperature is None else {**asked, "temperature": temperature})
        known = self._known(digest, schema, n)
        if known is not None:
            return known
        return await self._shared(digest, lambda: self._asked(digest, system, user, schema, n, temperature))

    async def _asked(
        self, digest: str, system: str, user: str, schema: type[Answer], n: int, temperature: float | None
    ) -> Asked[Answer]:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        if self._plan is not None:
            return self._planned(self._plan, digest, messages, schema, n)
        paid: list[Usage] = []
        answers = await self._outcome(self._answers(messages, schema, n, paid, temperature), paid)
        usages, cost = [asdict(usage) for usage in paid], self._cost(paid)
        self._keep(digest, {"answers": [text for text, _ in answers], "usages": usages}, cost)
        return Asked(tuple(value for _, value in answers), cost, tuple(paid))

    def _planned(self, plan: RequestPlan, digest: str, messages: Messages, form: type[Answer], n: int) -> Asked[Answer]:
        """Count the requests for answers, and return examples."""
        if not plan.is_known(digest):
            sizes = self._sizes(messages, form, n)
            plan.add(self._model, self._provider, sizes, n // len(sizes))
        try:
            example = form.model_validate(example_of(closed_schema(form)))
        except ValidationError:
            plan.notes.add(f"What {self.name} is asked after an answer of the form {form.__name__} is not counted.")
            raise JudgeError("only planned") from None
        return Asked((example,) * n, 0.0, is_planned=True)

    @abstractmethod
    def _sizes(self, messages: Messages, form: type[BaseModel], n: int) -> list[RequestSize]:
        """Return the most tokens of each request for ``n`` answers, where the endpoint refuses none."""

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
        self, messages: Messages, form: type[Answer], n: int, paid: list[Usage], temperature: float | None
    ) -> list[tuple[str, Answer]]:
        texts = await self._texts(messages, form, n, paid, temperature)
        return await _all_of(self._usable(messages, text, form, paid) for text in texts)

    async def _texts(
        self, messages: Messages, form: type[BaseModel], n: int, paid: list[Usage], temperature: float | None
    ) -> list[str]:
        texts: list[str] = []
        if n == 1 or self._takes_n:
            texts = (await self._complete(messages, form, n, paid, temperature))[:n]
        missing = n - len(texts)
        singles = await _all_of(self._complete(messages, form, 1, paid, temperature) for _ in range(missing))
        return [*texts, *(single[0] for single in singles)]

    async def _usable(self, messages: Messages, text: str, form: type[Answer], paid: list[Usage]) -> tuple[str, Answer]:
        """Return an answer as text and value; ask once more where it breaks the form."""
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            complaint = f"That answer cannot be used: {problem}. {form_in_words(closed_schema(form))}"
            is_ignored = problem.breaks_schema and bool(text.strip())
        again = [{"role": "assistant", "content": text}, {"role": "user", "content": complaint}]
        text = (await self._complete([*messages, *again], form, 1, paid, None))[0]
        self._tells_form |= is_ignored
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
