"""The retrieval metrics in the aggregates."""

from typing import Any

import pytest

from graphrag_eval_lc import compute_aggregates

ZERO = {"retrieval": {"missing": "zero", "measures": ["R"]}}


def result(template_id: str = "t", *steps: dict[str, Any], missing: int | None = 0, **more: Any) -> dict[str, Any]:
    counted = {} if missing is None else {"retrieval_missing": missing}
    actual = [{"name": "any_tool", "status": "success", **step} for step in steps]
    return {"template_id": template_id, "status": "success", "actual_steps": actual, **counted, **more}


def ids(value: float, measure: str = "recall") -> dict[str, float]:
    return {f"retrieval_ids_{measure}": value}


def means(summary: dict[str, Any]) -> dict[str, float]:
    return {
        key: statistics["mean"]
        for key, statistics in summary.items()
        if key.startswith(("retrieval_ids", "retrieval_t")) and isinstance(statistics, dict)
    }


def test_statistics_are_taken_over_all_measured_steps_whatever_they_are_called() -> None:
    aggregates = compute_aggregates([result("t", ids(1.0), ids(0.5)), result("u", ids(0.0))])
    assert aggregates["per_template"]["t"]["retrieval_ids_recall"] == {
        "sum": 1.5,
        "mean": 0.75,
        "median": 0.75,
        "min": 0.5,
        "max": 1.0,
    }
    assert aggregates["micro"]["retrieval_ids_recall"]["mean"] == 0.5
    assert aggregates["macro"] == {"retrieval_ids_recall": {"mean": 0.375}}


def test_metrics_stand_after_the_judged_ones_and_those_of_ids_before_those_of_texts() -> None:
    step = {
        "name": "retrieval",
        "retrieval_text_f1": 1.0,
        "retrieval_ids_ndcg@10": 1.0,
        "retrieval_ids_error": "broken",
        **ids(1.0, "precision"),
        "retrieval_utilization": 0.5,
        "retrieval_utilization_cost": 0.1,
    }
    micro = compute_aggregates([result("t", step)])["micro"]
    assert [key for key in micro if key.startswith("retrieval")] == [
        "retrieval_missing",
        "retrieval_utilization",
        "retrieval_utilization_cost",
        "retrieval_ids_ndcg@10",
        "retrieval_ids_precision",
        "retrieval_text_f1",
    ]


def test_missing_is_a_sum_after_the_numbers_of_samples_where_there_is_such_a_reference_step() -> None:
    results = [result("t", missing=1), result("t", missing=2), result("u", missing=None), result("v", missing=0)]
    aggregates = compute_aggregates(results)
    assert list(aggregates["micro"])[:3] == [
        "number_of_error_samples",
        "number_of_success_samples",
        "retrieval_missing",
    ]
    assert aggregates["micro"]["retrieval_missing"] == 3
    assert {name: summary.get("retrieval_missing") for name, summary in aggregates["per_template"].items()} == {
        "t": 3,
        "u": None,
        "v": 0,
    }
    assert isinstance(aggregates["micro"]["retrieval_missing"], int)
    assert "retrieval_missing" not in aggregates["macro"]
    assert "retrieval_missing" not in compute_aggregates([result("u", missing=None)])["micro"]


def test_missing_steps_are_absent_from_the_statistics_or_zeros() -> None:
    results = [result("t", ids(1.0), missing=0), result("t", missing=2), result("u", missing=1)]
    assert means(compute_aggregates(results)["micro"]) == {"retrieval_ids_recall": 1.0}
    aggregates = compute_aggregates(results, ZERO)
    assert means(aggregates["micro"]) == {"retrieval_ids_recall": 0.25}
    assert means(aggregates["per_template"]["t"]) == {"retrieval_ids_recall": pytest.approx(1 / 3)}
    assert means(aggregates["per_template"]["u"]) == {"retrieval_ids_recall": 0.0}
    assert aggregates["macro"]["retrieval_ids_recall"]["mean"] == pytest.approx(1 / 6)


