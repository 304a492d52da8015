from typing import Any

import pytest
from support.report_samples import result

from graphrag_eval_lc.view import RunView, run_view


def repeats_of(*results: dict[str, Any]) -> RunView:
    return run_view([result(**each) for each in results])


def test_pass_at_k_and_pass_hat_k_agree_with_the_aggregates() -> None:
    scores = {"q1": (1.0, 1.0), "q2": (1.0, 0.0)}
    results = [
        {"question_id": question, "repeat": repeat, "steps_score": score}
        for question, question_scores in scores.items()
        for repeat, score in enumerate(question_scores, start=1)
    ]
    repeats = repeats_of(*results)
    assert repeats.chances == (
        ("pass@1", 0.75),
        ("pass@2", 1.0),
        ("pass^2", 0.5),
    )
    assert repeats.chances_note == "passed: steps_score ≥ 1"


@pytest.mark.parametrize("count", [1, 2])
def test_questions_without_repeats_have_no_pass_rates(count: int) -> None:
    repeats = repeats_of(*({"question_id": str(at), "steps_score": 1.0} for at in range(count)))
    assert (repeats.chances, repeats.chances_note) == ((), "")


def test_failed_sample_does_not_pass_and_unmeasured_question_is_excluded() -> None:
    repeats = repeats_of(
        {"question_id": "a", "steps_score": 1.0},
        {"question_id": "a", "repeat": 2, "error": "away"},
        {"question_id": "b", "steps_score": None},
    )
    assert repeats.chances == (
        ("pass@1", 0.5),
        ("pass@2", 1.0),
        ("pass^2", 0.0),
    )
    assert repeats.chances_note == "passed: steps_score ≥ 1; 1 of 2 questions were not measured"
