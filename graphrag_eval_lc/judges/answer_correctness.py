"""Answer correctness: the claims of an answer against those of the reference answer."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.model_interface import ClosedAnswer, given_judge_model
from graphrag_eval_lc.judges.prompts import EARLIER, Prompt, given_text, load_prompt, own_prompt
from graphrag_eval_lc.judges.scores import JudgeScore
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a claim is a text that is not blank")
    return text.strip()


# Not min_length, which the strict JSON schemas of some endpoints lack.
Claim = Annotated[str, AfterValidator(_not_blank)]


def _distinct(claims: list[str]) -> list[str]:
    """Return claims without those that repeat an earlier one, whatever their case, spaces and last point."""
    return list({_same(claim): claim for claim in reversed(claims)}.values())[::-1]


def _same(claim: str) -> str:
    return " ".join(claim.casefold().split()).rstrip(" .")


Claims = Annotated[list[Claim], AfterValidator(_distinct)]

_PLACEHOLDERS = ("question", "reference_answer", "actual_answer")


class ClaimLists(ClosedAnswer):
    """The claims of both answers, sorted: what a model answers."""

    reason: str
    true_positives: Claims
    false_positives: Claims
    covered_claims: Claims = Field(default_factory=list)  # some models leave it out
    false_negatives: Claims

    @model_validator(mode="after")
    def _each_is_sorted_once(self) -> Self:
        if not (self.true_positives or self.false_positives or self.covered_claims or self.false_negatives):
            raise ValueError("the lists hold no claim at all")
        for one, other in (("true_positives", "false_positives"), ("covered_claims", "false_negatives")):
            both = {*map(_same, getattr(self, one))} & {*map(_same, getattr(self, other))}
            if both:
                raise ValueError(f"{min(both)!r} stands in {one} and in {other}")
        return self


class EarlierClaimLists(ClosedAnswer):
    """The claims of both answers, sorted: what a model answers."""

    reason: str
    true_positives: list[Claim]
    false_positives: list[Claim]
    false_negatives: list[Claim]


EarlierClaimLists.__name__ = "ClaimLists"  # under which answers are kept


class AnswerCorrectness:
    """The F1 of the claims of an answer against those of the reference answer, in one request.

    Precision is the share of the answer's claims that the reference supports, and recall the share of the reference's
    claims that the answer makes: each counts the claims of one side, so that an answer that says one thing in many
    claims raises neither. A claim that is repeated counts once. Where a model does not list the reference's claims that
    the answer makes, as those of older versions and of graphrag-eval do not, the supported claims stand for them.

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
        own = "" if prompt is None else "_own"
        earlier = load_prompt(f"{ANSWER_CORRECTNESS}{own}{EARLIER}")
        self._earlier_prompt = earlier if prompt is None else Prompt(earlier.system, self._prompt.user)
        self._llm = given_judge_model(llm)

    async def ascore(self, *, user_input: str, reference: str, response: str) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            reference: The reference answer.
            response: The answer to judge. The model is not asked about a blank one, which scores 0.

        Returns:
            The value is F1, from 0 to 1. ``details``: ``true_positives``, ``false_positives``, ``covered_claims``
            (where the model gave them), ``false_negatives`` (lists of texts), ``precision`` (None where the answer
            makes no claim), ``recall`` (None where the reference makes none) and ``f1``.

        Raises:
            JudgeError: The question or the reference is blank, or the model gives no usable answer: one without any
                claim is none.
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
        if (earlier := self._earlier(question, expected, response)) is not None:
            return earlier
        asked = await self._llm.aask(self._prompt.system, message, ClaimLists)
        return _score(asked.values[0], asked.cost)

    def _earlier(self, question: str, reference: str, response: str) -> JudgeScore | None:
        """Return the score by what an earlier version asked and paid for; None where the cache has nothing of it."""
        known = getattr(self._llm, "known", None)
        if known is None:
            return None
        message = self._earlier_prompt.message(question=question, reference_answer=reference, actual_answer=response)
        asked = known(self._earlier_prompt.system, message, EarlierClaimLists)
        return None if asked is None else _score(asked.values[0], asked.cost)

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


def _score(claims: ClaimLists | EarlierClaimLists, cost: float | None) -> JudgeScore:
    """Return the scores of sorted claims; F1 is 0 where an answer or a reference has no claim."""
    supported, wrong, missing = map(len, (claims.true_positives, claims.false_positives, claims.false_negatives))
    lists = {
        "true_positives": claims.true_positives,
        "false_positives": claims.false_positives,
        "false_negatives": claims.false_negatives,
    }
    precision, f1 = _share(supported, supported + wrong), _share(2 * supported, 2 * supported + wrong + missing)
    if isinstance(claims, ClaimLists) and "covered_claims" in claims.model_fields_set:
        lists["covered_claims"] = claims.covered_claims
        covered = len(claims.covered_claims)
        recall = _share(covered, covered + missing)
        f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
    else:
        recall = _share(supported, supported + missing)
    return JudgeScore(f1, claims.reason, cost, {**lists, "precision": precision, "recall": recall, "f1": f1})


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
