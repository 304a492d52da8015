"""Statuses of steps and responses are case-insensitive."""

from typing import Any

import pytest

from graphrag_eval_lc import compute_aggregates, run_evaluation

DATASET: Any = [
    {
        "template_id": "t",
        "questions": [{"id": "q", "question_text": "1 + 2?", "reference_steps": [[{"name": "add", "output": "3"}]]}],
    }
]


def scored(step: Any, **response: Any) -> Any:
    actual = {"name": "add", "args": {}, "id": "c", "output": "3", **step}
    return run_evaluation(DATASET, {"q": {"actual_steps": [actual], **response}})[0]


@pytest.mark.parametrize("status", ["Success", "SUCCESS", "success", None])
def test_success_is_recognised_in_any_case(status: str | None) -> None:
    result = scored({"status": status})
    assert (result["steps_score"], result["actual_steps"][0]["status"]) == (1.0, "success")
    assert result["steps_counts"]["failed"] == 0


def test_failed_step_in_any_case_keeps_its_error_and_is_counted() -> None:
    result = scored({"status": "Error", "output": "no such graph"})
    assert (result["steps_score"], result["actual_steps"][0]["error"]) == (0.0, "no such graph")
    assert compute_aggregates([result])["per_template"]["t"]["steps"]["errors"] == {"add": 1}


def test_unknown_status_is_kept_and_counts_as_failed() -> None:
    result = scored({"status": "done"})
    assert (result["steps_score"], result["actual_steps"][0]["status"]) == (0.0, "done")


@pytest.mark.parametrize("status", ["error", "Error", "ERROR"])
def test_failed_response_in_any_case_is_an_error(status: str) -> None:
    assert scored({"status": "success"}, status=status)["status"] == "error"
    assert scored({"status": "success"}, status="Success")["status"] == "success"
