import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.aggregation import compute_aggregates
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.run_folder import yaml_text


def asked(question_id: str, *scores: float | str | None, template_id: str = "t", **values: Any) -> list[dict[str, Any]]:
    """Return a question's repeats: a score, "error", or None for a success that was not measured."""
    return [
        {"template_id": template_id, "question_id": question_id, "repeat": repeat, **outcome(score), **values}
        for repeat, score in enumerate(scores, start=1)
    ]


def outcome(score: float | str | None) -> dict[str, Any]:
    if score == "error":
        return {"status": "error", "error": "boom", "steps_score": 0.0}
    return {"status": "success"} if score is None else {"status": "success", "steps_score": score}


def test_each_question_counts_once_with_the_mean_of_its_repeats() -> None:
    micro = compute_aggregates(asked("q1", 1.0, 0.0, 1.0, 1.0) + asked("q2", 0.0))["micro"]
    assert micro["steps_score"] == {"sum": 0.75, "mean": 0.375, "median": 0.375, "min": 0.0, "max": 0.75}
    assert (micro["number_of_success_samples"], micro["number_of_questions"]) == (5, 2)


def test_questions_of_one_id_in_two_templates_are_two() -> None:
    aggregates = compute_aggregates(asked("q", 1.0, 1.0) + asked("q", 0.0, 0.0, template_id="u"))
    assert aggregates["micro"]["number_of_questions"] == 2
    assert aggregates["per_template"]["u"]["number_of_questions"] == 1
    assert aggregates["macro"]["steps_score"]["mean"] == 0.5


@pytest.mark.parametrize(("errors", "mean"), [("exclude", 1.0), ("include", 0.5)])
def test_errors_count_in_a_questions_mean_as_the_config_says(errors: str, mean: float) -> None:
    aggregates = compute_aggregates(asked("q", 1.0, "error"), {"aggregates": {"errors": errors}})
    assert aggregates["micro"]["steps_score"]["mean"] == mean
    assert aggregates["repeats"]["metrics"]["steps_score"] == {"mean": mean}
    assert aggregates["micro"]["number_of_error_samples"] == 1


def test_steps_count_every_repeat_and_retrieval_metrics_each_question_once() -> None:
    def steps(*values: float) -> list[dict[str, Any]]:
        return [{"name": "retrieval", "status": "success", "retrieval_answer_f1": value} for value in values]

    samples = asked("q1", 1.0, 1.0, actual_steps=steps(1.0, 0.0)) + asked("q2", 1.0, actual_steps=steps(1.0))
    micro = compute_aggregates(samples)["micro"]
    assert micro["steps"] == {"total": {"retrieval": 5}, "once_per_sample": {"retrieval": 3}}
    assert micro["retrieval_answer_f1"]["mean"] == 0.75


def test_pass_chances_are_means_over_the_questions() -> None:
    repeats = compute_aggregates(asked("q1", 1.0, 0.0, 1.0) + asked("q2", 0.5, 0.0, "error"))["repeats"]
    assert repeats == {
        "count": 3,
        "metric": "steps_score",
        "threshold": 1.0,
        "number_of_questions": 2,
        "number_of_unmeasured_questions": 0,
        "pass@k": {"1": pytest.approx(1 / 3), "2": 0.5, "3": 0.5},
        "pass^k": {"1": pytest.approx(1 / 3), "2": pytest.approx(1 / 6), "3": 0.0},
        "metrics": {"steps_score": {"mean": pytest.approx((2 / 3 + 0.25) / 2)}},
    }


def test_threshold_and_metric_are_the_configs() -> None:
    samples = [{**sample, "answer_f1": 0.6} for sample in asked("q", 0.0, 0.0)]
    config = {"repeats": {"metric": "answer_f1", "threshold": 0.6}}
    repeats = compute_aggregates(samples, config)["repeats"]
    assert (repeats["metric"], repeats["threshold"], repeats["pass^k"]["2"]) == ("answer_f1", 0.6, 1.0)


@pytest.mark.parametrize("errors", ["exclude", "include"])
def test_errors_never_pass_whatever_the_threshold(errors: str) -> None:
    config = {"repeats": {"threshold": 0.0}, "aggregates": {"errors": errors}}
    assert compute_aggregates(asked("q", "error", 0.0), config)["repeats"]["pass@k"] == {"1": 0.5, "2": 1.0}


def test_question_with_an_unmeasured_success_is_left_out_and_counted() -> None:
    repeats = compute_aggregates(asked("q1", 1.0, 1.0) + asked("q2", 0.0, None))["repeats"]
    assert (repeats["number_of_questions"], repeats["number_of_unmeasured_questions"]) == (2, 1)
    assert repeats["pass@k"] == {"1": 1.0, "2": 1.0}


def test_without_any_measured_question_there_are_no_pass_chances() -> None:
    repeats = compute_aggregates(asked("q", None, None))["repeats"]
    assert repeats.keys().isdisjoint({"pass@k", "pass^k"})
    assert repeats["metrics"] == {}


def test_k_goes_to_the_smallest_number_of_samples_of_an_interrupted_run() -> None:
    repeats = compute_aggregates(asked("q1", 1.0, 1.0, 0.0) + asked("q2", 1.0, 1.0))["repeats"]
    assert repeats["count"] == 3
    assert list(repeats["pass@k"]) == list(repeats["pass^k"]) == ["1", "2"]


