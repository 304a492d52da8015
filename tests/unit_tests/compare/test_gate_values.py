"""Gates of a single run on templates and on statistics other than the mean."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc import register_metric
from graphrag_eval_lc.compare import gate_results
from graphrag_eval_lc.compare.gate_names import STATISTICS, metric_and_statistic

Scored = Callable[..., list[dict[str, Any]]]
SECONDS = [1.0, 2.0, 3.0, 10.0]
OF_NUMPY: dict[str, Callable[[Any], float]] = {
    "mean": np.mean,
    "median": np.median,
    "p95": lambda values: np.quantile(values, 0.95),
    "min": np.min,
    "max": np.max,
    "sum": np.sum,
}


def timed(*seconds: float, **values: Any) -> list[dict[str, Any]]:
    return [
        {"template_id": f"t{index % 2}", "question_id": f"q{index}", "elapsed_sec": each, **values}
        for index, each in enumerate(seconds)
    ]


@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=20))
def test_statistics_equal_numpy(values: list[float]) -> None:
    texts = [f"elapsed_sec.{statistic}=0" for statistic in STATISTICS]
    for gate in gate_results(timed(*values), texts):
        assert gate.value == pytest.approx(OF_NUMPY[gate.statistic](values), rel=1e-9, abs=1e-9)


@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=20), statistic=st.sampled_from(STATISTICS))
def test_exact_bound_passes_and_a_tighter_one_fails(values: list[float], statistic: str) -> None:
    (gate,) = gate_results(timed(*values), [f"elapsed_sec.{statistic}=0"])
    assert gate.value is not None
    bounds = [gate.value, 2 * gate.value + 1, 0.9 * gate.value - 1]
    gates = [{"metric": f"elapsed_sec.{statistic}", "over": bound} for bound in bounds]
    assert [each.has_passed for each in gate_results(timed(*values), gates)] == [True, True, False]


@pytest.mark.parametrize(
    ("results", "gate", "sentence"),
    [
        (timed(*SECONDS), "elapsed_sec.max=3", "elapsed_sec.max 10.00 > 3"),
        (timed(*SECONDS), "elapsed_sec=4", "elapsed_sec 4.00 ≤ 4"),
        (timed(3.0000001), "elapsed_sec=3", "elapsed_sec 3.0000001 > 3"),
        (timed(1.0, total_tokens=55_136_712), "total_tokens=1000000", "total_tokens 55,136,712 > 1,000,000"),
        (timed(1.0, agent_cost=0.0036), "agent_cost=0.001", "agent_cost $0.0036 > 0.001"),
    ],
)
def test_values_have_their_unit_and_enough_digits(results: Any, gate: str, sentence: str) -> None:
    assert gate_results(results, [gate])[0].sentence == sentence


def test_mean_is_over_questions_and_other_statistics_over_samples() -> None:
    repeats = [{**timed(9.0)[0], "repeat": repeat} for repeat in (1, 2, 3)]
    results = [*repeats, *timed(0.0, 1.0)[1:]]
    mean, median = gate_results(results, ["elapsed_sec=1", "elapsed_sec.median=1"])
    assert (mean.value, median.value) == (5.0, 9.0)


def test_usage_of_failed_questions_counts() -> None:
    results = [*timed(1.0), {**timed(0.0, 5.0)[1], "status": "error", "error": "away"}]
    (gate,) = gate_results(results, ["elapsed_sec.max=2"])
    assert str(gate) == "elapsed_sec.max 5.00 > 2"


def test_sum_includes_failed_attempts_and_the_mean_does_not() -> None:
    results = timed(1.0, 2.0, total_tokens=10, failed_attempts=[{"elapsed_sec": 4.0, "total_tokens": 5}, {}])
    assert [gate.value for gate in gate_results(results, ["elapsed_sec.sum=1", "total_tokens.sum=1"])] == [11.0, 30.0]
    assert [gate.value for gate in gate_results(results, ["elapsed_sec=1", "total_tokens.max=1"])] == [1.5, 10.0]


def test_upper_bound_of_a_template_is_shown_only_if_something_is_undecided(scored: Scored) -> None:
    results = scored(0.5, 0.5)
    results[0]["steps_score_upper"] = 1.0
    gates = gate_results(results, ["t0/steps_score=0.6", "t1/steps_score=0.6", "steps_score=0.6"])
    assert [gate.sentence.partition(" 0.500 < 0.6")[2] for gate in gates] == [
        " (1.000 if all undecided steps matched)",
        "",
        " (0.750 if all undecided steps matched)",
    ]


def test_scores_have_statistics_too(scored: Scored) -> None:
    (gate,) = gate_results(scored(1.0, None, 0.5), ["steps_score.min=0.5"])
    assert (gate.value, gate.has_passed) == (0.0, False)
    assert str(gate) == "steps_score.min 0.000 < 0.5 (1 failed sample counts as 0)"


def test_missing_counts_are_0(scored: Scored) -> None:
    results = scored(1.0, 1.0, elapsed_sec=1.0)
    results[0] |= {"steps_counts": {"undecided": 2}}
    gates = gate_results(results, ["undecided.max=1", "outputs_cut=0"])
    assert [(gate.value, gate.has_passed) for gate in gates] == [(2, False), (0, True)]


def test_judge_costs_are_per_sample() -> None:
    judged = {"agent_cost": 0.5, "answer_f1": 1.0, "answer_correctness_cost": 0.25, "answer_relevance": 1.0}
    results = timed(1.0, 1.0, **judged, answer_relevance_cost=0.25)
    assert [gate.value for gate in gate_results(results, ["judges_cost=1", "cost.sum=1"])] == [0.5, 2.0]
    unknown, _ = gate_results(timed(1.0, **judged), ["judges_cost=1", "cost.sum=1"])
    assert unknown.value is None


def test_evaluator_key_that_looks_like_a_statistic_is_the_key(scored: Scored) -> None:
    results = scored(1.0, **{"tone.max": 0.5, "custom_metrics": ["tone.max"]})
    (gate,) = gate_results(results, {"tone.max": 0.4})
    assert (gate.metric, gate.statistic, gate.value) == ("tone.max", "mean", 0.5)


def test_suffix_is_a_statistic_unless_a_metric_has_that_name() -> None:
    assert metric_and_statistic("tone.max") == ("tone", "max")
    assert metric_and_statistic("tone.p99") == ("tone.p99", "mean")
    assert metric_and_statistic(".p95") == (".p95", "mean")
    register_metric(key="tone.max")(lambda question, response: 1.0)
    assert metric_and_statistic("tone.max") == ("tone.max", "mean")
