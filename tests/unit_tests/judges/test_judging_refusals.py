"""Refusals in judged runs over HTTP, and the baseline of answer relevance."""

from typing import Any

import pytest
from support.openai_stub import OpenAIStub, StubRequest

from graphrag_eval_lc import run_benchmark

NONE, PLACE = "There is no such substation.", "ATLANTIS is in NO9."
NOTHING: dict[str, Any] = {"true_positives": [], "false_positives": [], "covered_claims": [], "false_negatives": []}


def judged(stub: OpenAIStub, reference: str, answer: str, claims: dict[str, Any]) -> dict[str, Any]:
    stub.answer = lambda request: {"reason": "So.", **claims}
    question = {"id": "q", "question_text": "Where is ATLANTIS?", "reference_answer": reference}
    config = {"llm": {"generation": {"base_url": stub.base_url, "api_key": "k"}}}
    dataset = [{"template_id": "t", "questions": [question]}]
    run = run_benchmark(lambda question: answer, dataset, config=config, progress="off")
    assert run.aggregates["micro"]["answer_refused"]["mean"] == run.results[0]["answer_refused"]
    return dict(run.results[0])


@pytest.mark.parametrize(
    ("reference", "answer", "claims", "refused", "right", "f1"),
    [
        (NONE, "I could not find ATLANTIS.", NOTHING, True, True, 1.0),
        (PLACE, "I could not find ATLANTIS.", {**NOTHING, "false_negatives": [PLACE]}, True, False, 0.0),
        (PLACE, "Which ATLANTIS do you mean?", {**NOTHING, "false_negatives": [PLACE]}, True, False, 0.0),
        (PLACE, PLACE, {**NOTHING, "true_positives": [PLACE], "covered_claims": [PLACE]}, False, None, 1.0),
        (NONE, PLACE, {**NOTHING, "false_positives": [PLACE], "false_negatives": [NONE]}, False, None, 0.0),
    ],
    ids=["both refuse", "refuses wrongly", "asks back wrongly", "answers", "answers where it should refuse"],
)
def test_refusal_is_right_if_the_reference_refuses(
    openai_stub: OpenAIStub,
    reference: str,
    answer: str,
    claims: dict[str, Any],
    refused: bool,
    right: bool | None,
    f1: float,
) -> None:
    result = judged(openai_stub, reference, answer, claims)
    assert (result["answer_refused"], result.get("answer_refusal_right"), result["answer_f1"]) == (refused, right, f1)


def test_answer_without_a_reference_costs_nothing_and_may_refuse(openai_stub: OpenAIStub) -> None:
    config = {"llm": {"generation": {"base_url": openai_stub.base_url, "api_key": "k"}}}
    dataset = [{"template_id": "t", "questions": [{"id": "q", "question_text": "Where is ATLANTIS?"}]}]
    run = run_benchmark(lambda question: "I cannot find it.", dataset, config=config, progress="off")
    assert (run.results[0]["answer_refused"], "answer_refusal_right" in run.results[0]) == (True, False)
    assert "unmeasured_samples" not in run.aggregates["totals"]
    assert openai_stub.requests == []


def test_run_embeds_the_datasets_questions_once(openai_stub: OpenAIStub) -> None:
    def answer(request: StubRequest) -> dict[str, Any]:
        return {"questions": ["Question 3?"] * 3, "noncommittal": 0}

    openai_stub.answer = answer
    endpoint = {"base_url": openai_stub.base_url, "api_key": "k"}
    config = {"llm": {"generation": endpoint, "embedding": endpoint}, "judges": {"metrics": ["answer_relevance"]}}
    questions = [{"id": f"q{number}", "question_text": f"Question {number}?"} for number in range(8)]
    run = run_benchmark(
        lambda question: "x", [{"template_id": "t", "questions": questions}], config=config, progress="off"
    )
    results = {result["question_id"]: result for result in run.results}
    assert (results["q3"]["answer_relevance"], results["q3"]["answer_relevance_rank"]) == (pytest.approx(1.0), 1)
    assert all(results[f"q{number}"]["answer_relevance_rank"] > 1 for number in (0, 1, 2, 4, 5, 6, 7))
    assert 0 < run.aggregates["micro"]["answer_relevance_baseline"]["mean"] < 1
    assert len(openai_stub.embedding_requests) == 8 + 1
