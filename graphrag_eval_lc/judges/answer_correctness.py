"""Answer correctness: the claims of an answer against those of the reference answer."""

from typing import Annotated, Any

from pydantic import AfterValidator

from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.model_interface import ClosedAnswer, given_judge_model
from graphrag_eval_lc.judges.prompts import Prompt, given_text, load_prompt, own_prompt
from graphrag_eval_lc.judges.scores import JudgeScore
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a claim is a text that is not blank")
    return text.strip()


# Not min_length, which the strict JSON schemas of some endpoints lack.
Claim = Annotated[str, AfterValidator(_not_blank)]

_PLACEHOLDERS = ("question", "reference_answer", "actual_answer")


class ClaimLists(ClosedAnswer):
    """The claims of both answers, sorted: what a model answers."""

    reason: str
    true_positives: list[Claim]
    false_positives: list[Claim]
    false_negatives: list[Claim]


class AnswerCorrectness:
    """The F1 of the claims of an answer against those of the reference answer, in one request.

    Args:
        llm: The model: all that ``as_judge_model`` takes.
        prompt: Your own prompt, as graphrag-eval's ``answer_correctness.prompt``: with the placeholders ``{question}``,
            ``{reference_answer}`` and ``{actual_answer}``, and literal braces doubled. The form of the model's answer
            stays the same.

    Raises:
        ConfigError: The prompt has another placeholder, lacks one of the two answers, or cannot be read.
    """

    def __init__(self, llm: Any, prompt: str | None = None) -> None:
        self._prompt = load_prompt(ANSWER_CORRECTNESS) if prompt is None else correctness_prompt(prompt)
        self._llm = given_judge_model(llm)

    async def ascore(self, *, user_input: str, reference: str, response: str) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            reference: The reference answer.
            response: The answer to judge. The model is not asked about a blank one, which scores 0.

        Returns:
            The value is F1, from 0 to 1; None where neither answer makes a claim. ``details``: ``true_positives``,
            ``false_positives``, ``false_negatives`` (lists of texts), ``precision`` (None where the answer makes no
            claim), ``recall`` (None where the reference makes none) and ``f1``.

        Raises:
            JudgeError: The question or the reference is blank, or the model gives no usable answer.
        """
        question, expected = given_text("user_input", user_input), given_text("reference", reference)
        if isinstance(response, str) and not response.strip():
            missing = ClaimLists(
                reason="The answer is blank.", true_positives=[], false_positives=[], false_negatives=[expected]
            )
            return _score(missing, 0.0)
        message = self._prompt.message(
            question=question, reference_answer=expected, actual_answer=given_text("response", response)
        )
        asked = await self._llm.aask(self._prompt.system, message, ClaimLists)
        return _score(asked.values[0], asked.cost)

    def score(self, *, user_input: str, reference: str, response: str) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(lambda: self.ascore(user_input=user_input, reference=reference, response=response))


def correctness_prompt(template: str) -> Prompt:
    """Return the prompt of a user's own template.

    Raises:
        ConfigError: It has another placeholder, lacks one of the two answers, or cannot be read.
    """
    return own_prompt(
        template,
        f"{ANSWER_CORRECTNESS}_own",
        _PLACEHOLDERS,
        needed=_PLACEHOLDERS[1:],
        key=f"{ANSWER_CORRECTNESS}.prompt",
    )


def _score(claims: ClaimLists, cost: float | None) -> JudgeScore:
    """Return the scores of sorted claims; F1 as ``2·TP / (2·TP + FP + FN)`` also scores an answer without claims."""
    supported, wrong, missing = map(len, (claims.true_positives, claims.false_positives, claims.false_negatives))
    f1 = _share(2 * supported, 2 * supported + wrong + missing)
    details = {
        "true_positives": claims.true_positives,
        "false_positives": claims.false_positives,
        "false_negatives": claims.false_negatives,
        "precision": _share(supported, supported + wrong),
        "recall": _share(supported, supported + missing),
        "f1": f1,
    }
    return JudgeScore(f1, claims.reason, cost, details)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
