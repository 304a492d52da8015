from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.tables import questions_table

RESULT: dict[str, Any] = {
    "template_id": "t",
    "question_id": "q1",
    "question_text": "1 + 1?",
    "reference_steps": [[{"name": "add", "output": "2"}]],
    "actual_steps": [
        {"name": "add", "retrieval_answer_f1": 0.5, "retrieval_answer_f1_cost": 0.25, "retrieval_error": "no"},
        {"name": "add", "retrieval_answer_f1": 1.0, "retrieval_answer_f1_cost": 0.5, "retrieval_ids_ndcg@10": 0.75},
    ],
    "status": "success",
    "steps_score": 1.0,
    "total_tokens": 12,
    "steps_counts": {"extra": 1, "repeated": 0, "failed": 0},
    "capture_warnings": ["cut"],
    "level": "easy",
    "answer_true_positives": ["2"],
    "is_polite": True,
}


def test_row_has_all_measured_values() -> None:
    (row,) = questions_table([RESULT]).rows
    assert row == {
        "question_id": "q1",
        "repeat": 1,
        "template_id": "t",
        "status": "success",
        "steps_total": 2,
        "retrieval_answer_f1": 0.75,
        "retrieval_answer_f1_cost": 0.75,
        "retrieval_ids_ndcg@10": 0.75,
        "steps_extra": 1,
        "steps_repeated": 0,
        "steps_failed": 0,
        "capture_warnings": 1,
        "question_text": "1 + 1?",
        "steps_score": 1.0,
        "total_tokens": 12,
        "level": "easy",
        "is_polite": True,
    }


def test_columns_are_ids_then_numbers_then_texts() -> None:
    columns = questions_table([RESULT]).columns
    assert columns[:4] == ("question_id", "repeat", "template_id", "status")
    assert columns[-2:] == ("question_text", "level")


def test_unmeasured_values_are_absent_and_not_0() -> None:
    frame = questions_table([RESULT, {"template_id": "t", "question_id": "q2", "status": "success"}]).to_pandas()
    assert frame["steps_score"].isna().tolist() == [False, True]
    assert frame["total_tokens"].isna().tolist() == [False, True]


def test_repeats_have_separate_rows() -> None:
    frame = questions_table([{**RESULT, "repeat": repeat} for repeat in (1, 2)]).to_pandas()
    assert frame["repeat"].tolist() == [1, 2]


def test_invalid_repeat_or_status_defaults_to_the_first_and_success() -> None:
    (row,) = questions_table([{**RESULT, "repeat": None, "status": None}]).rows
    assert (row["repeat"], row["status"]) == (1, "success")


def test_failed_question_has_its_status_and_error() -> None:
    dataset: Any = [{"template_id": "t", "questions": [{"id": "q", "question_text": "?"}]}]
    responses: Any = {"q": {"error": "lost"}}
    (row,) = questions_table(run_evaluation(dataset, responses)).rows
    assert (row["status"], row["error"]) == ("error", "lost")
    (row,) = questions_table([{"template_id": "t", "question_id": "q", "error": "by hand"}]).rows
    assert row["status"] == "error"


def test_without_results_there_are_only_id_columns() -> None:
    assert list(questions_table([]).to_pandas().columns) == ["question_id", "repeat", "template_id", "status"]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.text(max_size=8), JSON, max_size=4), max_size=4))
def test_cells_are_scalars_whatever_a_result_contains(further: list[dict[str, Any]]) -> None:
    results = [
        {**keys, "question_id": "q", "template_id": "t", "actual_steps": [], "steps_counts": {}} for keys in further
    ]
    table = questions_table(results)
    assert len(table.rows) == len(results)
    assert all(isinstance(value, bool | int | float | str) for row in table.rows for value in row.values())
