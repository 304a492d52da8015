"""Aggregates of recall, precision, F1 and order of the steps."""

from typing import Any

import pytest

from graphrag_eval_lc import compute_aggregates
from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.compare import gate_results

QUALITY = ("steps_recall", "steps_precision", "steps_f1", "steps_order")


def result_of(name: str, *values: float, **more: Any) -> dict[str, Any]:
    scores = {"steps_score": 1.0, **dict(zip(QUALITY, values, strict=True))} if values else {}
    template, _, _ = name.partition("_")
    return {"template_id": template, "question_id": name, "status": "success", **scores, **more}


RESULTS = [
    result_of("a_1", 1.0, 0.5, 2 / 3, 1.0),
    result_of("a_2", 0.5, 0.5, 0.5, 0.0),
    result_of("b_1", 0.0, 0.0, 0.0, 1.0),
]
FAILED = result_of("b_2", 1.0, 1.0, 1.0, 1.0, status="error", error="away", reference_steps=[[{"name": "look"}]])


def test_without_reference_steps_they_are_absent() -> None:
    aggregates = compute_aggregates([result_of("a_1"), result_of("b_1")])
    for part in (*aggregates["per_template"].values(), aggregates["micro"], aggregates["macro"]):
        assert not {*QUALITY, "steps_score"} & part.keys()


def test_graphrag_evals_keys_are_the_same_with_and_without_them() -> None:
    plain = [{key: value for key, value in result.items() if key not in QUALITY} for result in RESULTS]
    with_them, without = compute_aggregates(RESULTS), compute_aggregates(plain)
    for name in ("micro", "macro"):
        assert {key: value for key, value in with_them[name].items() if key not in QUALITY} == without[name]


def test_a_failed_question_is_left_out_of_them_and_counts_as_0_in_gates() -> None:
    results = [*RESULTS, FAILED]
    assert compute_aggregates(results)["micro"]["steps_f1"]["mean"] == pytest.approx((2 / 3 + 0.5) / 3)
    included = compute_aggregates(results, {"aggregates": {"errors": "include"}})
    assert included["micro"]["steps_f1"]["mean"] == pytest.approx((2 / 3 + 0.5) / 4)
    values = RunValues()
    values.add(FAILED)
    assert [values.questions["b_2"].score(key) for key in QUALITY] == [0.0] * 4
    (gate,) = gate_results(results, ["steps_f1=0.8"])
    assert str(gate) == "steps_f1 0.292 < 0.8 (1 failed sample counts as 0)"
