"""Values per question, with failed questions as the worst score, and the means in reports."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.aggregation.question_values import ScoreMean, ScoreValues, mean_text, score_values
from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry import MetricSpec, metric_spec


def values_of(*results: dict[str, Any], metrics: tuple[str, ...] = ()) -> RunValues:
    values = RunValues(Metrics(EvaluationConfig(), metrics))
    for result in results:
        values.add({"template_id": "t", "question_id": "q", "status": "success", **result})
    return values


def score(metric: str, *results: dict[str, Any], **options: Any) -> float | None:
    return values_of(*results).questions["q"].score(metric, **options)


def test_score_is_the_mean_over_repeats() -> None:
    assert score("steps_score", {"steps_score": 1.0}, {"steps_score": 0.5, "repeat": 2}) == 0.75


def test_failed_samples_count_as_0() -> None:
    assert score("steps_score", {"steps_score": 1.0}, {"steps_score": 1.0, "repeat": 2, "error": "away"}) == 0.5
    assert score("answer_f1", {"answer_f1": 1.0}, {"repeat": 2, "status": "error"}) == 0.5


@pytest.mark.parametrize(
    ("metric", "result", "is_counted"),
    [
        ("steps_score", {}, False),
        ("steps_score", {"reference_steps": [[{"name": "lookup"}]]}, True),
        ("steps_score", {"steps_score": 0.5}, True),
        ("answer_f1", {}, False),
        ("answer_f1", {"reference_answer": "2"}, True),
        ("answer_relevance", {}, True),
        ("retrieval_ids_recall", {"actual_steps": [{"name": "retrieval"}]}, False),
        ("retrieval_ids_recall", {"retrieval_missing": 1}, True),
        ("retrieval_text_f1", {"retrieval_missing": 1}, False),
        ("retrieval_text_f1", {"retrieval_text_missing": 1}, True),
        ("retrieval_utilization", {}, False),
        ("retrieval_utilization", {"actual_steps": [{"name": "lookup"}]}, False),
        ("retrieval_utilization", {"actual_steps": [{"name": "retrieval"}]}, True),
        ("retrieval_utilization", {"reference_steps": [[{"name": "retrieval"}]]}, True),
    ],
)
def test_failed_question_counts_in_the_metrics_it_would_have(
    metric: str, result: dict[str, Any], is_counted: bool
) -> None:
    failed = {"error": "away", **result}
    assert score(metric, failed) == (0.0 if is_counted else None)
    assert score(metric, failed, has_elsewhere=True) == 0.0


def test_unmeasured_values_are_not_numbers() -> None:
    assert score("steps_score", {"steps_score": float("nan")}) is None
    assert score("steps_score", {}, has_elsewhere=True) is None


def test_usage_of_failed_samples_counts() -> None:
    values = values_of({"total_tokens": 10}, {"total_tokens": 30, "repeat": 2, "error": "away"}, {"repeat": 3})
    assert values.questions["q"].mean("total_tokens") == 20
    assert values.questions["q"].mean("elapsed_sec") is None


def test_sample_score_is_the_mean_over_retrieval_steps() -> None:
    steps = [{"name": "retrieval", "retrieval_utilization": value} for value in (0.0, 1.0, 0.5)]
    other = {"actual_steps": [{"name": "lookup", "retrieval_utilization": 0.0}, steps[1]], "repeat": 2}
    assert score("retrieval_utilization", {"actual_steps": steps}, other) == 0.75


def test_evaluator_outputs_are_metrics_and_other_keys_only_on_request() -> None:
    config = EvaluationConfig.model_validate(
        {
            "custom_evaluations": [
                {"name": "tone", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"polite": "Is it?"}}
            ]
        }
    )
    result = {"template_id": "t", "question_id": "q", "polite": True, "tone_cost": 0.1, "own": 2, "level": 3}
    values = RunValues(Metrics(config))
    values.add({**result, "custom_metrics": ["own"]})
    assert values.measured() == ["polite", "tone_cost", "own"]
    assert [metric_spec(metric).is_spent for metric in values.measured()] == [False, True, False]
    assert values_of(result, metrics=("level",)).measured() == ["level"]


@pytest.mark.parametrize(
    "wanted", [("own", "elapsed_sec"), ("retrieval_utilization",), ("retrieval_ids_recall", "steps_score")]
)
def test_selected_metrics_have_the_same_values_as_among_all(wanted: tuple[str, ...]) -> None:
    steps = [{"name": "retrieval", "retrieval_utilization": 0.5, "retrieval_ids_recall": 1.0}]
    result = {"template_id": "t", "question_id": "q", "custom_metrics": ["own"], "own": 2, "answer_f1": 1.0}
    result |= {"actual_steps": steps, "retrieval_missing": 1, "steps_score": 0.5, "elapsed_sec": 3.0}
    every, some = (RunValues(Metrics(EvaluationConfig(), wanted, only=only)) for only in (False, True))
    for values in (every, some):
        values.add(result)
        values.add({**result, "repeat": 2, "error": "away"})
    assert sorted(some.measured()) == sorted(wanted)
    scores = [[values.questions["q"].score(metric) for metric in wanted] for values in (every, some)]
    assert scores[0] == scores[1]


def test_failed_samples_count_as_the_maximum_if_lower_is_better(metrics: Any) -> None:
    metrics(MetricSpec(key="hops", lower_is_better=True, range=(0.0, 9.0), needs="reference_steps"))
    measured = {"hops": 3, "custom_metrics": ["hops"]}
    assert score("hops", measured, {**measured, "hops": 1, "error": "away", "repeat": 2}) == 6.0
    assert score("hops", {"error": "away"}) is None
    assert score("hops", {"error": "away", "reference_steps": [[{"name": "lookup"}]]}) == 9.0
    assert not metric_spec("hops").is_spent


def test_failed_samples_are_skipped_if_there_is_no_worst_value(metrics: Any) -> None:
    metrics(MetricSpec(key="saved_sec", lower_is_better=True, range=(0.0, None)))
    measured = {"saved_sec": 8, "custom_metrics": ["saved_sec"]}
    assert score("saved_sec", measured, {**measured, "saved_sec": 1, "error": "away", "repeat": 2}) == 8.0
    assert score("saved_sec", {**measured, "error": "away"}) is None


def test_upper_bounds_cover_all_questions_if_one_is_undecided() -> None:
    values = RunValues()
    for at, upper in enumerate((None, 1.0, None)):
        bound = {} if upper is None else {"steps_score_upper": upper}
        values.add({"template_id": "t", "question_id": f"q{at}", "steps_score": (1.0, 0.0, 0.0)[at], **bound})
    assert [question.score("steps_score_upper") for question in values.questions.values()] == [1.0, 1.0, 0.0]
    assert values.mean_of_upper_bound("steps_score") == pytest.approx(2 / 3)
    assert values.mean_of_upper_bound("answer_f1") is None
    decided = values_of({"steps_score": 0.5})
    assert (list(decided.measured()), decided.has("steps_score_upper")) == (["steps_score"], True)
    assert decided.mean_of_upper_bound("steps_score") is None


# --- means of scores -------------------------------------------------------------------------------------------------

REFERENCE = [[{"name": "lookup", "output": "1"}]]


def scores_of(*results: Any) -> dict[str, ScoreValues]:
    numbers = RunValues()
    for at, result in enumerate(results):
        numbers.add({"question_id": f"q{at}", "template_id": "t", "reference_steps": REFERENCE, **result})
    return score_values(numbers)


def test_failed_question_counts_as_0_in_the_overall_mean_only() -> None:
    values = scores_of({"steps_score": 1.0}, {"steps_score": 0.5}, {"error": "away"})
    assert values["steps_score"].mean() == ScoreMean(0.5, 0.75)


def test_templates_have_equal_weight_in_the_mean_of_templates() -> None:
    values = scores_of(
        {"steps_score": 1.0}, {"steps_score": 1.0}, {"steps_score": 0.0, "template_id": "other"}, {"error": "away"}
    )
    assert values["steps_score"].mean_of_templates() == ScoreMean((2 / 3 + 0) / 2, 0.5)
    assert values["steps_score"].of_template("other").mean() == ScoreMean(0.0, 0.0)
    assert values["steps_score"].of_template("absent").mean() == ScoreMean(None, None)


def test_usage_and_upper_bounds_are_not_scores() -> None:
    values = scores_of({"steps_score": 0.5, "steps_score_upper": 1.0, "total_tokens": 5})
    assert list(values) == ["steps_score"]
    assert list(values["steps_score"].upper["t"]) == [1.0]


@given(st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=12))
def test_overall_mean_never_exceeds_the_mean_of_answered_questions(scores: list[float | None]) -> None:
    found = scores_of(*({"error": "away"} if score is None else {"steps_score": score} for score in scores))
    if "steps_score" in found:
        every, answered = found["steps_score"].mean()
        known = [score for score in scores if score is not None]
        assert every is not None
        assert answered is not None
        assert abs(every * len(scores) - sum(known)) < 1e-9
        assert every <= answered + 1e-12


def test_both_means_are_shown_if_they_differ() -> None:
    assert mean_text(ScoreMean(0.0, None)) == "0.000 (answered: –)"
    assert mean_text(ScoreMean(0.5, 0.5)) == "0.500"
