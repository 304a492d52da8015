"""Ragas' metrics, implemented here: answer relevance, and context precision, utilization and recall."""

import asyncio
import math
from collections.abc import Sequence
from operator import mul
from typing import Any, Final, Literal

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.answer_correctness import Claim
from graphrag_eval_lc.judges.claim_check import sentences_in
from graphrag_eval_lc.judges.model_interface import (
    ClosedAnswer,
    CutAnswerError,
    JudgeScore,
    TooLongError,
    Vectors,
    cost_of,
    paid_error,
    total_cost,
)
from graphrag_eval_lc.judges.models import as_embedding_model, as_judge_model
from graphrag_eval_lc.judges.prompts import fences, given_text, load_prompt, sendable_text
from graphrag_eval_lc.registry.metrics import ANSWER_RELEVANCE

_FEWEST_OTHERS: Final = 5
_MOST_OTHERS: Final = 200


class GeneratedQuestions(ClosedAnswer):
    """Three questions that the answer replies to: what a model answers."""

    questions: list[str]
    noncommittal: Literal[0, 1]


class AnswerRelevance:
    """The mean cosine similarity of the question and three questions generated from the answer.

    It is ragas' answer relevancy: 0 if the answer is noncommittal. One request generates the questions, and one returns
    the vectors of all four.

    A value alone says little, as any two questions are similar to some degree. If you pass the other questions of the
    dataset, you also get a baseline (the similarity with these) and the rank of the right question among all.

    Args:
        llm: The model that writes the questions: all that ``as_judge_model`` accepts.
        embeddings: The model that embeds them: all that ``as_embedding_model`` accepts.
    """

    def __init__(self, llm: Any, embeddings: Any) -> None:
        self._llm = as_judge_model(llm)
        self._embeddings = as_embedding_model(embeddings)
        self._known: dict[str, tuple[float, ...]] = {}
        self._share: float | None = 0.0
        self._lock = asyncio.Lock()

    async def ascore(self, *, user_input: str, response: str, others: Sequence[str] = ()) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            response: The answer to judge. No model is asked about a blank one, which scores 0.
            others: Questions to compare with, such as all of the dataset. Of more than 200 different ones, only every
                n-th is used. Their vectors are requested once. The baseline needs at least 5 others.

        Returns:
            The value from -1 to 1, in practice rarely below 0; 0 if the answer is noncommittal. ``details``:
            ``questions``, ``noncommittal`` (0 or 1) and, if computed, ``similarities``, one for each question. With
            others also ``baseline``, the mean similarity of the generated questions with them, and ``rank``: 1 if
            none of them is more similar to the generated questions than the right one.

        Raises:
            JudgeError: The question is blank, or a model returns no usable answer.
        """
        asked_question = given_text("user_input", user_input)
        if isinstance(response, str) and not response.strip():
            return JudgeScore(0.0, "The answer is blank.", 0.0)
        prompt = load_prompt(ANSWER_RELEVANCE)
        asked = await self._llm.aask(
            prompt.system, prompt.message(answer=given_text("response", response)), GeneratedQuestions
        )
        questions = [question for question in asked.value.questions if question.strip()]
        details: dict[str, Any] = {"questions": questions, "noncommittal": asked.value.noncommittal}
        if not questions or asked.value.noncommittal:
            reason = "The answer is noncommittal." if questions else "The model found no question that it replies to."
            return JudgeScore(0.0, reason, asked.cost, details)
        costs = [asked.cost]
        try:
            embedded = await self._embeddings.aembed([sendable_text(text) for text in (asked_question, *questions)])
            costs.append(embedded.cost)
            similarities = _similarities(embedded.value, len(questions))
        except JudgeError as problem:
            raise paid_error(problem, costs) from problem
        value = sum(similarities) / len(similarities)
        different = [each for each in dict.fromkeys(others) if each.strip()]
        chosen = different[:: -(-len(different) // _MOST_OTHERS) or 1]
        near = await self._anear(embedded.value[1:], user_input, chosen, costs)
        if near:
            details |= {"baseline": sum(near) / len(near), "rank": 1 + sum(each > value for each in near)}
        return JudgeScore(
            value,
            "\n".join(["The answer replies to:", *questions]),
            total_cost(costs),
            {**details, "similarities": similarities},
        )

    async def _anear(
        self, generated: Vectors, asked: str, questions: Sequence[str], costs: list[float | None]
    ) -> list[float]:
        """Return the mean similarity of each other question to the generated ones; empty if it is unknown.

        Vectors that are not known yet are requested in one request. Its cost is divided among the answers.
        """
        others = [text for text in questions if text != asked]
        if len(others) < _FEWEST_OTHERS:
            return []
        try:
            async with self._lock:
                if new := [text for text in questions if text not in self._known]:
                    embedded = await self._embeddings.aembed([sendable_text(text) for text in new])
                    self._share = None if embedded.cost is None else embedded.cost / len(new)
                    self._known.update(zip(new, embedded.value, strict=False))
            costs.append(self._share)  # the same for each answer, in whatever order they are judged
            of_others = [self._known[text] for text in others if text in self._known]
            return [sum(cosine_similarity(one, other) for one in generated) / len(generated) for other in of_others]
        except JudgeError as problem:  # only the baseline is missing
            costs.append(cost_of(problem))
            return []

    def score(self, *, user_input: str, response: str, others: Sequence[str] = ()) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(lambda: self.ascore(user_input=user_input, response=response, others=others))


def _similarities(vectors: Vectors, count: int) -> list[float]:
    """Return the similarity of the first vector to each of the others."""
    if len(vectors) != count + 1:
        raise JudgeError(f"the embedding model returned {len(vectors)} vectors for {count + 1} texts")
    if len({len(vector) for vector in vectors}) != 1:
        raise JudgeError("the embedding model returned vectors of different lengths")
    return [cosine_similarity(vectors[0], vector) for vector in vectors[1:]]


def cosine_similarity(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors of the same length, from -1 to 1.

    Example:
        >>> cosine_similarity([1.0, 0.0], [3.0, 0.0])
        1.0
    """
    lengths = math.hypot(*left), math.hypot(*right)
    if not all(math.isfinite(length) and length > 0 for length in lengths):
        raise JudgeError("the embedding model returned a vector without a direction: only zeros, NaN or infinity")
    cosine: float = sum(map(mul, left, right)) / lengths[0] / lengths[1]
    return max(-1.0, min(1.0, cosine))


