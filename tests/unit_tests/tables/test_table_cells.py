"""The meaning of columns in a table of questions."""

import pytest

from graphrag_eval_lc.tables import Table
from graphrag_eval_lc.tables.table import means, measured, scores

ROWS = [
    {
        "status": "success",
        "repeat": 1,
        "steps_total": 3,
        "steps_score": 1.0,
        "answer_f1": float("nan"),
        "total_tokens": 5,
    },
    {"status": "error", "steps_score": 0.5, "note": "x", "retrieval_ids_ndcg@10": 0.5, "answer_actual_claims_count": 2},
    {"status": "success", "steps_score": 0.0, "is_polite": True, "judge_cost": 0.1, "llm_calls": 2},
]


def test_scores_are_numbers_that_are_neither_spent_nor_counts() -> None:
    assert scores(Table.of(ROWS)) == ["steps_score", "retrieval_ids_ndcg@10", "is_polite"]


def test_means_are_over_answered_questions_with_the_metric() -> None:
    assert means(ROWS, ["steps_score", "is_polite", "retrieval_ids_ndcg@10", "answer_f1"]) == {
        "steps_score": 0.5,
        "is_polite": 1.0,
    }


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1.0), (True, 1.0), (0.25, 0.25), (float("inf"), None), (float("nan"), None), ("1", None), (None, None)],
)
def test_only_finite_numbers_count(value: object, number: float | None) -> None:
    assert measured(value) == number


@pytest.mark.parametrize("key", ["saved_sec", "word_count", "steps_taken", "spared_tokens"])
def test_undeclared_number_is_a_score_unless_it_is_a_cost(key: str) -> None:
    assert scores(Table.of([{"status": "success", key: 1.0, f"{key}_cost": 0.5}])) == [key]


def test_other_declared_metrics_are_not_scores() -> None:
    row = {"elapsed_sec": 1.0, "agent_cost": 0.1, "retrieval_missing": 2, "answer_true_positives": 3, "steps_extra": 1}
    assert scores(Table.of([{"status": "success", **row}])) == []
