"""Whether contexts are of use for an answer: one by one or several in a request, in parts where they are too long."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.model_interface import (
    Asked,
    ClosedAnswer,
    CutAnswerError,
    JudgeModel,
    TooLongError,
    cost_of,
    paid_error,
    total_cost,
)
from graphrag_eval_lc.judges.prompts import Prompt, load_prompt
from graphrag_eval_lc.judges.text_parts import halves_of

Outcome = TypeVar("Outcome")

# Providers cache the beginning of a prompt from 1,024 tokens on, once a request with it was answered.
_CACHED_FROM_BYTES = 4096
_FEWEST_TO_CACHE = 3


class ContextVerdict(ClosedAnswer):
    """Whether one context is of use: what a model answers."""

    reason: str
    verdict: Literal[0, 1]


class NumberedVerdict(ClosedAnswer):
    """Whether one of the contexts is of use."""

    context: int
    reason: str
    verdict: Literal[0, 1]


class NumberedVerdicts(ClosedAnswer):
    """Whether each of the contexts is of use: what a model answers."""

    verdicts: list[NumberedVerdict]


_NO_TEXT = ContextVerdict(reason="The context has no text.", verdict=0)
_PLANNED = ContextVerdict(reason="-", verdict=1)


@dataclass(slots=True, eq=False)
class ContextJudge:
    """Asks a model whether contexts are of use.

    A context that is too long for the model, with the answer beside it, is judged in parts: it is of use where a part
    of it is of use for a part of the answer. Its reason says so.

    Args:
        llm: The model.
        batch: How many contexts one request judges, at least 1. A model judges less well what stands in a long list.

    Attributes:
        refused_bytes: The length of the shortest message that was too long; None while none was.
    """

    llm: JudgeModel
    batch: int = 1
    refused_bytes: int | None = None

    async def ajudge(
        self, question: str, answer: str, texts: Sequence[str]
    ) -> tuple[list[ContextVerdict], float | None]:
        """Return a verdict for each text, and the USD of all requests; empty texts are of no use and cost nothing.

        Raises:
            UnusableAnswerError: There is no verdict for one of them; it has the cost of all requests.
        """
        given = [(position, text) for position, text in enumerate(texts) if text]
        asking = _Asking(self, question)
        batches = [given[start : start + self.batch] for start in range(0, len(given), self.batch)]
        judged = await asking.all_of(
            [asking.batch(answer, [text for _, text in each]) for each in batches],
            first_alone=len(batches) >= _FEWEST_TO_CACHE and len(question + answer) >= _CACHED_FROM_BYTES,
        )
        verdicts = [_NO_TEXT] * len(texts)
        for each, found in zip(batches, judged, strict=True):
            for (position, _), verdict in zip(each, found, strict=True):
                verdicts[position] = verdict
        return verdicts, total_cost(asking.costs)


@dataclass(slots=True, eq=False)
class _Asking:
    """The requests about the contexts of one step."""

    judge: ContextJudge
    question: str
    costs: list[float | None] = field(default_factory=list)

    async def all_of(
        self, requests: Sequence[Coroutine[Any, Any, Outcome]], *, first_alone: bool = False
    ) -> list[Outcome]:
        """Return all outcomes; each request ends, as it is paid for and its answer can be kept.

        Args:
            requests: What is asked.
            first_alone: Whether the first is answered before the others are asked, so that the provider has the
                beginning that they share in its cache.

        Raises:
            UnusableAnswerError: The first error, with all costs so far.
        """
        outcomes: list[Outcome | BaseException] = []
        for part in (requests[:1], requests[1:]) if first_alone else (requests,):
            outcomes += await asyncio.gather(*part, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, JudgeError):
                raise outcome
        errors = [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]
        if errors:
            raise paid_error(errors[0], [*self.costs, *map(cost_of, errors[1:])]) from errors[0]
        return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]

    async def batch(self, answer: str, texts: Sequence[str]) -> list[ContextVerdict]:
        """Return the verdicts on some contexts, asked for at once; what the model leaves out is asked for again."""
        if len(texts) == 1:
            return [await self.single(answer, texts[0])]
        prompt = load_prompt("context_precision_batch")
        message = prompt.message(question=self.question, answer=answer, context=texts)
        if self._is_too_long(message):
            return await self._in_halves(answer, texts)
        try:
            asked = await self.judge.llm.aask(prompt.system, message, NumberedVerdicts)
        except (TooLongError, CutAnswerError) as problem:
            self._note(problem, message)
            return await self._in_halves(answer, texts)
        self.costs.append(asked.cost)
        found = _verdicts_in(asked, len(texts))
        missing = [position for position, verdict in enumerate(found) if verdict is None]
        if not missing:
            return [verdict for verdict in found if verdict is not None]
        left_out = [texts[position] for position in missing]
        is_any = len(missing) < len(texts)
        again = iter(await (self.batch(answer, left_out) if is_any else self._in_halves(answer, left_out)))
        return [next(again) if verdict is None else verdict for verdict in found]

    async def _in_halves(self, answer: str, texts: Sequence[str]) -> list[ContextVerdict]:
        middle = len(texts) // 2
        first, second = [await self.batch(answer, part) for part in (texts[:middle], texts[middle:])]
        return [*first, *second]

    async def single(self, answer: str, text: str) -> ContextVerdict:
        """Return the verdict on one context, in parts where it is too long."""
        verdict, parts = await self._verdict(load_prompt("context_precision"), answer, text)
        if parts == 1:
            return verdict
        reason = f"{verdict.reason} (Too long for the model, it was judged in {parts} parts.)"
        return ContextVerdict(reason=reason, verdict=verdict.verdict)

    async def _verdict(self, prompt: Prompt, answer: str, text: str) -> tuple[ContextVerdict, int]:
        """Return a verdict, and in how many parts it was asked for."""
        message = prompt.message(question=self.question, answer=answer, context=text)
        problem: TooLongError | None = None
        if not self._is_too_long(message):
            try:
                asked = await self.judge.llm.aask(prompt.system, message, ContextVerdict)
            except TooLongError as error:
                problem = error
                self._note(error, message)
            else:
                self.costs.append(asked.cost)
                return asked.values[0], 1
        pairs = [(part, text) for part in halves_of(answer)]
        if len(text) >= len(answer):
            pairs = [(answer, part) for part in halves_of(text)]
        if len(pairs) < 2:
            raise problem or TooLongError(f"the texts are too long for {self.judge.llm.name}")
        verdict, parts = await self._verdict(prompt, *pairs[0])
        if verdict.verdict:  # a part is enough
            return verdict, parts + 1
        other, more = await self._verdict(prompt, *pairs[1])
        return other, parts + more

    def _is_too_long(self, message: str) -> bool:
        refused = self.judge.refused_bytes
        return refused is not None and len(message.encode()) >= refused

    def _note(self, problem: TooLongError | CutAnswerError, message: str) -> None:
        self.costs.append(problem.cost)
        if isinstance(problem, TooLongError):
            length = len(message.encode())
            self.judge.refused_bytes = min(length, self.judge.refused_bytes or length)


def _verdicts_in(asked: Asked[NumberedVerdicts], number: int) -> list[ContextVerdict | None]:
    """Return the verdict on each of so many contexts; None where there is none, or there are two that differ."""
    if asked.is_planned:
        return [_PLANNED] * number
    given: dict[int, list[NumberedVerdict]] = {}
    for verdict in asked.values[0].verdicts:
        given.setdefault(verdict.context, []).append(verdict)
    return [_agreed(given.get(position, ())) for position in range(1, number + 1)]


def _agreed(verdicts: Iterable[NumberedVerdict]) -> ContextVerdict | None:
    found = list(verdicts)
    if len({each.verdict for each in found}) != 1:
        return None
    return ContextVerdict(reason=found[0].reason, verdict=found[0].verdict)