def test_where_nothing_was_found_the_measures_of_the_config_are_zero() -> None:
    results = [result("t", missing=1, retrieval_text_missing=1)]
    assert means(compute_aggregates(results)["micro"]) == {}
    micro = compute_aggregates(results, {"retrieval": {"missing": "zero", "measures": ["P", "R"]}})["micro"]
    assert means(micro) == dict.fromkeys(
        [
            "retrieval_ids_precision",
            "retrieval_ids_recall",
            "retrieval_text_precision",
            "retrieval_text_recall",
            "retrieval_text_f1",
        ],
        0.0,
    )
    assert means(compute_aggregates([result("t", missing=0)], ZERO)["micro"]) == {}


def test_missing_texts_are_zeros_of_the_text_metrics_alone() -> None:
    of_texts = [f"retrieval_text_{name}" for name in ("precision", "recall", "f1")]
    step = {**ids(1.0), **dict.fromkeys(of_texts, 1.0)}
    results = [
        result("t", step, retrieval_text_missing=0),
        result("t", missing=1),
        result("t", missing=0, retrieval_text_missing=1),
    ]
    assert means(compute_aggregates(results, ZERO)["micro"]) == {
        "retrieval_ids_recall": 0.5,
        **dict.fromkeys(of_texts, 0.5),
    }


def test_failed_questions_are_left_out_unless_they_are_included() -> None:
    results = [result("t", ids(1.0)), result("t", missing=1, status="error", error="boom")]
    assert compute_aggregates(results, ZERO)["micro"]["retrieval_missing"] == 0
    included = compute_aggregates(results, {**ZERO, "aggregates": {"errors": "include"}})["micro"]
    assert (included["retrieval_missing"], means(included)) == (1, {"retrieval_ids_recall": 0.5})


def test_repeats_count_each_question_once_and_missing_steps_each_time() -> None:
    results = [
        result("t", ids(1.0), question_id="q1", repeat=1),
        result("t", missing=1, question_id="q1", repeat=2),
        result("t", ids(1.0), question_id="q2", repeat=1),
        result("t", ids(1.0), question_id="q2", repeat=2),
    ]
    aggregates = compute_aggregates(results, ZERO)
    assert aggregates["micro"]["retrieval_missing"] == 1
    assert means(aggregates["micro"]) == {"retrieval_ids_recall": 0.75}
    assert aggregates["repeats"]["metrics"]["retrieval_ids_recall"]["mean"] == 0.75
    assert list(aggregates["micro"])[2:4] == ["number_of_questions", "retrieval_missing"]


def test_judged_statistics_are_those_of_the_tools_that_retrieve() -> None:
    step = {"name": "search_docs", "retrieval_answer_f1": 0.5}
    results = [result("t", step, {"name": "find", "retrieval_answer_f1": 1.0}, missing=None)]
    assert "retrieval_answer_f1" not in compute_aggregates(results)["micro"]
    config = {"retrieval": {"steps": ["search_docs"]}, "steps": {"names": {"find": "search_docs"}}}
    assert compute_aggregates(results, config)["micro"]["retrieval_answer_f1"]["mean"] == 0.75


def test_failed_question_counts_as_0_where_failed_questions_are_included() -> None:
    results = [result("t", ids(0.5)), result("t", ids(1.0), error="away")]
    assert means(compute_aggregates(results)["micro"]) == {"retrieval_ids_recall": 0.5}
    included = compute_aggregates(results, {"aggregates": {"errors": "include"}})
    assert means(included["micro"]) == {"retrieval_ids_recall": 0.25}


def test_missing_texts_are_counted_beside_missing_ids() -> None:
    micro = compute_aggregates([result("t", ids(1.0), missing=2, retrieval_text_missing=1)])["micro"]
    assert (micro["retrieval_missing"], micro["retrieval_text_missing"]) == (2, 1)
