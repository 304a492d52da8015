"""Votes on claims: the same claims are put to a model again, or to other models, and the majority decides on each."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.model import ask_number
from graphrag_eval_lc.judges.model_interface import ClosedAnswer, JudgeModel, NotAskedError, cost_of, paid_error
from graphrag_eval_lc.judges.prompts import load_prompt


class ClaimVote(ClosedAnswer):
    """Whether the other answer agrees with a claim."""

    claim: str
    agrees: Literal[0, 1]


class ClaimVotes(ClosedAnswer):
    """The votes on all claims: what a model answers."""

    reason: str
    votes: list[ClaimVote]


@dataclass(frozen=True, slots=True)
class Voter:
    """A model that votes, and how many votes it cast before: from the second on the cache keeps each."""

    model: JudgeModel
    earlier: int = 0


def voters_of(judge: JudgeModel, votes: int, others: Sequence[JudgeModel]) -> list[Voter]:
    """Return who votes next to the judge's own sorting: it again, ``votes`` in all, and each other model once."""
    return [*(Voter(judge, earlier) for earlier in range(votes - 1)), *map(Voter, others)]


@dataclass(frozen=True, slots=True)
class Election:
    """The outcome of votes on claims.

    Attributes:
        agrees: Of each claim whether more than half of the votes say that the other answer agrees.
        agreement: The mean share of votes that say what the majority of their claim says, above 0.5 to 1; None without
            claims.
        record: Of each claim ``claim``, ``of`` (``answer`` or ``reference``), ``agrees`` and ``votes``, both counts.
        costs: USD of the votes.
        failed: Why votes are missing.
        is_planned: Whether nothing was asked.
    """

    agrees: Mapping[tuple[str, str], bool]
    agreement: float | None
    record: Sequence[Mapping[str, Any]]
    costs: Sequence[float | None]
    failed: Sequence[str]
    is_planned: bool = False


async def aelected(voters: Sequence[Voter], message: str, own: Mapping[tuple[str, str], bool]) -> Election:
    """Return what the majority says of claims.

    Args:
        voters: Who votes; all are asked at once.
        message: The message with both answers, with which the claims were found.
        own: By claim, as its side (``answer`` or ``reference``) and its text, whether the judge itself found that the
            other answer agrees, which is a vote too.

    Raises:
        NotAskedError: No more may be asked.
    """
    # In an order that says nothing of the lists in which the claims were.
    shuffled = sorted(own, key=lambda claim: sha256("\n".join(claim).encode("utf-8", "surrogatepass")).digest())
    names = {
        f"{side[0].upper()}{number}": claim
        for side in ("answer", "reference")
        for number, claim in enumerate((claim for claim in shuffled if claim[0] == side), start=1)
    }
    prompt = load_prompt("answer_correctness_vote")
    ballot = message + "\n\n" + prompt.message(claims="\n".join(f"{name}: {text}" for name, (_, text) in names.items()))
    said = await asyncio.gather(*(_avotes(voter, prompt.system, ballot) for voter in voters))
    counts = {claim: [agrees] for claim, agrees in own.items()}
    costs, failed = list[float | None](), list[str]()
    for cast in said:
        if isinstance(cast, JudgeError):
            costs.append(cost_of(cast))
            failed.append(str(cast))
            continue
        costs.append(cast.cost)
        of_voter = {vote.claim.strip().rstrip(":").upper(): bool(vote.agrees) for vote in cast.value.votes}
        for name, claim in names.items():
            if name in of_voter:
                counts[claim].append(of_voter[name])
    if (ended := next((cast for cast in said if isinstance(cast, NotAskedError)), None)) is not None:
        others = [cost for cast, cost in zip(said, costs, strict=True) if cast is not ended]
        raise paid_error(ended, others)
    agrees = {claim: 2 * sum(votes) > len(votes) for claim, votes in counts.items()}
    shares = [max(sum(votes), len(votes) - sum(votes)) / len(votes) for votes in counts.values()]
    record = [
        {"claim": text, "of": side, "agrees": sum(votes), "votes": len(votes)} for (side, text), votes in counts.items()
    ]
    is_planned = any(not isinstance(cast, JudgeError) and cast.is_planned for cast in said)
    return Election(agrees, sum(shares) / len(shares) if shares else None, record, costs, failed, is_planned)


async def _avotes(voter: Voter, system: str, ballot: str) -> Any:
    """Return a voter's answer, or the error for which it has none."""
    # In a task of its own, so that nobody else sees the number.
    ask_number.set((ask_number.get() - 1) * _MOST_VOTES + voter.earlier + 1)
    try:
        return await voter.model.aask(system, ballot, ClaimVotes)
    except JudgeError as problem:
        return problem


_MOST_VOTES = 1000  # of one model, so that the votes of another ask are others
