import gc
import json
import math
import weakref
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.aggregation import Aggregator, compute_aggregates
from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.run_folder import yaml_text


def sample(template_id: str = "t", **values: Any) -> dict[str, Any]:
    return {"template_id": template_id, "status": "success", **values}


FAILED = {"status": "error", "error": "boom"}


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


def test_retrieval_metrics_of_steps_stand_at_the_top_level_everywhere() -> None:
    steps = [{"name": "retrieval", "status": "success", "retrieval_answer_f1": value} for value in (0.0, 1.0)]
    aggregates = compute_aggregates([sample(actual_steps=steps)])
    for part in (aggregates["per_template"]["t"], aggregates["micro"], aggregates["macro"]):
        assert part["retrieval_answer_f1"]["mean"] == 0.5


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


@given(scores)
def test_with_one_template_macro_equals_micro(values: list[float]) -> None:
    aggregates = compute_aggregates([sample(steps_score=value) for value in values])
    assert aggregates["macro"]["steps_score"]["mean"] == aggregates["micro"]["steps_score"]["mean"]


def test_aggregates_are_there_at_any_time() -> None:
    aggregator = Aggregator()
    for number, score in enumerate((1.0, 0.0), start=1):
        aggregator.add(sample(steps_score=score))
        assert aggregator.aggregates()["totals"]["number_of_samples"] == number
    assert aggregator.aggregates()["micro"]["steps_score"]["mean"] == 0.5


def test_templates_come_in_the_given_order_then_as_seen() -> None:
    aggregator = Aggregator(template_ids=["a", "absent", "b"])
    for name in "dbca":
        aggregator.add(sample(name))
    assert list(aggregator.aggregates()["per_template"]) == ["a", "b", "d", "c"]


def test_whole_numbers_stay_whole() -> None:
    micro = compute_aggregates([sample(total_tokens=3), sample(total_tokens=5)])["micro"]
    assert all(isinstance(micro["total_tokens"][part], int) for part in ("sum", "mean", "min", "max"))


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, 1e300, "1", None, [1]])
def test_what_is_no_sensible_number_measures_nothing(value: Any) -> None:
    aggregates = compute_aggregates([sample(elapsed_sec=value), sample(elapsed_sec=1.5)])
    assert aggregates["micro"]["elapsed_sec"]["sum"] == 1.5
    assert aggregates["totals"]["unmeasured_samples"] == {"elapsed_sec": 1}


@pytest.mark.full
def test_results_are_not_kept() -> None:
    class Result(dict[str, Any]):
        pass

    result = Result(sample(question_id="q", actual_steps=[{"name": "s", "output": "text"}]))
    reference = weakref.ref(result)
    aggregator = Aggregator()
    aggregator.add(result)
    del result
    gc.collect()
    assert reference() is None


results = st.lists(
    st.fixed_dictionaries(
        {"template_id": st.sampled_from("ab"), "question_id": st.sampled_from("xyz"), "status": st.just("success")},
        optional={
            "error": st.just("boom"),
            "repeat": st.integers(1, 3),
            "steps_score": st.floats(0, 1),
            "total_tokens": st.integers(0, 1000),
            "elapsed_sec": st.floats(0, 100) | st.integers(0, 100),
            "actual_steps": st.lists(
                st.fixed_dictionaries(
                    {"name": st.sampled_from(["retrieval", "s"]), "retrieval_answer_f1": st.floats(0, 1)}
                ),
                max_size=3,
            ),
            "failed_attempts": st.lists(
                st.fixed_dictionaries({"elapsed_sec": st.floats(0, 9), "total_tokens": st.integers(0, 9)}), max_size=2
            ),
        },
    ),
    max_size=12,
)


@pytest.mark.full
@given(results, st.randoms(), st.sampled_from(["exclude", "include"]))
def test_order_of_the_results_does_not_matter(samples: list[Any], random: Any, errors: str) -> None:
    def text() -> str:
        aggregator = Aggregator({"aggregates": {"errors": errors}}, template_ids=["a", "b"])
        for result in samples:
            aggregator.add(result)
        return yaml_text(aggregator.aggregates())

    before = text()
    random.shuffle(samples)
    assert text() == before


# --- judges ----------------------------------------------------------------------------------------------------------

CUSTOM: dict[str, Any] = {
    "custom_evaluations": [
        {"name": "tone", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"polite": "", "why": ""}},
        {"name": "size", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"words": ""}},
    ]
}


def test_numbers_and_booleans_of_custom_evaluations_are_metrics_and_texts_are_not() -> None:
    samples = [sample(polite=True, why="a please", words=7, tone_cost=0.5), sample(polite=False, why=None, words=None)]
    aggregates = compute_aggregates(samples, CUSTOM)
    assert aggregates["macro"] == {"polite": {"mean": 0.5}, "words": {"mean": 7}, "tone_cost": {"mean": 0.5}}
    assert list(aggregates["per_template"]["t"])[2:] == ["polite", "words", "tone_cost"]
    assert compute_aggregates(samples)["macro"] == {}


def test_failed_samples_keep_what_their_custom_evaluations_cost() -> None:
    config = {**CUSTOM, "aggregates": {"errors": "include"}}
    micro = compute_aggregates([sample(words=7, size_cost=0.5, agent_cost=0.25, **FAILED)], config)["micro"]
    assert [micro[metric]["sum"] for metric in ("words", "size_cost", "agent_cost")] == [0.0, 0.5, 0.25]


def test_costs_of_retrieval_judges_are_metrics_of_their_steps() -> None:
    steps = [{"name": "retrieval", "retrieval_utilization": 1.0, "retrieval_utilization_cost": cost} for cost in (1, 3)]
    macro = compute_aggregates([sample(actual_steps=steps)])["macro"]
    assert macro == {"retrieval_utilization": {"mean": 1.0}, "retrieval_utilization_cost": {"mean": 2}}


def test_retrieval_steps_may_be_called_otherwise() -> None:
    samples = [sample(actual_steps=[{"name": "search_docs", "retrieval_answer_f1": 0.5}])]
    names = {"steps": {"names": {"search_docs": "retrieval"}}}
    assert compute_aggregates(samples, names)["macro"] == {"retrieval_answer_f1": {"mean": 0.5}}
    assert compute_aggregates(samples)["macro"] == {}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"micro": {}}, "the results cannot be a dict. Give what run_evaluation returned"),
        (None, "the results cannot be a NoneType."),
        ([sample(steps_score=1.0), "q2"], r"key results\[1\]: this is not a result."),
        ([{"question_id": "q1"}], r"key results\[0\]: this is not a result."),
    ],
)
def test_what_is_no_list_of_results_is_one_clear_error(given: Any, complaint: str) -> None:
    with pytest.raises(ResponsesError, match=complaint):
        compute_aggregates(given)
