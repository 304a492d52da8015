"""Answer correctness: compares the claims of an answer with those of the reference answer, and counts votes on them."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from graphrag_eval_lc.errors import JudgeError, OptionError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.claim_check import ClaimTexts, is_refusal
from graphrag_eval_lc.judges.model import AskedModel, ask_number
from graphrag_eval_lc.judges.model_interface import (
    ClosedAnswer,
    JudgeModel,
    JudgeScore,
    NotAskedError,
    UnusableAnswerError,
    cost_of,
    paid_error,
    total_cost,
)
from graphrag_eval_lc.judges.models import as_judge_model
from graphrag_eval_lc.judges.prompts import fences, given_text, load_prompt, own_prompt
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a claim is a text that is not blank")
    return text.strip()


def _same(claim: str) -> str:
    return " ".join(claim.casefold().split()).rstrip(" .")


def _distinct(claims: list[str]) -> list[str]:
    """Return claims without repetitions; case, spaces and a final full stop are ignored."""
    return list({_same(claim): claim for claim in reversed(claims)}.values())[::-1]


# Not min_length, which the strict JSON schemas of some endpoints do not support.
Claim = Annotated[str, AfterValidator(_not_blank)]
Claims = Annotated[list[Claim], AfterValidator(_distinct)]


class ClaimLists(ClosedAnswer):
    """The claims of both answers, sorted: what a model answers."""

    reason: str
    true_positives: Claims
    false_positives: Claims
    covered_claims: Claims = Field(default_factory=list)  # some models leave it out
    false_negatives: Claims


class AnswerCorrectness:
    """The F1 of the claims of an answer against those of the reference answer, mostly in one request.

    Precision is the share of the answer's claims that the reference supports, and recall the share of the reference's
    claims that the answer makes: each counts the claims of one side, so that an answer that says one thing in many
    claims raises neither. A claim that is repeated counts once. If a model does not list the reference's claims
    that the answer makes, the supported claims replace them.

    Claims are compared with the texts. Numbers, codes and names of a true positive must be in both answers, those of a
    covered claim too, those of a false negative in the reference. None of these texts may have the claim's words with
    a negation on one side only, or its number for another name. If a claim does not fit, the model is asked once more;
    then such a true positive counts as a false positive, such a covered claim does not count, and the reason says so.

    Args:
        llm: The model: all that ``as_judge_model`` takes.
        prompt: Your own prompt, as graphrag-eval's ``answer_correctness.prompt``: with the placeholders ``{question}``,
            ``{reference_answer}`` and ``{actual_answer}``, and literal braces doubled. The form of the model's answer
            stays the same.
        votes: How many times the model decides on each claim, at least 1: once as it finds them, then on the same
            claims again. More than half must say that a claim agrees.
        voters: More models, which vote on the same claims once each: all that ``as_judge_model`` takes.

    Raises:
        ConfigError: The prompt has another placeholder, lacks one of the two answers, or cannot be read.
        OptionError: ``votes`` is below 1.
    """

    def __init__(self, llm: Any, prompt: str | None = None, *, votes: int = 1, voters: Sequence[Any] = ()) -> None:
        if votes < 1:
            raise OptionError(f"votes is at least 1, not {votes}")
        self._prompt = load_prompt(ANSWER_CORRECTNESS)
        if prompt is not None:
            names, key = ("question", "reference_answer", "actual_answer"), f"{ANSWER_CORRECTNESS}.prompt"
            self._prompt = own_prompt(prompt, f"{ANSWER_CORRECTNESS}_own", names, needed=names[1:], key=key)
        self._llm = as_judge_model(llm)
        # Each with the number of its earlier votes, so that the cache keeps each vote separately.
        self._voters = [(self._llm, earlier) for earlier in range(votes - 1)]
        self._voters += [(as_judge_model(voter), 0) for voter in voters]

    async def ascore(self, *, user_input: str, reference: str, response: str) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            reference: The reference answer.
            response: The answer to judge. The model is not asked about a blank one, which scores 0.

        Returns:
            The value is F1, from 0 to 1. ``details``: ``true_positives``, ``false_positives``, ``covered_claims``
            (if the model listed them), ``false_negatives`` (lists of texts), ``precision`` (None if the answer makes
            no claim), ``recall`` (None if the reference makes none) and ``f1``. With votes also ``agreement`` (the mean
            share of votes for what the majority says, above 0.5 to 1) and ``votes`` (of each claim ``claim``, ``of``,
            ``agrees`` and ``votes``).

        Raises:
            JudgeError: The question or the reference is blank, or the model returns no usable answer.
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
        texts = ClaimTexts(question, expected, response)
        lists, problems, costs = await self._asorted(message, texts)
        if not self._voters or not (own := _votes_in(lists)):
            return _score(lists, total_cost(costs), problems)
        try:
            election = await _aelection(self._voters, message, own)
        except NotAskedError as problem:
            raise paid_error(problem, costs) from problem
        lists, problems = election.elected(lists, texts, problems)
        score = _score(lists, total_cost([*costs, *election.costs]), problems)
        reason = "\n".join([str(score.reason), *(f"A vote is missing: {why}" for why in election.failed)])
        return replace(score, reason=reason, details={**score.details, **election.details()})

    async def _asorted(self, message: str, texts: ClaimTexts) -> tuple[ClaimLists, Sequence[str], list[float | None]]:
        """Return the claims as the model sorted and code checked them, the problems found, and the costs."""
        asked = await self._llm.aask(self._prompt.system, message, ClaimLists)
        if asked.is_planned:
            return asked.value, (), [asked.cost]
        if not _votes_in(asked.value) and is_refusal(texts.answer) and is_refusal(texts.reference):
            both = {"true_positives": [texts.answer], "false_positives": [], "false_negatives": []}
            said = {**both, "covered_claims": [texts.reference], "reason": "Both say that there is no answer."}
            return ClaimLists.model_validate(said), (), [asked.cost]
        lists, problems = checked(asked.value, texts)
        if not problems:
            return lists, problems, [asked.cost]
        message += _complaint(asked.value, problems)
        try:
            again = await self._llm.aask(self._prompt.system, message, ClaimLists)
        except NotAskedError as problem:
            raise paid_error(problem, [asked.cost]) from problem
        except JudgeError as problem:  # the first answer is used as code has corrected it
            paid_in_vain = problem.cost if isinstance(problem, UnusableAnswerError) else None
            return lists, problems, [asked.cost, paid_in_vain]
        better, left = checked(again.value, texts)
        if len(left) <= len(problems):
            lists, problems = better, left
        return lists, problems, [asked.cost, again.cost]

    def describe(self) -> dict[str, Any]:
        """Return ``model``, ``temperature``, ``prompt``, and a ``digest`` of everything that the verdicts depend on."""
        settings = dict(self._llm.described.settings) if isinstance(self._llm, AskedModel) else {}
        if isinstance(address := settings.get("base_url"), str):  # a local server may have another port each time
            settings["base_url"] = urlsplit(address).hostname
        parts = [self._prompt, *([load_prompt("answer_correctness_vote")] if self._voters else [])]
        prompt = sha256("\n".join(f"{part.system}\n{part.user}" for part in parts).encode()).hexdigest()
        votes = [model.name for model, _ in self._voters]
        all_of_it = [self._llm.name, prompt, votes, sorted((key, repr(value)) for key, value in settings.items())]
        return {
            "digest": sha256(json.dumps(all_of_it).encode()).hexdigest(),
            "model": self._llm.name,
            "temperature": settings.get("temperature"),
            "prompt": prompt,
            "votes": [self._llm.name, *votes],
        }

    def score(self, *, user_input: str, reference: str, response: str) -> JudgeScore:
        """The synchronous form of ``ascore``."""
        return run_sync(lambda: self.ascore(user_input=user_input, reference=reference, response=response))


# --- what code checks ---


def checked(given: ClaimLists, texts: ClaimTexts) -> tuple[ClaimLists, list[str]]:
    """Return claims sorted as far as the texts support it, and a sentence on each claim that had to be moved.

    A true positive that the texts do not support becomes a false positive. A covered claim that the reference does not
    make is left out, and one that the answer does not make becomes a false negative. If a side has no mistake, its
    sentences that differ from the other side by a number, a code or a name are added as mistakes.
    """
    problems: list[str] = []
    right, wrong = _checked_of_answer(given, texts, problems)
    covered, missing = _checked_of_reference(given, texts, problems)
    if not missing:
        for sentence, problem in texts.left_out().items():
            problems.append(f"{problem}; it is in the reference answer: {sentence!r}")
            missing.append(sentence)
    if not wrong:
        for sentence, problem in texts.added().items():
            problems.append(f"{problem}; it is in the actual answer: {sentence!r}")
            wrong.append(sentence)
    if not (covered or missing) and (_has_covered(given) or not right):
        problems.append("covered_claims and false_negatives do not list the claims of the reference answer")
    if not (right or covered or missing):
        missing = [texts.reference]
    lists = {"true_positives": right, "false_positives": wrong, "false_negatives": missing}
    if _has_covered(given):
        lists["covered_claims"] = covered
    return ClaimLists.model_validate({"reason": given.reason, **lists}), problems


def _checked_of_answer(given: ClaimLists, texts: ClaimTexts, problems: list[str]) -> tuple[list[str], list[str]]:
    """Return the true and the false positives; append to ``problems`` what is wrong with them."""
    right, wrong = list[str](), list[str]()
    covered = {*map(_same, given.covered_claims)}
    for claim in _claims(given.false_positives):
        if texts.reference_states(claim) and not _problem_of_supported(claim, texts):
            problems.append(f"{claim!r} is not a false positive: the reference answer says so in these words")
            right.append(claim)
        else:
            wrong.append(claim)
    for claim in _claims(given.true_positives):
        problem = _problem_of_supported(claim, texts)
        if _same(claim) in map(_same, wrong):
            problems.append(f"{claim!r} is in true_positives and in false_positives")
            if _same(claim) in covered and not problem:
                wrong = [each for each in wrong if _same(each) != _same(claim)]
                right.append(claim)
        elif problem:
            problems.append(f"{claim!r} is not a true positive: {problem}")
            wrong.append(claim)
        else:
            right.append(claim)
    return right, wrong


def _checked_of_reference(given: ClaimLists, texts: ClaimTexts, problems: list[str]) -> tuple[list[str], list[str]]:
    """Return the covered claims and the false negatives; append to ``problems`` what is wrong with them."""
    covered, missing = list[str](), list[str]()
    for claim in _claims(given.false_negatives):
        if problem := texts.not_in_reference(claim):
            problems.append(f"{claim!r} is not a false negative: {problem}")
            if texts.not_in_answer(claim):
                missing.append(claim)
        else:
            missing.append(claim)
    for claim in _claims(given.covered_claims):
        if _same(claim) in map(_same, missing):
            problems.append(f"{claim!r} is in covered_claims and in false_negatives")
        elif problem := texts.not_in_reference(claim):
            problems.append(f"{claim!r} is not covered: {problem}")
        elif not texts.has_words_of_reference(claim):
            problems.append(f"{claim!r} is not covered: it is not made of the words of the reference answer")
        elif problem := texts.not_in_answer(claim):
            problems.append(f"{claim!r} is not covered: {problem}")
            missing.append(claim)
        else:
            covered.append(claim)
    return covered, missing


def _problem_of_supported(claim: str, texts: ClaimTexts) -> str:
    problem = texts.not_in_reference(claim) or texts.not_in_answer(claim)
    return problem or ("" if texts.has_words_of_answer(claim) else "it is not made of the words of the actual answer")


_NO_CLAIMS = frozenset({*ClaimLists.model_fields, "none", "n/a", "null", "-", "[]", "no claims", "claim", "claims"})


def _claims(texts: Iterable[str]) -> list[str]:
    """Return claims without field names and words for "none", which some models put into lists."""
    return [text for text in texts if _same(text).strip(" :\"'`") not in _NO_CLAIMS]


def _complaint(given: ClaimLists, problems: Sequence[str]) -> str:
    """Return the text that asks the model to sort the claims again; claims are fenced, as they are data."""
    lists, found = fences({"first_attempt": given.model_dump_json(), "problems": "\n".join(problems)})
    return f"""

