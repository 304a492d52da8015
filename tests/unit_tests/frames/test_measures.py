"""What the columns of a table of questions mean."""

import pytest

from graphrag_eval_lc.frames import Table
from graphrag_eval_lc.frames.measures import is_spent, means, measured, scores

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


def test_scores_are_the_numbers_that_are_neither_spent_nor_counted() -> None:
    assert scores(Table.of(ROWS)) == ["steps_score", "retrieval_ids_ndcg@10", "is_polite"]


def test_means_are_over_the_answered_that_have_the_metric() -> None:
    assert means(ROWS, ["steps_score", "is_polite", "retrieval_ids_ndcg@10", "answer_f1"]) == {
        "steps_score": 0.5,
        "is_polite": 1.0,
    }


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1.0), (True, 1.0), (0.25, 0.25), (float("inf"), None), (float("nan"), None), ("1", None), (None, None)],
)
def test_only_finite_numbers_are_measured(value: object, number: float | None) -> None:
    assert measured(value) == number


def test_what_was_spent_is_told_by_its_name() -> None:
    assert [is_spent(name) for name in ("agent_cost", "elapsed_sec", "input_tokens", "steps_score")] == [True] * 3 + [
        False
    ]
