from dataclasses import replace
from typing import Any

import pytest

from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.config import RepeatsConfig
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.view import run_view, scores
from graphrag_eval_lc.view.scores import ScoreLine, shown_scores, whole_scores


def numbers_of(*results: Any) -> RunValues:
    numbers = RunValues()
    for at, result in enumerate(results):
        numbers.add({"question_id": f"q{at}", "template_id": "t", **result})
    return numbers


def lines_of(numbers: RunValues) -> tuple[ScoreLine, ...]:
    return scores.score_lines(shown_scores(numbers), len(numbers.questions))


def test_failed_question_counts_only_in_the_mean_over_all() -> None:
    failed = {"error": "away", "reference_steps": [[{"name": "x"}]]}
    (line,) = lines_of(numbers_of({"steps_score": 1.0}, {"steps_score": 0.5}, failed))
    assert (line.mean_answered, line.answered) == (0.75, 2)
    assert (line.mean, line.questions) == (0.5, 3)
    assert line.bins == (1, 0, 0, 0, 0, 1, 0, 0, 0, 1)
    assert line.low is not None
    assert line.high is not None
    assert line.low <= 0.5 <= line.high


def test_interval_of_few_templates_has_a_note() -> None:
    single_template = lines_of(numbers_of({"steps_score": 1.0}, {"steps_score": 0.0}))[0]
    assert "one template" in single_template.interval_note
    several = [{"template_id": f"t{at}", "steps_score": float(at % 2)} for at in range(12)]
    assert "3 templates are too few" in lines_of(numbers_of(*several[:3]))[0].interval_note
    assert lines_of(numbers_of(*several))[0].interval_note == ""


def test_without_scipy_there_are_means_and_a_note_on_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_missing(*values: object, **options: object) -> None:
        raise MissingExtraError("An interval", "stats", "scipy")

    monkeypatch.setattr(scores, "mean_interval", raise_missing)
    (line,) = lines_of(numbers_of({"steps_score": 1.0}))
    assert (line.mean, line.low) == (1.0, None)
    assert "graphrag-eval-lc[stats]" in line.interval_note


def test_main_scores_come_first_and_spent_metrics_are_excluded() -> None:
    values = shown_scores(
        numbers_of({"total_tokens": 5, "answer_recall": 1.0, "answer_f1": 0.5, "steps_score": 1.0, "agent_cost": 0.1})
    )
    assert list(values) == ["steps_score", "answer_f1", "answer_recall"]


@pytest.mark.parametrize(
    ("passing", "note"),
    [
        ({}, "A question is right at 1, wrong at 0, partly right in between."),
        ({"metric": "answer_f1", "threshold": 0.7}, "A question is right at answer_f1 ≥ 0.7, wrong at 0, partly"),
        ({"metric": "unmeasured"}, "A question is right at 1, wrong at 0"),
    ],
)
def test_note_explains_the_main_score_and_when_a_question_is_right(passing: Any, note: str) -> None:
    lines = lines_of(numbers_of({"steps_score": 1.0, "answer_f1": 0.5}, {"steps_score": 0.5, "answer_f1": 1.0}))
    text = scores.score_note(lines[0], [line.metric for line in lines], RepeatsConfig(**passing))
    assert text.startswith(
        f"steps_score is the share of the steps in the last reference group that "
        "the agent took (in brackets: the 95 % interval of its "
        f"mean). {note}"
    )


def test_undeclared_score_is_not_explained() -> None:
    (line,) = lines_of(numbers_of({"steps_score": 1.0}))
    assert scores.score_note(replace(line, metric="mine"), ["mine"], RepeatsConfig()) == ""


def test_templates_have_columns_for_main_and_custom_scores() -> None:
    metrics = ["steps_score", "answer_f1", "answer_recall", "retrieval_context_f1", "retrieval_context_recall", "mine"]
    assert whole_scores(metrics) == ["steps_score", "answer_f1", "retrieval_context_f1", "mine"]


def test_custom_score_has_a_column_whatever_its_prefix() -> None:
    assert whole_scores(["answer_words", "retrieval_speed", "retrieval_ids_recall"]) == [
        "answer_words",
        "retrieval_speed",
    ]


def test_repeats_count_as_their_mean() -> None:
    numbers = RunValues()
    for repeat, score in ((1, 1.0), (2, 0.5)):
        numbers.add({"question_id": "q", "template_id": "t", "repeat": repeat, "steps_score": score})
    (line,) = lines_of(numbers)
    assert (line.mean, line.questions) == (pytest.approx(0.75), 1)
    assert (line.low, line.interval_note) == (None, "an interval needs at least two questions")


def test_macro_mean_is_over_templates_with_failures_as_0() -> None:
    failed = {"template_id": "u", "error": "away", "reference_steps": [[{"name": "x"}]]}
    (line,) = lines_of(numbers_of({"steps_score": 1.0}, {"steps_score": 0.5}, failed))
    assert line.mean_of_templates.every == 0.375


def test_questions_without_a_score_are_counted() -> None:
    steps, judged = lines_of(numbers_of({"steps_score": 1.0, "answer_f1": 1.0}, {"steps_score": 1.0}, {}))
    assert (steps.without, judged.without) == (1, 2)


def test_template_means_use_the_overall_range() -> None:
    numbers = numbers_of(
        {"template_id": "t", "steps_score": 1.0},
        {"template_id": "t", "steps_score": 0.5, "error": "away"},
        {"template_id": "u"},
    )
    template_scores = scores.template_scores(shown_scores(numbers))
    assert template_scores == {
        "t": {
            "steps_score": scores.TemplateScore(
                mean=0.5,
                mean_answered=1.0,
                upper=None,
                questions=2,
                answered=1,
                range=(0.0, 1.0),
                bins=(1, 0, 0, 0, 0, 0, 0, 0, 0, 1),
            )
        }
    }


def test_score_that_applies_to_no_sample_has_no_line() -> None:
    failed = {"template_id": "t", "question_id": "q", "status": "error", "error": "x", "answer_f1": 1.0}
    view = run_view([failed])
    assert view.scores == ()
    assert view.headline.counts == "0 of 1 right, 1 error"