This is a first attempt:

{lists}

A program compared it with the texts word by word and found these problems:

{found}

Sort all claims again, without these problems. Copy names, numbers and codes as the answer has them that a claim \
comes from."""


# --- votes ---


class ClaimVote(ClosedAnswer):
    """Whether the other answer agrees with a claim."""

    claim: str
    agrees: Literal[0, 1]


class ClaimVotes(ClosedAnswer):
    """The votes on all claims: what a model answers."""

    reason: str
    votes: list[ClaimVote]


_MOST_VOTES = 1000  # of one model; the numbers of one ask stay below those of the next
# A claim: its side (answer or reference) and its text.
_Claim = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Election:
    """For each claim, the votes on whether the other answer agrees; their cost in USD; and why some are missing."""

    votes: Mapping[_Claim, Sequence[bool]]
    costs: Sequence[float | None]
    failed: Sequence[str]
    is_planned: bool

    def details(self) -> dict[str, Any]:
        """Return the mean share of votes for the majority, and the votes on each claim."""
        shares = [max(sum(votes), len(votes) - sum(votes)) / len(votes) for votes in self.votes.values()]
        counts = [
            {"claim": text, "of": side, "agrees": sum(votes), "votes": len(votes)}
            for (side, text), votes in self.votes.items()
        ]
        return {"agreement": sum(shares) / len(shares), "votes": counts}

    def elected(
        self, lists: ClaimLists, texts: ClaimTexts, problems: Sequence[str]
    ) -> tuple[ClaimLists, Sequence[str]]:
        """Return claims sorted by majority as far as the texts support it, and the problems that were found."""
        agrees = {claim: 2 * sum(votes) > len(votes) for claim, votes in self.votes.items()}
        if self.is_planned or agrees == _votes_in(lists):
            return lists, problems
        sides = {
            (side, is_right): [claim for (of, claim), said in agrees.items() if of == side and said is is_right]
            for side in ("answer", "reference")
            for is_right in (True, False)
        }
        covered = sides["reference", True]
        elected = {
            "reason": lists.reason,
            "true_positives": sides["answer", True],
            "false_positives": sides["answer", False],
            "false_negatives": sides["reference", False],
            **({"covered_claims": covered} if _has_covered(lists) or covered else {}),
        }
        return checked(ClaimLists.model_validate(elected), texts)


def _votes_in(lists: ClaimLists) -> dict[_Claim, bool]:
    """Return for each claim whether, by its list, the other answer agrees."""
    return {
        **dict.fromkeys((("answer", claim) for claim in lists.true_positives), True),
        **dict.fromkeys((("answer", claim) for claim in lists.false_positives), False),
        **dict.fromkeys((("reference", claim) for claim in lists.covered_claims), True),
        **dict.fromkeys((("reference", claim) for claim in lists.false_negatives), False),
    }


async def _aelection(voters: Sequence[tuple[JudgeModel, int]], message: str, own: Mapping[_Claim, bool]) -> _Election:
    """Ask all voters about the claims concurrently; the judge's own sorting counts as a vote too.

    Raises:
        NotAskedError: No more may be asked.
    """
    # The order must not reveal the lists in which the claims were.
    shuffled = sorted(own, key=lambda claim: sha256("\n".join(claim).encode("utf-8", "surrogatepass")).digest())
    names = {
        f"{side[0].upper()}{number}": claim
        for side in ("answer", "reference")
        for number, claim in enumerate((claim for claim in shuffled if claim[0] == side), start=1)
    }
    prompt = load_prompt("answer_correctness_vote")
    ballot = message + "\n\n" + prompt.message(claims="\n".join(f"{name}: {text}" for name, (_, text) in names.items()))

    async def avotes(model: JudgeModel, earlier: int) -> Any:
        # Runs in a separate task, so that the context variable changes only here.
        ask_number.set((ask_number.get() - 1) * _MOST_VOTES + earlier + 1)
        try:
            return await model.aask(prompt.system, ballot, ClaimVotes)
        except JudgeError as problem:
            return problem

    said = await asyncio.gather(*(avotes(*voter) for voter in voters))
    failed = [cast for cast in said if isinstance(cast, JudgeError)]
    answered = [cast for cast in said if not isinstance(cast, JudgeError)]
    costs = [*(cast.cost for cast in answered), *map(cost_of, failed)]
    for problem in failed:
        if isinstance(problem, NotAskedError):
            others = [cost_of(each) for each in failed if each is not problem]
            raise paid_error(problem, [*others, *(cast.cost for cast in answered)])
    votes = {claim: [agrees] for claim, agrees in own.items()}
    for cast in answered:
        of_voter = {vote.claim.strip().rstrip(":").upper(): bool(vote.agrees) for vote in cast.value.votes}
        for name in names.keys() & of_voter.keys():
            votes[names[name]].append(of_voter[name])
    return _Election(votes, costs, [str(problem) for problem in failed], any(cast.is_planned for cast in answered))


# --- the score ---


def _has_covered(lists: ClaimLists) -> bool:
    return "covered_claims" in lists.model_fields_set


def _score(claims: ClaimLists, cost: float | None, problems: Sequence[str] = ()) -> JudgeScore:
    """Return the scores of sorted claims; F1 is 0 if an answer or a reference has no claim.

    If one side lists none of the claims that agree, those of the other side replace them.
    """
    lists = {
        "true_positives": claims.true_positives,
        "false_positives": claims.false_positives,
        "false_negatives": claims.false_negatives,
    }
    supported, wrong, missing = map(len, lists.values())
    covered = supported
    if _has_covered(claims):
        lists["covered_claims"] = claims.covered_claims
        if claims.covered_claims or missing:
            covered = len(claims.covered_claims)
    if not supported and not wrong:
        supported = covered
    precision, recall = _share(supported, supported + wrong), _share(covered, covered + missing)
    f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
    reason = claims.reason
    if problems:
        reason += "\nCorrected by comparing the claims with the texts: " + "; ".join(problems) + "."
    return JudgeScore(f1, reason, cost, {**lists, "precision": precision, "recall": recall, "f1": f1})


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
