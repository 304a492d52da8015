"""Context utilization: whether the contexts that are of use for the agent's own answer stand at the top."""

from collections.abc import Sequence
from typing import Any

from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.context_precision import contexts_score
from graphrag_eval_lc.judges.given_models import given_judge_model
from graphrag_eval_lc.judges.prompts import given_text
from graphrag_eval_lc.judges.scores import JudgeScore


class ContextUtilization:
    """Context precision with the answer that the agent gave in place of a reference.

    The model sees the same prompt as for ``ContextPrecision``, once for each context.

    Args:
        llm: The model that judges: all that ``as_judge_model`` takes.
    """

    def __init__(self, llm: Any) -> None:
        self._llm = given_judge_model(llm)

    async def ascore(self, *, user_input: str, response: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Give the score.

        Args:
            user_input: The question.
            response: The answer that the agent gave.
            retrieved_contexts: The texts of what was retrieved, by rank, as for ``ContextPrecision``.

        Returns:
            As ``ContextPrecision``; the value is 0 for a blank answer, which no context was of use for.

        Raises:
            JudgeError: The question is blank, or the model gives no answer that can be used.
        """
        question = given_text("user_input", user_input)
        if isinstance(response, str) and not response.strip():
            return JudgeScore(0.0, "The answer is blank.", 0.0)
        return await contexts_score(self._llm, question, given_text("response", response), retrieved_contexts)

    def score(self, *, user_input: str, response: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(
            lambda: self.ascore(user_input=user_input, response=response, retrieved_contexts=retrieved_contexts)
        )
