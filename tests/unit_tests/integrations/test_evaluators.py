"""Metrics of other libraries as evaluators, if these are installed."""

from typing import Any

import pytest

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.integrations.evaluators import answer_evaluator, deepeval_evaluator, ragas_evaluator

pytestmark = pytest.mark.full
STEPS = [{"name": "add", "args": {"a": 1}, "output": "2"}]
DATASET = [
    {
        "template_id": "t",
        "questions": [
            {"id": "right", "question_text": "1 + 1?", "reference_answer": "2", "reference_steps": [STEPS]},
            {"id": "wrong", "question_text": "1 + 1?", "reference_answer": "2", "reference_steps": [STEPS]},
        ],
    }
]
RESPONSES = {
    "right": {"question_id": "right", "actual_answer": "2", "actual_steps": [{**STEPS[0], "status": "success"}]},
    "wrong": {"question_id": "wrong", "actual_answer": "3", "actual_steps": [{"name": "sub", "status": "success"}]},
}


def scores(evaluator: Any, key: str) -> list[float]:
    results = run_evaluation(DATASET, RESPONSES, evaluators=[evaluator])
    assert not [name for result in results for name in result if name.endswith("_error")]
    return [float(result[key]) for result in results]


def test_openevals_evaluator() -> None:
    exact = pytest.importorskip("openevals.exact")
    assert scores(answer_evaluator(exact.exact_match, "same_answer"), "same_answer") == [1.0, 0.0]


def test_agentevals_evaluator_works_unchanged() -> None:
    match = pytest.importorskip("agentevals.trajectory.match")
    evaluator = match.create_trajectory_match_evaluator(trajectory_match_mode="superset")
    assert scores(evaluator, "trajectory_superset_match") == [1.0, 0.0]


def test_deepeval_metrics() -> None:
    metrics = pytest.importorskip("deepeval.metrics")
    assert scores(deepeval_evaluator(metrics.ExactMatchMetric()), "exact_match_metric") == [1.0, 0.0]


def test_ragas_metric() -> None:
    metrics = pytest.importorskip("ragas.metrics")
    assert scores(ragas_evaluator(metrics.NonLLMStringSimilarity(), "similarity"), "similarity") == [1.0, 0.0]


def test_answer_in_content_blocks_is_passed_as_text() -> None:
    def exact(*, outputs: str, reference_outputs: str, **_: str) -> dict[str, object]:
        return {"key": "equal", "score": outputs == reference_outputs}

    response = {"actual_answer": [{"type": "text", "text": "1300 "}, {"type": "text", "text": "MVA"}]}
    assert answer_evaluator(exact)({"reference_answer": "1300 MVA"}, response) == {"equal": True}
