"""Context precision, utilization and recall: how useful the retrieved contexts are for an answer."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.answer_correctness import Claim
from graphrag_eval_lc.judges.claim_check import sentences_in
from graphrag_eval_lc.judges.model_interface import (
    Asked,
    ClosedAnswer,
    CutAnswerError,
    TooLongError,
    cost_of,
    paid_error,
    total_cost,
)
from graphrag_eval_lc.judges.models import as_judge_model
from graphrag_eval_lc.judges.prompts import fences, given_text, load_prompt
from graphrag_eval_lc.judges.scores import JudgeScore


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


class _RankedContexts:
    """How far up the contexts rank that are of use for an answer."""

    def __init__(self, llm: Any, *, batch: int = 1) -> None:
        self._llm = as_judge_model(llm)
        self._batch = batch

    async def _score(self, question: str, answer: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        texts = given_contexts(retrieved_contexts)
        if not any(texts):
            return unscored_contexts(texts, verdicts=[], reasons=[])
        judged, cost = await self._judged(question, answer, texts)
        lines = (
            f"{rank}. {'Of use' if one.verdict else 'Of no use'}: {one.reason}"
            for rank, one in enumerate(judged, start=1)
        )
        verdicts, reasons = [one.verdict for one in judged], [one.reason for one in judged]
        details = {"verdicts": verdicts, "reasons": reasons}
        return JudgeScore(mean_precision(verdicts), "\n".join(lines), cost, details)

    async def _judged(
        self, question: str, answer: str, texts: Sequence[str]
    ) -> tuple[list[ContextVerdict], float | None]:
        """Return a verdict for each text, and the USD of all requests; empty texts are of no use and cost nothing.

        Each request ends, as it is paid for and its answer can be kept.

        Raises:
            UnusableAnswerError: One of them has no verdict; it has the cost of all requests.
        """
        given = [text for text in texts if text]
        batches = [given[start : start + self._batch] for start in range(0, len(given), self._batch)]
        costs: list[float | None] = []
        requests = [self._of_batch(question, answer, batch, costs) for batch in batches]
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for error in errors:
            if not isinstance(error, JudgeError):
                raise error
        if errors and isinstance(errors[0], JudgeError):
            raise paid_error(errors[0], [*costs, *map(cost_of, errors[1:])]) from errors[0]
        found = iter([verdict for outcome in outcomes if isinstance(outcome, list) for verdict in outcome])
        return [next(found) if text else _NO_TEXT for text in texts], total_cost(costs)

    async def _of_batch(
        self, question: str, answer: str, texts: Sequence[str], costs: list[float | None]
    ) -> list[ContextVerdict]:
        """Return the verdicts on some contexts; those that one request lacks are requested one by one."""
        found: list[ContextVerdict | None] = [None] * len(texts)
        if len(texts) > 1:
            prompt = load_prompt("context_precision_batch")
            message = prompt.message(question=question, answer=answer, context=texts)
            try:
                asked = await self._llm.aask(prompt.system, message, NumberedVerdicts)
            except (TooLongError, CutAnswerError) as problem:
                costs.append(problem.cost)
            else:
                costs.append(asked.cost)
                found = _verdicts_in(asked, len(texts))
        prompt = load_prompt("context_precision")
        verdicts: list[ContextVerdict] = []
        for verdict, text in zip(found, texts, strict=True):
            if verdict is None:
                message = prompt.message(question=question, answer=answer, context=text)
                single = await self._llm.aask(prompt.system, message, ContextVerdict)
                costs.append(single.cost)
                verdict = single.value
            verdicts.append(verdict)
        return verdicts


def _verdicts_in(asked: Asked[NumberedVerdicts], number: int) -> list[ContextVerdict | None]:
    """Return the verdict on each of so many contexts; None if there is none, or there are two that differ."""
    if asked.is_planned:
        return [_PLANNED] * number
    given = asked.value.verdicts
    found: list[ContextVerdict | None] = []
    for place in range(1, number + 1):
        own = [each for each in given if each.context == place]
        is_one = len({each.verdict for each in own}) == 1
        found.append(ContextVerdict(reason=own[0].reason, verdict=own[0].verdict) if is_one else None)
    return found


def given_contexts(retrieved_contexts: Sequence[str | None]) -> list[str]:
    """Return the texts of contexts, empty if one is None or blank.

    Raises:
        JudgeError: It is not a list of texts.
    """
    if isinstance(retrieved_contexts, str) or not isinstance(retrieved_contexts, Sequence):
        raise JudgeError(f"retrieved_contexts must be a list of texts, not {type(retrieved_contexts).__name__}")
    for rank, text in enumerate(retrieved_contexts, start=1):
        if text is not None and not isinstance(text, str):
            raise JudgeError(f"retrieved context {rank} must be a text, not {type(text).__name__}")
    return [text if text and text.strip() else "" for text in retrieved_contexts]


def unscored_contexts(texts: Sequence[str], **details: Any) -> JudgeScore:
    """Return the score of contexts without any text: 0 with these details if nothing was retrieved."""
    if texts:
        return JudgeScore(None, "No retrieved context has a text.", 0.0)
    return JudgeScore(0.0, "Nothing was retrieved.", 0.0, details)


def mean_precision(verdicts: Sequence[int]) -> float:
    """Return the mean of precision@k over the ranks k whose verdict is 1; 0 without any.

    Example:
        >>> mean_precision([1, 0]), mean_precision([0, 1])
        (1.0, 0.5)
    """
    precisions: list[float] = []
    for rank, verdict in enumerate(verdicts, start=1):
        if verdict:
            precisions.append((len(precisions) + 1) / rank)
    return sum(precisions) / len(precisions) if precisions else 0.0


class ContextPrecision(_RankedContexts):
    """The mean of precision@k over the ranks k of the contexts that are of use for the reference answer.

    ``Σ_k (precision@k · v_k) / Σ_k v_k`` with a verdict v of 0 or 1 for each context, as in ragas, without its
    epsilon. A model is asked once for each context, all at the same time.

    Args:
        llm: The model: all that ``as_judge_model`` takes.
        batch: How many contexts one request judges, at least 1. The reference goes along with each request, so that
            10 cost about a tenth if it is long; a model judges a long list less well.
    """

    async def ascore(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            reference: The reference answer, or the texts of the reference contexts.
            retrieved_contexts: The retrieved texts by rank. One that is None or blank is of no use, and the model is
                not asked about it.

        Returns:
            The value from 0 to 1: 0 if none is of use or nothing was retrieved, None if no context has a text.
            ``details``: ``verdicts`` (0 or 1) and ``reasons``, one for each context.

        Raises:
            JudgeError: The question or the reference is blank, or the model returns no usable answer.
        """
        question = given_text("user_input", user_input)
        return await self._score(question, given_text("reference", reference), retrieved_contexts)

    def score(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(
            lambda: self.ascore(user_input=user_input, reference=reference, retrieved_contexts=retrieved_contexts)
        )


class ContextUtilization(_RankedContexts):
    """Context precision with the actual answer in place of the reference; the prompt is the same.

    Args:
        llm: The model: all that ``as_judge_model`` takes.
        batch: How many contexts one request judges.
    """

    async def ascore(self, *, user_input: str, response: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            response: The actual answer.
            retrieved_contexts: The retrieved texts by rank, as for ``ContextPrecision``.

        Returns:
            As ``ContextPrecision``; the value is 0 for a blank answer.

        Raises:
            JudgeError: The question is blank, or the model returns no usable answer.
        """
        question = given_text("user_input", user_input)
        if isinstance(response, str) and not response.strip():
            return JudgeScore(0.0, "The answer is blank.", 0.0)
        return await self._score(question, given_text("response", response), retrieved_contexts)

    def score(self, *, user_input: str, response: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(
            lambda: self.ascore(user_input=user_input, response=response, retrieved_contexts=retrieved_contexts)
        )


class Statement(ClosedAnswer):
    """One statement of the reference, and whether the contexts support it."""

    statement: Claim
    reason: str
    attributed: Literal[0, 1]


class Statements(ClosedAnswer):
    """The reference, statement by statement: what a model answers."""

    statements: list[Statement]


class ContextRecall:
    """The share of the statements of the reference answer that the retrieved contexts support, as in ragas.

    In one request the model splits the reference and judges each statement. If it lists none, it is asked once more
    about the sentences of the reference.

    Args:
        llm: The model: all that ``as_judge_model`` takes.
    """

    def __init__(self, llm: Any) -> None:
        self._llm = as_judge_model(llm)

    async def ascore(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            reference: The reference answer, or the texts of the reference contexts.
            retrieved_contexts: The retrieved texts, whole, whatever their length. One that is None or blank is left
                out.

        Returns:
            The value from 0 to 1. Without asking the model, 0 if nothing was retrieved, and None if no context has
            a text. ``details``: ``statements``, each with ``statement``, ``reason`` and ``attributed`` (0 or 1).

        Raises:
            JudgeError: The question or the reference is blank, or the model returns no usable answer.
        """
        question, answer = given_text("user_input", user_input), given_text("reference", reference)
        texts = given_contexts(retrieved_contexts)
        if not any(texts):
            return unscored_contexts(texts, statements=[])
        prompt = load_prompt("context_recall")
        message = prompt.message(question=question, reference_answer=answer, context=[text for text in texts if text])
        asked = await self._llm.aask(prompt.system, message, Statements)
        statements, costs = asked.value.statements, [asked.cost]
        if not statements:
            sentences = "\n".join(sentences_in(answer) or [answer])
            message += "\n\nTake these statements, one in a line:\n\n" + fences({"statements": sentences})[0]
            try:
                asked = await self._llm.aask(prompt.system, message, Statements)
            except JudgeError as problem:
                raise paid_error(problem, costs) from problem
            statements = asked.value.statements
            costs.append(asked.cost)
            if not statements:
                raise paid_error(JudgeError("the model listed no statement of the reference answer, twice"), costs)
        lines = [
            f"{'Covered' if one.attributed else 'Not covered'}: {one.statement} {one.reason}" for one in statements
        ]
        return JudgeScore(
            sum(one.attributed for one in statements) / len(statements),
            "\n".join(lines),
            total_cost(costs),
            {"statements": [one.model_dump() for one in statements]},
        )

    def score(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(
            lambda: self.ascore(user_input=user_input, reference=reference, retrieved_contexts=retrieved_contexts)
        )
