"""Answer relevance: how similar the question is to those that the answer replies to."""

import asyncio
import math
from collections.abc import Sequence
from operator import mul
from typing import Any, Final, Literal

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.model_interface import ClosedAnswer, Vectors, cost_of, paid_error, total_cost
from graphrag_eval_lc.judges.models import as_embedding_model, as_judge_model
from graphrag_eval_lc.judges.prompts import given_text, load_prompt, sendable_text
from graphrag_eval_lc.judges.scores import JudgeScore
from graphrag_eval_lc.registry.metrics import ANSWER_RELEVANCE

_FEWEST_OTHERS: Final = 5
_MOST_OTHERS: Final = 200


class GeneratedQuestions(ClosedAnswer):
    """Three questions that the answer replies to: what a model answers."""

    questions: list[str]
    noncommittal: Literal[0, 1]


class AnswerRelevance:
    """The mean cosine similarity of the question and three questions generated from the answer.

    As ragas' answer relevancy; 0 if the answer is noncommittal. There is one request for the questions, and one for
    the vectors of all four.

    A value says little by itself: embeddings find any two questions alike to some degree. With the other questions of a
    dataset it has a baseline, the similarity with those, and the rank of the right question among all.

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
            others: Questions to compare with, such as all of the dataset. Of more than 200 different ones every n-th
                counts. Their vectors are asked for once. With fewer than 5 others there is no baseline.

        Returns:
            The value from -1 to 1, in practice hardly ever below 0; 0 if the answer is noncommittal. ``details``:
            ``questions``, ``noncommittal`` (0 or 1) and, if computed, ``similarities``, one for each question. With
            others also ``baseline``, the mean similarity of the generated questions with them, and ``rank``: 1 if
            none of them is nearer to the generated questions than the right one.

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
        near = await self._anear(embedded.value[1:], user_input, _chosen(others), costs)
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
        """Return the mean similarity of each other question to the generated ones; empty if nothing can be said.

        The vectors that are not known yet are asked for in one request, of whose cost each answer has its share.
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
            costs.append(self._share)  # the same for each answer, whoever was first
            of_others = [self._known[text] for text in others if text in self._known]
            return [sum(cosine_similarity(one, other) for one in generated) / len(generated) for other in of_others]
        except JudgeError as problem:  # the value itself is known
            costs.append(cost_of(problem))
            return []

    def score(self, *, user_input: str, response: str, others: Sequence[str] = ()) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(lambda: self.ascore(user_input=user_input, response=response, others=others))


def _chosen(questions: Sequence[str]) -> list[str]:
    """Return the different questions, every n-th of many."""
    found = [each for each in dict.fromkeys(questions) if each.strip()]
    return found[:: -(-len(found) // _MOST_OTHERS) or 1]


def _similarities(vectors: Vectors, count: int) -> list[float]:
    """Return the similarity of the first vector to each of the others."""
    if len(vectors) != count + 1:
        raise JudgeError(f"the embedding model returned {len(vectors)} vectors for {count + 1} texts")
    if len({len(vector) for vector in vectors}) != 1:
        raise JudgeError("the embedding model returned vectors of different lengths")
    return [cosine_similarity(vectors[0], vector) for vector in vectors[1:]]


def cosine_similarity(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors of the same length, from -1 to 1.

    Raises:
        JudgeError: A vector has only zeros, NaN or an infinite number.

    Example:
        >>> cosine_similarity([1.0, 0.0], [3.0, 0.0])
        1.0
    """
    lengths = math.hypot(*left), math.hypot(*right)
    if not all(math.isfinite(length) and length > 0 for length in lengths):
        raise JudgeError("the embedding model returned a vector without a direction: only zeros, NaN or infinity")
    cosine: float = sum(map(mul, left, right)) / lengths[0] / lengths[1]
    return max(-1.0, min(1.0, cosine))
