from typing import Any

import pytest

from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.report import scores
from graphrag_eval_lc.report.scores import shown_scores, template_metrics


def numbers_of(*results: Any) -> RunValues:
    numbers = RunValues()
    for at, result in enumerate(results):
        numbers.add({"question_id": f"q{at}", "template_id": "t", **result})
    return numbers


def records_of(numbers: RunValues) -> list[dict[str, Any]]:
    return scores.score_records(shown_scores(numbers), len(numbers.questions))


def test_a_failed_question_is_in_one_mean_and_not_in_the_other() -> None:
    failed = {"error": "away", "reference_steps": [[{"name": "x"}]]}
    (record,) = records_of(numbers_of({"steps_score": 1.0}, {"steps_score": 0.5}, failed))
    assert (record["mean_answered"], record["n_answered"]) == (0.75, 2)
    assert (record["mean_all"], record["n_all"]) == (0.5, 3)
    assert record["bins"] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]
    assert record["low"] <= 0.5 <= record["high"]


def test_the_interval_of_few_templates_comes_with_a_note() -> None:
    one = records_of(numbers_of({"steps_score": 1.0}, {"steps_score": 0.0}))[0]
    assert "one template" in one["interval_note"]
    several = [{"template_id": f"t{at}", "steps_score": float(at % 2)} for at in range(12)]
    assert "3 templates say too little" in records_of(numbers_of(*several[:3]))[0]["interval_note"]
    assert records_of(numbers_of(*several))[0]["interval_note"] is None


def test_without_scipy_the_means_are_there_and_the_note_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*values: object, **options: object) -> None:
        raise MissingExtraError("An interval", "stats", "scipy")

    monkeypatch.setattr(scores, "mean_interval", refuse)
    (record,) = records_of(numbers_of({"steps_score": 1.0}))
    assert (record["mean_all"], record["low"]) == (1.0, None)
    assert "graphrag-eval-lc[stats]" in record["interval_note"]


def test_the_main_scores_stand_first_and_spent_ones_are_left_out() -> None:
    values = shown_scores(
        numbers_of({"total_tokens": 5, "answer_recall": 1.0, "answer_f1": 0.5, "steps_score": 1.0, "agent_cost": 0.1})
    )
    assert list(values) == ["steps_score", "answer_f1", "answer_recall"]


def test_templates_have_columns_for_the_main_scores_and_the_users_own() -> None:
    metrics = ["steps_score", "answer_f1", "answer_recall", "retrieval_context_f1", "retrieval_context_recall", "mine"]
    assert template_metrics(metrics) == ["steps_score", "answer_f1", "retrieval_context_f1", "mine"]


def test_a_score_of_ones_own_has_a_column_whatever_its_name_begins_with() -> None:
    assert template_metrics(["answer_words", "retrieval_speed", "retrieval_ids_recall"]) == [
        "answer_words",
        "retrieval_speed",
    ]


def test_repeats_count_as_their_mean() -> None:
    numbers = RunValues()
    for repeat, score in ((1, 1.0), (2, 0.5)):
        numbers.add({"question_id": "q", "template_id": "t", "repeat": repeat, "steps_score": score})
    (record,) = records_of(numbers)
    assert (record["mean_all"], record["n_all"]) == (pytest.approx(0.75), 1)
    assert (record["low"], record["interval_note"]) == (None, "one question says nothing of how sure this is")


def test_the_macro_mean_is_over_the_templates_failed_questions_as_0() -> None:
    failed = {"template_id": "u", "error": "away", "reference_steps": [[{"name": "x"}]]}
    (record,) = records_of(numbers_of({"steps_score": 1.0}, {"steps_score": 0.5}, failed))
    assert record["macro"] == 0.375


def test_questions_without_a_score_are_counted() -> None:
    steps, judged = records_of(numbers_of({"steps_score": 1.0, "answer_f1": 1.0}, {"steps_score": 1.0}, {}))
    assert (steps["without"], judged["without"]) == (1, 2)
