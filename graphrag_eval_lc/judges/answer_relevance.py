"""Answer relevance: how much the question asked resembles those that the answer replies to."""

import math
from collections.abc import Sequence
from operator import mul
from typing import Any, Literal

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.model_interface import (
    Asked,
    ClosedAnswer,
    paid_error,
    total_cost,
)
from graphrag_eval_lc.judges.models import as_embedding_model, as_judge_model
from graphrag_eval_lc.judges.prompts import given_text, load_prompt, sendable_text
from graphrag_eval_lc.judges.scores import JudgeScore
from graphrag_eval_lc.registry.metrics import ANSWER_RELEVANCE

_NUMBER_OF_QUESTIONS = 3
_TEMPERATURE = 0.3  # so that the questions differ


class GeneratedQuestion(ClosedAnswer):
    """A question that the answer replies to: what a model answers."""

    question: str
    noncommittal: Literal[0, 1]


class AnswerRelevance:
    """The mean cosine similarity to the question asked of three questions generated from the answer.

    As ragas' answer relevancy; 0 where the answer is found noncommittal all three times. There is one request for
    three questions, and one for the vectors of all four.

    Args:
        llm: The model that writes the questions: all that ``as_judge_model`` takes.
        embeddings: The model that embeds them: all that ``as_embedding_model`` takes.
    """

    def __init__(self, llm: Any, embeddings: Any) -> None:
        self._llm = as_judge_model(llm)
        self._embeddings = as_embedding_model(embeddings)

    async def ascore(self, *, user_input: str, response: str) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            response: The answer to judge. No model is asked about a blank one, which scores 0.

        Returns:
            The value from -1 to 1, in practice hardly ever below 0; 0 where the answer is noncommittal.
            ``details``: ``questions``, ``noncommittal`` (0 or 1) and, where computed, ``similarities``, one for each
            question that the model wrote.

        Raises:
            JudgeError: The question is blank, or a model gives no usable answer.
        """
        asked_question = given_text("user_input", user_input)
        if isinstance(response, str) and not response.strip():
            return JudgeScore(0.0, "The answer is blank.", 0.0)
        prompt = load_prompt(ANSWER_RELEVANCE)
        message = prompt.message(answer=given_text("response", response))
        asked = await self._llm.aask(
            prompt.system, message, GeneratedQuestion, n=_NUMBER_OF_QUESTIONS, temperature=_TEMPERATURE
        )
        if len(asked.values) != _NUMBER_OF_QUESTIONS:
            short = JudgeError(f"the model wrote {len(asked.values)} questions instead of {_NUMBER_OF_QUESTIONS}")
            raise paid_error(short, [asked.cost])
        written = [one for one in asked.values if one.question.strip()]
        questions = [one.question for one in written]
        details = {"questions": questions, "noncommittal": [one.noncommittal for one in written]}
        if all(one.noncommittal for one in written):
            reason = "The answer is noncommittal." if written else "The model found no question that it replies to."
            return JudgeScore(0.0, reason, asked.cost, details)
        costs = [asked.cost]
        try:
            embedded = await self._embeddings.aembed([sendable_text(text) for text in (asked_question, *questions)])
            costs.append(embedded.cost)
            similarities = _similarities(embedded, len(questions))
        except JudgeError as problem:
            raise paid_error(problem, costs) from problem
        return JudgeScore(
            sum(similarities) / len(similarities),
            "\n".join(["The answer replies to:", *questions]),
            total_cost(costs),
            {**details, "similarities": similarities},
        )

    def score(self, *, user_input: str, response: str) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(lambda: self.ascore(user_input=user_input, response=response))


def _similarities(embedded: Asked[tuple[float, ...]], count: int) -> list[float]:
    """Return the similarity of the first vector to each of the others."""
    vectors = embedded.values
    if len(vectors) != count + 1:
        raise JudgeError(f"the embedding model gave {len(vectors)} vectors for {count + 1} texts")
    if len({len(vector) for vector in vectors}) != 1:
        raise JudgeError("the embedding model gave vectors of different lengths")
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
        raise JudgeError("the embedding model gave a vector that has no direction: only zeros, NaN or infinity")
    cosine: float = sum(map(mul, left, right)) / lengths[0] / lengths[1]
    return max(-1.0, min(1.0, cosine))
