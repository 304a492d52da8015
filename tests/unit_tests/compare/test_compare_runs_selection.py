"""Runs with different scored questions are compared by their common questions, and say so."""

from pathlib import Path
from typing import Any

from graphrag_eval_lc import compare_runs, score_responses

DATASET: list[Any] = [
    {
        "template_id": each,
        "questions": [
            {"id": f"{each}{n}", "question_text": "?", "reference_steps": [[{"name": "s", "output": "1"}]]}
            for n in range(4)
        ],
    }
    for each in ("a", "b")
]


def responses_to(*ids: str) -> list[Any]:
    step = {"name": "s", "args": {}, "id": "c", "status": "success", "output": "1"}
    return [{"question_id": each, "actual_steps": [step]} for each in ids]


def test_common_questions_are_compared_and_the_others_counted(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    score_responses(DATASET, responses_to("a0", "a1", "b0"), output_dir=a, answered_only=True)
    score_responses(DATASET, responses_to("a0", "b0", "b1"), output_dir=b)
    comparison = compare_runs(a, b)
    assert [text for text in comparison.warnings if "in common" in text] == [
        "A and B have 3 questions in common; 0 of A and 5 of B are left out."
    ]
    metric = comparison.pairs[0].metric("steps_score")
    assert metric is not None
    # In the second pair, B did not skip the question without a response: it counts as 0.
    assert (metric.number_of_questions, metric.mean_a, round(metric.mean_b, 3)) == (3, 1.0, 0.667)