# --- contexts ---


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


class _RankedContexts:
    """The base of the metrics that measure how high useful contexts rank."""

    def __init__(self, llm: Any, *, batch: int = 1) -> None:
        self._llm = as_judge_model(llm)
        self._batch = batch

    async def _score(self, question: str, answer: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        texts = given_contexts(retrieved_contexts)
        if not any(texts):
            return unscored_contexts(texts, verdicts=[], reasons=[])
        # If one fails, the others still finish: they are paid for, and their answers can be cached.
        given = [text for text in texts if text]
        batches = [given[start : start + self._batch] for start in range(0, len(given), self._batch)]
        costs: list[float | None] = []
        requests = (self._of_batch(question, answer, batch, costs) for batch in batches)
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, JudgeError):
                raise outcome
        if errors := [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]:
            raise paid_error(errors[0], [*costs, *map(cost_of, errors[1:])]) from errors[0]
        found = iter([verdict for outcome in outcomes if isinstance(outcome, list) for verdict in outcome])
        judged = [next(found) if text else _NO_TEXT for text in texts]
        lines = (
            f"{rank}. {'Of use' if one.verdict else 'Of no use'}: {one.reason}"
            for rank, one in enumerate(judged, start=1)
        )
        verdicts, reasons = [one.verdict for one in judged], [one.reason for one in judged]
        details = {"verdicts": verdicts, "reasons": reasons}
        return JudgeScore(mean_precision(verdicts), "\n".join(lines), total_cost(costs), details)

    async def _of_batch(
        self, question: str, answer: str, texts: Sequence[str], costs: list[float | None]
    ) -> list[ContextVerdict]:
        """Return the verdicts on a batch of contexts; verdicts missing from the answer are requested one by one."""
        found: dict[int, ContextVerdict] = {}
        if len(texts) > 1:
            prompt = load_prompt("context_precision_batch")
            message = prompt.message(question=question, answer=answer, context=texts)
            try:
                asked = await self._llm.aask(prompt.system, message, NumberedVerdicts)
            except (TooLongError, CutAnswerError) as problem:
                costs.append(problem.cost)
            else:
                costs.append(asked.cost)
                if asked.is_planned:
                    return [ContextVerdict(reason="-", verdict=1)] * len(texts)
                for one in asked.value.verdicts:
                    of_context = {each.verdict for each in asked.value.verdicts if each.context == one.context}
                    if len(of_context) == 1:  # contradictory verdicts are ignored
                        found.setdefault(one.context, ContextVerdict(reason=one.reason, verdict=one.verdict))
        prompt = load_prompt("context_precision")
        for number, text in enumerate(texts, start=1):
            if number not in found:
                message = prompt.message(question=question, answer=answer, context=text)
                single = await self._llm.aask(prompt.system, message, ContextVerdict)
                costs.append(single.cost)
                found[number] = single.value
        return [found[number] for number in range(1, len(texts) + 1)]


def given_contexts(retrieved_contexts: Sequence[str | None]) -> list[str]:
    """Return the texts of contexts, with ``""`` for None or blank ones; raise a JudgeError for other values."""
    if isinstance(retrieved_contexts, str) or not isinstance(retrieved_contexts, Sequence):
        raise JudgeError(f"retrieved_contexts must be a list of texts, not {type(retrieved_contexts).__name__}")
    for rank, text in enumerate(retrieved_contexts, start=1):
        if text is not None and not isinstance(text, str):
            raise JudgeError(f"retrieved context {rank} must be a text, not {type(text).__name__}")
    return [text if text and text.strip() else "" for text in retrieved_contexts]


def unscored_contexts(texts: Sequence[str], **details: Any) -> JudgeScore:
    """Return the score of contexts without any text: 0 with these details if nothing was retrieved, else None."""
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
    """The mean of precision@k over the ranks k of the contexts that are useful for the reference answer.

    ``Σ_k (precision@k · v_k) / Σ_k v_k`` with a verdict v of 0 or 1 for each context, as in ragas, without its
    epsilon. The model is asked once for each context, concurrently.

    Args:
        llm: The model: all that ``as_judge_model`` takes.
        batch: How many contexts one request judges, at least 1. Each request includes the reference: if that is long,
            a batch of 10 costs about a tenth. Models judge long lists less well.
    """

    async def ascore(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            reference: The reference answer, or the texts of the reference contexts.
            retrieved_contexts: The retrieved texts by rank. A text that is None or blank counts as useless, and the
                model is not asked about it.

        Returns:
            The value from 0 to 1: 0 if none is useful or nothing was retrieved, None if no context has a text.
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
            retrieved_contexts: The retrieved texts; they are not shortened. Texts that are None or blank are left out.

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
