"""Context recall: how much of the reference answer the retrieved contexts support."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.claims import Claim
from graphrag_eval_lc.judges.context_precision import given_contexts
from graphrag_eval_lc.judges.given_models import given_judge_model
from graphrag_eval_lc.judges.prompts import given_text, load_prompt
from graphrag_eval_lc.judges.scores import JudgeScore


class Statement(BaseModel):
    """One statement of the reference, and whether the contexts support it."""

    model_config = ConfigDict(extra="forbid")

    statement: Claim
    reason: str
    attributed: Literal[0, 1]


class Statements(BaseModel):
    """The reference, statement by statement: what a model answers."""

    model_config = ConfigDict(extra="forbid")

    statements: list[Statement]

    @field_validator("statements")
    @classmethod
    def _some(cls, statements: list[Statement]) -> list[Statement]:
        if not statements:
            raise ValueError("the reference answer has at least one statement")
        return statements


class ContextRecall:
    """The share of the statements of the reference answer that the retrieved contexts support, as in ragas.

    One request, in which the model splits the reference and judges each statement.

    Args:
        llm: The model that judges: all that ``as_judge_model`` takes.
    """

    def __init__(self, llm: Any) -> None:
        self._llm = given_judge_model(llm)

    async def ascore(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Give the score.

        Args:
            user_input: The question.
            reference: The reference answer, or the texts of the reference contexts.
            retrieved_contexts: The texts of what was retrieved, whole, whatever their length. One that is None or
                blank is left out.

        Returns:
            The value from 0 to 1: 0 where nothing was retrieved, None where no context has a text; the model is not
            asked for these. ``details``: ``statements``, each with ``statement``, ``reason`` and ``attributed``.

        Raises:
            JudgeError: The question or the reference is blank, or the model gives no answer that can be used.
        """
        question, answer = given_text("user_input", user_input), given_text("reference", reference)
        texts = given_contexts(retrieved_contexts)
        if not texts:
            return JudgeScore(0.0, "Nothing was retrieved.", 0.0, {"statements": []})
        if not any(texts):
            return JudgeScore(None, "No retrieved context has a text.", 0.0)
        prompt = load_prompt("context_recall")
        message = prompt.message(question=question, reference_answer=answer, context=list(filter(None, texts)))
        asked = await self._llm.aask(prompt.system, message, Statements)
        statements = asked.values[0].statements
        lines = (
            f"{'Covered' if one.attributed else 'Not covered'}: {one.statement} {one.reason}" for one in statements
        )
        return JudgeScore(
            sum(one.attributed for one in statements) / len(statements),
            "\n".join(lines),
            asked.cost,
            {"statements": [one.model_dump() for one in statements]},
        )

    def score(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(
            lambda: self.ascore(user_input=user_input, reference=reference, retrieved_contexts=retrieved_contexts)
        )
