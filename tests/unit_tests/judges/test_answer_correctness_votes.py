"""Voting on claims over HTTP: the first request finds the claims, further ones vote on them."""

import re
from typing import Any

import pytest
from support.openai_stub import OpenAIStub, StubRequest, refusal

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.cache import JudgeCache
from graphrag_eval_lc.judges.judging import Judges
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.prices import Pricing

QUESTION = {
    "id": "q",
    "question_text": "What feeds OSLO?",
    "reference_answer": "HASLE feeds OSLO, and OSLO feeds ASKER.",
}
DATASET = [{"template_id": "t", "questions": [QUESTION]}]
RESPONSE = {"question_id": "q", "actual_answer": "HASLE feeds OSLO, and ASKER feeds OSLO.", "actual_steps": []}
RIGHT, WRONG, MISSING = "HASLE feeds OSLO.", "ASKER feeds OSLO.", "OSLO feeds ASKER."
FOUND = {
    "reason": "So.",
    "true_positives": [RIGHT, WRONG],
    "false_positives": [],
    "covered_claims": [RIGHT, MISSING],
    "false_negatives": [],
}


class VotingStub:
    """Stub that finds ``FOUND`` and votes for all claims except the ones listed for each vote in turn."""

    def __init__(self, stub: OpenAIStub, *against: set[str]) -> None:
        self._against = list(against)
        self.vote_requests: list[StubRequest] = []
        stub.answer = self

    def __call__(self, request: StubRequest) -> dict[str, Any]:
        if "votes" not in (request.schema or {})["properties"]:
            return FOUND
        self.vote_requests.append(request)
        against = self._against[(len(self.vote_requests) - 1) % len(self._against)]
        claims = re.findall(r"^([AR]\d+): (.*)$", request.user, re.MULTILINE)
        return {
            "reason": "So.",
            "votes": [{"claim": name, "agrees": int(text not in against)} for name, text in claims],
        }


def config_of(stub: OpenAIStub, **judges: Any) -> dict[str, Any]:
    generation = {"base_url": stub.base_url, "api_key": "k"}
    return {"llm": {"generation": generation}, "judges": {"max_retries": 0, "max_concurrency": 1, **judges}}


def judged(stub: OpenAIStub, **judges: Any) -> dict[str, Any]:
    [result] = run_evaluation(DATASET, [RESPONSE], config_of(stub, **judges))
    return dict(result)


def test_without_votes_one_request_decides(openai_stub: OpenAIStub) -> None:
    VotingStub(openai_stub, set())
    result = judged(openai_stub)
    assert (result["answer_f1"], len(openai_stub.requests)) == (1.0, 1)
    assert "answer_correctness_agreement" not in result


def test_majority_decides_on_each_claim(openai_stub: OpenAIStub) -> None:
    voting = VotingStub(openai_stub, {WRONG, MISSING}, {WRONG, MISSING})
    result = judged(openai_stub, votes=3)
    assert (result["answer_true_positives"], result["answer_false_positives"]) == ([RIGHT], [WRONG])
    assert (result["answer_covered_claims"], result["answer_false_negatives"]) == ([RIGHT], [MISSING])
    assert (result["answer_precision"], result["answer_recall"]) == (0.5, 0.5)
    # 3 of 3 votes for two claims, 2 of 3 against the two others.
    assert result["answer_correctness_agreement"] == pytest.approx((1 + 1 + 2 / 3 + 2 / 3) / 4)
    assert {(each["claim"], each["of"], each["agrees"], each["votes"]) for each in result["answer_claim_votes"]} == {
        (RIGHT, "answer", 3, 3),
        (WRONG, "answer", 1, 3),
        (RIGHT, "reference", 3, 3),
        (MISSING, "reference", 1, 3),
    }
    assert len(voting.vote_requests) == 2
    assert voting.vote_requests[0].user == voting.vote_requests[1].user
    assert result["answer_correctness_cost"] == pytest.approx(3 * 0.00021)


def test_minority_changes_only_the_agreement(openai_stub: OpenAIStub) -> None:
    VotingStub(openai_stub, {WRONG}, set())
    result = judged(openai_stub, votes=3)
    assert result["answer_f1"] == 1.0
    assert result["answer_correctness_agreement"] == pytest.approx((3 + 2 / 3) / 4)