def test_standard_error_is_clustered_by_template_over_the_questions_means() -> None:
    samples = asked("q1", 1.0, 0.5) + asked("q2", 0.5, 0.0, template_id="u") + asked("q3", 0.0, 0.0, template_id="u")
    # The means 0.75 | 0.25, 0 lie around 1/3; the clusters' sums of differences are 5/12 and -5/12.
    assert compute_aggregates(samples)["repeats"]["metrics"]["steps_score"] == {
        "mean": pytest.approx(1 / 3),
        "standard_error": pytest.approx(math.sqrt(2 * 2 * (5 / 12) ** 2) / 3),
    }


def test_single_repeats_have_no_section_of_their_own() -> None:
    samples = asked("q1", 1.0) + asked("q2", 0.0)
    without = [{key: value for key, value in sample.items() if key != "repeat"} for sample in samples]
    assert compute_aggregates(samples) == compute_aggregates(without)
    assert "repeats" not in compute_aggregates(samples)


def test_totals_count_every_repeat() -> None:
    assert compute_aggregates(asked("q", 1.0, 1.0, total_tokens=5))["totals"]["total_tokens"] == 10


def test_samples_without_a_question_id_are_questions_of_their_own() -> None:
    samples = [{"template_id": "t", "repeat": repeat, "steps_score": 1.0} for repeat in (1, 2)]
    assert compute_aggregates(samples)["micro"]["number_of_questions"] == 2


def test_section_is_the_same_in_yaml_and_json() -> None:
    aggregates = compute_aggregates(asked("q1", 1.0, 0.0) + asked("q2", 1.0, "error", template_id="u"))
    assert yaml.safe_load(yaml_text(aggregates)) == json.loads(json.dumps(aggregates)) == aggregates


questions = st.lists(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, "error"]), min_size=3, max_size=3), min_size=1, max_size=5
)


@given(questions)
def test_pass_at_1_is_the_share_of_samples_that_passed(scores: list[list[float | str]]) -> None:
    samples = [sample for index, repeats in enumerate(scores) for sample in asked(f"q{index}", *repeats)]
    repeats = compute_aggregates(samples)["repeats"]
    share = sum(repeats_of.count(1.0) for repeats_of in scores) / len(samples)
    assert repeats["pass@k"]["1"] == repeats["pass^k"]["1"] == pytest.approx(share)
    assert list(repeats["pass@k"].values()) == sorted(repeats["pass@k"].values())
    assert list(repeats["pass^k"].values()) == sorted(repeats["pass^k"].values(), reverse=True)


def repeated(key: str, *values: float, **more: Any) -> list[dict[str, Any]]:
    return [{**asked("q", None, **more)[0], "repeat": repeat, key: value} for repeat, value in enumerate(values, 1)]


def test_where_less_is_better_a_sample_passes_with_at_most_the_threshold(metrics: Any) -> None:
    metrics(MetricSpec(key="hops", lower_is_better=True, range=(0.0, None)))
    samples = repeated("hops", 2, 3, 4, custom_metrics=["hops"])
    repeats = compute_aggregates(samples, {"repeats": {"metric": "hops", "threshold": 3.0}})["repeats"]
    assert repeats["pass@k"]["1"] == pytest.approx(2 / 3)


def test_repeats_pass_by_an_output_of_a_custom_evaluation() -> None:
    tone = {"name": "tone", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"polite": "0 to 10"}}
    config = {"custom_evaluations": [tone], "repeats": {"metric": "polite", "threshold": 7}}
    assert compute_aggregates(repeated("polite", 8, 2), config)["repeats"]["pass@k"] == {"1": 0.5, "2": 1.0}


def test_repeats_pass_by_the_mean_over_a_samples_steps() -> None:
    samples = [
        sample | {"actual_steps": [{"name": "retrieval", "retrieval_ids_recall": value} for value in values]}
        for sample, values in zip(asked("q", None, None, retrieval_missing=0), ((1.0, 0.5), (0.5, 0.75)), strict=True)
    ]
    config = {"repeats": {"metric": "retrieval_ids_recall", "threshold": 0.75}}
    assert compute_aggregates(samples, config)["repeats"]["pass@k"]["1"] == 0.5


@pytest.mark.parametrize(
    ("repeats", "complaint"),
    [
        (
            {"metric": "step_score"},
            r"repeats\.metric: 'step_score' is not .* Did you mean steps_score\? There are answer",
        ),
        ({"metric": "total_tokens"}, "'total_tokens' is not allowed here.*There are answer_recall, .*steps_score"),
        ({"metric": "retrieval_ids_ndcg@10"}, "Did you mean retrieval_ids_ndcg"),
        ({"metric": "hops"}, "and those that plugins register"),
        ({"metric": "fails", "threshold": 1.5}, r"repeats\.threshold: 1\.5 is not .*fails goes from 0 to 1\."),
        ({"metric": "answer_relevance", "threshold": -2.0}, r"answer_relevance goes from -1 to 1\."),
    ],
)
def test_unusable_score_or_threshold_is_reported_with_those_that_there_are(
    repeats: dict[str, Any], complaint: str, metrics: Any
) -> None:
    metrics(MetricSpec(key="fails", lower_is_better=True))
    with pytest.raises(ConfigError, match=complaint):
        compute_aggregates([], {"repeats": repeats})
