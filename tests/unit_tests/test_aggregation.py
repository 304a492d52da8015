import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc import compute_aggregates
from graphrag_eval_lc.run_folder import yaml_text


def sample(template_id: str = "t", **values: Any) -> dict[str, Any]:
    return {"template_id": template_id, "status": "success", **values}


FAILED = {"status": "error", "error": "boom"}
EMPTY = '{"head": {"vars": ["x"]}, "results": {"bindings": [ ]}}'


def test_statistics_of_a_metric() -> None:
    micro = compute_aggregates([sample(steps_score=score) for score in (1.0, 0.0, 0.5, 1.0)])["micro"]
    assert micro["steps_score"] == {"sum": 2.5, "mean": 0.625, "median": 0.75, "min": 0.0, "max": 1.0}


def test_macro_is_the_mean_of_the_templates_means() -> None:
    samples = [sample("a", steps_score=1.0)] * 3 + [sample("b", steps_score=0.0)]
    assert compute_aggregates(samples)["macro"] == {"steps_score": {"mean": 0.5}}


def test_what_was_not_measured_is_absent() -> None:
    aggregates = compute_aggregates([sample(steps_score=1.0), sample(answer_f1=math.nan, input_tokens=None)])
    assert set(aggregates["micro"]) == {"number_of_error_samples", "number_of_success_samples", "steps_score"}
    assert aggregates["micro"]["steps_score"]["mean"] == 1.0


def test_error_samples_are_counted_but_left_out_of_the_statistics() -> None:
    samples = [sample(steps_score=1.0, total_tokens=10), sample(steps_score=0.5, total_tokens=90, **FAILED)]
    micro = compute_aggregates(samples)["micro"]
    assert (micro["number_of_error_samples"], micro["number_of_success_samples"]) == (1, 1)
    assert micro["steps_score"]["mean"] == 1.0
    assert micro["total_tokens"]["sum"] == 10


def test_error_samples_count_as_0_where_asked_for_with_what_they_spent() -> None:
    samples = [sample(steps_score=1.0, total_tokens=10), sample(steps_score=0.5, total_tokens=90, **FAILED)]
    micro = compute_aggregates(samples, {"aggregates": {"errors": "include"}})["micro"]
    assert micro["steps_score"]["mean"] == 0.5
    assert micro["total_tokens"]["sum"] == 100


def test_steps_are_counted_by_tool_in_graphrag_evals_four_ways() -> None:
    steps = [
        {"name": "sparql_query", "status": "error", "error": "syntax"},
        {"name": "sparql_query", "status": "success", "output": EMPTY},
        {"name": "search", "status": "success", "output": "text"},
        {"name": "sparql_query", "status": "success", "output": "@prefix : <urn:> .", "comparison_error": "no JSON"},
    ]
    aggregates = compute_aggregates([sample(actual_steps=steps), sample("u", actual_steps=steps[:1])])
    assert aggregates["per_template"]["t"]["steps"] == {
        "total": {"sparql_query": 3, "search": 1},
        "once_per_sample": {"sparql_query": 1, "search": 1},
        "empty_results": {"sparql_query": 1},
        "errors": {"sparql_query": 2},
    }
    assert aggregates["micro"]["steps"]["total"] == {"sparql_query": 4, "search": 1}
    assert aggregates["micro"]["steps"]["once_per_sample"] == {"sparql_query": 2, "search": 1}


@pytest.mark.parametrize(
    ("output", "is_empty"),
    [
        (EMPTY, True),
        ('{"results": {"bindings": []}}', True),
        ('{"results": {"bindings": [{}]}}', False),
        ('{"boolean": false}', False),
        ('{"results": "bindings"}', False),
        ('{"note": "\\"bindings\\": []"}', False),
        ('"bindings": []', False),
        ("[]", False),
        ("", False),
        (None, False),
        (3, False),
    ],
)
def test_empty_result_is_a_select_without_rows(output: Any, is_empty: bool) -> None:
    steps = [{"name": "s", "status": "success", "output": output}]
    assert ("empty_results" in compute_aggregates([sample(actual_steps=steps)])["micro"]["steps"]) is is_empty


def test_retrieval_metrics_of_steps_stand_at_the_top_level_everywhere() -> None:
    steps = [{"name": "retrieval", "status": "success", "retrieval_answer_f1": value} for value in (0.0, 1.0)]
    aggregates = compute_aggregates([sample(actual_steps=steps)])
    for part in (aggregates["per_template"]["t"], aggregates["micro"], aggregates["macro"]):
        assert part["retrieval_answer_f1"]["mean"] == 0.5


def test_totals_hold_what_failed_questions_spent_too() -> None:
    totals = compute_aggregates([sample(total_tokens=10), sample(total_tokens=90, **FAILED)])["totals"]
    assert totals == {"number_of_samples": 2, "total_tokens": 100}


def test_total_of_a_figure_that_a_response_lacks_is_absent_and_says_how_many_do() -> None:
    totals = compute_aggregates([sample(total_tokens=10, elapsed_sec=1.5), sample(elapsed_sec=2.0)])["totals"]
    assert totals == {"number_of_samples": 2, "elapsed_sec": 3.5, "unmeasured_samples": {"total_tokens": 1}}


def test_no_results_give_empty_aggregates() -> None:
    assert compute_aggregates([]) == {
        "per_template": {},
        "micro": {"number_of_error_samples": 0, "number_of_success_samples": 0},
        "macro": {},
        "totals": {"number_of_samples": 0},
    }


def test_templates_keep_the_order_of_the_results_in_yaml_too() -> None:
    aggregates = compute_aggregates([sample(name, steps_score=1.0) for name in "cab"])
    assert list(yaml.safe_load(yaml_text(aggregates))["per_template"]) == ["c", "a", "b"]
    assert json.loads(json.dumps(aggregates)) == aggregates


scores = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(scores, st.randoms())
def test_order_of_the_results_does_not_matter(values: list[float], random: Any) -> None:
    samples = [sample(steps_score=value) for value in values]
    before = compute_aggregates(samples)["micro"]
    random.shuffle(samples)
    assert compute_aggregates(samples)["micro"] == before


@given(scores)
def test_with_one_template_macro_equals_micro(values: list[float]) -> None:
    aggregates = compute_aggregates([sample(steps_score=value) for value in values])
    assert aggregates["macro"]["steps_score"]["mean"] == aggregates["micro"]["steps_score"]["mean"]