def test_other_models_vote_once_each_and_are_recorded(openai_stub: OpenAIStub) -> None:
    voting = VotingStub(openai_stub, {WRONG, MISSING})
    voters = [{"model": name, "base_url": openai_stub.base_url, "api_key": "k"} for name in ("gpt-4o", "gpt-4.1")]
    result = judged(openai_stub, voters=voters)
    assert [ballot.body["model"] for ballot in voting.vote_requests] == ["gpt-4o", "gpt-4.1"]
    assert result["answer_f1"] == 0.5
    judges = Judges.from_config(load_config(config_of(openai_stub, voters=voters)))
    assert judges is not None
    assert judges.describe()["voters"] == ["openai:gpt-4o", "openai:gpt-4.1"]


def test_tie_is_not_a_majority_and_a_failed_vote_is_missing(openai_stub: OpenAIStub) -> None:
    VotingStub(openai_stub, {WRONG})
    openai_stub.chat_faults.extend([None, refusal()])
    result = judged(openai_stub, votes=3)
    assert result["answer_false_positives"] == [WRONG]
    assert {each["votes"] for each in result["answer_claim_votes"]} == {2}
    assert "A vote is missing: " in result["answer_correctness_reason"]
    assert "refused to answer" in result["answer_correctness_reason"]


def test_claims_that_a_vote_omits_or_invents_are_not_counted(openai_stub: OpenAIStub) -> None:
    openai_stub.answers.extend(
        [FOUND, {"reason": "", "votes": [{"claim": "a1:", "agrees": 0}, {"claim": "Z9", "agrees": 0}]}]
    )
    result = judged(openai_stub, votes=2)
    assert sorted(each["votes"] for each in result["answer_claim_votes"]) == [1, 1, 1, 2]


def test_majority_cannot_accept_a_number_missing_from_the_reference(openai_stub: OpenAIStub) -> None:
    claim = "OSLO has 7 lines."
    found = {
        "reason": "So.",
        "true_positives": [],
        "false_positives": [claim],
        "covered_claims": [],
        "false_negatives": ["OSLO has 3 lines."],
    }
    openai_stub.answer = lambda request: (
        found if "votes" not in (request.schema or {})["properties"]
        else {"reason": "So.", "votes": [{"claim": name, "agrees": 1} for name in ("A1", "R1")]}
    )  # fmt: skip
    question = {"id": "q", "question_text": "How many lines has OSLO?", "reference_answer": "OSLO has 3 lines."}
    response = {**RESPONSE, "actual_answer": "OSLO has 7 lines."}
    [result] = run_evaluation(
        [{"template_id": "t", "questions": [question]}], [response], config_of(openai_stub, votes=5)
    )
    assert (result["answer_false_positives"], result["answer_f1"]) == ([claim], 0.0)


async def test_votes_are_cached_and_scoring_again_sends_nothing(openai_stub: OpenAIStub, tmp_path: Any) -> None:
    VotingStub(openai_stub, {WRONG}, set())
    cache = JudgeCache(tmp_path / "cache.jsonl")
    agreements = []
    for _ in range(2):
        judges = Judges.from_config(load_config(config_of(openai_stub, votes=3)), cache=cache)
        assert judges is not None
        result: dict[str, Any] = {**RESPONSE, **{key: QUESTION[key] for key in ("question_text", "reference_answer")}}
        await judges.ajudge(result, QUESTION, RESPONSE)
        agreements.append(result["answer_correctness_agreement"])
        await judges.aclose()
    assert agreements[0] == agreements[1] == pytest.approx((3 + 2 / 3) / 4)
    assert len(openai_stub.requests) == 3


def test_answer_is_not_judged_if_the_budget_ends_before_the_votes(openai_stub: OpenAIStub) -> None:
    VotingStub(openai_stub, set())

    async def judge() -> dict[str, Any]:
        judges = Judges.from_config(load_config(config_of(openai_stub, votes=3)), budget=Budget(max_cost=0.0001))
        assert judges is not None
        result: dict[str, Any] = {**RESPONSE, **{key: QUESTION[key] for key in ("question_text", "reference_answer")}}
        await judges.ajudge(result, QUESTION, RESPONSE)
        return result

    result = run_sync(judge)
    assert "answer_f1" not in result
    assert "is not asked" in result["answer_correctness_error"]
    assert result["answer_correctness_cost"] == pytest.approx(0.00021)


def test_dry_run_counts_the_votes(openai_stub: OpenAIStub) -> None:
    plan = RequestPlan(Pricing())

    async def judge() -> None:
        judges = Judges.from_config(load_config(config_of(openai_stub, votes=3)), plan=plan)
        assert judges is not None
        result: dict[str, Any] = {**RESPONSE, **{key: QUESTION[key] for key in ("question_text", "reference_answer")}}
        await judges.ajudge(result, QUESTION, RESPONSE)

    run_sync(judge)
    assert (plan.requests, openai_stub.requests) == (3, [])
