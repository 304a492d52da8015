from typing import Any

import pytest

from graphrag_eval_lc.aggregation import compute_aggregates
from graphrag_eval_lc.aggregation.totals import JudgeCosts
from graphrag_eval_lc.config import EvaluationConfig


def sample(template_id: str = "t", **values: Any) -> dict[str, Any]:
    return {"template_id": template_id, "status": "success", **values}


FAILED = {"status": "error", "error": "boom"}


FAILED_CALL = {"model": "m", "error": "RateLimitError"}


def totals(*samples: dict[str, Any]) -> Any:
    return compute_aggregates(samples)["totals"]


def test_totals_hold_what_failed_questions_spent_too() -> None:
    assert totals(sample(total_tokens=10), sample(total_tokens=90, **FAILED)) == {
        "number_of_samples": 2,
        "total_tokens": 100,
    }


def test_total_of_a_metric_that_a_response_lacks_is_absent_and_says_how_many_do() -> None:
    assert totals(sample(total_tokens=10, elapsed_sec=1.5), sample(elapsed_sec=2.0)) == {
        "number_of_samples": 2,
        "elapsed_sec": 3.5,
        "unmeasured_samples": {"total_tokens": 1},
    }


def test_failed_attempts_count_with_their_time_and_tokens() -> None:
    attempts = [{"elapsed_sec": 0.5, "total_tokens": 7}, {"elapsed_sec": 1.0, "total_tokens": 3}]
    assert totals(sample(total_tokens=90, elapsed_sec=2.0, failed_attempts=attempts)) == {
        "number_of_samples": 1,
        "number_of_failed_attempts": 2,
        "total_tokens": 100,
        "elapsed_sec": 3.5,
    }


@pytest.mark.parametrize("calls", [{}, {"llm_calls": []}, {"llm_calls": [FAILED_CALL]}])
def test_failed_attempt_that_no_model_answered_spent_no_tokens(calls: dict[str, Any]) -> None:
    assert totals(sample(total_tokens=90, failed_attempts=[calls]))["total_tokens"] == 90


@pytest.mark.parametrize("calls", [[{"model": "m"}], [{"error": "cut off", "input_tokens": 5}], None])
def test_failed_attempt_with_a_call_of_unknown_tokens_makes_the_sample_unmeasured(calls: Any) -> None:
    found = totals(sample(total_tokens=90, failed_attempts=[{"llm_calls": calls}]), sample(total_tokens=1))
    assert found["unmeasured_samples"] == {"total_tokens": 1}
    assert "total_tokens" not in found


def test_failed_attempt_without_its_time_makes_the_time_unmeasured() -> None:
    assert totals(sample(elapsed_sec=1.0, failed_attempts=[{}]))["unmeasured_samples"] == {"elapsed_sec": 1}


@pytest.mark.parametrize("calls", [[], [FAILED_CALL]])
def test_question_that_no_model_answered_spent_no_tokens(calls: list[Any]) -> None:
    assert totals(sample(total_tokens=10), sample(llm_calls=calls, **FAILED))["total_tokens"] == 10


def test_totals_of_a_run_without_any_measured_tokens_are_absent_not_0() -> None:
    assert totals(sample(llm_calls=[], elapsed_sec=1.0)) == {"number_of_samples": 1, "elapsed_sec": 1.0}


def test_failed_attempts_that_are_no_list_of_records_are_passed_over() -> None:
    assert totals(sample(total_tokens=1, failed_attempts="two"), sample(total_tokens=2, failed_attempts=[3])) == {
        "number_of_samples": 2,
        "total_tokens": 3,
    }


def test_cost_is_that_of_the_agent_with_its_failed_attempts_and_of_the_judges() -> None:
    step = {"name": "retrieval", "retrieval_answer_recall_cost": 0.25, "retrieval_answer_f1_cost": 0.25}
    judged = sample(
        agent_cost=1.0,
        failed_attempts=[{"agent_cost": 2.0, "elapsed_sec": 1.0}],
        answer_correctness_cost=0.5,
        actual_steps=[step],
    )
    found = totals(judged, sample(agent_cost=4.0, **FAILED))
    assert (found["agent_cost"], found["judges_cost"], found["cost"]) == (7.0, 0.75, 7.75)


