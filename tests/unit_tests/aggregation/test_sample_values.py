"""Values read from a single result: its metrics, the cost of judges, and the reason for a lost score."""

from typing import Any

import pytest

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.aggregation import is_error, reason_of
from graphrag_eval_lc.aggregation.sample_values import (
    OF_STEPS,
    Metrics,
    grading_change,
    grading_note,
    uncertainty_texts,
)
from graphrag_eval_lc.aggregation.statistics import JudgeCosts
from graphrag_eval_lc.config import EvaluationConfig


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
def test_result_with_an_error_or_error_status_failed(result: dict[str, Any], failed: bool) -> None:
    assert is_error(result) is failed


# In graphrag-eval's order, with this package's metrics in between.
OF_GRAPHRAG_EVAL = """
    answer_recall answer_precision answer_relevance answer_f1 steps_score input_tokens output_tokens total_tokens
    elapsed_sec
"""
OF_ITS_STEPS = """
    retrieval_answer_precision retrieval_answer_recall retrieval_answer_f1 retrieval_context_recall
    retrieval_context_precision retrieval_context_f1
"""


def test_metrics_follow_the_order_of_graphrag_eval_with_costs_last() -> None:
    names = Metrics(EvaluationConfig()).names()
    for found, wanted in ((names, OF_GRAPHRAG_EVAL.split()), (OF_STEPS, OF_ITS_STEPS.split())):
        assert [name for name in found if name in wanted] == wanted
        costs = [name for name in found if name.endswith("_cost") and name != "agent_cost"]
        assert [*found[-len(costs) :]] == costs
    parts = [f"steps_{name}" for name in ("score", "score_upper", "recall", "precision", "f1", "order")]
    assert [name for name in names if name.startswith("steps_")] == parts
    assert names.index("steps_order") - names.index("steps_score") == 5


TONE = {"name": "tone_f1", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"polite": ""}}
FAILED = {"answer_relevance": None, "answer_relevance_error": "refused", "polite": None, "tone_f1_error": "refused"}


@pytest.mark.parametrize(
    ("result", "costs"),
    [
        ({"answer_correctness_cost": 32, "answer_relevance_cost": 64, "tone_f1_cost": 128}, [32, 64, 128]),
        (
            {
                "actual_steps": [
                    {"retrieval_answer_recall_cost": 1, "retrieval_answer_precision_cost": 2},
                    {"retrieval_context_recall_cost": 4, "retrieval_context_precision_cost": 8},
                    {"retrieval_utilization_cost": 16},
                    {},
                ]
            },
            [1, 2, 4, 8, 16],
        ),
        # A cost that is the sum of others, and judges without a cost.
        ({"actual_steps": [{"retrieval_answer_f1_cost": 3, "retrieval_context_f1_cost": 3, "tone_f1_cost": 1}]}, []),
        ({"agent_cost": 1, "shipping_cost": 9}, []),
        # Called, at an unknown cost.
        ({"answer_f1": 0.0}, [None]),
        ({"answer_correctness_reason": "no claims", "answer_f1": None}, [None]),
        ({"answer_relevance": 0.0}, [None]),
        ({"polite": False}, [None]),
        ({"actual_steps": [{"retrieval_utilization": 0.0}]}, [None]),
        (FAILED, [None]),
        ({**FAILED, "answer_relevance_cost": 0.5}, [0.5]),
        ({"answer_relevance": 0.0, "answer_relevance_cost": 0.0}, [0.0]),
    ],
)
def test_each_called_judge_has_a_cost_or_none(result: dict[str, Any], costs: list[float | None]) -> None:
    found = JudgeCosts(EvaluationConfig.model_validate({"custom_evaluations": [TONE]})).of(result)
    assert sorted(found, key=str) == sorted(costs, key=str)


# --- the reason for a score ------------------------------------------------------------------------------------------

VAIN = {"score": 0.0, "outcome": "mismatch", "matched": False, "reason": "it found nothing", "nearest": "c1"}
UNCALLED = {"score": 0.0, "outcome": "mismatch", "matched": False, "reason": "no call"}
FITTING = {"score": 1.0, "outcome": "match", "matched": True, "reason": "the same"}
ASKED = {**UNCALLED, "query": {"sentence": "It asks a."}}
MORE_CALLS = {"steps_score": 0.8, "steps_precision": 2 / 3}


@pytest.mark.parametrize(
    ("diagnoses", "more", "reason"),
    [
        ({"find": UNCALLED, "lookup": UNCALLED}, {}, "lookup: no call"),
        ({"search": VAIN, "query": UNCALLED}, {}, "search: it found nothing; query was not called"),
        ({"search": FITTING, "query": UNCALLED}, {}, "query: no call"),
        ({"query": ASKED}, {"status": "error", "error": "E: 1"}, "query: It asks a. The run failed: E: 1"),
        ({"look": FITTING}, MORE_CALLS, "all is fulfilled, but with more calls than needed: steps_precision is 0.67"),
        ({"look": FITTING}, {**MORE_CALLS, "steps_score": 1.0}, ""),
        ({"look": {**FITTING, "score": 0.5, "reason": "half of it"}}, MORE_CALLS, "look: half of it"),
        ({}, {"error": "a\nb"}, "a b"),
        ({}, {"error": "x" * 1000}, "x" * 270 + "…"),
    ],
)
def test_reason_is_that_of_the_last_unmatched_step(diagnoses: Any, more: Any, reason: str) -> None:
    groups = [[{"name": name}] for name in diagnoses]
    assert (
        reason_of({"reference_steps": groups, "steps_diagnosis": [[each] for each in diagnoses.values()], **more})
        == reason
    )


def test_full_score_has_no_reason() -> None:
    reference = [[{"name": "lookup", "output": "2"}]]
    question = {"id": "q", "question_text": "?", "reference_steps": reference}
    step = {"name": "lookup", "args": {}, "status": "success", "output": "2"}
    dataset: Any = [{"template_id": "t", "questions": [question]}]
    assert reason_of(run_evaluation(dataset, [{"question_id": "q", "actual_steps": [step]}])[0]) == ""  # type: ignore[list-item, arg-type]


@pytest.mark.parametrize("config", [{}, {"steps": {}}, {"steps": None}, {"steps": {"grading": "binary"}}])
def test_grading_is_binary_by_default(config: dict[str, object]) -> None:
    graded = {"steps": {"grading": "graded"}}
    assert grading_note(EvaluationConfig()) is None
    assert grading_change(config, {"steps": {"grading": "binary"}}) is None
    assert "graded now and were binary before" in str(grading_change(config, graded))
    assert "binary now and were graded before" in str(grading_change(graded, config))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((0, 0, 0.5, 0.5), None),
        ((1, 0, 0.5, 0.5), "1 reference step is undecided and counts 0."),
        ((0, 0, 0.5, 0.75), "some comparisons are undecided and count 0: steps_score is between 0.500 and 0.750."),
        (
            (0, 2),
            "2 outputs end before the end, and the rest is not known; raise the length limit of the tool, or of the "
            "capture (max_output_chars).",
        ),
    ],
)
def test_uncertainty_is_explained(numbers: Any, text: str | None) -> None:
    assert uncertainty_texts(*numbers) == ([] if text is None else [text])
