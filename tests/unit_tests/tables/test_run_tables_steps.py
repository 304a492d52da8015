from typing import Any

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.tables import Results, steps_table

DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {
                "id": "q",
                "question_text": "1 + 1?",
                "reference_steps": [[{"name": "now", "output": "12"}], [{"name": "add", "output": "2"}]],
            }
        ],
    }
]
STEPS: list[dict[str, Any]] = [
    {"name": "now", "args": {}, "id": "c1", "status": "success", "output": "12", "elapsed_sec": 0.5},
    {"name": "add", "args": {"numbers": [1, 1]}, "id": "c2", "status": "error", "error": "away"},
    {"name": "add", "args": {"numbers": [1, 1]}, "id": "c3", "status": "success", "output": "2", "retrieval_x": 0.25},
]


def results(steps: list[dict[str, Any]]) -> Results:
    responses: Any = [{"question_id": "q", "actual_steps": steps}]
    return run_evaluation(DATASET, responses)


def test_each_call_is_a_row_with_its_matched_reference_step() -> None:
    frame = steps_table(results(STEPS)).to_pandas()
    assert frame["question_id"].tolist() == ["q"] * 3
    assert frame["position"].tolist() == [0, 1, 2]
    assert frame["name"].tolist() == ["now", "add", "add"]
    assert frame["matched"].tolist() == [False, False, True]
    assert frame.loc[2, ["reference_group", "reference_step", "reference_score"]].tolist() == [1, 0, 1.0]
    assert frame["reference_group"].isna().tolist() == [True, True, False]


def test_match_of_a_call_without_id_is_found_by_position() -> None:
    steps = [{key: value for key, value in step.items() if key != "id"} for step in STEPS]
    assert [row["matched"] for row in steps_table(results(steps)).rows] == [False, False, True]


def test_match_of_a_call_with_a_null_id_is_found_by_position() -> None:
    steps = [{**step, "id": None} for step in STEPS]
    assert [row["matched"] for row in steps_table(results(steps)).rows] == [False, False, True]


def test_only_the_matching_call_with_a_duplicate_id_is_matched() -> None:
    steps = [{**STEPS[2], "output": "3"}, *STEPS, {**STEPS[0], "status": "error"}]
    rows = steps_table(results([{**step, "id": "c"} for step in steps])).rows
    assert [row["matched"] for row in rows] == [False, False, False, True, False]
    assert [row.get("reference_group") for row in rows] == [None, None, None, 1, None]


def test_row_has_measured_values_and_the_output_length() -> None:
    rows = steps_table(results(STEPS)).rows
    assert rows[0]["elapsed_sec"] == 0.5
    assert rows[0]["output_characters"] == 2
    assert rows[1]["error"] == "away"
    assert "output_characters" not in rows[1]
    assert rows[2]["retrieval_x"] == 0.25
    assert rows[2]["args"] == '{"numbers": [1, 1]}'
    assert not any("output" in row for row in rows)


def test_result_without_steps_has_columns_but_no_rows() -> None:
    table = steps_table([{"question_id": "q", "template_id": "t"}])
    assert table.rows == []
    assert table.columns[:5] == ("question_id", "repeat", "template_id", "position", "name")
