from typing import Any

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry.custom_metrics import note_recorded, recorded_only_here
from graphrag_eval_lc.report.reported_run import reported_samples
from graphrag_eval_lc.report.spent import Spent


def spent_by(*results: Any) -> Spent:
    spent = Spent(EvaluationConfig())
    known = [{"question_id": str(at), "template_id": "t", **result} for at, result in enumerate(results)]
    for sample in reported_samples(known, Metrics(EvaluationConfig())):
        spent.add(sample)
    return spent


def test_totals_hold_failed_attempts_and_the_rest_is_by_sample() -> None:
    attempt = {"elapsed_sec": 10.0, "total_tokens": 5}
    records = spent_by(
        {"elapsed_sec": 1.0, "total_tokens": 10}, {"elapsed_sec": 3.0, "total_tokens": 30, "failed_attempts": [attempt]}
    ).records()
    time, tokens = records
    assert (time["name"], time["unit"], time["total"], time["mean"], time["median"]) == ("Time", "seconds", 14, 2, 2)
    assert (tokens["total"], tokens["p95"], tokens["n"], tokens["note"]) == (45, 29, 2, None)


def test_what_is_not_measured_of_all_says_so() -> None:
    (record,) = spent_by({"total_tokens": 10}, {}).records()
    assert (record["total"], record["n"]) == (10, 1)
    assert record["note"] == "1 sample is not measured in full, so the total is of the rest"


def test_what_the_totals_hold_beside_the_samples_is_said() -> None:
    assert spent_by({"total_tokens": 5}, {}).note() is None
    assert spent_by({"failed_attempts": [{}]}).note() == "totals include 1 failed attempt"
    assert spent_by({"failed_attempts": [{}]}, {"failed_attempts": [{}, {}]}).note() == (
        "totals include 3 failed attempts"
    )


def test_a_templates_cost_is_the_agents() -> None:
    judged = {"answer_correctness_cost": 0.25, "answer_f1": 1.0}
    assert spent_by({"agent_cost": 0.5, **judged}, judged).means("t")["usd"] == 0.5
    assert spent_by(judged).means("t")["usd"] is None


def test_means_of_a_template_are_over_what_is_known() -> None:
    assert spent_by({"total_tokens": 10}, {"elapsed_sec": 2.0}).means("t") == {
        "tokens": 10,
        "seconds": 2.0,
        "usd": None,
    }


def test_what_users_measured_as_spent_is_shown_by_the_record_alone() -> None:
    told = {"title": "energy", "kind": "spent", "unit": "kWh", "lower_is_better": True, "range": [0, None]}
    with recorded_only_here():
        note_recorded([("energy", told)])
        (record,) = spent_by({"energy": 2.0, "custom_metrics": ["energy"]}, {"energy": 4.0}).records()
    assert (record["name"], record["unit"], record["total"]) == ("energy", "kWh", 6.0)
