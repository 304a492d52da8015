"""Failed judges are summed up in one warning."""

from graphrag_eval_lc.evaluation.pipeline import JudgeFailures


def test_without_failures_there_is_no_warning() -> None:
    failures = JudgeFailures()
    assert failures.warning() is None
    failures.add({"question_id": "q1", "answer_f1": 1.0, "error": "of the agent", "actual_steps": [{"error": "x"}]})
    failures.add({"question_id": "q2", "actual_steps": None})
    failures.add({"question_id": "q3", "actual_steps": [{"comparison_error": "too large"}]})
    assert failures.warning() is None


def test_result_counts_once_and_the_first_failure_is_named() -> None:
    failures = JudgeFailures()
    failures.add({"question_id": "q1"})
    failures.add({"question_id": "q2", "actual_steps": [{"retrieval_utilization_error": "gone"}]})
    failures.add({"question_id": "q3", "answer_eval_error": "no", "answer_correctness_error": "no", "tone_error": "no"})
    warning = failures.warning()
    assert warning == (
        "a judge or a metric failed in 2 of 3 results; the first is q2, retrieval_utilization_error: gone"
    )
