from typing import Any

import pytest

from graphrag_eval_lc.aggregation import compute_aggregates, is_error
from graphrag_eval_lc.aggregation.sample_values import OF_STEPS, Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry import MetricSpec


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ({"status": "success"}, False),
        ({"status": "success", "error": None}, False),
        ({"status": "error"}, True),
        ({"error": "boom"}, True),
        ({}, False),
    ],
)
def test_result_with_an_error_or_its_status_failed(result: dict[str, Any], failed: bool) -> None:
    assert is_error(result) is failed


def test_metrics_are_in_the_order_of_graphrag_eval_with_the_bound_and_the_parts_of_a_score_behind_it() -> None:
    metrics = Metrics(EvaluationConfig())
    assert metrics.names() == (
        "answer_recall",
        "answer_precision",
        "answer_relevance",
        "answer_f1",
        "steps_score",
        "steps_score_upper",
        "steps_recall",
        "steps_precision",
        "steps_f1",
        "steps_order",
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "elapsed_sec",
        "agent_cost",
        "answer_correctness_cost",
        "answer_relevance_cost",
    )
    assert OF_STEPS == (
        "retrieval_answer_precision",
        "retrieval_answer_recall",
        "retrieval_answer_f1",
        "retrieval_context_recall",
        "retrieval_context_precision",
        "retrieval_context_f1",
        "retrieval_utilization",
        "retrieval_answer_precision_cost",
        "retrieval_answer_recall_cost",
        "retrieval_answer_f1_cost",
        "retrieval_context_recall_cost",
        "retrieval_context_precision_cost",
        "retrieval_context_f1_cost",
        "retrieval_utilization_cost",
    )


def micro(*results: dict[str, Any]) -> dict[str, Any]:
    samples = ({"template_id": "t", "question_id": str(index), **result} for index, result in enumerate(results))
    summary: dict[str, Any] = compute_aggregates(samples, {"aggregates": {"errors": "include"}})["micro"]
    return summary


FAILED = {"error": "away", "custom_metrics": ["hops", "saved_sec", "lost_usd"]}


def test_failed_question_counts_as_the_worst_value(metrics: Any) -> None:
    metrics(MetricSpec(key="hops", lower_is_better=True, range=(0.0, 9.0)))
    metrics(MetricSpec(key="saved_sec", unit="seconds", lower_is_better=True, range=(0.0, None)))
    metrics(MetricSpec(key="lost_usd", kind="spent", unit="usd", lower_is_better=True, range=(0.0, None)))
    statistics = micro(
        {"steps_score": 1.0, "hops": 3, "saved_sec": 8, "lost_usd": 1, "custom_metrics": FAILED["custom_metrics"]},
        {"steps_score": 1.0, "hops": 1, "saved_sec": 2, "lost_usd": 3, **FAILED},
    )
    means = {metric: statistics[metric]["mean"] for metric in ("steps_score", "hops", "saved_sec", "lost_usd")}
    assert means == {"steps_score": 0.5, "hops": 6, "saved_sec": 8, "lost_usd": 2}


def test_judged_steps_of_a_failed_question_count_as_0_and_cost_what_they_cost() -> None:
    step = {"name": "retrieval", "retrieval_utilization": 0.5, "retrieval_utilization_cost": 0.25}
    statistics = micro({"actual_steps": [step]}, {"actual_steps": [step], "error": "away"})
    assert statistics["retrieval_utilization"]["mean"] == statistics["retrieval_utilization_cost"]["mean"] == 0.25
