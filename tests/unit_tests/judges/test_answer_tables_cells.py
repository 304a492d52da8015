import pytest

from graphrag_eval_lc.judges.answer_tables import cells_of, is_judged, score_in

RECORD = {
    "answer_true_positives": ["Pizza is flat.", "Pizza is Italian."],
    "answer_false_positives": ["Pizza has pineapple."],
    "answer_false_negatives": ["Pizza has »tomatoes«."],
    "answer_reference_claims_count": 3,
    "answer_actual_claims_count": 3,
    "answer_matching_claims_count": 2,
    "answer_correctness_reason": "One claim differs.",
}


def test_counts_reason_and_lists_have_one_column_each() -> None:
    assert cells_of(RECORD) == {
        "#Reference": "3",
        "#PTarget": "3",
        "#Matching": "2",
        "Reasoning": "One claim differs.",
        "Error": "",
        "True positives": '["Pizza is flat.", "Pizza is Italian."]',
        "False positives": '["Pizza has pineapple."]',
        "False negatives": '["Pizza has »tomatoes«."]',
    }


def test_error_leaves_the_other_columns_blank() -> None:
    cells = cells_of({"answer_correctness_error": "refused"})
    assert {column: text for column, text in cells.items() if text} == {"Error": "refused"}
    assert not is_judged(cells)


@pytest.mark.parametrize("counts", ["", "two", "2.0", "-1"])
def test_row_without_numeric_counts_is_not_judged(counts: str) -> None:
    assert is_judged(cells_of(RECORD))
    assert not is_judged({**cells_of(RECORD), "#Matching": counts})


@pytest.mark.parametrize(
    ("reference", "actual", "matching", "f1", "recall"),
    [(3, 3, 2, 2 / 3, 2 / 3), (2, 4, 2, 2 / 3, 1.0), (0, 2, 0, 0.0, None), (2, 0, 0, 0.0, 0.0), (0, 0, 0, None, None)],
)
def test_scores_are_computed_from_the_counts(
    reference: int, actual: int, matching: int, f1: float | None, recall: float | None
) -> None:
    cells = {"#Reference": str(reference), "#PTarget": str(actual), "#Matching": str(matching)}
    assert score_in(cells, "answer_f1") == (None if f1 is None else pytest.approx(f1))
    assert score_in(cells, "answer_recall") == recall