def test_agents_cost_that_is_not_known_of_all_samples_is_absent() -> None:
    unpriced = sample(total_tokens=5, llm_calls=[{"model": "mine", "total_tokens": 5}], answer_correctness_cost=0.5)
    assert totals(sample(agent_cost=1.0, total_tokens=5), unpriced) == {
        "number_of_samples": 2,
        "total_tokens": 10,
        "judges_cost": 0.5,
        "unmeasured_samples": {"agent_cost": 1},
    }


def test_question_that_no_model_answered_cost_nothing() -> None:
    assert totals(sample(agent_cost=1.0), sample(llm_calls=[FAILED_CALL], **FAILED))["agent_cost"] == 1.0


def test_judges_cost_that_is_not_known_of_all_samples_is_absent() -> None:
    found = totals(sample(answer_relevance=1.0, answer_relevance_cost=0.5), sample(answer_f1=1.0, answer_relevance=1.0))
    assert found == {"number_of_samples": 2, "unmeasured_samples": {"judges_cost": 1}}


def test_sample_that_no_judge_was_asked_about_leaves_the_judges_cost() -> None:
    assert totals(sample(answer_relevance_cost=0.5), sample(**FAILED))["judges_cost"] == 0.5


def test_run_without_costs_has_none() -> None:
    assert totals(sample(elapsed_sec=1.0)) == {"number_of_samples": 1, "elapsed_sec": 1.0}


CONFIG = EvaluationConfig.model_validate(
    {
        "custom_evaluations": [
            {"name": "tone_f1", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"polite": ""}}
        ]
    }
)


def costs(**sample: Any) -> list[float | None]:
    return list(JudgeCosts(CONFIG).of(sample))


def test_costs_of_all_judges_are_found() -> None:
    step = {
        "name": "retrieval",
        "retrieval_answer_recall_cost": 1,
        "retrieval_answer_precision_cost": 2,
        "retrieval_context_recall_cost": 4,
        "retrieval_context_precision_cost": 8,
        "retrieval_utilization_cost": 16,
    }
    found = costs(answer_correctness_cost=32, answer_relevance_cost=64, tone_f1_cost=128, actual_steps=[step, {}])
    assert sum(filter(None, found)) == 255
    assert len(found) == 8


def test_cost_that_is_a_sum_of_others_and_the_agents_are_left_out() -> None:
    step = {
        "retrieval_answer_f1_cost": 3,
        "retrieval_context_f1_cost": 3,
        "retrieval_answer_f1": 0.5,
        "tone_f1_cost": 1,
    }
    assert costs(agent_cost=1, shipping_cost=9, actual_steps=[step]) == []


@pytest.mark.parametrize(
    "judged",
    [
        {"answer_f1": 0.0},
        {"answer_correctness_reason": "no claims", "answer_f1": None},
        {"answer_relevance": 0.0},
        {"polite": False},
        {"actual_steps": [{"retrieval_utilization": 0.0}]},
    ],
)
def test_judge_that_was_asked_without_a_known_cost_is_unknown(judged: dict[str, Any]) -> None:
    assert costs(**judged) == [None]


def test_judge_that_failed_without_a_cost_cost_nobody_knows_what() -> None:
    failed = {"answer_relevance": None, "answer_relevance_error": "refused", "polite": None, "tone_f1_error": "refused"}
    assert costs(**failed) == [None]
    assert costs(**failed, answer_relevance_cost=0.5) == [0.5]


def test_judge_that_asked_nothing_cost_nothing() -> None:
    assert costs(answer_relevance=0.0, answer_relevance_cost=0.0) == [0.0]
