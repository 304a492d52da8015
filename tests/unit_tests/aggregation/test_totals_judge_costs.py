from typing import Any

import pytest

from graphrag_eval_lc.aggregation.totals import JudgeCosts
from graphrag_eval_lc.config import EvaluationConfig

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
